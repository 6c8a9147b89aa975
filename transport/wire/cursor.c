#include "wire/cursor.h"

#include <endian.h>
#include <string.h>

xl_reader xl_reader_of(const uint8_t *data, size_t len) {
    static const uint8_t nothing;
    if (!data) {
        data = &nothing;
        len = 0;
    }
    return (xl_reader){.p = data, .end = data + len};
}

size_t xl_reader_left(const xl_reader *r) {
    return r->failed ? 0 : (size_t)(r->end - r->p);
}

const uint8_t *xl_read_bytes(xl_reader *r, size_t n) {
    if (r->failed || (size_t)(r->end - r->p) < n) {
        r->failed = true;
        return NULL;
    }
    const uint8_t *at = r->p;
    r->p += n;
    return at;
}

static inline __attribute__((always_inline)) uint64_t read_big_endian(xl_reader *r, size_t n) {
    const uint8_t *at = xl_read_bytes(r, n);
    if (!at)
        return 0;
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | at[i];
    return v;
}

uint8_t xl_read_u8(xl_reader *r) {
    return (uint8_t)read_big_endian(r, 1);
}

uint32_t xl_read_u32(xl_reader *r) {
    return (uint32_t)read_big_endian(r, 4);
}

/* RFC 9000 appendix A.1: the two most significant bits of the first byte give the length as a power of two. */
uint64_t xl_read_long_varint(xl_reader *r) {
    if (r->failed || r->p == r->end) {
        r->failed = true;
        return 0;
    }
    switch (*r->p >> 6) {
    case 0:
        return read_big_endian(r, 1);
    case 1:
        return read_big_endian(r, 2) & (UINT64_MAX >> 50);
    case 2:
        return read_big_endian(r, 4) & (UINT64_MAX >> 34);
    default:
        return read_big_endian(r, 8) & (UINT64_MAX >> 2);
    }
}

xl_writer xl_writer_of(uint8_t *data, size_t cap) {
    static uint8_t nowhere;
    if (!data) {
        data = &nowhere;
        cap = 0;
    }
    return (xl_writer){.p = data, .end = data + cap};
}

size_t xl_writer_left(const xl_writer *w) {
    return w->failed ? 0 : (size_t)(w->end - w->p);
}

static inline __attribute__((always_inline)) void write_big_endian(xl_writer *w, uint64_t v, size_t n) {
    if (xl_writer_left(w) < n) {
        w->failed = true;
        return;
    }
    uint64_t bytes = htobe64(v << (64 - 8 * n));
    memcpy(w->p, &bytes, n);
    w->p += n;
}

void xl_write_u8(xl_writer *w, uint8_t v) {
    write_big_endian(w, v, 1);
}

void xl_write_u16(xl_writer *w, uint16_t v) {
    write_big_endian(w, v, 2);
}

void xl_write_u32(xl_writer *w, uint32_t v) {
    write_big_endian(w, v, 4);
}

void xl_write_long_varint(xl_writer *w, uint64_t v) {
    switch (v > XL_VARINT_MAX ? 0 : xl_varint_len(v)) {
    case 1:
        write_big_endian(w, v, 1);
        break;
    case 2:
        write_big_endian(w, v | UINT64_C(1) << 14, 2);
        break;
    case 4:
        write_big_endian(w, v | UINT64_C(2) << 30, 4);
        break;
    case 8:
        write_big_endian(w, v | UINT64_C(3) << 62, 8);
        break;
    default:
        w->failed = true;
    }
}

void xl_write_varint2(xl_writer *w, uint64_t v) {
    if (v >= UINT64_C(1) << 14)
        w->failed = true;
    else
        write_big_endian(w, v | UINT64_C(1) << 14, 2);
}

void xl_write_bytes(xl_writer *w, const uint8_t *data, size_t n) {
    if (xl_writer_left(w) < n) {
        w->failed = true;
        return;
    }
    if (n > 0)
        memcpy(w->p, data, n);
    w->p += n;
}
