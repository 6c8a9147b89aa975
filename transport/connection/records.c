#include "connection/records.h"

#include <stdlib.h>
#include <string.h>

/* Sizes of the first slab, which is enough for an idle connection, and of the largest. Each is twice the one before. */
#define SLAB_FIRST 16
#define SLAB_MOST  256

static void put_free(xl_records *p, xl_sent_frame *r) {
    r->next = p->free;
    p->free = r;
}

static bool grow(xl_records *p) {
    void **slabs = realloc(p->slabs, (p->slab_count + 1) * sizeof *slabs);
    if (!slabs)
        return false;
    p->slabs = slabs;
    size_t count = p->slab_count < 4 ? (size_t)SLAB_FIRST << p->slab_count : SLAB_MOST;
    xl_sent_frame *slab = calloc(count, sizeof *slab);
    if (!slab)
        return false;
    p->slabs[p->slab_count++] = slab;
    for (size_t i = 0; i < count; i++)
        put_free(p, &slab[i]);
    return true;
}

xl_sent_frame *xl_records_new(xl_records *p) {
    if (!p->free && !grow(p))
        return NULL;
    xl_sent_frame *r = p->free;
    p->free = r->next;
    p->in_use++;
    memset(r, 0, sizeof *r);
    return r;
}

void xl_records_give_back(xl_records *p, xl_sent_frame *r) {
    put_free(p, r);
    p->in_use--;
}

void xl_records_rest(xl_records *p) {
    if (p->in_use == 0 && p->slab_count > 1)
        xl_records_free(p);
}

void xl_records_free(xl_records *p) {
    for (size_t i = 0; i < p->slab_count; i++)
        free(p->slabs[i]);
    free(p->slabs);
    *p = (xl_records){.free = NULL};
}
