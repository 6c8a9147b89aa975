#include "tests/unit.h"
#include "emulator/sim/timers.h"

#include "emulator/link/rng.h"

static size_t slow_next(const sim_timers *t) {
    size_t best = 0;
    for (size_t i = 1; i < t->leaves; i++)
        best = t->at[i] < t->at[best] ? i : best;
    return best;
}

TEST(the_earliest_is_next_and_of_equals_the_smallest) {
    link_rng rng = {.state = 7};
    for (size_t actors = 1; actors < 40; actors++) {
        sim_timers t;
        assert_true(sim_timers_init(&t, actors));
        assert_int_equal(sim_timers_next(&t), 0);
        for (int round = 0; round < 300; round++) {
            size_t actor = (size_t)(link_rng_next(&rng) % actors);
            uint64_t at = link_rng_next(&rng) % 8; /* many deadlines are equal */
            sim_timers_set(&t, actor, at == 0 ? UINT64_MAX : at);
            assert_int_equal(sim_timers_get(&t, actor), at == 0 ? UINT64_MAX : at);
            assert_int_equal(sim_timers_next(&t), slow_next(&t));
        }
        sim_timers_free(&t);
    }
}

TEST_MAIN(NULL, NULL)
