#include "emulator/sim/timers.h"

#include <stdlib.h>
#include <string.h>

static uint32_t winner(const sim_timers *t, uint32_t left, uint32_t right) {
    return t->at[right] < t->at[left] ? right : left;
}

/* Updates the winners above an actor: first between it and its neighbour, then between the winners of two nodes. */
static void decide_above(sim_timers *t, size_t actor) {
    uint32_t left = (uint32_t)actor & ~1u;
    size_t n = (actor + t->leaves) / 2;
    t->winners[n] = winner(t, left, left + 1);
    while ((n /= 2) > 0)
        t->winners[n] = winner(t, t->winners[2 * n], t->winners[2 * n + 1]);
}

bool sim_timers_init(sim_timers *t, size_t actors) {
    t->leaves = 2;
    while (t->leaves < actors)
        t->leaves *= 2;
    t->at = malloc(t->leaves * sizeof *t->at);
    t->winners = malloc(t->leaves * sizeof *t->winners);
    if (!t->at || !t->winners)
        return false;
    for (size_t i = 0; i < t->leaves; i++)
        t->at[i] = UINT64_MAX;
    memset(t->winners, 0, t->leaves * sizeof *t->winners);
    for (size_t i = 0; i < t->leaves; i += 2)
        decide_above(t, i);
    return true;
}

void sim_timers_free(sim_timers *t) {
    free(t->at);
    free(t->winners);
    *t = (sim_timers){0};
}

void sim_timers_set(sim_timers *t, size_t actor, uint64_t at) {
    if (t->at[actor] == at)
        return;
    t->at[actor] = at;
    decide_above(t, actor);
}
