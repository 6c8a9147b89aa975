#include "tests/unit.h"
#include "congestion/congestion.h"
#include "xlink/xlink.h"

#include <stdalign.h>

extern const xl_cc_ops xl_cc_newreno, xl_cc_cubic, xl_cc_lia, xl_cc_olia, xl_cc_balia;

TEST(controllers_are_found_by_name_and_complete) {
    size_t count = 0;
    for (; xl_cc_name(count); count++) {
        const xl_cc_ops *cc = xl_cc_find(xl_cc_name(count)); /* no name occurs twice: find() returns the first */
        assert_ptr_equal(cc, xl_ccs[count]);
        assert_non_null(cc->init);
        assert_non_null(cc->set_mtu);
        assert_non_null(cc->on_sent);
        assert_non_null(cc->on_ack);
        assert_non_null(cc->on_loss);
        assert_non_null(cc->on_persistent_congestion);
        assert_non_null(cc->window);
        assert_non_null(cc->ssthresh);
    }
    assert_true(count >= 6);
    assert_string_equal(xl_cc_name(0), "cubic");
    assert_null(xl_cc_find("warp"));
    assert_null(xl_cc_find(""));
    assert_null(xl_cc_find(NULL));
}

TEST(initial_and_minimum_window_are_those_of_rfc_9002) {
    assert_int_equal(xl_cc_initial_window(1200), 12000);
    assert_int_equal(xl_cc_initial_window(1472), 14720);
    assert_int_equal(xl_cc_initial_window(9000), 18000);
    assert_int_equal(xl_cc_initial_window(2000), 14720);
    assert_int_equal(xl_cc_minimum_window(1200), 2400);
}

/* RFC 9002 section 7.2: a packet size set before the first packet is sent has the effect of one given at the start. */
TEST(the_size_of_packets_may_be_learnt_later) {
    for (size_t i = 0; xl_cc_name(i); i++) {
        const xl_cc_ops *cc = xl_cc_find(xl_cc_name(i));
        alignas(16) uint8_t late[XL_CC_STATE_BYTES] = {0}, early[XL_CC_STATE_BYTES] = {0};
        cc->init(late, 1200, 0);
        cc->set_mtu(late, 1452);
        cc->init(early, 1452, 0);
        assert_memory_equal(early, late, sizeof early);
        assert_int_equal(cc->window(late), 14520);

        /* Slow start's growth stays when the packet size changes. */
        cc->init(late, 1200, 0);
        cc->on_sent(late, 1200, 1200, 0);
        cc->on_ack(
            late,
            &(xl_cc_ack){.now = 50000, .bytes = 1200, .srtt_us = 50000, .latest_rtt_us = 50000, .min_rtt_us = 50000});
        uint64_t added = cc->window(late) - 12000;
        cc->set_mtu(late, 1452);
        assert_int_equal(cc->window(late), 14520 + added);

        /* The minimum window is in packets of the new size, also when the size changes during a collapse. */
        cc->on_persistent_congestion(late, 60000);
        uint64_t packets = cc->window(late) / 1452;
        assert_int_equal(cc->window(late), packets * 1452);
        cc->set_mtu(late, 9000);
        assert_int_equal(cc->window(late), packets * 9000);
    }
}

/* The rules that hold for every controller. */
static void common_rules(const xl_cc_ops *cc) {
    alignas(16) uint8_t s[XL_CC_STATE_BYTES];
    cc->init(s, 1200, 0);
    assert_int_equal(cc->window(s), 12000);
    assert_true(cc->ssthresh(s) == UINT64_MAX);

    xl_cc_ack ack = {.now = 50000, .bytes = 1200, .srtt_us = 50000, .latest_rtt_us = 50000, .min_rtt_us = 50000};
    cc->on_ack(s, &ack);
    assert_int_equal(cc->window(s), 13200);
    ack.app_limited = true;
    cc->on_ack(s, &ack);
    assert_int_equal(cc->window(s), 13200);
    ack.app_limited = false;

    /* All losses of one event reduce the window once, in any order. */
    cc->on_loss(s, 10000, 1200, 60000);
    uint64_t reduced = cc->window(s);
    assert_true(reduced < 13200 && reduced >= 6600);
    assert_int_equal(cc->ssthresh(s), reduced);
    for (uint64_t sent = 60000; sent > 20000; sent -= 10000)
        cc->on_loss(s, sent, 1200, 70000);
    assert_int_equal(cc->window(s), reduced);
    /* No growth by packets sent before the event. */
    ack.sent_time = 60000;
    ack.now = 90000;
    cc->on_ack(s, &ack);
    assert_int_equal(cc->window(s), reduced);
    /* A packet sent after it that is lost is a new event. */
    cc->on_loss(s, 60001, 1200, 110000);
    assert_true(cc->window(s) < reduced);

    /* Never below two packets. */
    for (uint64_t t = 200000; t < 4000000; t += 100000)
        cc->on_loss(s, t, 1200, t + 50000);
    assert_int_equal(cc->window(s), 2400);
}

