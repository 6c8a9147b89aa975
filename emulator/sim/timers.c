#include "emulator/sim/timers.h"

#include <stdlib.h>

static uint32_t winner(const sim_timers *t, uint32_t left, uint32_t right) {
    return t->at[right] < t->at[left] ? right : left;
}

/* Decides the match of node n, whose players are the winners of its two children. */
static void decide(sim_timers *t, size_t n) {
    if (2 * n >= t->leaves) {
        uint32_t left = (uint32_t)(2 * n - t->leaves);
        t->winners[n] = winner(t, left, left + 1);
    } else {
        t->winners[n] = winner(t, t->winners[2 * n], t->winners[2 * n + 1]);
    }
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
    for (size_t n = t->leaves - 1; n > 0; n--)
        decide(t, n);
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
    for (size_t n = (actor + t->leaves) / 2; n > 0; n /= 2)
        decide(t, n);
}
