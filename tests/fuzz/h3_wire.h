/* Data for the streams of an HTTP/3 session: frames of RFC 9114 with field sections of RFC 9204 (static table and
 * literals), valid or not, and any bytes. */
#pragma once

#include "tests/fuzz/input.h"
#include "wire/cursor.h"
#include "xlink/xlink.h"

#define H3_WIRE_BYTES 20000

/* A field and its index in QPACK's static table. */
typedef struct {
    uint8_t index;
    const char *value;
} h3_wire_field;

static const h3_wire_field h3_wire_request[] = {{15, "HEAD"},
                                                {17, "GET"},
                                                {21, "POST"},
                                                {23, "https"},
                                                {0, "a.b"},
                                                {1, "/synthetic/99"},
                                                {1, "/synthetic/9000"},
                                                {1, "/x"},
                                                {55, ""},
                                                {55, "bytes=0-9"},
                                                {55, "bytes=5-"},
                                                {55, "bytes=-7"},
                                                {4, "5"},
                                                {18, ""},
                                                {2, "1"},
                                                {55, "bytes=0-99999999999999999999"}};
static const h3_wire_field h3_wire_response[] = {
    {25, "200"}, {65, "206"},        {27, "404"}, {24, "103"}, {64, "204"},
    {4, "100"},  {4, "0"},           {92, "s"},   {4, "50"},   {4, "18446744073709551615"},
    {25, "99"},  {53, "text/plain"}, {24, "199"}, {25, "abc"}, {4, "-1"},
    {4, "1, 1"}};

static inline void h3_wire_int(xl_writer *w, uint8_t first, unsigned prefix_bits, uint64_t value) {
    uint64_t most = (UINT64_C(1) << prefix_bits) - 1;
    if (value < most) {
        xl_write_u8(w, (uint8_t)(first | value));
        return;
    }
    xl_write_u8(w, (uint8_t)(first | most));
    for (value -= most; value >= 128; value >>= 7)
        xl_write_u8(w, (uint8_t)(value | 128));
    xl_write_u8(w, (uint8_t)value);
}

static inline void h3_wire_text(xl_writer *w, uint8_t first, unsigned prefix_bits, const char *text) {
    h3_wire_int(w, first, prefix_bits, strlen(text));
    xl_write_bytes(w, (const uint8_t *)text, strlen(text));
}

/* Writes a field line: from `fields`, indexed in the static table, with a literal name, or with bytes of the input. */
static inline void h3_wire_put_field(xl_writer *w, fuzz_input *in, const h3_wire_field *fields) {
    uint8_t v = fuzz_u8(in);
    const h3_wire_field *f = &fields[v % 16];
    char *text;
    size_t len;
    const uint8_t *bytes;
    switch (v >> 5) {
    case 0:
    case 1:
    case 2:
    case 3:
        h3_wire_int(w, 0x50, 4, f->index);
        h3_wire_text(w, 0, 7, f->value);
        break;
    case 4:
        h3_wire_int(w, 0xc0, 6, fuzz_u8(in) % 99);
        break;
    case 5:
        h3_wire_text(w, 0x20, 3, "content-range");
        h3_wire_text(w, 0, 7, v & 1 ? "bytes 0-99/1000" : v & 2 ? "bytes 0-49/*" : "bytes */5");
        break;
    case 6:
        bytes = fuzz_bytes(in, 40, &len);
        text = fuzz_string(bytes, len);
        h3_wire_int(w, 0x50, 4, f->index);
        h3_wire_text(w, 0, 7, text);
        free(text);
        break;
    default:
        bytes = fuzz_bytes(in, 40, &len);
        xl_write_bytes(w, bytes, len);
    }
}

static inline void h3_wire_put_headers(xl_writer *w, fuzz_input *in, const h3_wire_field *fields) {
    uint8_t section[4096], usual = fuzz_u8(in);
    xl_writer s = xl_writer_of(section, sizeof section);
    xl_write_u8(&s, 0); /* no dynamic table */
    xl_write_u8(&s, 0);
    if (usual & 0x80 && fields == h3_wire_request) { /* the required fields of a request */
        xl_write_u8(&s, 0xc0 | 17);
        xl_write_u8(&s, 0xc0 | 23);
        h3_wire_int(&s, 0x50, 4, 0);
        h3_wire_text(&s, 0, 7, "server");
        h3_wire_int(&s, 0x50, 4, 1);
        h3_wire_text(&s, 0, 7, usual & 1 ? "/synthetic/5000" : "/video");
    } else if (usual & 0x80) { /* the response to bytes=0-99 */
        h3_wire_int(&s, 0x50, 4, 24);
        h3_wire_text(&s, 0, 7, "206");
        h3_wire_int(&s, 0x50, 4, 4);
        h3_wire_text(&s, 0, 7, "100");
        h3_wire_text(&s, 0x20, 3, "content-range");
        h3_wire_text(&s, 0, 7, "bytes 0-99/1000");
    }
    for (unsigned n = usual & 7; n > 0; n--)
        h3_wire_put_field(&s, in, fields);
    xl_write_varint(w, 1);
    xl_write_varint(w, (uint64_t)(s.p - section) + (usual & 0x40 && usual & 0x20));
    xl_write_bytes(w, section, (size_t)(s.p - section));
}

static inline void h3_wire_put(xl_writer *w, fuzz_input *in, const h3_wire_field *fields) {
    uint8_t kind = fuzz_u8(in), v;
    size_t len;
    const uint8_t *bytes;
    switch (kind % 12) {
    case 0: /* control stream */
        xl_write_varint(w, 0);
        break;
    case 1: /* SETTINGS */
    case 2:
        v = fuzz_u8(in) % 8;
        xl_write_varint(w, 4);
        xl_write_varint(w, v * 2u);
        for (; v > 0; v--) {
            xl_write_u8(w, fuzz_u8(in) & 0x3f);
            xl_write_u8(w, fuzz_u8(in) & 0x3f);
        }
        break;
    case 3:
    case 4:
    case 5:
        h3_wire_put_headers(w, in, fields);
        break;
    case 6: /* DATA */
    case 7:
        v = fuzz_u8(in);
        xl_write_varint(w, 0);
        xl_write_varint(w, v + (kind & 0x80 ? 5000u : 0u));
        for (; v > 0; v--)
            xl_write_u8(w, v);
        break;
    case 8: /* GOAWAY, CANCEL_PUSH, MAX_PUSH_ID, and reserved ones */
        xl_write_varint(w, kind & 0x80 ? 7 : kind & 0x40 ? 3 : kind & 0x20 ? 13 : fuzz_number(in) & 0x3fff);
        v = fuzz_u8(in);
        xl_write_varint(w, 1);
        xl_write_u8(w, v & 0x3f);
        break;
    case 9: /* a type of a unidirectional stream, or of a frame */
        xl_write_varint(w, fuzz_u8(in) & 7);
        break;
    default:
        bytes = fuzz_bytes(in, 64, &len);
        xl_write_bytes(w, bytes, len);
    }
}

/* Credentials of client and server, kept for all inputs. */
static inline xl_credentials **h3_credentials(void) {
    static xl_credentials *credentials[2];
    if (!credentials[0]) {
        credentials[0] = xl_credentials_client(NULL);
        credentials[1] =
            xl_credentials_self_signed("xlink-server", (const uint8_t[XL_RANDOM_KEY_BYTES]){7}, 1700000000);
    }
    return credentials;
}
