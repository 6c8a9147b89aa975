#include "tests/unit.h"
#include "congestion/congestion.h"

#include <stdalign.h>

#include <math.h>

extern const xl_cc_ops xl_cc_cubic, xl_cc_cubic_tolerant;

#define MTU 1200
#define RTT 100000

typedef struct {
    alignas(16) uint8_t state[XL_CC_STATE_BYTES];
    uint64_t now;
} flow;

/* Most tests are of the rules of RFC 9438, which both controllers follow from the first counted loss on. */
static const xl_cc_ops *const cc = &xl_cc_cubic;

/* Acknowledges one window, packet by packet, spread over one round trip. */
static void one_round(flow *f, uint64_t rtt, bool app_limited) {
    uint64_t packets = cc->window(f->state) / MTU, begin = f->now;
    for (uint64_t i = 0; i < packets; i++) {
        f->now = begin + (i + 1) * rtt / packets;
        xl_cc_ack ack = {.now = f->now,
                         .bytes = MTU,
                         .sent_time = f->now - rtt,
                         .srtt_us = rtt,
                         .latest_rtt_us = rtt,
                         .min_rtt_us = rtt,
                         .app_limited = app_limited};
        cc->on_sent(f->state, MTU, 2 * MTU, f->now); /* others are in flight: it is not idle */
        cc->on_ack(f->state, &ack);
    }
}

/* Slow start up to `packets`, then one loss: congestion avoidance begins with the next round. */
static void lose_at(flow *f, double packets) {
    cc->init(f->state, MTU, 0);
    f->now = RTT;
    xl_cc_ack ack = {.now = f->now, .srtt_us = RTT, .latest_rtt_us = RTT, .min_rtt_us = RTT};
    ack.bytes = (uint64_t)(packets * MTU) - cc->window(f->state);
    cc->on_ack(f->state, &ack);
    assert_int_equal(cc->window(f->state), (uint64_t)(packets * MTU));
    cc->on_loss(f->state, f->now, MTU, f->now);
    f->now += RTT + 1;
}

static double packets_of(const flow *f) {
    return (double)cc->window(f->state) / MTU;
}

static double formula(double w_max, double cwnd_epoch, double t) {
    double k = cbrt((w_max - cwnd_epoch) / 0.4);
    return 0.4 * pow(t - k, 3) + w_max;
}

TEST(a_loss_takes_three_tenths) {
    flow f;
    lose_at(&f, 1000);
    assert_true(fabs(packets_of(&f) - 700) < 0.01);
}

TEST(the_window_follows_the_cubic_function) {
    flow f;
    lose_at(&f, 1000);
    uint64_t epoch = f.now;
    /* K = cbrt(300 / 0.4) = 9.09 s; concave, plateau at w_max, convex. */
    double at_plateau = 0;
    while (f.now < epoch + 15000000) {
        one_round(&f, RTT, false);
        double t = (double)(f.now - epoch) / 1e6;
        /* The aim is one RTT ahead and is reached within one RTT: the window is on the curve. */
        assert_true(fabs(packets_of(&f) - formula(1000, 700, t)) < 3);
        if (at_plateau == 0 && t > 9.09)
            at_plateau = packets_of(&f);
    }
    assert_true(fabs(at_plateau - 1000) < 5);
    assert_true(packets_of(&f) > 1060);
}

TEST(a_small_window_grows_like_reno) {
    flow f;
    const uint64_t rtt = 10000; /* short RTT: Reno outgrows the curve */
    lose_at(&f, 30);
    double alpha = 3 * (1 - 0.7) / (1 + 0.7), before = packets_of(&f);
    for (int i = 0; i < 10; i++)
        one_round(&f, rtt, false);
    double gained = packets_of(&f) - before;
    assert_true(gained > 10 * alpha * 0.85 && gained < 10 * alpha * 1.15);
    /* Above the window before the loss, it grows by a whole packet per round. */
    while (packets_of(&f) < 31)
        one_round(&f, rtt, false);
    before = packets_of(&f);
    for (int i = 0; i < 10; i++)
        one_round(&f, rtt, false);
    gained = packets_of(&f) - before;
    assert_true(gained > 9 && gained < 11);
}

TEST(fast_convergence_lowers_the_plateau) {
    flow f;
    lose_at(&f, 1000);
    one_round(&f, RTT, false);
    double second = packets_of(&f); /* below 1000: someone else wants the bandwidth */
    cc->on_loss(f.state, f.now, MTU, f.now);
    f.now += RTT + 1;
    double w_max = second * 1.7 / 2, start = second * 0.7;
    uint64_t epoch = f.now;
    double k = cbrt((w_max - start) / 0.4);
    while ((double)(f.now - epoch) / 1e6 < k)
        one_round(&f, RTT, false);
    assert_true(fabs(packets_of(&f) - w_max) < 5);
}

