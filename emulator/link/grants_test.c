#include "emulator/link/testing/bench.h"

#include "emulator/link/grants.h"

#define SMALL 100 /* IP bytes; four more on the link */
#define LARGE 1500

static const link_grants grants = {
    .sr_us = 10 * MS, .grant_us = 8 * MS, .report_us = 6 * MS, .idle_us = 20 * MS, .first_bytes = 250};

/* Sends the packets over a link of 1 Gbps without a delay. left_us: when each one left. */
static void play(const link_config *config, const uint64_t at_us[], const uint32_t length[], size_t count,
                 uint64_t left_us[]) {
    link_bench *b = bench_new("1gbps", *config);
    for (uint32_t n = 0; n < count; n++)
        bench_send(b, 0, n, length[n], at_us[n]);
    link_advance(b->link, 100 * S);
    for (link_packet *p = link_pull(b->link); p; p = link_pull(b->link)) {
        left_us[numbered_number(p)] = p->due_us;
        link_departed(b->link, p, 100 * S);
    }
    bench_free(b);
}

/* Occasions are at 3, 13, 23, … ms. */
static uint64_t wait_us(link_grants_state *state, uint64_t t_us, uint32_t bytes) {
    return link_grants_wait(&grants, state, 3 * MS, t_us, bytes);
}

