#include "tests/unit.h"
#include "recovery/ranges.h"
#include "testing/test_random.h"

#include <string.h>

#define UNIVERSE 400

static void check_form(const xl_ranges *r) {
    for (size_t i = 0; i < r->count; i++) {
        assert_true(r->at[i].start < r->at[i].end);
        if (i > 0)
            assert_true(r->at[i - 1].end < r->at[i].start);
    }
}

static void check_against(const xl_ranges *r, const bool *model) {
    uint64_t total = 0;
    check_form(r);
    for (uint64_t v = 0; v < UNIVERSE; v++) {
        assert_int_equal(xl_ranges_contains(r, v), model[v]);
        total += model[v];
    }
    assert_int_equal(xl_ranges_total(r), total);
}

static void check_queries(const xl_ranges *r, const bool *model, uint64_t start, uint64_t end) {
    uint64_t first = start;
    while (first < end && model[first])
        first++;
    uint64_t stop = first;
    while (stop < end && !model[stop])
        stop++;
    xl_range gap;
    bool found = xl_ranges_first_gap(r, start, end, &gap);
    assert_int_equal(found, first < end);
    assert_int_equal(xl_ranges_covers(r, start, end), first >= end);
    if (found) {
        assert_int_equal(gap.start, first);
        assert_int_equal(gap.end, stop);
    }
}

/* keep_newest in the model: clear everything below the count-th interval from above. */
static void model_keep(bool *model, size_t count) {
    size_t seen = 0;
    for (int v = UNIVERSE - 1; v >= 0; v--) {
        bool begins = model[v] && (v == UNIVERSE - 1 || !model[v + 1]);
        if (begins)
            seen++;
        if (seen > count)
            model[v] = false;
    }
}

TEST(any_sequence_of_changes_matches_a_bitmap) {
    for (uint64_t seed = 0; seed < 30; seed++) {
        uint64_t rng = seed;
        bool model[UNIVERSE] = {0};
        xl_ranges r = {0};
        for (int step = 0; step < 400; step++) {
            uint64_t start = test_below(&rng, UNIVERSE), end = start + test_below(&rng, 20);
            if (end > UNIVERSE)
                end = UNIVERSE;
            uint64_t what = test_below(&rng, 40);
            if (what < 24) {
                assert_int_equal(xl_ranges_add(&r, start, end), 0);
                for (uint64_t v = start; v < end; v++)
                    model[v] = true;
            } else if (what < 37) {
                assert_int_equal(xl_ranges_remove(&r, start, end), 0);
                for (uint64_t v = start; v < end; v++)
                    model[v] = false;
            } else if (what < 38) {
                uint64_t below = test_below(&rng, UNIVERSE / 4);
                xl_ranges_drop_below(&r, below);
                memset(model, 0, below * sizeof *model);
            } else if (what < 39) {
                xl_ranges_keep_newest(&r, 6);
                model_keep(model, 6);
            }
            check_against(&r, model);
            check_queries(&r, model, start, end);
        }
        xl_ranges_free(&r);
    }
}

TEST(neighbours_merge_and_the_top_of_the_number_space_works) {
    xl_ranges r = {0};
    xl_ranges_add(&r, 10, 20);
    xl_ranges_add(&r, 30, 40);
    assert_int_equal(r.count, 2);
    xl_ranges_add(&r, 20, 30);
    assert_int_equal(r.count, 1);
    assert_int_equal(r.at[0].start, 10);
    assert_int_equal(r.at[0].end, 40);
    xl_ranges_add(&r, 5, 5);
    assert_int_equal(r.count, 1);
    xl_ranges_add(&r, UINT64_MAX - 1, UINT64_MAX);
    xl_ranges_add(&r, 0, 1);
    assert_int_equal(r.count, 3);
    assert_true(xl_ranges_contains(&r, UINT64_MAX - 1));
    xl_ranges_add(&r, 0, UINT64_MAX);
    assert_int_equal(r.count, 1);
    xl_ranges_free(&r);
}

TEST_MAIN(NULL, NULL)