TEST(time_in_which_the_application_is_the_limit_does_not_count) {
    flow busy, lazy;
    lose_at(&busy, 1000);
    lose_at(&lazy, 1000);
    for (int i = 0; i < 20; i++) {
        one_round(&busy, RTT, false);
        one_round(&lazy, RTT, false);
    }
    assert_int_equal(cc->window(busy.state), cc->window(lazy.state));
    for (int i = 0; i < 100; i++)
        one_round(&lazy, RTT, true);
    assert_int_equal(cc->window(busy.state), cc->window(lazy.state));
    lazy.now += 60000000; /* idle */
    cc->on_sent(lazy.state, MTU, MTU, lazy.now);
    for (int i = 0; i < 20; i++) {
        one_round(&busy, RTT, false);
        one_round(&lazy, RTT, false);
    }
    assert_true(fabs(packets_of(&busy) - packets_of(&lazy)) < 1);
}

TEST(no_round_grows_the_window_by_more_than_half) {
    flow f;
    lose_at(&f, 30);
    one_round(&f, RTT, false);
    f.now += 3600000000; /* an hour without an ack: the curve is far above */
    for (int i = 0; i < 5; i++) {
        double before = packets_of(&f);
        one_round(&f, RTT, false);
        assert_true(packets_of(&f) <= before * exp(0.5) + 1); /* the target moves with the window */
    }
}

TEST(a_spurious_event_is_undone_when_its_last_packet_arrives) {
    flow f;
    lose_at(&f, 1000);
    for (int i = 0; i < 10; i++)
        one_round(&f, RTT, false);
    uint64_t before = cc->window(f.state), threshold = cc->ssthresh(f.state);
    cc->on_loss(f.state, f.now - 2, MTU, f.now);
    cc->on_loss(f.state, f.now - 1, MTU, f.now);
    uint64_t reduced = cc->window(f.state);
    cc->on_spurious_loss(f.state, f.now - 1, f.now + 10);
    assert_int_equal(cc->window(f.state), reduced);
    cc->on_spurious_loss(f.state, f.now - 2, f.now + 20);
    assert_int_equal(cc->window(f.state), before);
    assert_int_equal(cc->ssthresh(f.state), threshold);
    /* The next loss counts again. */
    cc->on_loss(f.state, f.now, MTU, f.now + 30);
    assert_int_equal(cc->window(f.state), reduced);
}

TEST(a_spurious_event_is_not_undone_once_the_window_has_grown_back) {
    flow f;
    lose_at(&f, 20);
    uint64_t threshold = cc->ssthresh(f.state);
    while (packets_of(&f) < 21)
        one_round(&f, RTT, false);
    uint64_t before = cc->window(f.state);
    cc->on_spurious_loss(f.state, RTT, f.now);
    assert_int_equal(cc->window(f.state), before);
    assert_int_equal(cc->ssthresh(f.state), threshold); /* no return to slow start */
}

TEST(a_straggler_of_an_older_event_changes_nothing_after_an_undo) {
    flow f[2];
    for (int k = 0; k < 2; k++) {
        lose_at(&f[k], 1000);
        for (int i = 0; i < 10; i++)
            one_round(&f[k], RTT, false);
        cc->on_loss(f[k].state, f[k].now, MTU, f[k].now);
        cc->on_spurious_loss(f[k].state, f[k].now, f[k].now + 10); /* the event had only one packet */
        for (int i = 0; i < 10; i++)
            one_round(&f[k], RTT, false);
        if (k == 1)
            cc->on_spurious_loss(f[k].state, RTT, f[k].now);
        for (int i = 0; i < 30; i++)
            one_round(&f[k], RTT, false);
    }
    assert_true(packets_of(&f[0]) > 750);
    assert_int_equal(cc->window(f[0].state), cc->window(f[1].state));
}

TEST(a_true_event_is_not_undone_by_stragglers) {
    flow f;
    lose_at(&f, 1000); /* event 1: packets sent until RTT */
    for (int i = 0; i < 3; i++)
        one_round(&f, RTT, false);
    cc->on_loss(f.state, f.now, MTU, f.now); /* event 2, a true loss */
    uint64_t reduced = cc->window(f.state);
    cc->on_spurious_loss(f.state, RTT, f.now + 1); /* of event 1 */
    assert_int_equal(cc->window(f.state), reduced);
}

TEST(rtt_samples_of_other_packets_do_not_end_slow_start) {
    flow f;
    cc->init(f.state, MTU, 0);
    f.now = RTT;
    one_round(&f, RTT, false);
    for (int round = 0; round < 6; round++) {
        uint64_t before = cc->window(f.state), begin = f.now, packets = before / MTU;
        for (uint64_t i = 0; i < packets; i++) {
            f.now = begin + (i + 1) * RTT / packets;
            /* latest_rtt_us stays at an old high sample */
            xl_cc_ack ack = {.now = f.now,
                             .bytes = MTU,
                             .sent_time = f.now - RTT,
                             .srtt_us = RTT,
                             .latest_rtt_us = 3 * RTT,
                             .min_rtt_us = RTT};
            cc->on_ack(f.state, &ack);
        }
        assert_int_equal(cc->window(f.state), before + packets * MTU);
    }
    for (int round = 0; round < 3; round++) { /* nor does a true sample count as an increase above them */
        uint64_t before = cc->window(f.state);
        one_round(&f, RTT, false);
        assert_int_equal(cc->window(f.state), before + before / MTU * MTU);
    }
}

