#include "http/settings.h"

#include <string.h>

#include "http/varint.h"

enum { CONTROL_STREAM = 0x00, FRAME_SETTINGS = 0x04, TABLE_BYTES = 0x01, FIELD_SECTION_BYTES = 0x06, BLOCKED = 0x07 };

/* Looks for SETTINGS, which follow the type of a control stream (RFC 9114 section 6.2.1). */
static bool look(h3_settings_reader *r, const uint8_t *data, size_t len) {
    const uint8_t *end = data + len;
    uint64_t type, frame, bytes;
    if (!http_varint_get(&data, end, &type) || type != CONTROL_STREAM || !http_varint_get(&data, end, &frame) ||
        frame != FRAME_SETTINGS || !http_varint_get(&data, end, &bytes) || bytes > (size_t)(end - data))
        return false;
    r->found = data;
    r->found_len = (size_t)bytes;
    return true;
}

bool h3_settings_feed(h3_settings_reader *r, uint64_t stream, const uint8_t *data, size_t len) {
    const uint64_t i = stream >> 2;
    if (r->is_over || (stream & 3) != 3 || i >= H3_SETTINGS_STREAMS || r->len[i] == H3_SETTINGS_BYTES)
        return false;
    const size_t room = H3_SETTINGS_BYTES - r->len[i], taken = len < room ? len : room;
    memcpy(r->bytes[i] + r->len[i], data, taken);
    r->len[i] += taken;
    r->is_over = look(r, r->bytes[i], r->len[i]);
    return r->is_over;
}

bool h3_settings_parse(const uint8_t *payload, size_t len, h3_peer_settings *out) {
    *out = (h3_peer_settings){.max_field_section_bytes = UINT64_MAX};
    for (const uint8_t *at = payload, *end = payload + len; at < end;) {
        uint64_t id, value;
        if (!http_varint_get(&at, end, &id) || !http_varint_get(&at, end, &value))
            return false;
        if (id == FIELD_SECTION_BYTES)
            out->max_field_section_bytes = value;
        else if (id == TABLE_BYTES)
            out->table_bytes = value;
        else if (id == BLOCKED)
            out->blocked_streams = value;
    }
    return true;
}

bool h3_settings_are_reduced(const h3_peer_settings *now, const h3_peer_settings *before) {
    return now->max_field_section_bytes < before->max_field_section_bytes || now->table_bytes < before->table_bytes ||
           now->blocked_streams < before->blocked_streams;
}
