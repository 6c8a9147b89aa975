#include "tests/unit.h"
#include "emulator/saturatr/window.h"

#define START 20000000u /* a clock does not begin at 0 */

/* A link with a FIFO, infinite by default: packets leave it at service_us intervals and take delay_us each way. */
typedef struct {
    uint64_t service_us;
    uint64_t delay_us;
    uint64_t queue_limit; /* packets, 0 = none */
    uint64_t free_us;     /* when the link is free for the next packet */
    uint64_t sent_us[1u << 16];
    uint64_t arrive_us[1u << 16]; /* 0: lost */
    uint64_t acked, received;
    uint64_t idle_us; /* idle time of the link between packets */
} window_link;

static void send_all(sat_window *w, window_link *link, uint64_t now) {
    for (uint64_t n = sat_window_allowance(w, now); n > 0; n--) {
        uint64_t seq = w->next_seq;
        uint64_t at = now + link->delay_us;
        uint64_t begin = at > link->free_us ? at : link->free_us;
        link->idle_us += seq > 0 && at > link->free_us ? at - link->free_us : 0;
        bool lost = link->queue_limit > 0 && (begin - at) / link->service_us >= link->queue_limit;
        link->sent_us[seq % (1u << 16)] = now;
        link->free_us = lost ? link->free_us : begin + link->service_us;
        link->arrive_us[seq % (1u << 16)] = lost ? 0 : link->free_us;
        sat_window_on_sent(w, 1, now);
    }
}

/* Acknowledges the packets that have arrived by now; acknowledgements take no time. */
static void acknowledge(sat_window *w, window_link *link, uint64_t now) {
    uint64_t highest = UINT64_MAX;
    for (; link->acked < w->next_seq; link->acked++) {
        uint64_t arrival = link->arrive_us[link->acked % (1u << 16)];
        if (arrival > now)
            break;
        if (arrival != 0) {
            link->received++;
            highest = link->acked;
        }
    }
    if (highest != UINT64_MAX) {
        sat_window_on_ack(w, highest, link->received, link->sent_us[highest % (1u << 16)],
                          link->arrive_us[highest % (1u << 16)], now);
    }
}

static void run(sat_window *w, window_link *link, uint64_t *now, uint64_t span_us) {
    for (uint64_t end = *now + span_us; *now < end; *now += 500) {
        acknowledge(w, link, *now);
        send_all(w, link, *now);
    }
}

static window_link link_under_test;

static window_link *fresh(uint64_t service_us, uint64_t delay_us) {
    link_under_test = (window_link){.service_us = service_us, .delay_us = delay_us};
    return &link_under_test;
}

TEST(starts_with_twenty_packets_and_waits) {
    sat_window w;
    sat_window_init(&w, START);
    assert_int_equal(sat_window_allowance(&w, START), 20);
    sat_window_on_sent(&w, 20, START);
    assert_int_equal(sat_window_allowance(&w, START + 500000), 0);
    assert_int_equal(sat_window_next(&w, START + 500000), START + SAT_HEARTBEAT_US);
}

TEST(beats_each_second_while_nothing_is_acknowledged) {
    sat_window w;
    sat_window_init(&w, START);
    sat_window_on_sent(&w, 20, START);
    for (uint64_t s = 1; s < 4; s++) {
        assert_int_equal(sat_window_allowance(&w, START + s * 1000000 - 1), 0);
        assert_int_equal(sat_window_allowance(&w, START + s * 1000000), 1);
        sat_window_on_sent(&w, 1, START + s * 1000000);
    }
}

TEST(grows_by_one_per_packet_below_the_lower_rtt) {
    sat_window w;
    sat_window_init(&w, START);
    sat_window_on_sent(&w, 20, START);
    sat_window_on_ack(&w, 0, 1, START, START + 10000, START + 20000); /* sets the least delay: window + 2 */
    assert_int_equal(w.window, 22);
    sat_window_on_ack(&w, 5, 6, START, START + 200000, START + 210000); /* a queue is building: + 1 */
    assert_int_equal(w.window, 27);
    sat_window_on_ack(&w, 10, 11, START, START + 700000, START + 750000); /* 0.75 s: unchanged */
    assert_int_equal(w.window, 27);
    sat_window_on_ack(&w, 15, 16, START, START + 2900000, START + 3000000); /* 3 s: unchanged */
    assert_int_equal(w.window, 27);
}

