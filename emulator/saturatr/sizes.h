/* The sizes of a light recording of single packets, and a link's latencies by size from their arrivals; see
 * docs/reference/saturatr.md, and emulator/link/light.h for the file. Packet seq has size number seq % count. Sans-IO;
 * times are us of the session. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SAT_SIZES_MOST 16u
#define SAT_SIZE_LEAST 100u /* bytes of an IP packet; room for the headers */
#define SAT_SIZE_MOST  1500u

/* IP bytes, ascending. The last size is the reference of the others. */
typedef struct {
    uint32_t count; /* 0: trains are sent */
    uint32_t bytes[SAT_SIZES_MOST];
} sat_sizes;

/* Whether a recording may have these sizes, with packets of packet_bytes as the reference. */
bool sat_sizes_are_allowed(const sat_sizes *sizes, uint64_t packet_bytes);
/* Returns the size of a packet. */
uint32_t sat_sizes_of(const sat_sizes *sizes, uint64_t seq);

typedef struct {
    const sat_sizes *sizes; /* borrowed */
    uint64_t duration_us;
    uint64_t sent;      /* packets sent, as far as is known */
    uint64_t rounds;    /* rounds of all sizes, including an incomplete one */
    int64_t *delays_us; /* index s * rounds + r for size s in round r */
    uint64_t arrived[SAT_SIZES_MOST];
    uint64_t outside;  /* packets sent outside of the recording */
    uint64_t left_out; /* packets with an impossible size or delay */
    bool sorted;
} sat_latencies;

/* For a recording of `sent` packets. False without memory. */
bool sat_latencies_init(sat_latencies *latencies, const sat_sizes *sizes, uint64_t sent, uint64_t duration_us);
void sat_latencies_free(sat_latencies *latencies);
/* Adds a data packet. Ignores copies, packets that were sent outside of [0, duration), and impossible ones. */
void sat_latencies_add(sat_latencies *latencies, uint64_t seq, uint32_t ip_bytes, int64_t sent_us, int64_t received_us);
/* Computes the median one-way delay of size number `which`. False if no packet arrived. Add no packets afterwards. */
bool sat_latencies_median(sat_latencies *latencies, uint32_t which, double *delay_us);
/* Returns how much later than the reference a packet of `bytes` arrives, in us: interpolated between the medians of the
 * sizes, constant outside. Packets of each size must have arrived. */
double sat_latencies_at(sat_latencies *latencies, uint32_t bytes);
