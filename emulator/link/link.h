/* One direction of an emulated path, with the semantics of Mahimahi's mpshell and mm-link:
 *
 *     enqueue -> delay -> random loss -> queue -> delivery opportunities of the trace -> pull
 *
 * An opportunity delivers 1504 bytes. What a packet leaves unused serves the next queued packets; a packet served in
 * part goes on at the next opportunity; with an empty queue the rest is lost. Opportunities pass with time, used or
 * not, and a packet that reaches the queue in millisecond t uses opportunities after t only.
 *
 * Sans-IO: no clock, no file, no randomness of its own. All times are us since t0, the common start of all links of
 * an emulation, and must not decrease from call to call. The driver's loop is:
 *
 *     packet comes in:           xl_link_enqueue(link, packet, now)
 *     next_deadline is reached:  xl_link_advance(link, now); while ((p = xl_link_pull(link))) { send p;
 * xl_link_departed(link, p, now); }
 *
 * The work per call is bounded by the packets moved, not by the time or the opportunities that passed (unless a log
 * is attached: it has a line for every opportunity). */
#ifndef RAILYARD_LINK_LINK_H
#define RAILYARD_LINK_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "emulator/link/lateness.h"
#include "emulator/link/log.h"
#include "emulator/link/packet.h"
#include "emulator/link/trace.h"

#define XL_LINK_NEVER UINT64_MAX

struct xl_link_config {
    const struct xl_trace *trace; /* borrowed for the life of the link */
    struct xl_link_pool *pool;    /* borrowed; packets of this link come from it and go back to it */
    struct xl_link_log *log;      /* borrowed; NULL = no log */
    const char *queue;            /* specification, see queue.h; only read by xl_link_new */
    uint64_t delay_us;            /* one way */
    double loss;                  /* probability of random loss, 0 to 1, independent for each packet */
    uint64_t seed;                /* of the loss: xl_link_seed() gives each direction of each path its own */
    uint64_t start_offset_ms;     /* the place in the trace at which t0 falls */
};

struct xl_link_stats {
    uint64_t opportunities;      /* that passed since t0 */
    uint64_t opportunities_used; /* of those, delivered at least one byte */
    uint64_t missed; /* passed unused while packets may have waited for a late driver: xl_link_count_missed */
    /* arrived = departed + queue_drops + random_losses + oversize_drops + memory_drops + still inside.
     * Bytes are IP bytes + 4 a packet. */
    uint64_t arrived_packets, arrived_bytes;
    uint64_t departed_packets, departed_bytes;
    uint64_t queue_drops;
    uint64_t random_losses;
    uint64_t oversize_drops; /* over 1504 bytes with the 4 added */
    uint64_t memory_drops;   /* told by xl_link_refuse */
    uint64_t inside_packets; /* in delay, queue, or waiting to be pulled */
};

struct xl_link;

/* NULL and one sentence in error if the configuration is wrong or there is no memory. */
struct xl_link *xl_link_new(const struct xl_link_config *config, char *error, size_t error_size);
/* Gives all packets inside back to the pool. NULL is allowed. */
void xl_link_free(struct xl_link *link);

/* A packet enters the link; the link owns it from here on, whatever happens to it. */
void xl_link_enqueue(struct xl_link *link, struct xl_link_packet *packet, uint64_t now);
/* A packet of length IP bytes came, but the driver had no memory to take it in. */
void xl_link_refuse(struct xl_link *link, uint32_t length);
/* When the link next has something to deliver; XL_LINK_NEVER if it is empty. */
uint64_t xl_link_next_deadline(const struct xl_link *link);
/* Lets time pass until now. */
void xl_link_advance(struct xl_link *link, uint64_t now);
/* The next packet whose time has come (packet->due_us), or NULL. The caller owns it, sends it and calls
 * xl_link_departed. */
struct xl_link_packet *xl_link_pull(struct xl_link *link);
/* A pulled packet has left at now: logs the departure, counts it and its lateness, frees it. */
void xl_link_departed(struct xl_link *link, struct xl_link_packet *packet, uint64_t now);
/* The driver did not look at its input from since to now, and then found a packet there: if the link is empty, the
 * opportunities of that time are counted as missed. To be called before the packet is enqueued. */
void xl_link_count_missed(struct xl_link *link, uint64_t since, uint64_t now);

/* The figures as of the last call that carried a time. */
struct xl_link_stats xl_link_stats(const struct xl_link *link);
const struct xl_lateness *xl_link_lateness(const struct xl_link *link);
/* The queue as mm-link's log describes it. */
const char *xl_link_queue_description(const struct xl_link *link);

#endif
