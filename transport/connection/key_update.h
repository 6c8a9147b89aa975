/* Generations of the 1-RTT keys, and limits of their use (RFC 9001 section 6). */
#ifndef XL_CONNECTION_KEY_UPDATE_H
#define XL_CONNECTION_KEY_UPDATE_H

#include "connection/frames.h"
#include "crypto/crypto.h"

typedef struct {
    bool phase;
    uint64_t generation; /* updates of the reading keys so far; the sending keys follow before the next packet */
    uint64_t write_generation;
    xl_keys *next_read;           /* made ahead; NULL from an update to the next datagram out */
    xl_keys *previous_read;       /* for packets that are late */
    uint64_t previous_read_until; /* when previous_read is thrown away; XL_NEVER: nothing of this phase has come yet */
    uint64_t phase_seen_at;       /* the first packet of this phase came then; XL_NEVER = none has */
    bool phase_answered;          /* an acknowledgement of one has left */
    bool phase_acked;             /* on each open path a packet that we sent in this phase was acknowledged */
    uint64_t may_from;            /* we may update from then on */
    bool packet_is_old;           /* the packet that is being taken was opened by previous_read */
    uint64_t forged_packets;      /* that no key opened, of all paths; Initials do not count */
} xl_key_update;

typedef enum { XL_KEYS_PREVIOUS, XL_KEYS_PRESENT, XL_KEYS_NEXT } xl_key_age;

/* As xl_keys_open(), with the keys of the packet's phase. Nothing changes yet: that is xl_conn_take_phase(). */
ssize_t xl_conn_open_1rtt(xl_connection *, const xl_packet_context *, uint64_t path_id, uint8_t *packet, size_t len,
                          size_t pn_offset, size_t pn_len, uint8_t **payload, xl_key_age *);
/* An authentic packet that is no duplicate: 0 or the transport error to close with. The peer's update is followed. */
uint64_t xl_conn_take_phase(xl_connection *, xl_space *, uint64_t pn, xl_key_age);
/* Makes the keys that are missing after an update; before each datagram out. 0 or XL_ERR_MEMORY. */
int xl_conn_prepare_keys(xl_connection *);
bool xl_conn_may_update_keys(const xl_connection *);
int xl_conn_update_keys(xl_connection *);           /* ours, where xl_conn_may_update_keys() */
void xl_conn_forget_previous_keys(xl_connection *); /* when it is time */
void xl_conn_phase_was_acked(xl_connection *);      /* perhaps: an acknowledgement came */
/* A packet was protected, or did not open: updates the keys in time, closes where a limit is reached. */
void xl_conn_count_sealed(xl_connection *);
void xl_conn_count_forged(xl_connection *, const xl_keys *);

#endif
