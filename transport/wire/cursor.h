/* Bounded reading and writing of wire bytes. A reader or writer that would leave its bounds sets `failed` and from then
 * on does nothing: callers check once at the end. All integers are big endian; varints are RFC 9000 section 16. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XL_VARINT_MAX ((UINT64_C(1) << 62) - 1)

typedef struct {
    const uint8_t *p, *end;
    bool failed;
} xl_reader;

typedef struct {
    uint8_t *p, *end;
    bool failed;
} xl_writer;

xl_reader xl_reader_of(const uint8_t *data, size_t len);
size_t xl_reader_left(const xl_reader *);
uint8_t xl_read_u8(xl_reader *);
uint32_t xl_read_u32(xl_reader *);
uint64_t xl_read_long_varint(xl_reader *);           /* the general case of xl_read_varint() */
const uint8_t *xl_read_bytes(xl_reader *, size_t n); /* NULL on failure */

xl_writer xl_writer_of(uint8_t *data, size_t cap);
size_t xl_writer_left(const xl_writer *);
void xl_write_u8(xl_writer *, uint8_t);
void xl_write_u16(xl_writer *, uint16_t);
void xl_write_u32(xl_writer *, uint32_t);
void xl_write_long_varint(xl_writer *, uint64_t); /* the general case of xl_write_varint() */
void xl_write_varint2(xl_writer *, uint64_t);     /* always two bytes; > 16383 fails */
void xl_write_bytes(xl_writer *, const uint8_t *, size_t n);

/* Most varints have one byte. */
static inline uint64_t xl_read_varint(xl_reader *r) {
    return !r->failed && r->p != r->end && *r->p < 64 ? *r->p++ : xl_read_long_varint(r);
}

/* Shortest form; > XL_VARINT_MAX fails. */
static inline void xl_write_varint(xl_writer *w, uint64_t v) {
    if (v < 64 && !w->failed && w->p != w->end)
        *w->p++ = (uint8_t)v;
    else
        xl_write_long_varint(w, v);
}

/* 1, 2, 4 or 8. */
static inline size_t xl_varint_len(uint64_t v) {
    return v < UINT64_C(1) << 6 ? 1 : v < UINT64_C(1) << 14 ? 2 : v < UINT64_C(1) << 30 ? 4 : 8;
}
