/* A path and a packet number space by themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "path/path.h"

static const xl_addr LOCAL = {.family = 4, .ip = {10, 0, 0, 1}, .port = 1};
static const xl_addr REMOTE = {.family = 4, .ip = {10, 0, 0, 2}, .port = 2};

static void make(xl_path *p) {
    xl_path_init(p, 0, &LOCAL, &REMOTE, XL_TECH_WIFI);
    xl_path_reset_congestion(p, xl_cc_find("cubic"), 1200, 0);
}

static void second_eliciting_packet_is_acknowledged_at_once(void **state) {
    (void)state;
    xl_space s;
    xl_space_init(&s);
    xl_space_receive(&s, 0, true, false, 25000, 100);
    assert_true(xl_space_owes_ack(&s));
    assert_false(s.ack_now);
    assert_int_equal(25100, s.ack_deadline);
    xl_space_receive(&s, 1, true, false, 25000, 200);
    assert_true(s.ack_now);
    assert_int_equal(25100, s.ack_deadline);
    xl_space_ack_sent(&s);
    assert_false(xl_space_owes_ack(&s));
    assert_true(s.ack_deadline == XL_NEVER);
    xl_space_free(&s);
}

static void a_gap_is_acknowledged_at_once_and_a_bare_ack_never(void **state) {
    (void)state;
    xl_space s;
    xl_space_init(&s);
    xl_space_receive(&s, 0, false, false, 25000, 0);
    assert_false(xl_space_owes_ack(&s));
    xl_space_receive(&s, 2, true, false, 25000, 0);
    assert_true(s.ack_now);
    xl_ack_range r[4];
    assert_int_equal(2, xl_space_ack_ranges(&s, r, 4));
    assert_int_equal(2, r[0].largest);
    assert_int_equal(0, r[1].smallest);
    assert_int_equal(1, xl_space_ack_ranges(&s, r, 1));
    xl_space_free(&s);
}

static void duplicates_are_known_even_after_their_ranges_were_forgotten(void **state) {
    (void)state;
    xl_space s;
    xl_space_init(&s);
    for (uint64_t pn = 0; pn < 2000; pn += 2)
        xl_space_receive(&s, pn, true, false, 25000, pn);
    assert_true(s.received.count <= 64);
    assert_true(xl_space_is_duplicate(&s, 0));
    assert_true(xl_space_is_duplicate(&s, 1998));
    assert_false(xl_space_is_duplicate(&s, 1997));
    assert_false(xl_space_is_duplicate(&s, 2000));
    xl_space_free(&s);
}

static void confirmed_ranges_are_dropped_but_the_newest_stays(void **state) {
    (void)state;
    xl_space s;
    xl_space_init(&s);
    for (uint64_t pn = 0; pn < 10; pn++)
        xl_space_receive(&s, pn, true, false, 25000, 0);
    xl_space_receive(&s, 20, true, false, 25000, 0);
    xl_space_ack_confirmed(&s, 9);
    assert_int_equal(1, s.received.count);
    assert_true(xl_space_is_duplicate(&s, 5));
    xl_space_ack_confirmed(&s, 20);
    xl_ack_range r[4];
    assert_int_equal(1, xl_space_ack_ranges(&s, r, 4));
    assert_int_equal(20, r[0].largest);
    xl_space_free(&s);
}

static void validation_needs_the_very_challenge(void **state) {
    (void)state;
    xl_path p;
    make(&p);
    uint8_t right[8] = {1, 2, 3}, wrong[8] = {9};
    assert_false(xl_path_take_response(&p, right, 10));
    xl_path_start_challenge(&p, right);
    xl_path_challenge_sent(&p, 1000);
    assert_false(xl_path_take_response(&p, wrong, 31000));
    assert_false(p.validated);
    assert_true(xl_path_take_response(&p, right, 31000));
    assert_true(p.validated);
    assert_int_equal(30000, p.rtt.smoothed);
    assert_false(xl_path_take_response(&p, right, 32000));
}

static void repeated_challenges_back_off_and_give_no_rtt(void **state) {
    (void)state;
    xl_path p;
    make(&p);
    uint8_t data[8] = {1};
    xl_path_start_challenge(&p, data);
    xl_path_challenge_sent(&p, 0);
    uint64_t first = p.challenge_deadline;
    xl_path_start_challenge(&p, data);
    xl_path_challenge_sent(&p, first);
    assert_int_equal(2 * first, p.challenge_deadline - first);
    assert_true(xl_path_take_response(&p, data, first + 10));
    assert_false(p.rtt.has_sample); /* which of the two was answered? */
}

