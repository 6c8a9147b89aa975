/* For tests: stores a client's newest session. Included by test programs; every function is static. */
#pragma once

#include <string.h>

#include "tests/unit.h"
#include "xlink/xlink.h"

typedef struct {
    uint8_t bytes[XL_SESSION_MAX_BYTES];
    size_t len;
    unsigned saves;
} store;

static inline void save(void *user, const char *name, const uint8_t *session, size_t len) {
    store *s = user;
    (void)name;
    memcpy(s->bytes, session, len);
    s->len = len;
    s->saves++;
}

static inline size_t load(void *user, const char *name, uint8_t *session, size_t cap) {
    const store *s = user;
    (void)name;
    assert_true(s->len <= cap);
    memcpy(session, s->bytes, s->len);
    return s->len;
}
