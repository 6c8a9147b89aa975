/* What the harnesses share: an input is a text of bytes that a harness takes apart into operations. Behind its end
 * everything reads as zero, so that each input means something and its meaning depends on nothing else. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The entry of a harness, called by libFuzzer or by replay.c. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold: otherwise the harness ends with the condition and its place, which the fuzzer reports. */
#define FUZZ_CHECK(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: this does not hold: %s\n", __FILE__, __LINE__, __func__, #condition);          \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef struct {
    const uint8_t *p, *end;
} fuzz_input;

static inline fuzz_input fuzz_input_of(const uint8_t *data, size_t size) {
    return (fuzz_input){data, data + size};
}

static inline size_t fuzz_left(const fuzz_input *in) {
    return (size_t)(in->end - in->p);
}

static inline uint8_t fuzz_u8(fuzz_input *in) {
    return in->p < in->end ? *in->p++ : 0;
}

static inline bool fuzz_bool(fuzz_input *in) {
    return fuzz_u8(in) & 1;
}

static inline uint64_t fuzz_bytes_be(fuzz_input *in, unsigned count) {
    uint64_t v = 0;
    while (count-- > 0)
        v = v << 8 | fuzz_u8(in);
    return v;
}

static inline uint16_t fuzz_u16(fuzz_input *in) {
    return (uint16_t)fuzz_bytes_be(in, 2);
}

static inline uint32_t fuzz_u32(fuzz_input *in) {
    return (uint32_t)fuzz_bytes_be(in, 4);
}

/* 0 to n - 1; 0 for n = 0. */
static inline uint64_t fuzz_below(fuzz_input *in, uint64_t n) {
    return n == 0 ? 0 : fuzz_bytes_be(in, n <= 256 ? 1 : n <= 65536 ? 2 : 8) % n;
}

/* A number whose first byte says how large it is: small ones are single bytes, powers of two and their neighbours two.
 */
static inline uint64_t fuzz_number(fuzz_input *in) {
    uint8_t kind = fuzz_u8(in);
    if (kind < 0xe0)
        return kind;
    switch (kind & 7) {
    case 0:
        return fuzz_bytes_be(in, 8);
    case 1:
        return fuzz_bytes_be(in, 4);
    case 2:
    case 3:
        return fuzz_bytes_be(in, 2);
    default: {
        uint8_t at = fuzz_u8(in);
        return (UINT64_C(1) << (at & 63)) - (at >> 6);
    }
    }
}

/* Up to `most` bytes: their number is at *len, at most what is left. */
static inline const uint8_t *fuzz_bytes(fuzz_input *in, size_t most, size_t *len) {
    size_t n = (size_t)fuzz_below(in, (uint64_t)most + 1);
    const uint8_t *p = in->p;
    *len = n < fuzz_left(in) ? n : fuzz_left(in);
    in->p += *len;
    return p;
}

/* Fills `out`, with zeros behind the input's end. */
static inline void fuzz_fill(fuzz_input *in, void *out, size_t len) {
    size_t n = len < fuzz_left(in) ? len : fuzz_left(in);
    memset(out, 0, len);
    if (n > 0)
        memcpy(out, in->p, n);
    in->p += n;
}

/* A copy in memory of exactly that size, so that a read beyond it is noticed; to be freed. */
static inline uint8_t *fuzz_copy(const void *data, size_t len) {
    uint8_t *copy = malloc(len > 0 ? len : 1);
    FUZZ_CHECK(copy != NULL);
    if (len > 0)
        memcpy(copy, data, len);
    return copy;
}

/* The same as a string; bytes of value 0 become spaces. */
static inline char *fuzz_string(const uint8_t *data, size_t len) {
    char *text = malloc(len + 1);
    FUZZ_CHECK(text != NULL);
    for (size_t i = 0; i < len; i++)
        text[i] = data[i] == 0 ? ' ' : (char)data[i];
    text[len] = 0;
    return text;
}

/* The rest of the input. */
static inline char *fuzz_rest_string(fuzz_input *in) {
    char *text = fuzz_string(in->p, fuzz_left(in));
    in->p = in->end;
    return text;
}

/* What came out, in one number: an input must give the same one each time (replay.c compares). */
extern uint64_t fuzz_digest;
static inline void fuzz_note(const void *data, size_t len) {
    const uint8_t *p = data;
    for (size_t i = 0; i < len; i++)
        fuzz_digest = (fuzz_digest ^ p[i]) * UINT64_C(0x100000001b3);
}
static inline void fuzz_note_number(uint64_t v) {
    fuzz_note(&v, sizeof v);
}

#endif
