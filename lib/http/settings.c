#include "http/settings.h"

#include <string.h>

enum { CONTROL_STREAM = 0x00, FRAME_SETTINGS = 0x04, TABLE_BYTES = 0x01, FIELD_SECTION_BYTES = 0x06, BLOCKED = 0x07 };

/* 0: it is incomplete. */
static size_t read_varint(const uint8_t *data, size_t len, uint64_t *out) {
    const size_t bytes = len > 0 ? (size_t)1 << (data[0] >> 6) : 1;
    if (bytes > len)
        return 0;
    *out = data[0] & 0x3f;
    for (size_t i = 1; i < bytes; i++)
        *out = *out << 8 | data[i];
    return bytes;
}

/* A control stream begins with its type and then SETTINGS (RFC 9114 section 6.2.1). */
static bool look(h3_settings_reader *r, const uint8_t *data, size_t len) {
    uint64_t field[3];
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        const size_t n = read_varint(data + at, len - at, &field[i]);
        if (n == 0)
            return false;
        at += n;
        if ((i == 0 && field[i] != CONTROL_STREAM) || (i == 1 && field[i] != FRAME_SETTINGS))
            return false;
    }
    if (field[2] > len - at)
        return false;
    r->found = data + at;
    r->found_len = (size_t)field[2];
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
    for (size_t at = 0; at < len;) {
        uint64_t id, value;
        size_t n = read_varint(payload + at, len - at, &id);
        at += n;
        const size_t m = n > 0 ? read_varint(payload + at, len - at, &value) : 0;
        if (m == 0)
            return false;
        at += m;
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
