/* Delivery-rate sampling (draft-cheng-iccrg-delivery-rate-estimation-02): how fast a path delivers, from one packet's
 * leaving to its acknowledgement. Each packet remembers what was delivered when it left; a sample is what was delivered
 * since, over the longer of the times in which it was sent and acknowledged. Samples of times in which the application
 * (or the scheduler) left the path idle say so. Bytes and microseconds. */
#ifndef XL_RECOVERY_RATE_H
#define XL_RECOVERY_RATE_H

#include "recovery/ledger.h"

typedef struct {
    uint64_t begun_at;          /* packets that left before say nothing */
    uint64_t delivered;         /* bytes acknowledged so far */
    uint64_t delivered_at;      /* when that last grew, or the path became busy */
    uint64_t first_sent_at;     /* when the packet left that the present sample's sending begins with */
    uint64_t app_limited_until; /* samples are limited by the application until so much is delivered; 0 = not */
    /* State of the ACK that is being processed. */
    bool has_packet, is_app_limited;
    uint64_t prior_delivered, prior_delivered_at, newest_sent_at, send_elapsed;
    uint64_t newly_acked, newly_lost;
} xl_rate_sampler;

typedef struct {
    uint64_t now;
    uint64_t bytes_per_s;     /* 0 = no valid sample: acknowledged faster than the smallest RTT allows */
    bool is_app_limited;      /* the rate may be more than that */
    uint64_t delivered;       /* in all */
    uint64_t prior_delivered; /* in all, when the newest acknowledged packet left */
    uint64_t newly_acked, newly_lost;
    uint64_t in_flight; /* after this acknowledgement */
    uint64_t rtt_us;    /* until this acknowledgement came, on whichever path; 0 = it gave none */
} xl_rate_sample;

/* A packet in flight left; in_flight_before is without it. Fills in what the packet remembers. */
void xl_rate_sent(xl_rate_sampler *, xl_sent_packet *, uint64_t in_flight_before, uint64_t now);
/* For one ACK: first every packet, */
void xl_rate_acked(xl_rate_sampler *, const xl_sent_packet *, uint64_t now);
void xl_rate_lost(xl_rate_sampler *, uint64_t bytes);
/* Bytes acknowledged since the packet left, with its own once it was; 0 if it left before the path began anew. */
uint64_t xl_rate_since(const xl_rate_sampler *, const xl_sent_packet *);
/* then the sample; false when no packet in flight was acknowledged. now, in_flight and rtt_us of it are the caller's.
 * min_rtt_us is the least time until an acknowledgement, whichever path it takes. */
bool xl_rate_take(xl_rate_sampler *, uint64_t min_rtt_us, xl_rate_sample *out);
/* The path could send now, but has nothing to. */
void xl_rate_mark_app_limited(xl_rate_sampler *, uint64_t in_flight);

#endif
