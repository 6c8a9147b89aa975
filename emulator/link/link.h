/* One direction of an emulated path, with the semantics of Mahimahi's mpshell and mm-link:
 *
 *     enqueue -> delay -> random loss, on/off -> duplication -> queue -> delivery opportunities of the trace -> pull
 *
 * An opportunity delivers 1504 bytes, if the configuration does not say less. What a packet leaves unused serves the
 * next queued packets; a packet served in part goes on at the next opportunity; with an empty queue the rest is lost.
 * Opportunities pass with time, used or not, and a packet that reaches the queue in millisecond t uses opportunities
 * after t only (with a constant rate, whose opportunities are not at whole ms: opportunities after its arrival).
 *
 * Packets stay in order, also where the delay falls or jitters: none leaves the delay before the one that came before
 * it. Only packets that `reorder` picks are taken out of this order.
 *
 * With a light trace the delay is that of light.h, and packets of a short burst pass by the queue while it is empty.
 *
 * Sans-IO: no clock, no file, no randomness of its own. All times are us since t0, the common start of all links of
 * an emulation, and must not decrease from call to call. The driver's loop is:
 *
 *     packet comes in:           link_enqueue(link, packet, now)
 *     next_deadline is reached:  link_advance(link, now);
 *                                while ((p = link_pull(link))) { send p; link_departed(link, p, now); }
 *
 * The work per call is bounded by the packets moved, not by the time or the opportunities that passed (unless a log
 * is attached: it has a line for every opportunity), nor by the length of the queue. */
#ifndef RAILYARD_LINK_LINK_H
#define RAILYARD_LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/delay_trace.h"
#include "emulator/link/lateness.h"
#include "emulator/link/light.h"
#include "emulator/link/log.h"
#include "emulator/link/loss.h"
#include "emulator/link/onoff.h"
#include "emulator/link/packet.h"
#include "emulator/link/radio.h"
#include "emulator/link/trace.h"

#define LINK_NEVER UINT64_MAX

struct link_config {
    const struct link_trace *trace; /* borrowed for the life of the link */
    bool once;                /* after the trace's last opportunity there are no more, instead of again the first */
    uint64_t start_offset_ms; /* the place in the trace, and in the delay trace, at which t0 falls */
    struct link_pool *pool;   /* borrowed; packets of this link come from it and go back to it */
    struct link_log *log;     /* borrowed; NULL = no log */
    const char *queue;        /* specification, see queue.h; only read by link_new; NULL = infinite */
    uint64_t delay_us;        /* one way */
    const struct link_delay_trace *delay_trace; /* borrowed; takes the place of delay_us; NULL = none */
    bool hold_delay;                            /* the delay trace's last delay holds for ever, instead of looping */
    struct link_light light;                    /* takes the place of both; its opportunity_bytes are set by link_new */
    uint32_t opportunity_bytes;                 /* at most 1504; 0 = 1504 */
    uint64_t jitter_us;                         /* the delay is uniform within this much of it, and not negative */
    double reorder;                             /* probability that a packet takes reorder_us longer, on its own */
    uint64_t reorder_us;
    struct link_radio radio; /* added to the delay of the first packet after a pause */
    struct link_loss loss;
    struct link_onoff onoff;
    double duplicate; /* probability that a packet arrives at the queue twice */
    uint64_t seed;    /* of all that is random: link_seed() gives each direction of each path its own. Each effect
                       * has a stream of its own: switching one on leaves the others' draws as they are. */
};

struct link_stats {
    uint64_t opportunities;      /* that passed since t0 */
    uint64_t opportunities_used; /* of those, delivered at least one byte */
    uint64_t missed;             /* passed unused while packets may have waited for a late driver: link_count_missed */
    /* arrived + duplicates =
     *     departed + queue_drops + random_losses + off_losses + oversize_drops + memory_drops + still inside.
     * Bytes are IP bytes + 4 a packet. */
    uint64_t arrived_packets, arrived_bytes;
    uint64_t departed_packets, departed_bytes;
    uint64_t queue_drops;
    uint64_t random_losses;
    uint64_t off_losses;     /* came while the link was off or down */
    uint64_t oversize_drops; /* over 1504 bytes with the 4 added */
    uint64_t memory_drops;   /* told by link_refuse */
    uint64_t inside_packets; /* in delay, queue, or waiting to be pulled */
    uint64_t duplicates;     /* second copies that were made */
    uint64_t reordered;      /* packets picked for the longer delay */
    uint64_t queued_packets; /* now; without the one that is served in part */
    uint64_t queued_bytes;
    uint64_t queueing_us; /* of the last departed packet: from the arrival at the queue to the departure */
};

struct link;

/* NULL and one sentence in error if the configuration is wrong or there is no memory. */
struct link *link_new(const struct link_config *config, char *error, size_t error_size);
/* Gives all packets inside back to the pool. NULL is allowed. */
void link_free(struct link *link);

/* A packet enters the link; the link owns it from here on, whatever happens to it. */
void link_enqueue(struct link *link, struct link_packet *packet, uint64_t now);
/* A packet of length IP bytes came, but the driver had no memory to take it in. */
void link_refuse(struct link *link, uint32_t length);
/* When the link next has something to deliver; LINK_NEVER if it is empty. */
uint64_t link_next_deadline(const struct link *link);
/* Lets time pass until now. */
void link_advance(struct link *link, uint64_t now);
/* The next packet whose time has come (packet->due_us), or NULL. The caller owns it, sends it and calls
 * link_departed. */
struct link_packet *link_pull(struct link *link);
/* A pulled packet has left at now: logs the departure, counts it and its lateness, frees it. */
void link_departed(struct link *link, struct link_packet *packet, uint64_t now);
/* The driver did not look at its input from since to now, and then found a packet there: if the link is empty, the
 * opportunities of that time are counted as missed. To be called before the packet is enqueued. */
void link_count_missed(struct link *link, uint64_t since, uint64_t now);

/* Changes at run time, from now on; a deadline that the driver holds may change with them. Packets inside keep the
 * delay that they were given.
 *
 * link_set_delay ends a delay trace or a light trace. link_set_loss with an invalid model returns -1 and changes
 * nothing.
 * link_set_up(false): packets that reach the end of the delay are lost, opportunities pass unused, the queue waits.
 * link_set_trace: trace time 0 falls on now; with the rate, there are evenly spaced opportunities in place of a
 * trace (at most LINK_TRACE_MAX_RATE_BPS; -1 for 0 or more than that). */
void link_set_delay(struct link *link, uint64_t delay_us, uint64_t now);
int link_set_loss(struct link *link, const struct link_loss *loss, uint64_t now);
void link_set_up(struct link *link, bool up, uint64_t now);
bool link_is_up(const struct link *link);
void link_set_trace(struct link *link, const struct link_trace *trace, uint64_t now);
int link_set_rate(struct link *link, uint64_t rate_bps, uint64_t now);

/* The figures as of the last call that carried a time. */
struct link_stats link_stats(const struct link *link);
const struct link_lateness *link_lateness(const struct link *link);
/* The queue as mm-link's log describes it. */
const char *link_queue_description(const struct link *link);

#endif
