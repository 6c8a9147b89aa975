/* The deadlines of all actors of a simulation, and whose is next: a winner tree. If deadlines are equal, the actor with
 * the smallest number comes first, so that the order of events is always the same. */
#ifndef RAILYARD_SIM_TIMERS_H
#define RAILYARD_SIM_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    size_t leaves;     /* a power of two */
    uint64_t *at;      /* deadline of each actor */
    uint32_t *winners; /* winners[1] is the root, those of the leaves are not stored */
} sim_timers;

/* Every actor starts with the deadline UINT64_MAX: never. False: out of memory. */
bool sim_timers_init(sim_timers *, size_t actors);
void sim_timers_free(sim_timers *);
void sim_timers_set(sim_timers *, size_t actor, uint64_t at);

static inline uint64_t sim_timers_get(const sim_timers *t, size_t actor) {
    return t->at[actor];
}
/* The actor whose deadline is the earliest. */
static inline size_t sim_timers_next(const sim_timers *t) {
    return t->winners[1];
}

#endif
