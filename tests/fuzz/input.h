/* Shared by the harnesses. A harness decodes the bytes of an input as operations. After its end, all bytes read as
 * zero, so that every input is valid and its meaning depends on nothing else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The entry of a harness, called by libFuzzer or by replay.c. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the harness with the condition and its place if it does not hold, which the fuzzer reports. */
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

/* Returns 0 to n - 1; 0 for n = 0. */
static inline uint64_t fuzz_below(fuzz_input *in, uint64_t n) {
    return n == 0 ? 0 : fuzz_bytes_be(in, n <= 256 ? 1 : n <= 65536 ? 2 : 8) % n;
}

/* Returns a number in a variable-length code: small ones take one byte, those near powers of two take two. */
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

/* Returns *len bytes of the input, at most `most`. */
static inline const uint8_t *fuzz_bytes(fuzz_input *in, size_t most, size_t *len) {
    size_t n = (size_t)fuzz_below(in, (uint64_t)most + 1);
    const uint8_t *p = in->p;
    *len = n < fuzz_left(in) ? n : fuzz_left(in);
    in->p += *len;
    return p;
}

/* Fills `out`, with zeros after the input's end. */
static inline void fuzz_fill(fuzz_input *in, void *out, size_t len) {
    size_t n = len < fuzz_left(in) ? len : fuzz_left(in);
    memset(out, 0, len);
    if (n > 0)
        memcpy(out, in->p, n);
    in->p += n;
}

/* Returns a copy in memory of exact size, so that reads beyond it are detected. The caller frees it. */
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

/* Hash of the results. It must be the same each time an input is run (checked by replay.c). */
extern uint64_t fuzz_digest;
static inline void fuzz_note(const void *data, size_t len) {
    const uint8_t *p = data;
    for (size_t i = 0; i < len; i++)
        fuzz_digest = (fuzz_digest ^ p[i]) * UINT64_C(0x100000001b3);
}
static inline void fuzz_note_number(uint64_t v) {
    fuzz_note(&v, sizeof v);
}
