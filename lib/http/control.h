/* A client's control stream on its way to nghttp3. Version 0.8.0, that of Debian 12, has two faults there:
 *
 * - It ends the program if what it is given ends between the identifier of a PRIORITY_UPDATE frame (RFC 9218 section
 *   7.2) and the rest of the frame. The identifier's last byte is held back there until the next byte comes.
 * - It takes what follows the identifier of CANCEL_PUSH, GOAWAY or MAX_PUSH_ID for the next frame. Such a frame is
 *   broken (RFC 9114 section 7.1). */
#ifndef HTTP_CONTROL_H
#define HTTP_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { H3_FRAME_OTHER, H3_FRAME_OF_IDENTIFIER, H3_FRAME_PRIORITY_UPDATE } h3_frame_kind;

/* One unidirectional stream of the client: its first bytes say whether it is the control stream. */
typedef struct h3_control {
    struct h3_control *next;
    uint64_t id;
    uint64_t left;               /* of the frame's payload */
    h3_frame_kind kind;          /* of the frame */
    uint8_t part;                /* what comes next */
    uint8_t head_bytes, head[8]; /* of a varint that is cut */
    uint8_t held;                /* the byte that is held back, */
    bool has_held;               /* if there is one */
} h3_control;

/* room: a byte, and then the len bytes that came; with is_last none follow. Returns what nghttp3 may have now, with the
 * byte that was held back before, and *passed, how much that is; NULL: a frame is broken. */
const uint8_t *h3_control_pass(h3_control *, uint8_t *room, size_t len, bool is_last, size_t *passed);

#endif