static void an_unvalidated_address_gets_three_times_what_it_sent(void **state) {
    (void)state;
    xl_path p;
    make(&p);
    assert_int_equal(0, xl_path_amplification_left(&p));
    p.received_unvalidated = 1200;
    p.sent_unvalidated = 600;
    assert_int_equal(3000, xl_path_amplification_left(&p));
    p.sent_unvalidated = 4000;
    assert_int_equal(0, xl_path_amplification_left(&p));
    p.validated = true;
    assert_true(xl_path_amplification_left(&p) == UINT64_MAX);
}

static void probe_timeout_doubles_up_to_its_cap(void **state) {
    (void)state;
    xl_path p;
    make(&p);
    assert_true(xl_path_pto_at(&p, 25000, 0) == XL_NEVER);
    xl_path_rtt_sample(&p, 100000, 0, true, 0);
    p.eliciting_in_flight = 1;
    p.last_eliciting_at = 5000;
    uint64_t base = xl_rtt_pto(&p.rtt, 25000);
    assert_int_equal(5000 + base, xl_path_pto_at(&p, 25000, 400000));
    p.pto_count = 3;
    assert_int_equal(5000 + 8 * base, xl_path_pto_at(&p, 25000, 0));
    assert_int_equal(405000, xl_path_pto_at(&p, 25000, 400000));
}

/* An acknowledgement from elsewhere counts for timers, not for the path's RTT; a challenge asks for that one. */
static void an_ack_from_another_path_leaves_the_rtt_alone(void **state) {
    (void)state;
    xl_path p;
    make(&p);
    p.validated = true;
    xl_path_rtt_sample(&p, 160000, 0, true, 1000000);
    xl_path_rtt_sample(&p, 90000, 0, false, 1100000);
    assert_int_equal(160000, p.rtt.smoothed);
    assert_int_equal(160000, p.rtt.min);
    assert_int_equal(90000, p.ack_rtt.min);
    assert_false(xl_path_wants_rtt_probe(&p, 1050000));
    assert_true(xl_path_wants_rtt_probe(&p, 1300000));
    uint8_t data[8] = {1};
    xl_path_start_rtt_probe(&p, data);
    assert_false(xl_path_wants_rtt_probe(&p, 1300000)); /* one at a time */
    xl_path_challenge_sent(&p, 1300000);
    assert_true(xl_path_take_response(&p, data, 1540000));
    assert_int_equal((7 * 160000 + 240000) / 8, p.rtt.smoothed);
    assert_int_equal(90000, p.ack_rtt.min);
    assert_false(xl_path_wants_rtt_probe(&p, 1600000));
}

static void floods_of_challenges_keep_the_newest_answers(void **state) {
    (void)state;
    xl_path p;
    make(&p);
    for (uint8_t i = 0; i < 100; i++) {
        uint8_t data[8] = {i};
        xl_path_queue_response(&p, data);
    }
    assert_int_equal(XL_PATH_RESPONSES_MAX, p.response_count);
    assert_int_equal(99, p.responses[XL_PATH_RESPONSES_MAX - 1][0]);
}

