/* Reading the members of a JSON object into a structure, by a table; errors name the member. */
#ifndef RAILYARD_SIM_MEMBERS_H
#define RAILYARD_SIM_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

enum sim_kind {
    SIM_WHOLE,       /* uint64_t, least to most */
    SIM_THOUSANDTHS, /* uint64_t: a number with at most three decimals, times 1000; least to most are thousandths */
    SIM_SECONDS,     /* uint64_t: the same, as microseconds; least to most are ms */
    SIM_PROBABILITY, /* double, 0 to 1 */
    SIM_BOOLEAN,     /* bool */
    SIM_STRING,      /* const char *, not empty, lives as long as the JSON */
    SIM_WORD,        /* const char *, one of words */
    SIM_OTHER,       /* known, but read by the caller: an object or array */
};

struct sim_member {
    const char *name;
    enum sim_kind kind;
    size_t offset; /* in the structure */
    uint64_t least, most;
    const char *const *words; /* NULL terminated */
};

/* Reads all members of `object` that the table knows into `into`; null counts as absent, an unknown member is an error.
 * `where` is what the members are of, with its dot: "job.json: players[1].", used in errors. The table ends with a NULL
 * name. */
bool sim_members_read(json_t *object, const char *where, const struct sim_member *table, void *into, char *error);
/* False always, with a formatted sentence in error[SIM_ERROR_BYTES]. */
__attribute__((format(printf, 2, 3))) bool sim_fail(char *error, const char *format, ...);

#endif
