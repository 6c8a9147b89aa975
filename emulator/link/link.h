/* One direction of an emulated path, with the semantics of Mahimahi's mpshell and mm-link:
 *
 *     enqueue -> delay -> random loss, on/off -> duplication -> queue -> delivery opportunities of the trace -> pull
 *
 * An opportunity delivers 1504 bytes, or opportunity_bytes. Bytes that a packet leaves unused serve the next queued
 * packets; they are lost if the queue is empty. A packet that is served in part continues at the next opportunity.
 * Opportunities pass with time, used or not. A packet that reaches the queue in millisecond t uses only opportunities
 * after t. The opportunities of a constant rate are not at whole milliseconds: a packet uses those after its arrival.
 *
 * Packets stay in order even if the delay falls or jitters: no packet leaves the delay before an earlier one, except
 * packets that `reorder` selects.
 *
 * Others' traffic joins the queue from within the link, and is served and dropped there (cross.h).
 *
 * With a light trace the delay follows light.h, and packets of a short burst bypass the queue while it is empty.
 *
 * With an air (air.h), which both directions of a path share, transmissions serve the queue instead of opportunities.
 * Then every call for one direction advances both.
 *
 * Sans-IO: no clock, no file, no randomness of its own. All times are us since t0, the common start of all links of
 * an emulation, and must not decrease from call to call. The driver's loop is:
 *
 *     packet comes in:           link_enqueue(link, packet, now)
 *     next_deadline is reached:  link_advance(link, now);
 *                                while ((p = link_pull(link))) { send p; link_departed(link, p, now); }
 *
 * The work per call grows with the packets moved, not with the time or opportunities that passed (except with a log,
 * which has a line for every opportunity) or with the length of the queue. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/air.h"
#include "emulator/link/cross.h"
#include "emulator/link/steps.h"
#include "emulator/link/lateness.h"
#include "emulator/link/grants.h"
#include "emulator/link/leo.h"
#include "emulator/link/light.h"
#include "emulator/link/log.h"
#include "emulator/link/loss.h"
#include "emulator/link/nat.h"
#include "emulator/link/onoff.h"
#include "emulator/link/packet.h"
#include "emulator/link/radio.h"
#include "emulator/link/trace.h"

#define LINK_NEVER     UINT64_MAX
#define LINK_MTU_LEAST 68u /* RFC 791 */
#define LINK_MTU_MOST  (LINK_OPPORTUNITY_BYTES - LINK_HEADER_BYTES)

typedef struct {
    const link_trace *trace;       /* borrowed for the life of the link */
    bool once;                     /* no opportunities after the trace's last one; false: the trace repeats */
    uint64_t start_offset_ms;      /* position in the trace, and in the delay trace, at t0 */
    link_pool *pool;               /* borrowed; memory of this link's packets */
    link_log *log;                 /* borrowed; NULL = no log */
    const char *queue;             /* specification, see queue.h; read by link_new only; NULL = infinite */
    uint64_t delay_us;             /* one way */
    const link_steps *delay_trace; /* borrowed; replaces delay_us; NULL = none */
    bool hold_delay;               /* the delay trace's last delay holds from then on; false: it repeats */
    link_light light;              /* replaces both; link_new sets its opportunity_bytes */
    uint32_t opportunity_bytes;    /* at most 1504; 0 = 1504 */
    uint32_t mtu_bytes;            /* of IP packets, at most 1500; 0 = 1500 */
    uint64_t jitter_us;            /* the delay is uniform in delay_us ± jitter_us, at least 0 */
    double reorder;                /* probability that a packet is delayed by reorder_us more */
    uint64_t reorder_us;
    link_leo leo;       /* pauses, delay steps and losses at satellite changes */
    link_radio radio;   /* added to the delay of the first packet after a pause */
    link_rrc *rrc;      /* borrowed, the path's; replaces promotion and tail of the radio; NULL = none */
    link_grants grants; /* added after the radio's wait */
    link_loss loss;
    link_onoff onoff;
    double duplicate; /* probability that a packet arrives at the queue twice */
    link_cross cross; /* others' traffic; needs a queue with a limit */
    link_nat *nat;    /* borrowed, the path's; NULL = none */
    link_air *air;    /* borrowed, the path's; replaces the trace; NULL = none */
    bool is_downlink; /* direction, for the NAT and the air */
    uint64_t seed;    /* of all random choices: link_seed() gives one for each direction of each path. Each effect
                           * has its own random stream: enabling one does not change the draws of the others. */
} link_config;

