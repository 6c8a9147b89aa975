#include "base/random_key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers.h"
#include "xlink/udp.h"

bool random_seed_read(void *seed, const char *text, char *reason, size_t cap) {
    random_seed *s = seed;
    s->given = number_parse(text, strlen(text), &s->seed) && s->seed <= INT64_MAX;
    if (!s->given)
        snprintf(reason, cap, "takes a whole number from 0 to %" PRId64 ", not '%.60s'", INT64_MAX, text);
    return s->given;
}

bool random_key_make(const random_seed *s, const char *role, uint8_t key[XL_RANDOM_KEY_BYTES], char *error,
                     size_t cap) {
    if (s->given) {
        snprintf(error, cap, "cannot make a key from the seed");
        return xl_random_key_from_seed(s->seed, role, key) == 0;
    }
    int rv = xl_udp_random_key(key);
    if (rv < 0)
        snprintf(error, cap, "the system gives no random numbers: %s", strerror(-rv));
    return rv == 0;
}

void random_key_warn(const random_seed *s, const char *program, jsonl *log, uint64_t now_us) {
    if (!s->given)
        return;
    if (log)
        jsonl_write(log, "warning", json_pack("{s:s}", "message", RANDOM_KEY_SEEDED), now_us);
    else
        fprintf(stderr, "%s: " RANDOM_KEY_SEEDED ".\n", program);
}

json_t *random_seed_json(const random_seed *s) {
    return s->given ? json_integer((json_int_t)s->seed) : json_null();
}
