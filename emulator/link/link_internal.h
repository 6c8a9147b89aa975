/* The state of a link and the arithmetic of its service, for link.c and foresight.c. */
#pragma once

#include "emulator/link/link.h"
#include "emulator/link/queue.h"
#include "emulator/link/rng.h"

/* A direction's radio: when the last packet came (LINK_NEVER: none has), and when it became or becomes awake. */
typedef struct {
    uint64_t last_us, awake_us;
} link_wake;

struct emulated_link {
    const link_trace *trace;
    link_trace constant;    /* the trace after link_set_rate */
    uint64_t trace_end;     /* number of opportunities; LINK_NEVER: no end */
    int64_t trace_start_us; /* trace time 0, us since t0 */
    link_config set;        /* the configuration, with changes at run time; `queue` is NULL */
    bool down;
    link_rng jitter_rng, reorder_rng, duplicate_rng, leo_rng;
    uint64_t leo_seed;
    link_wake wake;
    uint64_t grants_phase_us;
    link_grants_state grants;
    link_loss_state loss;
    link_onoff_state onoff;
    link_burst burst; /* with a light trace */
    link_cross_state cross;
    bool has_cross, is_infinite; /* has_cross: others' traffic; is_infinite: the queue */

    link_fifo delayed; /* due_us = when the delay ends */
    link_fifo held;    /* the same for reordered packets */
    link_queue *queue;
    link_packet *in_transit;  /* dequeued and served in part */
    uint32_t in_transit_left; /* bytes of it that are not served yet */
    link_fifo delivered;      /* due_us = the opportunity that completed it */
    uint64_t served_us;       /* when the queue's last packet left; LINK_NEVER: none has */

    uint64_t first_opportunity; /* number of the first opportunity of this trace on this link */
    uint64_t next_opportunity;  /* number of the first opportunity that has not passed */
    uint64_t passed_before;     /* opportunities of earlier traces (link_set_trace) */
    link_stats stats;
    link_lateness lateness;
};

/* Time of opportunity number k, us since t0; LINK_NEVER after the end. k must not be before t0. */
static inline uint64_t opportunity_us(const emulated_link *link, uint64_t k) {
    return k >= link->trace_end ? LINK_NEVER
                                : link_trace_opportunity_us(link->trace, k) + (uint64_t)link->trace_start_us;
}

/* Number of the first opportunity after time t (us since t0). */
static inline uint64_t opportunity_after(const emulated_link *link, uint64_t t) {
    uint64_t k = link_trace_count_near(link->trace, link->next_opportunity, t - (uint64_t)link->trace_start_us);
    return k < link->trace_end ? k : link->trace_end;
}

static inline uint64_t delay_at(const emulated_link *link, uint64_t t) {
    uint64_t trace_us = t + link->set.start_offset_ms * 1000;
    if (link->set.light.trace)
        return link_light_delay_at(link->set.light.trace, trace_us, NULL);
    uint64_t delay = link->set.delay_trace ? link_steps_at(link->set.delay_trace, trace_us, link->set.hold_delay, NULL)
                                           : link->set.delay_us;
    return link_leo_is_on(&link->set.leo) ? link_leo_delay(&link->set.leo, link->leo_seed, delay, trace_us) : delay;
}

/* The delay of a packet of this size that comes now, without radio and jitter. */
static inline uint64_t next_delay(const emulated_link *link, link_burst *burst, uint64_t now, uint32_t bytes,
                                  bool *direct) {
    *direct = false;
    if (!link->set.light.trace)
        return delay_at(link, now);
    return link_burst_next(burst, &link->set.light, now, now + link->set.start_offset_ms * 1000, bytes, direct) - now;
}

/* Serves as many of *wanted bytes as fit into *left free bytes of an opportunity. */
static inline void link_serve(uint32_t *left, uint32_t *wanted) {
    uint32_t served = *wanted < *left ? *wanted : *left;
    *left -= served;
    *wanted -= served;
}

/* Whether the reordered packet leaves the delay before the one in order. Either may be NULL. */
static inline bool held_goes_first(const link_packet *held, const link_packet *in_order) {
    return held && (!in_order || held->due_us < in_order->due_us);
}

/* Returns how long a packet of this size that arrives now waits until the radio is awake and may send it. */
static inline uint64_t wait_for_radio(const emulated_link *link, link_wake *wake, link_rrc *rrc,
                                      link_grants_state *grants, uint64_t now, uint32_t bytes) {
    uint64_t pause = wake->last_us == LINK_NEVER ? LINK_RADIO_NO_PACKET : now - wake->last_us;
    uint64_t wait = rrc ? link_rrc_wait(rrc, link->set.is_downlink, now) : 0;
    if (wait == 0)
        wait = link_radio_wait(&link->set.radio, pause);
    wake->last_us = now;
    if (now + wait > wake->awake_us)
        wake->awake_us = now + wait;
    wait = wake->awake_us - now;
    return link->set.grants.sr_us == 0
               ? wait
               : wait + link_grants_wait(&link->set.grants, grants, link->grants_phase_us, now + wait, bytes);
}
