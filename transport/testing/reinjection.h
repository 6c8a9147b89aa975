/* Shared by tests of re-injection: two paths, an outage, and the contents of the server's qlog. */
#pragma once

#include "testing/pair.h"

#include <jansson.h>

#define PACKET 1400 /* approximate bytes of a stream in a full packet */

/* ---- the server's qlog ---- */

/* Ends the server, which completes its log, and returns the log as an array of records. */
static inline json_t *read_log(pair *p) {
    json_t *records = json_array();
    xl_endpoint_free(p->server);
    p->server = NULL;
    for (char *at = p->qlog.text; at && *at; at = strchr(at, '\n') + 1) {
        json_t *record = json_loads(at + 1, JSON_DISABLE_EOF_CHECK, NULL);
        assert_non_null(record);
        json_array_append_new(records, record);
    }
    return records;
}

static inline bool is_event(const json_t *record, const char *name) {
    const char *has = json_string_value(json_object_get(record, "name"));
    return has && strcmp(has, name) == 0;
}

static const json_t *data_of(const json_t *record) {
    return json_object_get(record, "data");
}

static inline uint64_t whole(const json_t *data, const char *member) {
    return (uint64_t)json_integer_value(json_object_get(data, member));
}

static inline double number(const json_t *data, const char *member) {
    return json_number_value(json_object_get(data, member));
}

static const char *text(const json_t *data, const char *member) {
    const char *s = json_string_value(json_object_get(data, member));
    return s ? s : "";
}

static inline size_t count_events(const json_t *records, const char *name) {
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(records); i++)
        n += is_event(json_array_get(records, i), name);
    return n;
}

/* The last event of that name, or NULL. */
static const json_t *last_event(const json_t *records, const char *name) {
    for (size_t i = json_array_size(records); i-- > 0;)
        if (is_event(json_array_get(records, i), name))
            return data_of(json_array_get(records, i));
    return NULL;
}

/* ---- the network ---- */

/* Path 0 fast, path 1 slow, both open and measured; nothing of a stream was sent yet. */
static inline void two_paths(pair *p, uint64_t seed, uint64_t fast_us, uint64_t slow_us, const char *mode) {
    pair_init(p, seed, 2, fast_us);
    pair_multipath(p, "minrtt", mode);
    pair_delay(&p->link[1], slow_us);
    pair_capture_qlog(p);
}

static inline void start(pair *p) {
    pair_establish(p);
    pair_run(p, 6000000);
    for (size_t i = 0; i < p->link_count; i++)
        assert_int_equal(XL_PATH_ACTIVE, pair_server_path(p, i).state);
}

/* Removes the newest `count` datagrams to the client that are in transit on a link. */
static inline void lose_newest(pair *p, size_t link, size_t count) {
    while (count-- > 0) {
        pair_datagram **newest = NULL;
        for (pair_datagram **at = &p->queue; *at; at = &(*at)->next)
            if (!(*at)->to_server && pair_link_of(p, &(*at)->d.local) == &p->link[link])
                newest = at;
        assert_non_null(newest);
        pair_datagram *gone = *newest;
        *newest = gone->next;
        free(gone);
    }
}

/* Runs until the server has sent all of its answer once. */
static inline void until_flushed(pair *p, size_t request) {
    const xl_stream *s = xl_conn_stream(p->sc, p->request[request].id);
    while (!s || !xl_send_is_flushed(&s->send)) {
        assert_true(pair_step(p));
        s = xl_conn_stream(p->sc, p->request[request].id);
    }
}
