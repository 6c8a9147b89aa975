/* For tests above the transport: datagrams between the endpoints of clients and of a server, in memory, on the test's
 * clock. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "tests/unit.h"
#include "xlink/xlink.h"

#define AIR_MTU 1452

typedef struct air_datagram {
    struct air_datagram *next;
    uint64_t at;
    bool to_server;
    xl_datagram head; /* as the receiver sees it */
    uint8_t data[AIR_MTU];
} air_datagram;

typedef struct {
    uint64_t one_way_us;
    bool is_lost[2]; /* all datagrams to clients, to the server */
    air_datagram *first, *last;
} air;

/* Takes what the endpoint has to send. */
static inline void air_take(air *a, xl_endpoint *from, bool to_server, uint64_t now) {
    uint8_t buf[AIR_MTU];
    xl_datagram head;
    size_t len;
    while ((len = xl_endpoint_transmit(from, buf, sizeof buf, &head, now)) > 0) {
        if (a->is_lost[to_server])
            continue;
        air_datagram *d = calloc(1, sizeof *d);
        assert_non_null(d);
        *d = (air_datagram){.at = now + a->one_way_us, .to_server = to_server};
        d->head = (xl_datagram){.local = head.remote, .remote = head.local, .len = len};
        memcpy(d->data, buf, len);
        *(a->last ? &a->last->next : &a->first) = d;
        a->last = d;
    }
}

/* Returns when the next datagram arrives; XL_NEVER: there is none. */
static inline uint64_t air_next(const air *a) {
    return a->first ? a->first->at : XL_NEVER;
}

static inline void air_drop_first(air *a) {
    air_datagram *d = a->first;
    a->first = d->next;
    a->last = a->first ? a->last : NULL;
    free(d);
}

/* Delivers what has arrived by now. */
static inline void air_deliver(air *a, xl_endpoint *clients, xl_endpoint *server, uint64_t now) {
    for (; air_next(a) <= now; air_drop_first(a))
        xl_endpoint_receive(a->first->to_server ? server : clients, &a->first->head, a->first->data, now);
}

static inline void air_clear(air *a) {
    while (a->first)
        air_drop_first(a);
}
