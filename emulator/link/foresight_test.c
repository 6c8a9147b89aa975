#include "tests/unit.h"
#include "emulator/link/foresight.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/link/rng.h"
#include "emulator/link/testing/change.h"

#define PACKETS 600

/* A link with a driver that is always on time, and when each packet left; 0: dropped. */
typedef struct {
    link_trace trace;
    link_pool *pool;
    emulated_link *link;
    link_foresight *foresight;
    uint64_t left_us[PACKETS];
} world;

static void open_world(world *w, const char *trace, link_config config) {
    char error[256];
    *w = (world){.pool = link_pool_new(0)};
    assert_true(link_trace_parse(&w->trace, "t", trace, strlen(trace), error, sizeof error));
    config.trace = &w->trace;
    config.pool = w->pool;
    w->link = link_new(&config, error, sizeof error);
    assert_non_null(w->link);
    assert_non_null(w->foresight = link_foresight_new(w->link));
}

static void close_world(world *w) {
    link_foresight_free(w->foresight);
    link_free(w->link);
    link_pool_free(w->pool);
    link_trace_free(&w->trace);
}

static void enter(world *w, uint32_t number, uint32_t length, uint64_t now) {
    link_packet *p = link_pool_get(w->pool);
    p->length = length;
    memcpy(p->data, &number, sizeof number);
    link_enqueue(w->link, p, now);
}

static void run_until(world *w, uint64_t now) {
    for (uint64_t t = link_next_deadline(w->link); t <= now; t = link_next_deadline(w->link)) {
        link_advance(w->link, t);
        for (link_packet *p = link_pull(w->link); p; p = link_pull(w->link)) {
            uint32_t number;
            memcpy(&number, p->data, sizeof number);
            w->left_us[number] = p->due_us;
            link_departed(w->link, p, t);
        }
    }
}

/* Packets enter in bursts. Before each one its departure is predicted, and at the end those of all packets inside. */
static void compare(const char *trace, link_config config, uint64_t seed) {
    world w;
    link_rng rng = {seed};
    uint64_t foreseen[PACKETS], now = 0;
    open_world(&w, trace, config);
    for (uint32_t i = 0; i < PACKETS; i++) {
        double pause = link_rng_uniform(&rng);
        now += pause < 0.7 ? 0 : (uint64_t)(pause * pause * 40000);
        uint32_t length = link_rng_uniform(&rng) < 0.7 ? 1480 : 40 + (uint32_t)(link_rng_uniform(&rng) * 1400);
        run_until(&w, now);
        link_foresee(w.foresight);
        foreseen[i] = link_foresee_packet(w.foresight, length, now);
        enter(&w, i, length, now);
    }
    uint64_t leaves = 0, last = 0;
    uint32_t length;
    link_foresee(w.foresight);
    while (link_foresee_inside(w.foresight, &length, &leaves))
        last = leaves == LINK_NEVER ? last : leaves;
    size_t dropped = 0;
    run_until(&w, now + 3600000000);
    for (uint32_t i = 0; i < PACKETS; i++) {
        assert_int_equal(w.left_us[i] == 0 ? LINK_NEVER : w.left_us[i], foreseen[i]);
        dropped += w.left_us[i] == 0;
        last = w.left_us[i] > last ? 0 : last;
    }
    assert_true(last > 0); /* no packet left later than predicted for the last one inside */
    assert_true(dropped < PACKETS && (!config.queue || dropped > 10));
    close_world(&w);
}

static const char *const traces[] = {"1\n2\n2\n2\n7\n40\n41\n", "5\n", "0\n0\n0\n300\n"};

TEST(what_is_foreseen_happens) {
    for (uint64_t k = 0; k < 3; k++) {
        compare(traces[k], (link_config){.delay_us = 12345, .start_offset_ms = 3 * k}, k + 1);
        compare(traces[k], (link_config){.radio = {.promotion_us = 20000, .tail_us = 30000}}, k + 1);
        const link_radio sleeps = {.promotion_us = 20000, .tail_us = 10000};
        for (int way = 0; way < 2; way++) {
            link_rrc rrc = link_rrc_make(&sleeps, 30000, k);
            compare(traces[k], (link_config){.radio = sleeps, .rrc = &rrc, .is_downlink = way}, k + 1);
        }
        const link_grants grants = {
            .sr_us = 7000, .grant_us = 3000, .report_us = 9000, .idle_us = 5000, .first_bytes = 2000};
        compare(traces[k], (link_config){.grants = grants, .delay_us = 5000}, k + 1);
        const link_leo leo = {.period_us = 100000, .step_us = 3000, .pause_us = 20000};
        compare(traces[k], (link_config){.leo = leo, .delay_us = 5000, .start_offset_ms = 40 * k}, k + 1);
    }
}

TEST(drops_of_a_full_droptail_queue_are_foreseen) {
    for (uint64_t k = 0; k < 3; k++) {
        compare(traces[k], (link_config){.delay_us = 20000, .queue = "droptail:packets=7"}, k + 1);
        compare(traces[k], (link_config){.delay_us = 500, .queue = "droptail:bytes=9000"}, k + 1);
    }
}

TEST(delays_of_a_trace_are_foreseen_and_keep_order) {
    link_steps delays;
    char error[256];
    const char *text = "0,50\n30,5\n60,20\n100,20\n";
    assert_true(link_text_parse(&link_delay_trace_form, &delays, "d", text, strlen(text), error, sizeof error));
    for (uint64_t k = 0; k < 3; k++)
        compare(traces[k], (link_config){.delay_trace = &delays}, k + 1);
    link_steps_free(&delays);
}

TEST(bursts_of_a_light_trace_are_foreseen) {
    link_light_trace rows;
    char error[256];
    const char *text = "0 30 0 0 1 4 4 4\n50 60 0\n60 20 0 0 30\n100 20\n";
    assert_true(link_text_parse(&link_light_trace_form, &rows, "l", text, strlen(text), error, sizeof error));
    for (uint64_t k = 0; k < 3; k++) {
        link_config config = {.light = {.trace = &rows, .gap_us = 3000 * k}, .opportunity_bytes = 1400};
        compare(traces[k], config, k + 1);
        config.queue = "droptail:packets=4";
        compare(traces[k], config, k + 1);
    }
    link_light_trace_free(&rows);
}

TEST(supposed_packets_queue_behind_each_other_and_leave_no_trace) {
    world w;
    open_world(&w, "10\n20\n30\n40\n", (link_config){.delay_us = 1000});
    for (int again = 0; again < 2; again++) {
        link_foresee(w.foresight);
        assert_int_equal(link_foresee_packet(w.foresight, 1500, 0), 10000);
        assert_int_equal(link_foresee_packet(w.foresight, 1500, 0), 20000);
        assert_int_equal(link_foresee_packet(w.foresight, 700, 25000), 30000);
        assert_int_equal(link_foresee_packet(w.foresight, 700, 25000), 30000);  /* the rest of the same opportunity */
        assert_int_equal(link_foresee_packet(w.foresight, 1500, 39500), 50000); /* in the queue at 40.5 ms */
    }
    assert_int_equal(link_get_stats(w.link).arrived_packets, 0);
    close_world(&w);
}

TEST(a_link_that_is_down_delivers_nothing) {
    world w;
    open_world(&w, "10\n", (link_config){0});
    CHANGE(w.link, 0, .has_state = true, .is_up = false);
    link_foresee(w.foresight);
    assert_int_equal(link_foresee_packet(w.foresight, 1500, 0), LINK_NEVER);
    close_world(&w);
}

TEST_MAIN(NULL, NULL)
