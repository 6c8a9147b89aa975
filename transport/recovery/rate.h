/* Delivery-rate sampling (draft-cheng-iccrg-delivery-rate-estimation-02): how fast a path delivers between the
 * departure of a packet and its acknowledgement. Each packet stores `delivered` at its departure. A sample is what was
 * delivered since then, divided by the longer of two times: that of sending it and that of its acknowledgements. A
 * sample is marked if the application (or the scheduler) left the path idle. Bytes and microseconds. */
#pragma once

#include "recovery/ledger.h"

typedef struct {
    uint64_t begun_at;          /* packets sent before are ignored */
    uint64_t delivered;         /* bytes acknowledged so far */
    uint64_t delivered_at;      /* when `delivered` last grew, or the path became busy */
    uint64_t first_sent_at;     /* departure of the packet with which the sending time of the present sample begins */
    uint64_t app_limited_until; /* samples are application-limited until `delivered` exceeds this; 0: they are not */
    /* State of the ACK that is being processed. */
    bool has_packet, is_app_limited;
    uint64_t prior_delivered, prior_delivered_at, newest_sent_at, send_elapsed;
    uint64_t newly_acked, newly_lost;
} xl_rate_sampler;

typedef struct {
    uint64_t now;
    uint64_t bytes_per_s;     /* 0: no valid sample, because it was acknowledged faster than the smallest RTT allows */
    bool is_app_limited;      /* the path may be faster */
    uint64_t delivered;       /* total */
    uint64_t prior_delivered; /* total when the newest acknowledged packet was sent */
    uint64_t newly_acked, newly_lost;
    uint64_t in_flight; /* after this acknowledgement */
    uint64_t rtt_us;    /* RTT of this acknowledgement, which may have come on another path; 0: none */
} xl_rate_sample;

/* A packet in flight was sent. in_flight_before does not include it. Stores the state of delivery in the packet. */
void xl_rate_sent(xl_rate_sampler *, xl_sent_packet *, uint64_t in_flight_before, uint64_t now);
/* For each ACK: call these for every packet, then xl_rate_take(). */
void xl_rate_acked(xl_rate_sampler *, const xl_sent_packet *, uint64_t now);
void xl_rate_lost(xl_rate_sampler *, uint64_t bytes);
/* Bytes acknowledged since the packet was sent, including its own once it was acknowledged. 0 if the packet was sent
 * before the path began anew. */
uint64_t xl_rate_since(const xl_rate_sampler *, const xl_sent_packet *);
/* Takes the sample. Returns false if no packet in flight was acknowledged. The caller fills in now, in_flight and
 * rtt_us. min_rtt_us: least time until an acknowledgement, on whichever path it comes. */
bool xl_rate_take(xl_rate_sampler *, uint64_t min_rtt_us, xl_rate_sample *out);
/* The path could send now, but there is no data. */
void xl_rate_mark_app_limited(xl_rate_sampler *, uint64_t in_flight);