TEST(shrinks_above_the_upper_rtt_but_not_below_what_the_link_delivers) {
    sat_window w;
    window_link *link = fresh(1000, 50000); /* 1000 packets per second */
    uint64_t now = START;
    sat_window_init(&w, now);
    run(&w, link, &now, 4000000);
    assert_in_range(w.window, 700, 1500);
    double best = sat_window_best_pps(&w);
    assert_true(best > 950 && best < 1050);
    /* An outage of 4 s: packets in flight arrive late. */
    uint64_t highest = w.acked_until + 100;
    sat_window_on_ack(&w, highest, w.received + 101, now, now + 4050000, now + 4050000);
    uint64_t least = (uint64_t)(sat_window_best_pps(&w) * (1.25 * 0.051 + 0.05));
    assert_in_range(w.window, least - 2, least + 2);
}

TEST(keeps_links_from_slow_to_fast_busy) {
    static const uint64_t service_us[] = {2406, 241, 40, 12}; /* 5, 50, 300, 1000 Mbps */
    for (size_t i = 0; i < sizeof service_us / sizeof service_us[0]; i++) {
        sat_window w;
        window_link *link = fresh(service_us[i], 20000);
        uint64_t now = START;
        sat_window_init(&w, now);
        run(&w, link, &now, 1000000);
        assert_true(sat_window_saturated(&w));
        link->idle_us = 0;
        run(&w, link, &now, 5000000);
        assert_int_equal(link->idle_us, 0);
        assert_true(w.rtt_us < SAT_UPPER_RTT_US);
    }
}

TEST(rests_when_the_queue_of_the_link_overflows) {
    sat_window w;
    window_link *link = fresh(1000, 20000);
    link->queue_limit = 100;
    uint64_t now = START;
    sat_window_init(&w, now);
    run(&w, link, &now, 20000000);
    uint64_t sent = w.next_seq;
    uint64_t received = link->received;
    link->idle_us = 0;
    run(&w, link, &now, 20000000);
    assert_int_equal(link->idle_us, 0);
    /* The link is kept full without sending several times its rate. */
    assert_true(w.next_seq - sent < 3 * (link->received - received) / 2);
}

TEST(finds_a_full_queue_when_an_outage_ends) {
    sat_window w;
    window_link *link = fresh(400, 50000); /* 30 Mbps */
    uint64_t now = START;
    sat_window_init(&w, now);
    run(&w, link, &now, 3000000);
    link->free_us += 10000000; /* later packets wait 10 s longer */
    run(&w, link, &now, 12000000);
    link->idle_us = 0;
    run(&w, link, &now, 3000000);
    assert_int_equal(link->idle_us, 0);
}

TEST(ignores_acknowledgements_that_cannot_be_true) {
    sat_window w;
    sat_window_init(&w, START);
    sat_window_on_sent(&w, 20, START);
    sat_window_on_ack(&w, 20, 1, START, START + 1, START + 1); /* never sent */
    sat_window_on_ack(&w, UINT64_MAX, UINT64_MAX, START, START + 1, START + 1);
    sat_window_on_ack(&w, 3, 4, START + 2, START + 1, START + 1); /* an echo from the future */
    assert_int_equal(w.window, 20);
    assert_int_equal(sat_window_in_flight(&w), 20);
    /* One packet in flight cannot acknowledge a million. */
    sat_window_on_ack(&w, 19, UINT64_MAX / 2, START, START + 1, START + 1);
    assert_in_range(w.window, 21, 60);
    sat_window_on_sent(&w, 10, START + 100000);
    sat_window_on_ack(&w, 29, UINT64_MAX - 1, START + 100000, UINT64_MAX - 5, START + 100001);
    assert_in_range(sat_window_allowance(&w, START + 200000), 0, SAT_WINDOW_HARD_CAP);
}

TEST_MAIN(NULL, NULL)