TEST(after_an_outage_the_curve_does_not_aim_at_the_old_window) {
    flow f;
    lose_at(&f, 1000);
    for (int i = 0; i < 3; i++)
        one_round(&f, RTT, false); /* on its way back to 1000 */
    cc->on_persistent_congestion(f.state, f.now);
    f.now += RTT + 1;
    while (packets_of(&f) < 700)
        one_round(&f, RTT, false);
    double before = packets_of(&f);
    for (int i = 0; i < 20; i++)
        one_round(&f, RTT, false);
    /* The plateau is here: 20 rounds of Reno growth, not 0.4 (9 s)^3 packets of catching up. Below the window of before
     * the outage a round is 0.53 packets. */
    assert_true(packets_of(&f) > before + 8 && packets_of(&f) < before + 13);
}

TEST(leaving_slow_start_by_delay_starts_at_the_plateau) {
    flow f;
    cc->init(f.state, MTU, 0);
    uint64_t rtt = RTT;
    /* A queue builds up: each round takes 20 ms more. */
    for (int round = 0; round < 12 && cc->ssthresh(f.state) == UINT64_MAX; round++, rtt += 20000) {
        f.now += 1;
        one_round(&f, rtt, false);
    }
    assert_true(cc->ssthresh(f.state) != UINT64_MAX);
    double before = packets_of(&f);
    uint64_t epoch = f.now;
    while (f.now < epoch + 2000000) {
        one_round(&f, RTT, false);
        double t = (double)(f.now - epoch) / 1e6 + RTT / 1e6;
        double reno = (double)(f.now - epoch) / RTT + 2; /* one packet a round */
        assert_true(packets_of(&f) <= before + fmax(0.4 * t * t * t, reno) + 1);
    }
    assert_true(packets_of(&f) > before);
}

/* Brings the window to 1000 packets; the minimum RTT is RTT, the sampled RTT `rtt`. */
static void settle(flow *f, const xl_cc_ops *ops, uint64_t rtt) {
    ops->init(f->state, MTU, 0);
    f->now = 4 * RTT;
    for (int i = 0; i < 2; i++) {
        xl_cc_ack ack = {.now = ++f->now, .srtt_us = RTT, .latest_rtt_us = rtt, .min_rtt_us = RTT};
        ack.bytes = (1000 * MTU - ops->window(f->state)) / (i ? 1 : 2);
        ack.sent_time = f->now - rtt;
        ops->on_ack(f->state, &ack);
    }
    assert_int_equal(1000 * MTU, ops->window(f->state));
}

TEST(a_loss_counts_where_a_queue_stands) {
    flow f;
    const xl_cc_ops *tolerant = &xl_cc_cubic_tolerant;
    settle(&f, tolerant, RTT + 12500); /* the threshold: RTT / 8 */
    tolerant->on_loss(f.state, f.now, MTU, f.now);
    assert_int_equal(1000 * MTU, tolerant->window(f.state));
    settle(&f, tolerant, RTT + 12501);
    tolerant->on_loss(f.state, f.now, MTU, f.now);
    assert_int_equal(700 * MTU, tolerant->window(f.state));
    settle(&f, cc, RTT);
    cc->on_loss(f.state, f.now, MTU, f.now);
    assert_int_equal(700 * MTU, cc->window(f.state));
}

TEST(many_losses_count_without_a_queue_too) {
    flow f;
    const xl_cc_ops *tolerant = &xl_cc_cubic_tolerant;
    settle(&f, tolerant, RTT);
    int losses = 0; /* without an acknowledgement between them */
    while (losses < 100 && tolerant->window(f.state) == 1000 * MTU) {
        tolerant->on_loss(f.state, f.now, MTU, f.now);
        losses++;
    }
    assert_int_equal(7, losses); /* 1 - (63/64)^7 = 10.4 % */
    assert_int_equal(700 * MTU, tolerant->window(f.state));
}

TEST(a_loss_that_did_not_count_undoes_nothing_when_it_is_spurious) {
    flow f;
    const xl_cc_ops *tolerant = &xl_cc_cubic_tolerant;
    settle(&f, tolerant, RTT);
    tolerant->on_loss(f.state, f.now, MTU, f.now);
    for (int i = 0; i < 2; i++) { /* a queue builds up */
        xl_cc_ack ack = {.now = ++f.now, .bytes = 0, .srtt_us = RTT, .latest_rtt_us = 2 * RTT, .min_rtt_us = RTT};
        ack.sent_time = f.now - 2 * RTT;
        tolerant->on_ack(f.state, &ack);
    }
    uint64_t uncounted_at = f.now - 2;
    tolerant->on_loss(f.state, f.now, MTU, f.now);
    assert_int_equal(700 * MTU, tolerant->window(f.state));
    tolerant->on_spurious_loss(f.state, uncounted_at, f.now + 1);
    assert_int_equal(700 * MTU, tolerant->window(f.state));
    tolerant->on_spurious_loss(f.state, f.now, f.now + 1);
    assert_int_equal(1000 * MTU, tolerant->window(f.state));
}

TEST_MAIN(NULL, NULL)
