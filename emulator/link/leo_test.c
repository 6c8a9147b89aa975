#include "emulator/link/testing/bench.h"

#include "emulator/link/leo.h"
#include "emulator/link/settings.h"

#define PACKETS 3000
#define GAP_US  MS

/* Sends a packet per millisecond for three seconds. left_us: when each one left; 0: lost. */
static link_stats play(const link_config *config, uint64_t left_us[PACKETS]) {
    link_bench *b = bench_new("1gbps", *config);
    memset(left_us, 0, PACKETS * sizeof left_us[0]);
    for (uint32_t n = 0; n < PACKETS; n++)
        bench_send(b, 0, n, 104, n * GAP_US);
    link_advance(b->link, 10 * S);
    for (link_packet *p = link_pull(b->link); p; p = link_pull(b->link)) {
        left_us[numbered_number(p)] = p->due_us;
        link_departed(b->link, p, 10 * S);
    }
    link_stats stats = link_get_stats(b->link);
    bench_free(b);
    return stats;
}

static uint64_t took_us(const uint64_t left_us[PACKETS], uint32_t n) {
    return left_us[n] - n * GAP_US;
}

/* Boundaries at 200, 1200 and 2200 ms with pauses of 50 to 150 ms, over a delay of 20 ms. */
TEST(packets_of_a_pause_wait_to_its_end) {
    const link_leo leo = {.period_us = S, .phase_us = 200 * MS, .pause_us = 100 * MS};
    const link_config config = {.leo = leo, .delay_us = 20 * MS, .seed = 5};
    uint64_t left[PACKETS], pauses[3];
    (void)play(&config, left);
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t first = 200 + 1000 * k;
        assert_in_range(took_us(left, first - 1), 20 * MS, 20 * MS + 100);
        pauses[k] = took_us(left, first) - 20 * MS;
        assert_in_range(pauses[k], 50 * MS, 150 * MS + 100);
        uint64_t end = first * MS + pauses[k];
        for (uint32_t n = first; n < first + 700; n++) {
            uint64_t waits = n * MS < end ? end - n * MS : 0;
            assert_in_range(took_us(left, n), 20 * MS + waits, 20 * MS + waits + 400); /* with the queue after it */
        }
    }
    assert_true(pauses[0] != pauses[1] && pauses[1] != pauses[2]);
}

TEST(the_delay_makes_a_step_at_each_boundary) {
    const link_leo leo = {.period_us = S, .phase_us = 200 * MS, .step_us = 5 * MS};
    link_config config = {.leo = leo, .delay_us = 20 * MS, .seed = 7};
    uint64_t left[PACKETS], other[PACKETS], delay[3];
    (void)play(&config, left);
    for (uint32_t k = 0; k < 2; k++) {
        delay[k] = took_us(left, 300 + 1000 * k);
        assert_in_range(delay[k], 15 * MS, 25 * MS + 100);
        for (uint32_t n = 220 + 1000 * k; n < 1190 + 1000 * k; n++) /* 10 ms after a step no packet waits for others */
            assert_in_range(took_us(left, n) + 20, delay[k], delay[k] + 40);
    }
    assert_true(delay[0] > delay[1] + 100 || delay[1] > delay[0] + 100);
    config.start_offset_ms = 1000; /* starts in the second interval */
    (void)play(&config, other);
    assert_in_range(took_us(other, 300) + 20, delay[1], delay[1] + 40);
    config.seed = 8;
    (void)play(&config, other);
    assert_true(took_us(other, 300) > delay[1] + 100 || took_us(other, 300) + 100 < delay[1]);
}

/* Two thirds of the packets that reach the queue in the first 90 ms after a boundary are lost. */
TEST(a_burst_after_each_boundary_is_lost) {
    const link_leo leo = {.period_us = S, .phase_us = 200 * MS, .burst_us = 90 * MS, .loss = 2.0 / 3.0};
    const link_config config = {.leo = leo, .delay_us = 20 * MS, .seed = 9};
    uint64_t left[PACKETS];
    link_stats stats = play(&config, left);
    uint32_t lost = 0;
    for (uint32_t n = 0; n < PACKETS; n++) {
        bool in_burst = (n + 20 + 800) % 1000 < 90;
        assert_true(left[n] > 0 || in_burst);
        lost += left[n] == 0;
    }
    assert_in_range(lost, 150, 210); /* of 270 */
    assert_int_equal(stats.random_losses, lost);
}

TEST(without_it_nothing_is_drawn) {
    link_config plain = {.delay_us = 20 * MS, .seed = 9, .loss = {.good = 0.1}}, burst = plain;
    burst.leo = (link_leo){.period_us = 100 * S, .phase_us = 50 * S, .burst_us = MS, .loss = 1.0};
    uint64_t left[PACKETS], other[PACKETS];
    (void)play(&plain, left);
    (void)play(&burst, other);
    assert_memory_equal(left, other, sizeof left); /* other losses affect the same packets */
}

TEST(a_delay_is_never_below_zero) {
    const link_leo leo = {.period_us = S, .step_us = 50 * MS};
    for (uint64_t t = 0; t < 100 * S; t += S)
        assert_in_range(link_leo_delay(&leo, 3, 10 * MS, t), 0, 60 * MS);
}

TEST(texts_are_read) {
    static const struct {
        const char *text;
        link_leo leo;
    } good[] = {
        {"off", {0}},
        {"starlink", {.period_us = 15 * S, .phase_us = 12 * S, .step_us = 1200, .pause_us = 34 * MS}},
        {"starlink:pause=0:burst=60:loss=0.5",
         {.period_us = 15 * S, .phase_us = 12 * S, .step_us = 1200, .burst_us = 60 * MS, .loss = 0.5}},
        {"pause=40", {.period_us = 15 * S, .pause_us = 40 * MS}},
        {"period=1000:phase=1500:step=2.5", {.period_us = S, .phase_us = 1500 * MS, .step_us = 2500}},
    };
    static const char *const bad[] = {"",         "oneweb",       "starlink:",           "pause",     "pause=-1",
                                      "loss=0.5", "burst=20",     "burst=20:loss=2",     "period=99", "pause=10000",
                                      "off:step", "step=1:other", "burst=15000:loss=0.5"};
    char error[256];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        link_leo leo = {.period_us = 1};
        assert_true(link_leo_parse(&leo, good[i].text, error, sizeof error));
        assert_memory_equal(&leo, &good[i].leo, sizeof leo);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        link_leo leo = {.period_us = 1};
        assert_false(link_leo_parse(&leo, bad[i], error, sizeof error));
        assert_int_equal(leo.period_us, 1);
        assert_non_null(strstr(error, "starlink"));
    }
}

TEST(it_excludes_a_light_trace) {
    link_settings settings[2] = {0};
    char error[SETTINGS_ERROR_BYTES];
    static const char *const keys[][2] = {
        {"up", "u"}, {"down", "12mbps"}, {"up-delay", "10"}, {"down-light-trace", "l"}, {"leo", "starlink"}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_true(link_settings_set(settings, keys[i][0], keys[i][1], error, sizeof error));
    assert_false(link_settings_check(settings, true, error, sizeof error));
    assert_string_equal(error, "downlink: leo and light-trace exclude each other");
    link_settings_free(settings);
}

TEST_MAIN(NULL, NULL)
