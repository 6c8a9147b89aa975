/* The datagrams of saturatr. All numbers are big endian; times are us of the sender's own monotonic clock.
 *
 *     magic 4 | type 1 | channel 1 | path 1 | flags 1 | tag 8 | seq 8 | sent_us 8          header, 32 bytes
 *     DATA     header, then filling up to the packet size
 *     HELLO    header | cookie 16 | zero 24         client to server: opens a channel, measures delay and clock
 *     WELCOME  header | cookie 16 | echo_us 8 | received_us 8 | zero 8      the answer, of the same length
 *     ACK      header (seq: highest received) | echo_us 8 | received_us 8 | received_packets 8 | zero 16
 *
 * A channel is one pair of addresses: number k < SAT_MAX_PATHS carries the data of path k, number SAT_MAX_PATHS + k
 * acknowledgements. The tag is a secret of the session and direction: datagrams without it are ignored. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAT_MAX_PATHS     16u
#define SAT_MAX_CHANNELS  (2u * SAT_MAX_PATHS)
#define SAT_COOKIE_BYTES  16u
#define SAT_HEADER_BYTES  32u
#define SAT_CONTROL_BYTES 72u /* HELLO, WELCOME, ACK */
#define SAT_FLAG_VALID    1u  /* WELCOME: the cookie was right; the channel is open */

typedef enum { SAT_HELLO = 1, SAT_WELCOME = 2, SAT_DATA = 3, SAT_ACK = 4 } sat_type;

typedef struct {
    uint8_t type; /* sat_type */
    uint8_t channel;
    uint8_t path; /* DATA, ACK: its path */
    uint8_t flags;
    uint64_t tag;
    uint64_t seq;
    uint64_t sent_us;
    uint8_t cookie[SAT_COOKIE_BYTES]; /* HELLO, WELCOME */
    uint64_t echo_us;                 /* WELCOME, ACK: sent_us of the answered packet */
    uint64_t received_us;             /* WELCOME, ACK: when that arrived, on the sender's clock */
    uint64_t received_packets;        /* ACK: data packets received so far */
} sat_packet;

/* Writes the header, or a whole control packet. Returns the bytes written. out has SAT_CONTROL_BYTES. */
size_t sat_wire_write(const sat_packet *packet, uint8_t *out);
/* Reads a packet from length bytes at data (DATA: the header suffices). datagram_bytes: its whole length. False if it
 * is no packet of saturatr. Never reads beyond length. */
bool sat_wire_read(sat_packet *packet, const uint8_t *data, size_t length, size_t datagram_bytes);
