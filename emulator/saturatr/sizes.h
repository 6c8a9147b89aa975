/* The sizes of a light recording that sends packets alone, and from their arrivals a link's latencies by size; see
 * docs/reference/saturatr.md, and emulator/link/light.h for the file. Packet seq has size seq % count. Sans-IO; times
 * are us of the session. */
#ifndef RAILYARD_SATURATR_SIZES_H
#define RAILYARD_SATURATR_SIZES_H

#include <stdbool.h>
#include <stdint.h>

#define SAT_SIZES_MOST 16u
#define SAT_SIZE_LEAST 100u /* bytes of an IP packet: the headers fit */
#define SAT_SIZE_MOST  1500u

/* IP bytes, ascending. The last one is the size of the others' reference. */
typedef struct {
    uint32_t count; /* 0: trains are sent */
    uint32_t bytes[SAT_SIZES_MOST];
} sat_sizes;

/* Whether a recording may have these, with packets of packet_bytes as its reference. */
bool sat_sizes_are_allowed(const sat_sizes *sizes, uint64_t packet_bytes);
/* The size of a packet. */
uint32_t sat_sizes_of(const sat_sizes *sizes, uint64_t seq);

typedef struct {
    const sat_sizes *sizes; /* borrowed */
    uint64_t duration_us;
    uint64_t sent;      /* packets, as far as is known */
    uint64_t rounds;    /* of all sizes, begun */
    int64_t *delays_us; /* of round r and size s at s * rounds + r */
    uint64_t arrived[SAT_SIZES_MOST];
    uint64_t outside;  /* packets that were sent outside of the recording */
    uint64_t left_out; /* packets with a size or a delay that cannot be */
    bool sorted;
} sat_latencies;

/* For a recording of `sent` packets. False without memory. */
bool sat_latencies_init(sat_latencies *latencies, const sat_sizes *sizes, uint64_t sent, uint64_t duration_us);
void sat_latencies_free(sat_latencies *latencies);
/* A data packet. Copies, packets that were sent outside of [0, duration), and impossible ones are left out. */
void sat_latencies_add(sat_latencies *latencies, uint64_t seq, uint32_t ip_bytes, int64_t sent_us, int64_t received_us);
/* The median one-way delay of size number `which`; false if none arrived. No packet may be added afterwards. */
bool sat_latencies_median(sat_latencies *latencies, uint32_t which, double *delay_us);
/* How much later than the reference a packet of so many bytes arrives, in us: between the medians of the sizes it is
 * interpolated, outside them it holds. Each size must have arrived. */
double sat_latencies_at(sat_latencies *latencies, uint32_t bytes);

#endif
