/* The deadlines of all actors of a simulation, in a winner tree. Of equal deadlines, that of the actor with the
 * smallest number is first, so that the order of events is always the same. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    size_t leaves;     /* a power of two */
    uint64_t *at;      /* deadline of each actor */
    uint32_t *winners; /* winners[1] is the root; leaves are not stored */
} sim_timers;

/* Sets all deadlines to UINT64_MAX (never). False: no memory. */
bool sim_timers_init(sim_timers *, size_t actors);
void sim_timers_free(sim_timers *);
void sim_timers_set(sim_timers *, size_t actor, uint64_t at);

static inline uint64_t sim_timers_get(const sim_timers *t, size_t actor) {
    return t->at[actor];
}
/* Returns the actor with the earliest deadline. */
static inline size_t sim_timers_next(const sim_timers *t) {
    return t->winners[1];
}
