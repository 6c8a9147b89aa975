/* A path and a packet number space on their own. */

#include "tests/unit.h"
#include "path/path.h"

static const xl_addr LOCAL = {.family = 4, .ip = {10, 0, 0, 1}, .port = 1};
static const xl_addr REMOTE = {.family = 4, .ip = {10, 0, 0, 2}, .port = 2};

static void make(xl_path *p) {
    xl_path_init(p, 0, &LOCAL, &REMOTE, XL_TECH_WIFI);
    xl_path_reset_congestion(p, xl_cc_find("cubic"), 1200, 0);
}

#define SPACE_TEST(name) TEST_OF(name, xl_space, s, xl_space_free)

SPACE_TEST(second_eliciting_packet_is_acknowledged_at_once) {
    xl_space_init(s);
    xl_space_receive(s, 0, true, false, 100);
    assert_true(xl_space_owes_ack(s));
    assert_false(s->ack_now);
    assert_int_equal(25100, s->ack_deadline);
    xl_space_receive(s, 1, true, false, 200);
    assert_true(s->ack_now);
    assert_int_equal(25100, s->ack_deadline);
    xl_space_ack_sent(s);
    assert_false(xl_space_owes_ack(s));
    assert_true(s->ack_deadline == XL_NEVER);
    xl_space_receive(s, 2, true, false, 300); /* the count begins again */
    assert_true(xl_space_owes_ack(s));
    assert_false(s->ack_now);
    assert_true(s->loss_time == XL_NEVER);
}

SPACE_TEST(a_gap_is_acknowledged_at_once_and_a_bare_ack_never) {
    xl_space_init(s);
    xl_space_receive(s, 0, false, false, 0);
    assert_false(xl_space_owes_ack(s));
    xl_space_receive(s, 2, true, false, 0);
    assert_true(s->ack_now);
    xl_ack_range r[4];
    assert_int_equal(2, xl_space_ack_ranges(s, r, 4));
    assert_int_equal(2, r[0].largest);
    assert_int_equal(0, r[1].smallest);
    assert_int_equal(1, xl_space_ack_ranges(s, r, 1));
}

SPACE_TEST(duplicates_are_known_even_after_their_ranges_were_forgotten) {
    xl_space_init(s);
    for (uint64_t pn = 0; pn < 2000; pn += 2)
        xl_space_receive(s, pn, true, false, pn);
    assert_true(s->received.count <= 64);
    assert_true(xl_space_is_duplicate(s, 0));
    assert_true(xl_space_is_duplicate(s, 1998));
    assert_false(xl_space_is_duplicate(s, 1997));
    assert_false(xl_space_is_duplicate(s, 2000));
}

SPACE_TEST(confirmed_ranges_are_dropped_but_the_newest_stays) {
    xl_space_init(s);
    for (uint64_t pn = 0; pn < 10; pn++)
        xl_space_receive(s, pn, true, false, 0);
    xl_space_receive(s, 20, true, false, 0);
    xl_space_ack_confirmed(s, 9);
    assert_int_equal(1, s->received.count);
    assert_true(xl_space_is_duplicate(s, 5));
    assert_true(xl_space_is_duplicate(s, 9));
    assert_false(xl_space_is_duplicate(s, 10));
    xl_space_ack_confirmed(s, 20);
    xl_ack_range r[4];
    assert_int_equal(1, xl_space_ack_ranges(s, r, 4));
    assert_int_equal(20, r[0].largest);
}

TEST(a_new_path_is_as_it_was_given) {
    xl_path p;
    xl_path_init(&p, 3, &LOCAL, &REMOTE, XL_TECH_LTE);
    assert_int_equal(3, p.index);
    assert_int_equal(XL_TECH_LTE, p.technology);
    assert_true(xl_addr_equal(&LOCAL, &p.local) && xl_addr_equal(&REMOTE, &p.remote));
    assert_int_equal(XL_PATH_NEW, p.state);
    assert_false(xl_path_wants_standby(&p));
    assert_true(p.validation.deadline == XL_NEVER);
    assert_int_equal(XL_INITIAL_RTT_US, p.rtt.smoothed);
    assert_int_equal(XL_INITIAL_RTT_US, p.ack_rtt.smoothed);
}

