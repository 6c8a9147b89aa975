/* For tests: two paths, or more, of one connection. Included by test programs; every function is static. */
#pragma once

#include "testing/pair.h"

/* Limits both directions of a path, with 100 ms of queue. */
static inline void limit(pair_link *l, uint64_t mbps) {
    pair_limit(l, mbps * 125000, 100000);
}

/* Connects with validated paths, of 20 Mbps unless they have a rate. */
static inline void start(pair *p) {
    if (!p->client_config.scheme.scheduler || strcmp(p->client_config.scheme.scheduler, "xlink") != 0)
        pair_multipath(p, "minrtt", "none");
    for (size_t i = 0; i < p->link_count; i++)
        if (p->link[i].bytes_per_s[0] == 0)
            limit(&p->link[i], 20);
    pair_settle(p, 400000);
    for (size_t i = 0; i < p->link_count; i++)
        assert_int_equal(XL_PATH_ACTIVE, pair_server_path(p, i).state);
}

static inline uint64_t sent_on(pair *p, size_t path) {
    return pair_server_path(p, path).stream_bytes_sent;
}
