#include "tests/unit.h"
#include "recovery/rate.h"

static xl_sent_packet packet(xl_rate_sampler *s, uint64_t in_flight_before, uint64_t now) {
    xl_sent_packet p = {.bytes = 1000, .time_us = now};
    xl_rate_sent(s, &p, in_flight_before, now);
    return p;
}

TEST(a_packet_a_millisecond_is_a_megabyte_a_second) {
    xl_rate_sampler s = {0};
    xl_rate_sample sample;
    xl_sent_packet p[40];
    for (uint64_t i = 0; i < 40; i++) { /* 20 ms round trip; the first 20 leave unacknowledged */
        p[i] = packet(&s, i < 20 ? i * 1000 : 20000, 1000000 + i * 1000);
        if (i < 20)
            continue;
        xl_rate_acked(&s, &p[i - 20], 1000000 + i * 1000);
        assert_true(xl_rate_take(&s, 20000, &sample));
        assert_int_equal((i - 19) * 1000, sample.delivered);
        assert_int_equal(1000, sample.newly_acked);
        assert_false(sample.is_app_limited);
    }
    xl_rate_acked(&s, &p[20], 1040000); /* left before anything was delivered: 21 packets in 40 ms */
    assert_true(xl_rate_take(&s, 20000, &sample));
    assert_int_equal(525000, sample.bytes_per_s);
    xl_rate_acked(&s, &p[21], 1041000); /* left when one was delivered, acknowledged 21 packets and 21 ms later */
    assert_true(xl_rate_take(&s, 20000, &sample));
    assert_int_equal(1000000, sample.bytes_per_s);
    assert_false(xl_rate_take(&s, 20000, &sample));
}

/* A burst that arrives at once was not delivered as fast as its acknowledgements come. */
TEST(the_longer_of_sending_and_acknowledging_counts) {
    xl_rate_sampler s = {0};
    xl_rate_sample sample;
    xl_sent_packet p[10];
    for (uint64_t i = 0; i < 10; i++)
        p[i] = packet(&s, i * 1000, 1000000 + i * 10000);
    for (size_t i = 0; i < 10; i++) /* all at once, 110 ms after the first left */
        xl_rate_acked(&s, &p[i], 1110000);
    assert_true(xl_rate_take(&s, 20000, &sample));
    assert_int_equal(UINT64_C(10000) * 1000000 / 110000, sample.bytes_per_s);
    assert_int_equal(0, sample.prior_delivered);
    assert_int_equal(10000, sample.newly_acked);
}

/* The packets of an acknowledgement come in any order; the sample is of the one that was sent last. */
TEST(the_packet_sent_last_is_the_sample) {
    for (size_t first = 0; first < 2; first++) {
        xl_rate_sampler s = {0};
        xl_rate_sample sample;
        xl_sent_packet before = packet(&s, 0, 1000000), p[2];
        p[0] = packet(&s, 1000, 1010000);
        xl_rate_acked(&s, &before, 1020000);
        xl_rate_take(&s, 20000, &sample);
        p[1] = packet(&s, 1000, 1030000); /* left when a packet was delivered */
        xl_rate_acked(&s, &p[first], 1060000);
        xl_rate_acked(&s, &p[1 - first], 1060000);
        assert_true(xl_rate_take(&s, 20000, &sample));
        assert_int_equal(1000, sample.prior_delivered);
        assert_int_equal(UINT64_C(2000) * 1000000 / 40000, sample.bytes_per_s);
    }
}

TEST(nothing_in_flight_and_nothing_delivered_is_limited_too) {
    xl_rate_sampler s = {0};
    xl_rate_sample sample;
    xl_rate_mark_app_limited(&s, 0);
    xl_sent_packet p = packet(&s, 0, 1000000);
    xl_rate_acked(&s, &p, 1020000);
    xl_rate_take(&s, 20000, &sample);
    assert_true(sample.is_app_limited);
    p = packet(&s, 0, 1030000); /* more than nothing was delivered since */
    assert_false(p.is_app_limited);
}

TEST(faster_than_the_smallest_rtt_is_no_sample) {
    xl_rate_sampler s = {0};
    xl_rate_sample sample;
    xl_sent_packet p = packet(&s, 0, 1000000);
    xl_rate_acked(&s, &p, 1005000);
    assert_true(xl_rate_take(&s, 20000, &sample));
    assert_int_equal(0, sample.bytes_per_s);
}

TEST(samples_are_limited_until_what_was_in_flight_then_is_delivered) {
    xl_rate_sampler s = {0};
    xl_rate_sample sample;
    xl_sent_packet before = packet(&s, 0, 1000000);
    xl_rate_mark_app_limited(&s, 1000);
    xl_sent_packet during = packet(&s, 1000, 1010000);
    xl_rate_acked(&s, &before, 1020000);
    xl_rate_take(&s, 20000, &sample);
    assert_false(sample.is_app_limited);
    xl_rate_acked(&s, &during, 1030000);
    xl_rate_take(&s, 20000, &sample);
    assert_true(sample.is_app_limited);
    xl_sent_packet after = packet(&s, 0, 1040000);
    xl_rate_acked(&s, &after, 1060000);
    xl_rate_take(&s, 20000, &sample);
    assert_false(sample.is_app_limited);
}

/* A path that is reset counts from 0; packets sent before remember larger or smaller counts. */
TEST(packets_from_before_the_path_began_anew_are_in_no_sample) {
    xl_rate_sampler s = {.begun_at = 2000000, .delivered_at = 2000000, .first_sent_at = 2000000};
    xl_rate_sample sample;
    xl_sent_packet before = {.bytes = 1000, .time_us = 1990000, .delivered = 0};
    xl_rate_acked(&s, &before, 2010000);
    assert_false(xl_rate_take(&s, 20000, &sample));
    before = (xl_sent_packet){.bytes = 1000, .time_us = 2000000, .delivered = 10000000};
    xl_rate_acked(&s, &before, 2020000);
    assert_false(xl_rate_take(&s, 20000, &sample));
    assert_int_equal(0, s.delivered);
    assert_int_equal(0, xl_rate_since(&s, &before));
    xl_sent_packet after = packet(&s, 0, 2000000);
    xl_rate_acked(&s, &after, 2020000);
    assert_true(xl_rate_take(&s, 20000, &sample));
    assert_int_equal(50000, sample.bytes_per_s);
    assert_int_equal(1000, xl_rate_since(&s, &after));
}

TEST(an_idle_time_is_in_no_sample) {
    xl_rate_sampler s = {0};
    xl_rate_sample sample;
    xl_sent_packet p = packet(&s, 0, 1000000);
    xl_rate_acked(&s, &p, 1020000);
    xl_rate_take(&s, 0, &sample);
    p = packet(&s, 0, 9000000);
    xl_rate_lost(&s, 1000);
    xl_rate_lost(&s, 2000);
    xl_rate_acked(&s, &p, 9020000);
    assert_true(xl_rate_take(&s, 20000, &sample));
    assert_int_equal(50000, sample.bytes_per_s);
    assert_int_equal(3000, sample.newly_lost);
}

TEST_MAIN(NULL, NULL)
