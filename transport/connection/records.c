#include "connection/records.h"

#include <stdlib.h>
#include <string.h>

#define SLAB_RECORDS 256

static bool grow(xl_records *p) {
    void **slabs = realloc(p->slabs, (p->slab_count + 1) * sizeof *slabs);
    if (!slabs)
        return false;
    p->slabs = slabs;
    xl_sent_frame *slab = calloc(SLAB_RECORDS, sizeof *slab);
    if (!slab)
        return false;
    p->slabs[p->slab_count++] = slab;
    for (size_t i = 0; i < SLAB_RECORDS; i++)
        xl_records_give_back(p, &slab[i]);
    return true;
}

xl_sent_frame *xl_records_new(xl_records *p) {
    if (!p->free && !grow(p))
        return NULL;
    xl_sent_frame *r = p->free;
    p->free = r->next;
    memset(r, 0, sizeof *r);
    return r;
}

void xl_records_give_back(xl_records *p, xl_sent_frame *r) {
    r->next = p->free;
    p->free = r;
}

void xl_records_free(xl_records *p) {
    for (size_t i = 0; i < p->slab_count; i++)
        free(p->slabs[i]);
    free(p->slabs);
    *p = (xl_records){.free = NULL};
}
