#include "http/control.h"

#include "http/varint.h"

#define CONTROL_STREAM  0x00
#define PRIORITY_UPDATE 0xf0700

enum { STREAM_TYPE, FRAME_TYPE, FRAME_LENGTH, IDENTIFIER, PAYLOAD, NO_CONTROL_STREAM };

static void take_number(h3_control *c, uint64_t value) {
    switch (c->part) {
    case STREAM_TYPE:
        c->part = value == CONTROL_STREAM ? FRAME_TYPE : NO_CONTROL_STREAM;
        break;
    case FRAME_TYPE:
        c->is_priority_update = value == PRIORITY_UPDATE;
        c->part = FRAME_LENGTH;
        break;
    case FRAME_LENGTH:
        c->left = value;
        c->part = c->is_priority_update ? IDENTIFIER : PAYLOAD;
        break;
    default: /* IDENTIFIER */
        c->part = PAYLOAD;
    }
    if (c->part >= IDENTIFIER && c->part <= PAYLOAD && c->left == 0)
        c->part = FRAME_TYPE;
}

/* Whether the bytes end behind the identifier of a PRIORITY_UPDATE frame, and the frame goes on. */
static bool ends_behind_identifier(h3_control *c, const uint8_t *data, size_t len) {
    bool is_behind = false;
    for (size_t i = 0; i < len && c->part != NO_CONTROL_STREAM;) {
        is_behind = false;
        if (c->part == PAYLOAD) {
            size_t n = c->left < len - i ? (size_t)c->left : len - i;
            i += n;
            c->left -= n;
            c->part = c->left == 0 ? FRAME_TYPE : PAYLOAD;
            continue;
        }
        const bool is_identifier = c->part == IDENTIFIER;
        const uint8_t *at = c->head;
        uint64_t value;
        c->head[c->head_bytes++] = data[i++];
        c->left -= is_identifier;
        if (!http_varint_get(&at, c->head + c->head_bytes, &value)) {
            if (is_identifier && c->left == 0) /* a broken frame, which nghttp3 refuses */
                c->part = NO_CONTROL_STREAM;
            continue;
        }
        c->head_bytes = 0;
        take_number(c, value);
        is_behind = is_identifier && c->part == PAYLOAD;
    }
    return is_behind;
}

const uint8_t *h3_control_pass(h3_control *c, uint8_t *room, size_t len, bool is_last, size_t *passed) {
    const uint8_t *data = c->has_held ? room : room + 1;
    const bool is_behind = len > 0 ? ends_behind_identifier(c, room + 1, len) : c->has_held;
    *passed = len + c->has_held;
    room[0] = c->held;
    c->has_held = false;
    if (!is_behind)
        return data;
    --*passed;
    c->held = data[*passed];
    c->has_held = !is_last; /* a control stream that ends ends the connection */
    return data;
}