/* 10 packets of 1000 bytes in flight, one acknowledged every 10 ms: 100 ms to drain. Then the path fades. */
static void delivery_time_follows_the_rate_of_acknowledgements(void **state) {
    (void)state;
    xl_path p;
    make(&p);
    xl_path_rtt_sample(&p, 50000, 0, true, 0);
    uint64_t now = 1000000;
    xl_path_note_sent(&p, 10000, now);
    p.bytes_in_flight = 10000;
    assert_int_equal(50000, xl_path_delivery_time(&p, 0, now + 1000)); /* too early to tell */
    xl_path_note_acked(&p, 1000, 900000, now + 5000);                  /* sent before: says nothing of now */
    assert_int_equal(0, xl_path_queue_time(&p, now + 5000));
    for (int i = 0; i < 200; i++) {
        now += 10000;
        xl_path_note_acked(&p, 1000, now - 5000, now);
    }
    uint64_t steady = xl_path_delivery_time(&p, 0, now);
    assert_in_range(steady, 90000, 115000);
    assert_in_range(xl_path_time_left(&p, 10000, now - 90000, now), 90000, 115000); /* the newest waits for all */
    assert_in_range(xl_path_time_left(&p, 2000, now - 90000, now), 10000, 25000);   /* the oldest for nearly nothing */
    assert_in_range(xl_path_delivery_time(&p, 10000, now), 2 * steady - 5000, 2 * steady + 5000);
    now += 300000;
    uint64_t fading = xl_path_delivery_time(&p, 0, now);
    assert_true(fading > 3 * steady / 2);
    now += 600000;
    assert_true(xl_path_delivery_time(&p, 0, now) == XL_NEVER);
    assert_true(xl_path_time_left(&p, 2000, now - 990000, now) == XL_NEVER);
}

/* The smoothed RTT of a path that has just faded grows as fast as time passes: the rate must not wait for it. */
static void a_path_that_fades_at_once_is_seen_through(void **state) {
    (void)state;
    xl_path p;
    make(&p);
    xl_rtt_sample(&p.ack_rtt, 50000, 0);
    uint64_t begin = 1000000, now = begin;
    xl_path_note_sent(&p, 200000, begin);
    p.bytes_in_flight = 200000;
    assert_int_equal(0, xl_path_time_left(&p, 200000, begin, begin + 60000)); /* by the RTT it is there */
    for (int i = 1; i <= 4; i++) {
        now = begin + 50000 + (uint64_t)i * 50000;
        xl_rtt_sample(&p.ack_rtt, now - begin, 0);
        p.bytes_in_flight -= 1000;
        xl_path_note_acked(&p, 1000, begin, now);
    }
    assert_in_range(xl_path_time_left(&p, 200000, begin, now), 8000000, 12000000); /* 196 kB at 20 kB/s */
    p.bytes_in_flight = 0;
    xl_path_note_sent(&p, 1000, now + 1000000);
    p.bytes_in_flight = 1000;
    assert_in_range(xl_path_queue_time(&p, now + 1000000), 40000, 60000); /* the rate is remembered */
    /* A packet that is overdue says that nothing comes back, before any rate could be told. */
    assert_true(xl_path_time_left(&p, 1000, now + 1000000, now + 3000000) == XL_NEVER);
}

static void pacing_follows_the_window(void **state) {
    (void)state;
    xl_path p;
    make(&p);
    xl_path_update_pacer(&p, 0);
    assert_int_equal(0, p.pacer.rate); /* no RTT yet: not paced */
    xl_path_rtt_sample(&p, 100000, 0, true, 0);
    xl_path_update_pacer(&p, 0);
    assert_int_equal(2 * xl_path_window(&p) * 10, p.pacer.rate); /* slow start: twice the window a round trip */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(second_eliciting_packet_is_acknowledged_at_once),
        cmocka_unit_test(a_gap_is_acknowledged_at_once_and_a_bare_ack_never),
        cmocka_unit_test(duplicates_are_known_even_after_their_ranges_were_forgotten),
        cmocka_unit_test(confirmed_ranges_are_dropped_but_the_newest_stays),
        cmocka_unit_test(validation_needs_the_very_challenge),
        cmocka_unit_test(repeated_challenges_back_off_and_give_no_rtt),
        cmocka_unit_test(an_unvalidated_address_gets_three_times_what_it_sent),
        cmocka_unit_test(probe_timeout_doubles_up_to_its_cap),
        cmocka_unit_test(an_ack_from_another_path_leaves_the_rtt_alone),
        cmocka_unit_test(floods_of_challenges_keep_the_newest_answers),
        cmocka_unit_test(delivery_time_follows_the_rate_of_acknowledgements),
        cmocka_unit_test(a_path_that_fades_at_once_is_seen_through),
        cmocka_unit_test(pacing_follows_the_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
