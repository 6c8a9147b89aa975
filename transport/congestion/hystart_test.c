#include "tests/unit.h"
#include "congestion/hystart.h"
#include "testing/test_random.h"

typedef struct {
    xl_hystart h;
    uint64_t now, sent; /* sent: when a packet of the present round left */
} fixture;

static void setup(fixture *f) {
    xl_hystart_init(&f->h);
    f->now = f->sent = 1000000;
}

/* Plays one round with `acks` samples of rtt plus up to `jitter`. Returns true when slow start has ended. */
static bool play_round(fixture *f, int acks, uint64_t rtt, uint64_t jitter, uint64_t *rng) {
    bool over = false;
    uint64_t begin = f->now;
    for (int i = 0; i < acks; i++) {
        f->now += 1000;
        uint64_t sample = rtt + (jitter ? test_below(rng, jitter) : 0);
        over |= xl_hystart_on_ack(&f->h, f->now, f->sent, sample);
    }
    f->sent = begin + 2000; /* after the round began with its first ACK */
    return over;
}

#define HYSTART_TEST(name) TEST_MADE(name, fixture, f, setup, (void))

HYSTART_TEST(a_steady_delay_never_ends_slow_start) {
    for (int round = 0; round < 100; round++) {
        assert_false(play_round(f, 20, 50000, 0, NULL));
        assert_false(f->h.in_css);
        assert_int_equal(xl_hystart_growth(&f->h, 1200), 1200);
    }
}

HYSTART_TEST(a_lasting_rise_ends_it_after_five_conservative_rounds) {
    assert_false(play_round(f, 20, 50000, 0, NULL));
    assert_false(play_round(f, 20, 50000, 0, NULL));
    assert_false(play_round(f, 20, 57000, 0, NULL)); /* 50000 / 8 = 6250 */
    assert_true(f->h.in_css);
    assert_int_equal(xl_hystart_growth(&f->h, 1200), 300);
    for (int round = 1; round < 5; round++)
        assert_false(play_round(f, 20, 57000, 0, NULL));
    assert_true(play_round(f, 20, 57000, 0, NULL));
}

HYSTART_TEST(a_rise_that_goes_away_resumes_slow_start) {
    for (int i = 0; i < 20; i++) {
        assert_false(play_round(f, 20, 50000, 0, NULL));
        assert_false(play_round(f, 20, 60000, 0, NULL));
        assert_true(f->h.in_css);
        assert_false(play_round(f, 20, 50000, 0, NULL));
        assert_false(f->h.in_css);
    }
}

TEST(thresholds_are_bounded) {
    const struct {
        uint64_t base, rise;
        bool enters;
    } cases[] = {
        {8000, 3999, false},    {8000, 4000, true},    /* at least 4 ms */
        {64000, 7999, false},   {64000, 8000, true},   /* an eighth */
        {400000, 15999, false}, {400000, 16000, true}, /* at most 16 ms */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture f;
        setup(&f);
        play_round(&f, 20, cases[i].base, 0, NULL);
        play_round(&f, 20, cases[i].base + cases[i].rise, 0, NULL);
        assert_int_equal(f.h.in_css, cases[i].enters);
    }
}

HYSTART_TEST(too_few_samples_say_nothing) {
    play_round(f, 20, 50000, 0, NULL);
    play_round(f, 7, 500000, 0, NULL);
    assert_false(f->h.in_css);
    play_round(f, 20, 50000, 0, NULL);
    play_round(f, 8, 500000, 0, NULL);
    assert_true(f->h.in_css);
    /* An aggregated ACK for many packets is one sample. */
    setup(f);
    play_round(f, 20, 50000, 0, NULL);
    f->now += 1000;
    for (int i = 0; i < 100; i++)
        assert_false(xl_hystart_on_ack(&f->h, f->now, f->sent, 500000));
    assert_false(f->h.in_css);
}

HYSTART_TEST(a_packet_sent_as_the_round_begins_belongs_to_the_next) {
    xl_hystart_on_ack(&f->h, 1000, 0, 50000);
    for (uint64_t i = 1; i <= 8; i++)
        xl_hystart_on_ack(&f->h, 1000 + i, 999, 500000); /* sent before the round: it is still the first */
    assert_false(f->h.in_css);
    for (uint64_t i = 1; i <= 8; i++)
        xl_hystart_on_ack(&f->h, 2000 + i, i == 1 ? 1000 : 999, 500000);
    assert_true(f->h.in_css);
}

TEST(jitter_above_a_steady_floor_does_not_end_slow_start) {
    for (uint64_t seed = 0; seed < 50; seed++) {
        uint64_t rng = seed;
        fixture f;
        setup(&f);
        for (int round = 0; round < 12; round++)
            assert_false(play_round(&f, 40, 40000, 30000, &rng));
    }
}

TEST_MAIN(NULL, NULL)