TEST(a_lone_packet_waits_for_an_occasion_and_its_grant) {
    static const struct { uint64_t at_ms, wait_ms; } rows[] = {{0, 11}, {3, 8}, {4, 17}, {12, 9}, {13, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        link_grants_state own = {0};
        assert_int_equal(wait_us(&own, rows[i].at_ms * MS, 104), rows[i].wait_ms * MS);
    }
}

/* The occasion is at 3 ms, the first grant at 11 ms; the rest leaves at 17 ms. */
TEST(what_the_first_grant_does_not_hold_comes_with_the_report) {
    static const struct {
        uint64_t at_ms, leaves_ms;
        uint32_t bytes;
    } rows[] = {{1, 11, 104},  {2, 11, 104},  {9, 17, 104},                  /* 250 bytes are used up */
                {10, 17, 20},                                                /* would fit, but stays behind */
                {14, 17, 104}, {17, 17, 104}, {18, 18, 1504}, {38, 38, 104}, /* 20 ms of silence do not end the grant */
                {59, 71, 104}, {60, 71, 104}};                               /* 21 ms do: occasion at 63 ms */
    link_grants_state own = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(rows[i].at_ms * MS + wait_us(&own, rows[i].at_ms * MS, rows[i].bytes), rows[i].leaves_ms * MS);
}

TEST(order_is_kept_whatever_comes) {
    link_rng rng = {11};
    for (int round = 0; round < 300; round++) {
        const link_grants drawn = {.sr_us = 1 + link_rng_next(&rng) % 20000,
                                   .grant_us = link_rng_next(&rng) % 20000,
                                   .report_us = link_rng_next(&rng) % 20000,
                                   .idle_us = 1 + link_rng_next(&rng) % 30000,
                                   .first_bytes = (uint32_t)(link_rng_next(&rng) % 3000)};
        const uint64_t phase = link_rng_next(&rng) % drawn.sr_us,
                       longest = drawn.sr_us + drawn.grant_us + drawn.report_us;
        link_grants_state own = {0};
        uint64_t t = 0, last = 0;
        for (int n = 0; n < 200; n++) {
            t += link_rng_next(&rng) % (n % 10 == 0 ? 60000 : 4000);
            uint64_t wait = link_grants_wait(&drawn, &own, phase, t, 32 + (uint32_t)(link_rng_next(&rng) % 1473));
            assert_true(wait < longest);
            assert_true(t + wait >= last);
            last = t + wait;
        }
    }
}

/* A packet every 200 ms over 100 s: waits are uniform over the period of the occasions. */
TEST(waits_of_lone_packets_are_uniform_over_the_period) {
    enum { COUNT = 500 };
    static uint64_t at[COUNT], left[COUNT];
    static uint32_t length[COUNT];
    link_rng rng = {5};
    for (size_t n = 0; n < COUNT; n++) {
        at[n] = 200 * MS * n + link_rng_next(&rng) % (50 * MS);
        length[n] = SMALL;
    }
    const link_config config = {.grants = grants, .delay_us = 20 * MS, .seed = 3};
    play(&config, at, length, COUNT, left);
    uint32_t of_tenth[10] = {0};
    for (size_t n = 0; n < COUNT; n++) {
        uint64_t wait = left[n] - at[n] - 28 * MS;
        assert_in_range(wait, 0, 10 * MS + 20);
        of_tenth[wait / MS < 10 ? wait / MS : 9]++;
    }
    for (size_t i = 0; i < 10; i++)
        assert_in_range(of_tenth[i], 25, 80);
}

TEST(a_sender_that_never_stops_sees_the_links_own_rate) {
    enum { COUNT = 2000 };
    static uint64_t at[COUNT], plain[COUNT], granted[COUNT];
    static uint32_t length[COUNT];
    for (size_t n = 0; n < COUNT; n++) {
        at[n] = MS * n;
        length[n] = LARGE;
    }
    const link_config without = {.delay_us = 20 * MS, .seed = 3},
                      with = {.grants = grants, .delay_us = 20 * MS, .seed = 3};
    play(&without, at, length, COUNT, plain);
    play(&with, at, length, COUNT, granted);
    assert_true(granted[0] > plain[0]);
    assert_memory_equal(plain + 40, granted + 40, (COUNT - 40) * sizeof plain[0]);
}

TEST(the_radio_wakes_up_first) {
    const link_radio radio = {.promotion_us = 260 * MS, .tail_us = 1000 * MS};
    const link_config config = {.grants = grants, .radio = radio, .seed = 3};
    static const uint64_t at[] = {0, MS, 300 * MS};
    static const uint32_t length[] = {SMALL, SMALL, SMALL};
    uint64_t left[3];
    play(&config, at, length, 3, left);
    assert_in_range(left[0], 268 * MS, 278 * MS + 20);
    assert_in_range(left[1], left[0], left[0] + 20);
    assert_in_range(left[2], 308 * MS, 318 * MS + 20);
    assert_int_equal((left[2] - left[0]) / (5 * MS) % 2, 0); /* whole periods apart */
}

TEST(texts_are_read) {
    static const struct {
        const char *text;
        link_grants grants;
    } good[] = {
        {"off", {0}},
        {"sr=10:grant=8",
         {.sr_us = 10 * MS, .grant_us = 8 * MS, .report_us = 8 * MS, .idle_us = 10 * MS, .first_bytes = 104}},
        {"sr=2.5:grant=0:report=1:first=0:idle=0.5", {.sr_us = 2500, .report_us = MS, .idle_us = 500}},
    };
    static const char *const bad[] = {"",
                                      "on",
                                      "sr=0:grant=1",
                                      "sr=10:grant=8:",
                                      "grant=8",
                                      "sr=x",
                                      "sr=10:grant=8:first=-1",
                                      "sr=10:grant=8:idle=0",
                                      "sr=10:grant=8:next=1",
                                      "sr",
                                      "sr=10:grant=8:first=2000000",
                                      "sr=10"};
    char error[256];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        link_grants parsed = {.sr_us = 1};
        assert_true(link_grants_parse(&parsed, good[i].text, error, sizeof error));
        assert_memory_equal(&parsed, &good[i].grants, sizeof parsed);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        link_grants parsed = {.sr_us = 1};
        assert_false(link_grants_parse(&parsed, bad[i], error, sizeof error));
        assert_int_equal(parsed.sr_us, 1);
        assert_non_null(strstr(error, "sr=MS:grant=MS"));
    }
}

TEST_MAIN(NULL, NULL)
