#include "http/control.h"

#include "http/varint.h"

#define CONTROL_STREAM 0x00

enum { CANCEL_PUSH = 0x03, GOAWAY = 0x07, MAX_PUSH_ID = 0x0d, PRIORITY_UPDATE = 0xf0700 };
enum { STREAM_TYPE, FRAME_TYPE, FRAME_LENGTH, IDENTIFIER, PAYLOAD, NO_CONTROL_STREAM };

static h3_frame_kind kind_of(uint64_t type) {
    if (type == CANCEL_PUSH || type == GOAWAY || type == MAX_PUSH_ID)
        return H3_FRAME_OF_IDENTIFIER;
    return type == PRIORITY_UPDATE ? H3_FRAME_PRIORITY_UPDATE : H3_FRAME_OTHER;
}

static void begin_payload(h3_control *c, uint8_t part) {
    c->part = c->left > 0 ? part : FRAME_TYPE;
}

/* Handles the next integer of the stream. False: a frame's payload is longer or shorter than its identifier. */
static bool take_number(h3_control *c, uint64_t value) {
    switch (c->part) {
    case STREAM_TYPE:
        c->part = value == CONTROL_STREAM ? FRAME_TYPE : NO_CONTROL_STREAM;
        return true;
    case FRAME_TYPE:
        c->kind = kind_of(value);
        c->part = FRAME_LENGTH;
        return true;
    case FRAME_LENGTH:
        c->left = value;
        begin_payload(c, c->kind == H3_FRAME_OTHER ? PAYLOAD : IDENTIFIER);
        return c->kind != H3_FRAME_OF_IDENTIFIER || value > 0;
    default: /* IDENTIFIER */
        begin_payload(c, PAYLOAD);
        return c->kind != H3_FRAME_OF_IDENTIFIER || c->left == 0;
    }
}

/* Parses the next bytes. False: a frame is malformed. *is_behind: the bytes end between the identifier and the rest of
 * a PRIORITY_UPDATE frame. */
static bool follow(h3_control *c, const uint8_t *data, size_t len, bool *is_behind) {
    for (size_t i = 0; i < len && c->part != NO_CONTROL_STREAM;) {
        *is_behind = false;
        if (c->part == PAYLOAD) {
            size_t n = c->left < len - i ? (size_t)c->left : len - i;
            i += n;
            c->left -= n;
            begin_payload(c, PAYLOAD);
            continue;
        }
        const bool is_identifier = c->part == IDENTIFIER;
        const uint8_t *at = c->head;
        uint64_t value;
        c->head[c->head_bytes++] = data[i++];
        c->left -= is_identifier;
        if (http_varint_get(&at, c->head + c->head_bytes, &value)) {
            c->head_bytes = 0;
            if (!take_number(c, value))
                return false;
            *is_behind = is_identifier && c->part == PAYLOAD;
        } else if (is_identifier && c->left == 0) {
            return false;
        }
    }
    return true;
}

const uint8_t *h3_control_pass(h3_control *c, uint8_t *room, size_t len, bool is_last, size_t *passed) {
    const uint8_t *data = c->has_held ? room : room + 1;
    bool is_behind = c->has_held && len == 0;
    if (!follow(c, room + 1, len, &is_behind))
        return NULL;
    *passed = len + c->has_held;
    room[0] = c->held;
    c->has_held = false;
    if (!is_behind)
        return data;
    --*passed;
    c->held = data[*passed];
    c->has_held = !is_last; /* at the end of a control stream the connection ends too */
    return data;
}