static void after_an_outage(const xl_cc_ops *cc) {
    alignas(16) uint8_t s[XL_CC_STATE_BYTES];
    cc->init(s, 1200, 0);
    xl_cc_ack ack = {.now = 50000, .bytes = 100000, .srtt_us = 50000, .latest_rtt_us = 50000, .min_rtt_us = 50000};
    cc->on_ack(s, &ack);
    cc->on_loss(s, 60000, 1200, 5000000);
    uint64_t threshold = cc->ssthresh(s);
    cc->on_persistent_congestion(s, 5000000);
    assert_int_equal(cc->window(s), 2400);
    assert_int_equal(cc->ssthresh(s), threshold);
    /* Losses of packets sent before the collapse do not lower the threshold. */
    cc->on_loss(s, 4900000, 1200, 5010000);
    assert_int_equal(cc->ssthresh(s), threshold);
    /* Slow start, at once, up to the threshold. */
    ack = (xl_cc_ack){.now = 5050000, .sent_time = 4950000, .bytes = 1200, .srtt_us = 50000, .latest_rtt_us = 50000};
    cc->on_ack(s, &ack);
    assert_int_equal(cc->window(s), 3600);
    cc->on_loss(s, 5000001, 1200, 5100000);
    assert_true(cc->window(s) < 3600);
    /* Without a threshold, the collapse sets it to the window after one congestion event. */
    cc->init(s, 1200, 0);
    cc->on_persistent_congestion(s, 5000000);
    assert_int_equal(cc->window(s), 2400);
    assert_int_equal(cc->ssthresh(s), cc == &xl_cc_cubic ? 8400 : 6000);
}

TEST(controllers_by_loss_reduce_once_an_event_and_come_back_from_an_outage) {
    static const xl_cc_ops *const by_loss[] = {&xl_cc_newreno, &xl_cc_cubic, &xl_cc_lia, &xl_cc_olia, &xl_cc_balia};
    for (size_t i = 0; i < sizeof by_loss / sizeof by_loss[0]; i++) {
        common_rules(by_loss[i]);
        after_an_outage(by_loss[i]);
    }
}

TEST(newreno_grows_one_packet_a_window) {
    alignas(16) uint8_t s[XL_CC_STATE_BYTES];
    const xl_cc_ops *cc = &xl_cc_newreno;
    cc->init(s, 1000, 0);
    xl_cc_ack ack = {.now = 1, .bytes = 10000};
    cc->on_ack(s, &ack); /* 20000 */
    cc->on_loss(s, 5, 1000, 10);
    assert_int_equal(cc->window(s), 10000);
    ack = (xl_cc_ack){.now = 12, .sent_time = 9, .bytes = 1000};
    for (int i = 0; i < 5; i++)
        cc->on_ack(s, &ack); /* of the event: no growth */
    ack = (xl_cc_ack){.now = 20, .sent_time = 15, .bytes = 1000};
    for (int i = 0; i < 9; i++)
        cc->on_ack(s, &ack);
    assert_int_equal(cc->window(s), 10000);
    cc->on_ack(s, &ack);
    assert_int_equal(cc->window(s), 11000);
    for (int i = 0; i < 11; i++)
        cc->on_ack(s, &ack);
    assert_int_equal(cc->window(s), 12000);
    for (int i = 0; i < 11; i++)
        cc->on_ack(s, &ack);
    cc->on_persistent_congestion(s, 30);
    ack.sent_time = 35;
    for (int i = 0; i < 8; i++)
        cc->on_ack(s, &ack);
    assert_int_equal(cc->window(s), 10000); /* the threshold; packets sent before the collapse do not count */
    for (int i = 0; i < 9; i++)
        cc->on_ack(s, &ack);
    assert_int_equal(cc->window(s), 10000);
    cc->on_ack(s, &ack);
    assert_int_equal(cc->window(s), 11000);
}

TEST_MAIN(NULL, NULL)
