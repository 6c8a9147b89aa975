/* Creates nghttp3's part of a session, and frees a server's while no request is open. Its state is then only that of
 * the critical streams, and is restored from their first bytes. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "http/http3_internal.h"

#define SPARSE_FROM   8192
#define MAX_VECS      4
#define MOST_CONTROLS 4 /* of a session that rests: the peer's control stream, QPACK's two, and a reserved one */

/* Returns the pages of a large block to the kernel. nghttp3 allocates 44 kB for 64 streams and 8 kB for stream IDs at
 * once, and uses both from the beginning. So unused pages take no memory, even if malloc() reuses a block, and neither
 * do those of a resting session. */
static void drop_pages(uint8_t *at) {
    const size_t size = malloc_usable_size(at);
    if (size < SPARSE_FROM)
        return;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (page - (uintptr_t)at % page) % page;
    (void)madvise(at + before, (size - before) / page * page, MADV_DONTNEED);
}

static void *new_memory(size_t size, void *user) {
    (void)user;
    void *at = malloc(size);
    drop_pages(at);
    return at;
}

static void free_memory(void *at, void *user) {
    (void)user;
    drop_pages(at);
    free(at);
}

static void *zeroed_memory(size_t count, size_t size, void *user) {
    (void)user;
    return calloc(count, size);
}

static void *moved_memory(void *at, size_t size, void *user) {
    (void)user;
    return realloc(at, size);
}

static const nghttp3_mem memory = {
    .malloc = new_memory, .free = free_memory, .calloc = zeroed_memory, .realloc = moved_memory};

int h3_make(h3_session *s) {
    nghttp3_settings settings;
    nghttp3_settings_default(&settings);
    settings.max_field_section_size = H3_MAX_FIELD_SECTION_BYTES;
    settings.qpack_max_dtable_capacity = 0;
    settings.qpack_encoder_max_dtable_capacity = 0;
    settings.qpack_blocked_streams = 0;
    const int rv = s->is_server ? nghttp3_conn_server_new(&s->h3, &h3_nghttp3_callbacks, &settings, &memory, s)
                                : nghttp3_conn_client_new(&s->h3, &h3_nghttp3_callbacks, &settings, &memory, s);
    if (rv != 0)
        s->h3 = NULL;
    else if (s->is_server)
        nghttp3_conn_set_max_client_streams_bidi(s->h3, s->max_client_streams);
    return rv;
}

int h3_bind(h3_session *s) {
    const int rv = nghttp3_conn_bind_control_stream(s->h3, (int64_t)s->critical[0]);
    return rv != 0 ? rv : nghttp3_conn_bind_qpack_streams(s->h3, (int64_t)s->critical[1], (int64_t)s->critical[2]);
}

void h3_note_opening(h3_session *s, h3_control *c, const uint8_t *data, size_t len) {
    if (len > sizeof c->opening - c->opening_bytes) {
        s->is_restless = true;
        return;
    }
    memcpy(c->opening + c->opening_bytes, data, len);
    c->opening_bytes = (uint8_t)(c->opening_bytes + len);
}

h3_control *h3_control_of(h3_session *s, uint64_t id) {
    h3_control **at = &s->controls;
    size_t others = 0;
    for (; *at && (*at)->id != id; at = &(*at)->next)
        others++;
    s->is_restless |= others >= MOST_CONTROLS;
    if (!*at && (*at = calloc(1, sizeof **at)))
        (*at)->id = id;
    return *at;
}

void h3_forget_control(h3_session *s, uint64_t id) {
    for (h3_control **at = &s->controls; *at; at = &(*at)->next) {
        if ((*at)->id != id)
            continue;
        h3_control *gone = *at;
        *at = gone->next;
        free(gone);
        return;
    }
}

void h3_rest(h3_session *s) {
    if (!s->h3 || !s->is_server || !s->ready || s->failed || s->streams || !s->is_flushed || s->is_restless)
        return;
    nghttp3_conn_del(s->h3);
    s->h3 = NULL;
}

/* Discards nghttp3's first bytes on the critical streams, which were sent before. */
static int skip_written(h3_session *s) {
    for (;;) {
        nghttp3_vec vec[MAX_VECS];
        int64_t id = -1;
        int fin = 0, rv;
        const nghttp3_ssize count = nghttp3_conn_writev_stream(s->h3, &id, &fin, vec, MAX_VECS);
        if (count < 0 || (count == 0 && id == -1))
            return (int)count;
        const size_t len = nghttp3_vec_len(vec, (size_t)count);
        if ((rv = nghttp3_conn_add_write_offset(s->h3, id, len)) != 0 ||
            (rv = nghttp3_conn_add_ack_offset(s->h3, id, len)) != 0)
            return rv;
    }
}

int h3_wake(h3_session *s) {
    int rv = h3_make(s);
    if (rv == 0)
        rv = h3_bind(s);
    if (rv == 0)
        rv = skip_written(s);
    for (const h3_control *c = s->controls; rv == 0 && c; c = c->next) {
        const nghttp3_ssize n = nghttp3_conn_read_stream(s->h3, (int64_t)c->id, c->opening, c->opening_bytes, 0);
        rv = n < 0 ? (int)n : 0;
    }
    return rv;
}