typedef struct {
    uint64_t opportunities;      /* passed since t0; with an air: transmissions */
    uint64_t opportunities_used; /* delivered at least one byte */
    uint64_t missed;             /* passed unused while packets may have waited for a late driver */
    /* arrived + duplicates =
     *     departed + queue_drops + random_losses + off_losses + oversize_drops + memory_drops + nat_drops +
     *     retry_drops + inside.
     * Bytes are IP bytes + 4 for each packet. */
    uint64_t arrived_packets, arrived_bytes;
    uint64_t departed_packets, departed_bytes;
    uint64_t queue_drops;
    uint64_t random_losses;
    uint64_t off_losses;     /* arrived while the link was off or down */
    uint64_t oversize_drops; /* longer than the MTU */
    uint64_t memory_drops;   /* counted by link_refuse */
    uint64_t nat_drops;      /* rejected by the NAT */
    uint64_t nat_mappings;   /* ports that the NAT assigned; 0 for a downlink */
    uint64_t retry_drops;    /* given up by Wi-Fi */
    uint64_t inside_packets; /* in the delay, in the queue, in the air, or ready to be pulled */
    uint64_t duplicates;     /* second copies made */
    /* Others' traffic, which the figures above except opportunities_used leave out:
     * cross_packets = cross_departed + cross_drops + cross_inside. */
    uint64_t cross_packets, cross_departed, cross_departed_bytes;
    uint64_t cross_drops; /* by queue or Wi-Fi, while the link was off or down, or without memory */
    uint64_t cross_inside;
    uint64_t reordered;      /* packets selected for the longer delay */
    uint64_t queued_packets; /* at present, others' traffic included, without one that is served in part */
    uint64_t queued_bytes;
    uint64_t queueing_us; /* of the last departed packet, from arrival at the queue to departure */
    link_air_stats air;
} link_stats;

/* Changes at run time. All zero changes nothing. Values must be valid.
 *
 * A link that is down: packets that reach the end of the delay are lost, opportunities pass unused, the queue waits.
 * With an air, a trace has an effect only if it is a constant rate, and a rate is that of the transmissions that begin
 * from now on. */
typedef struct {
    bool has_state, is_up;
    bool has_delay, has_loss, has_reorder, has_duplicate, has_cross;
    uint64_t delay_us; /* also ends a delay trace or a light trace */
    link_loss loss;
    uint64_t rate_bps;         /* evenly spaced opportunities replace the trace; if it replaces another rate, the
                                * passed part of the next opportunity counts; 0: no change */
    const link_trace *trace;   /* its time 0 is now; borrowed for the life of the link; NULL: no change */
    uint64_t mtu_bytes;        /* LINK_MTU_LEAST to LINK_MTU_MOST; 0: no change */
    double reorder, duplicate; /* probabilities */
    uint64_t reorder_us;
    uint64_t cross_bps; /* replaces rate and profile of others' traffic, 0: none; needs a queue with a limit */
    bool rebinds;       /* the path's NAT, if it has one, forgets its mappings */
} link_change;

typedef struct emulated_link emulated_link;

/* Returns NULL with one sentence in error if the configuration is wrong or there is no memory. */
emulated_link *link_new(const link_config *config, char *error, size_t error_size);
/* Returns all packets inside to the pool. NULL is allowed. */
void link_free(emulated_link *link);

/* Puts a packet into the link, which owns it from now on. False: the next deadline has not changed. */
bool link_enqueue(emulated_link *link, link_packet *packet, uint64_t now);
/* Counts a packet of `length` IP bytes that the driver dropped because it had no memory. */
void link_refuse(emulated_link *link, uint32_t length);
/* Lower bound of the next delivery; LINK_NEVER if the link is empty or down, or has no more opportunities. */
uint64_t link_next_deadline(const emulated_link *link);
/* Advances the link to `now`. */
void link_advance(emulated_link *link, uint64_t now);
/* Returns the next due packet (packet->due_us), or NULL. The caller owns it, sends it and calls link_departed. */
link_packet *link_pull(emulated_link *link);
/* Logs and counts the departure of a pulled packet at `now` and its lateness. Frees the packet. */
void link_departed(emulated_link *link, link_packet *packet, uint64_t now);
/* The same for a packet that enters another link: the caller keeps it. */
void link_passed(emulated_link *link, link_packet *packet, uint64_t now);
/* For a driver that did not read its input from `since` to `now` and then found a packet: counts the opportunities of
 * that interval as missed if the link is empty. Call it before the packet is enqueued. */
void link_count_missed(emulated_link *link, uint64_t since, uint64_t now);

/* Makes changes from `now` on. Ask for the deadline again afterwards. Packets inside keep their delay. */
void link_change_apply(emulated_link *link, const link_change *change, uint64_t now);
bool link_is_up(const emulated_link *link);

/* Returns statistics as of the last call with a time; opportunities as of the last link_advance. */
link_stats link_get_stats(const emulated_link *link);
const link_lateness *link_get_lateness(const emulated_link *link);
/* The queue as mm-link's log describes it. */
const char *link_queue_description(const emulated_link *link);
