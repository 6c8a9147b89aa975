/* The random key of a program on a real network: from the system; from --seed where it was given, and then the program
 * says so, because everybody who knows the seed knows the key. */
#ifndef BASE_RANDOM_KEY_H
#define BASE_RANDOM_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/jsonl.h"
#include "xlink/xlink.h"

#define RANDOM_KEY_SEEDED "seeded: not for deployment"

/* --seed, as it was given or not. */
typedef struct {
    bool given;
    uint64_t seed;
} random_seed;

/* Reads the value of --seed into a random_seed, as setting.read. */
bool random_seed_read(void *seed, const char *text, char *reason, size_t cap);
/* role: see xl_random_key_from_seed(). Two endpoints of one program need different seeds. False with one phrase. */
bool random_key_make(const random_seed *, const char *role, uint8_t key[XL_RANDOM_KEY_BYTES], char *error, size_t cap);
/* Where a seed was given: a record "warning" in the log; without a log a line on stderr. */
void random_key_warn(const random_seed *, const char *program, jsonl *, uint64_t now_us);
/* The seed as a JSON number, or null. */
json_t *random_seed_json(const random_seed *);

#endif
