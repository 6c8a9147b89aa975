/* Where the bytes of a client's control stream may be cut for nghttp3. Version 0.8.0, that of Debian 12, ends the
 * program if what it is given ends between the identifier of a PRIORITY_UPDATE frame (RFC 9218 section 7.2) and the
 * rest of the frame. A server holds the identifier's last byte back there until the next byte comes. */
#ifndef HTTP_CONTROL_H
#define HTTP_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One unidirectional stream of the client: its first bytes say whether it is the control stream. */
typedef struct h3_control {
    struct h3_control *next;
    uint64_t id;
    uint64_t left;               /* of the frame's payload */
    uint8_t part;                /* what comes next */
    uint8_t head[8], head_bytes; /* of a varint that is cut */
    bool is_priority_update;
    bool has_held;
    uint8_t held;
} h3_control;

/* room: a byte, and then the len bytes that came; with is_last none follow. Returns what nghttp3 may have now, with the
 * byte that was held back before, and *passed, how much that is. */
const uint8_t *h3_control_pass(h3_control *, uint8_t *room, size_t len, bool is_last, size_t *passed);

#endif
