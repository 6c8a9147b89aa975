/* Filters a client's control stream for nghttp3. Version 0.8.0 (Debian 12) has two faults:
 *
 * - It aborts the program if its input ends between the identifier of a PRIORITY_UPDATE frame (RFC 9218 section 7.2)
 *   and the rest of the frame. There the identifier's last byte is held back until the next byte comes.
 * - It parses bytes after the identifier of CANCEL_PUSH, GOAWAY or MAX_PUSH_ID as the next frame. Such a frame is
 *   malformed (RFC 9114 section 7.1) and is refused here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { H3_FRAME_OTHER, H3_FRAME_OF_IDENTIFIER, H3_FRAME_PRIORITY_UPDATE } h3_frame_kind;

#define H3_OPENING_BYTES 47 /* a control stream begins with SETTINGS, about 20 bytes */

/* One unidirectional stream of the client. Its first bytes tell whether it is the control stream. */
typedef struct h3_control {
    struct h3_control *next;
    uint64_t id;
    uint64_t left;                                    /* bytes of the frame's payload */
    h3_frame_kind kind;                               /* of the frame */
    uint8_t part;                                     /* the next part of the stream */
    uint8_t head_bytes, head[8];                      /* of an incomplete varint */
    uint8_t held;                                     /* byte that is held back … */
    bool has_held;                                    /* … if any */
    uint8_t opening_bytes, opening[H3_OPENING_BYTES]; /* its first bytes, which restore nghttp3 after a rest */
} h3_control;

/* room: one free byte, then the len received bytes. is_last: the stream ends. Returns the bytes for nghttp3, including
 * the byte that was held back before, and their number in *passed; NULL: a frame is malformed. */
const uint8_t *h3_control_pass(h3_control *, uint8_t *room, size_t len, bool is_last, size_t *passed);
