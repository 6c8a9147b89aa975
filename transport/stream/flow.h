/* Flow control accounting of one limit, RFC 9000 section 4: a stream's or the connection's, both directions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Credit that we grant. A new limit is announced once half of the window was consumed. If that took less than two RTTs,
 * the window may be what limits the peer: it doubles, up to `most`. For example: half of 6 MiB within 2 x 20 ms is a
 * rate of more than 629 Mbit/s. */
typedef struct {
    uint64_t window;   /* bytes granted beyond what was consumed */
    uint64_t most;     /* bytes that the window grows to */
    uint64_t raised;   /* when the limit was last raised; XL_NEVER: not yet */
    uint64_t limit;    /* announced: the peer may send below this offset */
    uint64_t received; /* highest offset; for the connection the sum of those of its streams */
    uint64_t consumed; /* bytes handed to the application */
} xl_flow_in;

void xl_flow_in_init(xl_flow_in *, uint64_t window, uint64_t most);
bool xl_flow_in_should_update(const xl_flow_in *);
/* Raises the limit and returns it. rtt_us: round-trip time of the slowest path, 0 if none is measured yet. */
uint64_t xl_flow_in_update(xl_flow_in *, uint64_t now, uint64_t rtt_us);

/* Credit that the peer grants. */
typedef struct {
    uint64_t limit, used;
    uint64_t blocked_at; /* limit at which BLOCKED was last sent, UINT64_MAX none */
} xl_flow_out;

void xl_flow_out_init(xl_flow_out *, uint64_t limit);
bool xl_flow_out_raise(xl_flow_out *, uint64_t limit); /* returns whether it grew */
uint64_t xl_flow_out_left(const xl_flow_out *);
/* Whether the sender is at the limit and has not reported it. Marks it as reported. */
bool xl_flow_out_take_blocked(xl_flow_out *);
