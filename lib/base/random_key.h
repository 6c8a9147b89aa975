/* The random key of a program on a real network: from --seed if it was given, else from the system. With --seed the
 * program prints a warning, because everybody who knows the seed knows the key. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/jsonl.h"
#include "xlink/xlink.h"

#define RANDOM_KEY_SEEDED "seeded: not for deployment"

/* The option --seed. */
typedef struct {
    bool given;
    uint64_t seed;
} random_seed;

/* setting.read for --seed; `seed` is a random_seed. */
bool random_seed_read(void *seed, const char *text, char *reason, size_t cap);
/* Makes the key. role: see xl_random_key_from_seed(). Endpoints of one program need different seeds. False with a
 * phrase. */
bool random_key_make(const random_seed *, const char *role, uint8_t key[XL_RANDOM_KEY_BYTES], char *error, size_t cap);
/* If a seed was given, writes a record "warning" to the log, or without a log a line to stderr. */
void random_key_warn(const random_seed *, const char *program, jsonl *, uint64_t now_us);
/* The seed as a JSON number, or null. */
json_t *random_seed_json(const random_seed *);
