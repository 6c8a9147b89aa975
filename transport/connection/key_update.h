/* Generations of the 1-RTT keys, and limits of their use (RFC 9001 section 6). */
#pragma once

#include "connection/frames.h"
#include "crypto/crypto.h"

typedef struct {
    bool phase;
    uint64_t generation; /* number of updates of the reading keys; the sending keys follow before the next packet */
    uint64_t write_generation;
    xl_keys *next_read;           /* derived in advance; NULL from an update to the next datagram out */
    xl_keys *previous_read;       /* for late packets */
    uint64_t previous_read_until; /* when previous_read is dropped; XL_NEVER: no packet of this phase has arrived yet */
    uint64_t phase_seen_at;       /* when the first packet of this phase arrived; XL_NEVER: none has */
    bool phase_answered;          /* an acknowledgement of such a packet was sent */
    bool phase_acked;             /* on each healthy path a packet that we sent in this phase was acknowledged */
    uint64_t may_from;            /* we may update from this time on */
    bool packet_is_old;           /* previous_read opened the packet that is being processed */
    uint64_t forged_packets;      /* packets that no key opened, over all paths; without Initials */
} xl_key_update;

typedef enum { XL_KEYS_PREVIOUS, XL_KEYS_PRESENT, XL_KEYS_NEXT } xl_key_age;

/* As xl_keys_open(), with the keys of the packet's phase. Changes nothing: xl_conn_take_phase() does. */
ssize_t xl_conn_open_1rtt(xl_connection *, const xl_packet_context *, uint64_t path_id, uint8_t *packet, size_t len,
                          size_t pn_offset, size_t pn_len, uint8_t **payload, xl_key_age *);
/* Takes an authentic packet that is no duplicate; follows the peer's update. 0 or the transport error to close with. */
uint64_t xl_conn_take_phase(xl_connection *, xl_space *, uint64_t pn, xl_key_age);
/* Derives the keys that are missing after an update. Call it before each datagram out. Returns 0 or XL_ERR_MEMORY. */
int xl_conn_prepare_keys(xl_connection *);
bool xl_conn_may_update_keys(const xl_connection *);
int xl_conn_update_keys(xl_connection *);           /* updates our keys; requires xl_conn_may_update_keys() */
void xl_conn_forget_previous_keys(xl_connection *); /* if their time is over */
void xl_conn_phase_was_acked(xl_connection *);      /* to be called after each acknowledgement */
/* A packet was protected, or could not be opened. Updates the keys in time, and closes if a limit is reached. */
void xl_conn_count_sealed(xl_connection *);
void xl_conn_count_forged(xl_connection *, const xl_keys *);
