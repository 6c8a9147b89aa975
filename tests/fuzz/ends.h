/* Two endpoints and the datagrams between them on a virtual clock, for harnesses of layers above the transport. Index 0
 * is the client. Each has a function that handles its timers and events. */
#pragma once

#include "tests/fuzz/input.h"
#include "xlink/xlink.h"

#define ENDS_ONE_WAY_US 10000
#define ENDS_IN_AIR     512
#define ENDS_MTU        1452
#define ENDS_STEPS      4000 /* per input */

typedef struct {
    uint64_t at;
    bool to_server;
    xl_datagram head;
    uint8_t data[ENDS_MTU];
} ends_flight;

typedef struct {
    uint64_t now;
    xl_endpoint *endpoint[2];
    void (*act[2])(void *user, uint64_t now);
    void (*see)(void *user, bool to_server, const uint8_t *data,
                size_t len); /* called for each datagram; may be NULL */
    void *user;
    ends_flight *air;
    size_t first, count; /* of the ring */
    unsigned steps;
} ends;

static inline void ends_init(ends *e, void *user) {
    memset(e, 0, sizeof *e);
    e->now = 1000000;
    e->user = user;
    e->air = calloc(ENDS_IN_AIR, sizeof *e->air);
    FUZZ_CHECK(e->air != NULL);
}

static inline void ends_transmit(ends *e) {
    for (int side = 0; side < 2; side++) {
        uint8_t buf[ENDS_MTU];
        xl_datagram head;
        size_t len;
        unsigned sent = 0;
        while ((len = xl_endpoint_transmit(e->endpoint[side], buf, sizeof buf, &head, e->now)) > 0) {
            FUZZ_CHECK(++sent < 4096);
            if (e->see)
                e->see(e->user, side == 0, buf, len);
            if (e->count == ENDS_IN_AIR) /* lost */
                continue;
            ends_flight *f = &e->air[(e->first + e->count++) % ENDS_IN_AIR];
            *f = (ends_flight){.at = e->now + ENDS_ONE_WAY_US, .to_server = side == 0, .head = head};
            f->head.local = head.remote;
            f->head.remote = head.local;
            f->head.len = len;
            memcpy(f->data, buf, len);
        }
    }
}

static inline void ends_moment(ends *e) {
    for (; e->count > 0 && e->air[e->first].at <= e->now; e->count--, e->first = (e->first + 1) % ENDS_IN_AIR) {
        ends_flight *f = &e->air[e->first];
        xl_endpoint_receive(e->endpoint[f->to_server], &f->head, f->data, e->now);
    }
    for (int side = 0; side < 2; side++)
        e->act[side](e->user, e->now);
    ends_transmit(e);
}

static inline void ends_run(ends *e, uint64_t duration_us) {
    uint64_t end = e->now + duration_us;
    ends_moment(e);
    while (e->steps++ < ENDS_STEPS) {
        uint64_t a = xl_endpoint_next_timeout(e->endpoint[0]), b = xl_endpoint_next_timeout(e->endpoint[1]);
        uint64_t at = a < b ? a : b;
        at = e->count > 0 && e->air[e->first].at < at ? e->air[e->first].at : at;
        if (at > end)
            break;
        e->now = at > e->now ? at : e->now + 1;
        ends_moment(e);
    }
    e->now = end > e->now ? end : e->now;
}