TEST(what_a_path_may_do_follows_from_its_state) {
    static const struct {
        xl_path_state state;
        bool open, data;
    } rows[] = {{XL_PATH_NEW, false, false},   {XL_PATH_VALIDATING, true, false}, {XL_PATH_ACTIVE, true, true},
                {XL_PATH_SUSPECT, true, true}, {XL_PATH_STANDBY, true, true},     {XL_PATH_CLOSED, false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        xl_path p;
        make(&p);
        p.state = rows[i].state;
        assert_int_equal(rows[i].open, xl_path_is_open(&p));
        assert_false(xl_path_may_carry_data(&p)); /* not validated */
        p.validation.is_done = true;
        assert_int_equal(rows[i].data, xl_path_may_carry_data(&p));
        assert_false(xl_path_status_is_due(&p));
        p.statuses.is_pending = true;
        assert_false(xl_path_status_is_due(&p)); /* without a connection ID the peer does not know the path */
        p.cids.has_remote = true;
        assert_int_equal(rows[i].data, xl_path_status_is_due(&p));
        p.statuses.is_pending = false;
        assert_false(xl_path_status_is_due(&p));
        p.statuses.is_pending = true;
        p.statuses.own = XL_STATUS_ABANDON; /* may go out in any state */
        assert_true(xl_path_status_is_due(&p));
    }
}

TEST(a_path_stands_by_while_either_side_asks_for_it) {
    for (int k = 0; k < 4; k++) {
        xl_path p;
        make(&p);
        p.statuses.own = k & 1 ? XL_STATUS_STANDBY : XL_STATUS_AVAILABLE;
        p.statuses.peer = k & 2 ? XL_STATUS_STANDBY : XL_STATUS_AVAILABLE;
        assert_int_equal(k != 0, xl_path_wants_standby(&p));
    }
}

/* The two examples of draft-ietf-quic-ack-frequency section 6.2.1. */
TEST(a_reordering_threshold_delays_what_a_gap_would_have_told) {
    static const struct {
        uint64_t threshold, pn[8];
        const char *acknowledged;
    } example[] = {{3, {0, 1, 3, 4, 5, 8, 9, 10}, "____A_AA"}, {5, {0, 1, 3, 5, 6, 7, 8, 9}, "_____A_A"}};
    for (size_t i = 0; i < 2; i++) {
        xl_space s;
        xl_space_init(&s);
        s.policy = (xl_ack_policy){.threshold = 100, .reordering = example[i].threshold, .max_delay_us = 25000};
        for (size_t k = 0; k < 8; k++) {
            assert_int_equal(xl_space_receive(&s, example[i].pn[k], true, false, 0), 0);
            assert_int_equal(s.ack_now, example[i].acknowledged[k] == 'A');
            if (s.ack_now)
                xl_space_ack_sent(&s);
        }
        xl_space_free(&s);
    }
}

SPACE_TEST(a_packet_below_the_reordering_window_is_acknowledged_at_once) {
    xl_space_init(s);
    s->policy = (xl_ack_policy){.threshold = 100, .reordering = 3, .max_delay_us = 25000};
    for (uint64_t pn = 0; pn <= 9; pn++)
        if (pn != 5 && pn != 8)
            xl_space_receive(s, pn, true, false, 0);
    xl_space_ack_sent(s);
    xl_space_receive(s, 8, true, false, 0); /* nobody has declared it lost yet */
    assert_false(s->ack_now);
    xl_space_receive(s, 5, true, false, 0);
    assert_true(s->ack_now);
}

SPACE_TEST(without_a_reordering_threshold_gaps_wait) {
    xl_space_init(s);
    s->policy = (xl_ack_policy){.threshold = 3, .reordering = 0, .max_delay_us = 40000};
    xl_space_receive(s, 0, true, false, 0);
    xl_space_receive(s, 9, true, false, 10);
    xl_space_receive(s, 4, true, false, 20);
    assert_false(s->ack_now);
    assert_int_equal(s->ack_deadline, 40000);
    xl_space_receive(s, 20, true, false, 30);
    assert_true(s->ack_now); /* more than three wait */
}

#define PATH_TEST(name) TEST_MADE(name, xl_path, p, make, (void))

PATH_TEST(the_window_has_room_for_whole_packets_only) {
    p->flight.bytes = xl_path_window(p) - 1200;
    assert_true(xl_path_has_window(p));
    p->flight.bytes++;
    assert_false(xl_path_has_window(p));
}

/* RFC 9000 section 9.4: measurements of the old network path do not count on a new one. */
PATH_TEST(a_reset_forgets_rate_rtt_window_and_timeouts) {
    uint64_t window = xl_path_window(p), now = 1000000;
    xl_path_rtt_sample(p, 50000, 0, true, now);
    xl_path_update_pacer(p, now);
    xl_pacer_sent(&p->pacer, 20 * 1200, now);
    p->cc.ops->on_loss(p->cc.state, now, 1200, now);
    xl_path_note_sent(p, 50000, now);
    p->flight.bytes = 50000;
    for (int i = 0; i < 20; i++)
        xl_path_note_acked(p, 1000, 1000000, now + 10000 * (uint64_t)i);
    now += 300000;
    p->flight.pto_count = 3;
    xl_path_reset_congestion(p, xl_cc_find("cubic"), 1200, now);
    assert_int_equal(window, xl_path_window(p));
    assert_false(p->rtt.has_sample || p->ack_rtt.has_sample);
    assert_int_equal(0, p->flight.pto_count);
    assert_int_equal(now, xl_pacer_next(&p->pacer, now));
    xl_pacer_set_rate(&p->pacer, 1200, now);
    for (int packets = 0; packets < 10; packets++) { /* packets that may leave at once */
        assert_int_equal(now, xl_pacer_next(&p->pacer, now));
        xl_pacer_sent(&p->pacer, 1200, now);
    }
    assert_true(xl_pacer_next(&p->pacer, now) > now);
    for (size_t i = 0; i < XL_RATE_BUCKETS; i++)
        assert_int_equal(0, p->delivery.bytes[i]);
    assert_int_equal(0, p->delivery.bucket);
}

/* Returns the burst of a path whose slow start is paced at `rate` bytes/s. */
static uint64_t burst_at(uint64_t rate, uint64_t burst_us) {
    xl_path p;
    make(&p);
    p.burst_us = burst_us;
    xl_path_rtt_sample(&p, 2 * xl_path_window(&p) * 1000000 / rate, 0, true, 1000000);
    xl_path_update_pacer(&p, 1000000);
    return p.pacer.burst;
}

TEST(a_burst_is_a_time_of_the_rate_above_ten_packets) {
    assert_int_equal(burst_at(2500000, 1000), 10 * 1200);  /* 20 Mbit/s */
    assert_int_equal(burst_at(12000000, 1000), 10 * 1200); /* 96 Mbit/s: 1 ms is ten packets */
    assert_int_equal(burst_at(50000000, 1000), 50000);
    assert_int_equal(burst_at(50000000, 500), 25000);
    assert_int_equal(burst_at(50000000, 0), 10 * 1200);
    assert_int_equal(burst_at(200000000, 1000), 54 * 1200); /* what one segmented send carries */
    xl_path p;
    make(&p);
    p.burst_us = 1000;
    xl_path_set_mtu(&p, 9000, 0); /* ten large packets are more */
    assert_int_equal(p.pacer.burst, 10 * 9000);
}

PATH_TEST(validation_needs_the_very_challenge) {
    uint8_t right[8] = {1, 2, 3}, wrong[8] = {9};
    assert_false(xl_path_take_response(p, right, 10));
    xl_path_start_challenge(p, right);
    assert_true(p->validation.is_pending);
    xl_path_challenge_sent(p, 1000);
    assert_false(p->validation.is_pending);
    assert_false(xl_path_take_response(p, wrong, 31000));
    right[7] ^= 1; /* to the last byte */
    assert_false(xl_path_take_response(p, right, 31000));
    right[7] ^= 1;
    assert_false(p->validation.is_done);
    assert_true(xl_path_take_response(p, right, 31000));
    assert_true(p->validation.is_done);
    assert_int_equal(30000, p->rtt.smoothed);
    assert_false(xl_path_take_response(p, right, 32000));
    /* RFC 9002 section 6.2.2: it is the timers' first RTT, but the first acknowledgement is still the first sample. */
    assert_true(p->rtt.has_sample && !p->ack_rtt.has_sample);
    assert_int_equal(90000, xl_rtt_pto(&p->ack_rtt, 0));
    xl_path_rtt_sample(p, 40000, 0, true, 50000);
    assert_int_equal(40000, p->ack_rtt.smoothed);
    assert_int_equal(40000, p->ack_rtt.min);
}

PATH_TEST(the_answer_to_a_repeated_challenge_validates) {
    uint8_t data[7][8] = {{0}};
    for (uint8_t i = 0; i < 7; i++) {
        data[i][0] = i;
        xl_path_start_challenge(p, data[i]);
        xl_path_challenge_sent(p, 1000 * i);
    }
    assert_false(xl_path_take_response(p, data[1], 9000)); /* forgotten: only four are kept besides the newest */
    assert_true(xl_path_take_response(p, data[2], 9000));
    assert_false(p->rtt.has_sample);
    xl_path_start_challenge(p, data[0]); /* the next validation, of another address perhaps */
    xl_path_challenge_sent(p, 10000);
    assert_false(xl_path_take_response(p, data[6], 11000));
}

PATH_TEST(repeated_challenges_back_off_and_give_no_rtt) {
    uint8_t data[8] = {1};
    xl_path_start_challenge(p, data);
    xl_path_challenge_sent(p, 0);
    uint64_t first = p->validation.deadline;
    xl_path_start_challenge(p, data);
    xl_path_challenge_sent(p, first);
    assert_int_equal(2 * first, p->validation.deadline - first);
    assert_true(xl_path_take_response(p, data, first + 10));
    assert_false(p->rtt.has_sample); /* unknown which of the two was answered */
}

/* Three round trips, at least 100 ms; each repetition waits twice as long, up to eight times. */
TEST(a_challenge_waits_for_its_answer) {
    static const struct {
        uint64_t rtt_us, wait_us;
    } rows[] = {{0, 333000}, {10000, 100000}, {33333, 100000}, {50000, 150000}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        xl_path p;
        make(&p);
        if (rows[i].rtt_us)
            xl_path_rtt_sample(&p, rows[i].rtt_us, 0, true, 0);
        uint8_t data[8] = {1};
        for (unsigned tries = 0; tries < 6; tries++) {
            xl_path_start_challenge(&p, data);
            xl_path_challenge_sent(&p, 7000000);
            assert_int_equal(7000000 + (rows[i].wait_us << (tries < 3 ? tries : 3)), p.validation.deadline);
        }
        assert_true(xl_path_take_response(&p, data, 7100000));
        assert_true(p.validation.deadline == XL_NEVER);
        xl_path_start_challenge(&p, data); /* the next one begins again */
        xl_path_challenge_sent(&p, 8000000);
        assert_int_equal(8000000 + rows[i].wait_us, p.validation.deadline);
    }
}

/* A challenge after a rebinding proves an address. Only a probe asks for an RTT. */
PATH_TEST(a_challenge_of_a_measured_path_is_no_sample) {
    uint8_t data[8] = {1};
    xl_path_rtt_sample(p, 50000, 0, true, 0);
    xl_path_start_rtt_probe(p, data);
    xl_path_start_challenge(p, data); /* replaces the other */
    xl_path_challenge_sent(p, 1000000);
    assert_true(xl_path_take_response(p, data, 1900000));
    assert_int_equal(50000, p->rtt.smoothed);
}

PATH_TEST(an_unvalidated_address_gets_three_times_what_it_sent) {
    assert_int_equal(0, xl_path_amplification_left(p));
    p->validation.received_bytes = 1200;
    p->validation.sent_bytes = 600;
    assert_int_equal(3000, xl_path_amplification_left(p));
    p->validation.sent_bytes = 4000;
    assert_int_equal(0, xl_path_amplification_left(p));
    p->validation.is_done = true;
    assert_true(xl_path_amplification_left(p) == UINT64_MAX);
}

PATH_TEST(probe_timeout_doubles_up_to_its_cap) {
    assert_true(xl_path_pto_at(p, 25000, 0) == XL_NEVER);
    xl_path_rtt_sample(p, 100000, 0, true, 0);
    p->flight.eliciting = 1;
    p->flight.last_eliciting_at = 5000;
    uint64_t base = xl_rtt_pto(&p->rtt, 25000);
    assert_int_equal(5000 + base, xl_path_pto_at(p, 25000, 400000));
    p->flight.pto_count = 3;
    assert_int_equal(5000 + 8 * base, xl_path_pto_at(p, 25000, 0));
    assert_int_equal(405000, xl_path_pto_at(p, 25000, 400000));
    p->flight.pto_count = 1;
    assert_int_equal(5000 + 100000, xl_path_pto_at(p, 25000, 100000));
    p->flight.pto_count = 0; /* the first timeout is not cut short */
    assert_int_equal(5000 + base, xl_path_pto_at(p, 25000, 100000));
    p->flight.pto_count = 19;
    assert_int_equal(5000 + (base << 19), xl_path_pto_at(p, 25000, 0));
    p->flight.pto_count = 1000; /* the shift is bounded */
    assert_int_equal(5000 + (base << 20), xl_path_pto_at(p, 25000, 0));
}

PATH_TEST(packets_that_follow_put_the_probe_timeout_off_by_one_pto_at_most) {
    xl_path_rtt_sample(p, 100000, 0, true, 0);
    p->flight.eliciting = 2;
    p->flight.awaited_since = 5000;
    uint64_t pto = xl_rtt_pto(&p->rtt, 25000);
    p->flight.last_eliciting_at = 5000 + pto;
    assert_int_equal(5000 + 2 * pto, xl_path_pto_at(p, 25000, 0));
    p->flight.last_eliciting_at += 1000000;
    assert_int_equal(5000 + 2 * pto, xl_path_pto_at(p, 25000, 0));
    p->flight.pto_count = 2;
    assert_int_equal(5000 + pto + 4 * pto, xl_path_pto_at(p, 25000, 0));
}

/* 8 s of silence, with one probe a second waiting in a queue. */
TEST(the_rtt_after_an_outage_is_that_of_the_last_probe) {
    xl_path p, twin;
    make(&p);
    xl_path_rtt_sample(&p, 100000, 0, true, 100000);
    twin = p;
    xl_path_outage_begins(&p);
    xl_path_rtt_sample(&p, 7900000, 0, true, 9000000);
    assert_true(p.ack_rtt.smoothed > 1000000); /* nothing better is known */
    xl_path_outage_begins(&p);
    p.outage.until = 9000000;
    xl_path_rtt_sample(&p, 300000, 0, true, 9001000);
    xl_path_rtt_sample(&p, 4900000, 0, true, 9002000);
    xl_path_rtt_sample(&twin, 300000, 0, true, 9001000);
    assert_int_equal(twin.ack_rtt.smoothed, p.ack_rtt.smoothed);
    assert_int_equal(twin.ack_rtt.var, p.ack_rtt.var);
    assert_int_equal(twin.rtt.smoothed, p.rtt.smoothed);
    xl_path_rtt_sample(&p, 500000, 0, true, 9600000); /* of a packet that was sent afterwards */
    xl_path_rtt_sample(&twin, 500000, 0, true, 9600000);
    assert_int_equal(twin.ack_rtt.smoothed, p.ack_rtt.smoothed);
}

TEST(the_first_packet_after_an_outage_replaces_the_rtts_of_its_probes) {
    xl_path p, twin;
    make(&p);
    xl_path_rtt_sample(&p, 100000, 0, true, 100000);
    twin = p;
    xl_path_outage_begins(&p);
    p.outage.until = 9000000;
    xl_path_rtt_sample(&p, 7900000, 0, true, 9001000);
    for (uint64_t now = 9200000; now < 10000000; now += 200000) {
        xl_path_rtt_sample(&p, 150000, 0, true, now);
        xl_path_rtt_sample(&twin, 150000, 0, true, now);
        assert_int_equal(twin.ack_rtt.smoothed, p.ack_rtt.smoothed);
        assert_int_equal(twin.ack_rtt.var, p.ack_rtt.var);
    }
}

/* An acknowledgement from another path counts for timers, not for the path's RTT, which a challenge measures. */
PATH_TEST(an_ack_from_another_path_leaves_the_rtt_alone) {
    p->validation.is_done = true;
    xl_path_rtt_sample(p, 160000, 0, true, 1000000);
    xl_path_rtt_sample(p, 90000, 0, false, 1100000);
    assert_int_equal(160000, p->rtt.smoothed);
    assert_int_equal(160000, p->rtt.min);
    assert_int_equal(90000, p->ack_rtt.min);
    assert_false(xl_path_wants_rtt_probe(p, 1050000));
    assert_true(xl_path_wants_rtt_probe(p, 1300000));
    uint8_t data[8] = {1};
    xl_path_start_rtt_probe(p, data);
    assert_false(xl_path_wants_rtt_probe(p, 1300000)); /* one at a time */
    xl_path_challenge_sent(p, 1300000);
    assert_true(xl_path_take_response(p, data, 1540000));
    assert_int_equal((7 * 160000 + 240000) / 8, p->rtt.smoothed);
    assert_int_equal(90000, p->ack_rtt.min);
    assert_false(xl_path_wants_rtt_probe(p, 1600000));
}

PATH_TEST(floods_of_challenges_keep_the_newest_answers) {
    for (uint8_t i = 0; i < 100; i++) {
        uint8_t data[8] = {[0] = i, [7] = i};
        xl_path_queue_response(p, data);
    }
    assert_int_equal(XL_PATH_RESPONSES_MAX, p->responses.count);
    for (size_t i = 0; i < XL_PATH_RESPONSES_MAX; i++) {
        assert_int_equal(100 - XL_PATH_RESPONSES_MAX + i, p->responses.data[i][0]);
        assert_int_equal(p->responses.data[i][0], p->responses.data[i][7]);
    }
}

PATH_TEST(without_a_rate_the_rtt_has_to_do) {
    xl_path_rtt_sample(p, 40000, 0, true, 0);
    xl_path_rtt_sample(p, 80000, 0, true, 0);
    uint64_t srtt = p->ack_rtt.smoothed, overdue = srtt + 4 * p->ack_rtt.var, now = 5000000;
    assert_int_equal(40000, xl_path_delivery_time(p, 1000, now)); /* nothing waits before it */
    xl_path_note_sent(p, 3000, now);
    p->flight.bytes = 3000;
    xl_path_note_sent(p, 2000, now + 1000); /* busy since the first */
    p->flight.bytes += 2000;
    assert_int_equal(5000, p->delivery.sent_total);
    assert_int_equal(now, p->delivery.busy_since);
    assert_int_equal(srtt, xl_path_delivery_time(p, 1000, now + 2000));
    assert_int_equal(srtt - 2000, xl_path_time_left(p, 3000, now, now + 2000));
    assert_int_equal(0, xl_path_time_left(p, 3000, now, now + overdue));
    assert_true(xl_path_time_left(p, 3000, now, now + overdue + 1) == XL_NEVER);
    xl_path_note_acked(p, 1000, now, now + 40000);
    p->flight.bytes -= 1000;
    uint64_t told_at = now + 40000 + XL_RATE_BUCKET_US; /* a rate is measured over one bucket */
    xl_path_note_acked(p, 1000, now, told_at - 1);
    assert_int_equal(srtt, xl_path_delivery_time(p, 1000, told_at - 1));
    assert_int_equal(5 * XL_RATE_BUCKET_US, xl_path_delivery_time(p, 1000, told_at)); /* 1000 bytes in a bucket */
    assert_int_equal(4 * XL_RATE_BUCKET_US, xl_path_queue_time(p, told_at));
}

/* 10 packets of 1000 bytes in flight, one acknowledged every 10 ms: 100 ms to drain. Then the path fades. */
PATH_TEST(delivery_time_follows_the_rate_of_acknowledgements) {
    xl_path_rtt_sample(p, 50000, 0, true, 0);
    uint64_t now = 1000000;
    xl_path_note_sent(p, 10000, now);
    p->flight.bytes = 10000;
    assert_int_equal(50000, xl_path_delivery_time(p, 0, now + 1000)); /* too early to tell */
    xl_path_note_acked(p, 1000, 900000, now + 5000);                  /* sent before: does not show the present rate */
    assert_int_equal(0, xl_path_queue_time(p, now + 5000));
    for (int i = 0; i < 200; i++) {
        now += 10000;
        xl_path_note_acked(p, 1000, now - 5000, now);
    }
    uint64_t steady = xl_path_delivery_time(p, 0, now);
    assert_in_range(steady, 90000, 115000);
    assert_in_range(xl_path_time_left(p, 10000, now - 90000, now), 90000, 115000); /* the newest waits for all */
    assert_in_range(xl_path_time_left(p, 2000, now - 90000, now), 10000, 25000);   /* the oldest for nearly nothing */
    assert_in_range(xl_path_delivery_time(p, 10000, now), 2 * steady - 5000, 2 * steady + 5000);
    now += 300000;
    uint64_t fading = xl_path_delivery_time(p, 0, now);
    assert_true(fading > 3 * steady / 2);
    now += 600000;
    assert_true(xl_path_delivery_time(p, 0, now) == XL_NEVER);
    assert_true(xl_path_time_left(p, 2000, now - 990000, now) == XL_NEVER);
}

/* The smoothed RTT of a path that has just faded grows as fast as time passes; the rate must not wait for it. */
PATH_TEST(a_path_that_fades_at_once_is_seen_through) {
    xl_rtt_sample(&p->ack_rtt, 50000, 0);
    uint64_t begin = 1000000, now = begin;
    xl_path_note_sent(p, 200000, begin);
    p->flight.bytes = 200000;
    assert_int_equal(0, xl_path_time_left(p, 200000, begin, begin + 60000)); /* arrived, by the RTT */
    for (int i = 1; i <= 4; i++) {
        now = begin + 50000 + (uint64_t)i * 50000;
        xl_rtt_sample(&p->ack_rtt, now - begin, 0);
        p->flight.bytes -= 1000;
        xl_path_note_acked(p, 1000, begin, now);
    }
    assert_in_range(xl_path_time_left(p, 200000, begin, now), 8000000, 12000000); /* 196 kB at 20 kB/s */
    p->flight.bytes = 0;
    xl_path_note_sent(p, 1000, now + 1000000);
    p->flight.bytes = 1000;
    assert_in_range(xl_path_queue_time(p, now + 1000000), 40000, 60000); /* the rate is kept */
    /* An overdue packet shows that nothing comes back, before a rate could be measured. */
    assert_true(xl_path_time_left(p, 1000, now + 1000000, now + 3000000) == XL_NEVER);
}

/* Packets have RTTs of 240 ms from 10 s to 12 s; they left when `delivered` bytes were delivered, at sent_at unless 0.
 * Returns the delay due to others. */
static uint64_t delay_of(xl_path *p, uint64_t delivered, uint64_t sent_at, uint64_t measured_before) {
    for (uint64_t now = 10000000; now < 12000000; now += 20000) {
        xl_sent_packet pkt = {.time_us = sent_at ? sent_at : now - 240000, .delivered = delivered};
        p->delivery.capacity = (xl_capacity){.bytes_per_s = 2500000, .measured_at = now - measured_before};
        xl_path_note_delay(p, &pkt, now);
    }
    return xl_cross_traffic_delay(&p->delivery.cross, 11999999);
}

/* A path with a smallest RTT of 40 ms that has delivered 400 kB. */
static void make_busy(xl_path *p) {
    make(p);
    xl_rtt_sample(&p->ack_rtt, 40000, 0);
    xl_rtt_sample(&p->ack_rtt, 80000, 0);
    p->rate.delivered = 400000;
}

TEST(delay_by_others_is_what_own_bytes_do_not_explain) {
    xl_path p;
    make_busy(&p);
    assert_int_equal(200000, delay_of(&p, 390000, 0, 0)); /* above the smallest RTT */
    make_busy(&p);
    assert_int_equal(120000, delay_of(&p, 100000, 0, 0)); /* 300 kB take 120 ms */
    make_busy(&p);
    assert_int_equal(0, delay_of(&p, 390000, 0, 1)); /* no capacity was measured */
    make(&p);
    p.rate.delivered = 400000;
    assert_int_equal(0, delay_of(&p, 0, 0, 0)); /* nor an RTT */
}

TEST(delay_by_others_is_of_the_present_route) {
    xl_path p;
    make_busy(&p);
    assert_int_equal(200000, delay_of(&p, 390000, 0, 0));
    xl_path_reset_congestion(&p, p.cc.ops, 1200, 9000000);
    assert_int_equal(0, xl_cross_traffic_delay(&p.delivery.cross, 11999999));
    xl_rtt_sample(&p.ack_rtt, 40000, 0);
    p.rate.delivered = 400000;
    assert_int_equal(0, delay_of(&p, 0, 8999999, 0)); /* what left before is still being acknowledged */
    assert_true(delay_of(&p, 0, 9000000, 0) > 0);
}

PATH_TEST(pacing_follows_the_window) {
    xl_path_update_pacer(p, 0);
    assert_int_equal(0, p->pacer.rate); /* no RTT yet: not paced */
    xl_path_rtt_sample(p, 100000, 0, true, 0);
    xl_path_update_pacer(p, 0);
    assert_int_equal(2 * xl_path_window(p) * 10, p->pacer.rate); /* slow start: twice the window a round trip */
}

TEST_MAIN(NULL, NULL)
