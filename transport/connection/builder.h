/* Builds a packet of a datagram: header, payload by the caller, padding, protection, its entry in the ledger. */
#pragma once

#include "connection/records.h"
#include "crypto/crypto.h"
#include "path/path.h"
#include "wire/cursor.h"

typedef struct {
    xl_connection *c;
    xl_path *path;
    xl_space *space;
    xl_level level;
    xl_keys *keys;
    uint8_t *packet;
    size_t pn_offset, pn_len, length_offset;
    uint64_t pn;
    xl_writer w; /* payload; its end leaves room for the tag */
    uint8_t *payload;
    xl_sent_frame *frames, **frames_tail;
    bool ack_eliciting, has_padding;
    bool has_stream_data;
    bool is_mtu_probe, is_early;
    bool is_aside; /* sent to another address than the path's: its windows, timers and limits do not count it */
} xl_builder;

/* Begins a 0-RTT packet (client). */
bool xl_builder_begin_early(xl_builder *, xl_connection *, xl_path *, uint8_t *buf, size_t room);
bool xl_builder_begin(xl_builder *, xl_connection *, xl_path *, xl_level, uint8_t *buf, size_t room);
bool xl_builder_is_empty(const xl_builder *);
size_t xl_builder_left(const xl_builder *);
/* Adds a record of a frame that is about to be written. NULL: out of memory; do not write the frame. All kinds but ACK
 * make the packet ack-eliciting. */
xl_sent_frame *xl_builder_note(xl_builder *, xl_sf_kind, uint64_t id, uint64_t offset);
/* The same; also NULL if the packet has no room for the longest frame of this type. */
xl_sent_frame *xl_builder_reserve(xl_builder *, uint64_t frame_type, xl_sf_kind, uint64_t id, uint64_t offset);
/* Writes the level's TLS messages that are to be sent, or sent again. */
void xl_builder_put_crypto(xl_builder *);
/* For a probe: writes the next part of what was sent and is not acknowledged, whether it counts as lost or not. */
void xl_builder_put_crypto_again(xl_builder *);
bool xl_builder_has_unacked_crypto(const xl_connection *, xl_level);
void xl_builder_pad_to(xl_builder *, size_t packet_bytes); /* makes the protected packet at least this long */
/* Protects and registers the packet. Returns its length, 0 if nothing was written. */
size_t xl_builder_finish(xl_builder *);
