/* The gate of re-injection on the virtual clock (the paper's section 5.2): the player's signal on its way to the
 * server, what the server decides by it, and copies while the gate is closed. */
#include "testing/reinjection.h"

/* Returns how often the log has a decision of the gate for the reason `why`, with another reason before it. */
static size_t gate_decisions(const json_t *records, const char *why) {
    const char *before = "";
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *record = json_array_get(records, i);
        if (!is_event(record, "xlink:qoe_gate"))
            continue;
        const char *now = text(data_of(record), "why");
        assert_string_not_equal(before, now);
        n += strcmp(why, now) == 0;
        before = now;
    }
    return n;
}

/* ---- Figure 5: from the player to the server's gate ---- */

static const xl_qoe play_of_3_s = {.cached_bytes = 1500000, .cached_frames = 90, .bps = 4000000, .fps = 30};
static const xl_qoe play_of_100_ms = {.cached_bytes = 50000, .cached_frames = 3, .bps = 4000000, .fps = 30};

static void with_control(pair *p, xl_qoe_carrier carrier) {
    two_paths(p, 75, 10000, 60000, "stream");
    p->server_config.scheme.reinjection_unconditional = p->server_config.scheme.qoe_control = true;
    p->server_config.scheme.t_th1_us = 300000;
    p->server_config.scheme.t_th2_us = 1000000;
    p->client_config.scheme.qoe_carrier = carrier;
    start(p);
}

TEST(figure_5_the_players_state_moves_the_servers_gate) {
    static const xl_qoe_carrier carriers[] = {XL_QOE_IN_ACK, XL_QOE_IN_SIGNALS, XL_QOE_IN_BOTH};
    for (size_t k = 0; k < 3; k++) {
        pair p;
        with_control(&p, carriers[k]);
        uint64_t copied = 0;
        const struct {
            const xl_qoe *qoe;
            bool open;
        } steps[] = {{&play_of_3_s, false}, {&play_of_100_ms, true}, {&play_of_3_s, false}};
        for (size_t i = 0; i < 3; i++) {
            xl_connection_set_qoe(p.cc, steps[i].qoe, p.now);
            pair_finish(&p, pair_ask(&p, 2 * PACKET), 2000000); /* something to acknowledge */
            pair_run(&p, 200000);
            xl_connection_set_qoe(p.cc, steps[i].qoe, p.now);
            assert_int_equal(steps[i].qoe->cached_bytes, p.sc->qoe.gate.signal.cached_bytes);
            copied = p.sc->stats.reinjected_bytes;
            pair_finish(&p, pair_ask(&p, 18 * PACKET), 2000000);
            assert_int_equal(steps[i].open, p.sc->stats.reinjected_bytes > copied);
        }
        json_t *records = read_log(&p);
        assert_true(gate_decisions(records, "above T_th2") >= 2);
        assert_true(gate_decisions(records, "below T_th1") >= 1);
        assert_true(count_events(records, "xlink:qoe_received") >= 3);
        const json_t *gate = last_event(records, "xlink:qoe_gate");
        assert_string_equal("above T_th2", text(gate, "why"));
        assert_true(number(gate, "play_time_left_ms") > 1000 && number(gate, "t_th2_ms") == 1000);
        const json_t *refusal = last_event(records, "xlink:reinjection_refused");
        assert_string_equal("gate closed", text(refusal, "why"));
        assert_string_equal("above T_th2", text(refusal, "gate"));
        json_decref(records);
        pair_free(&p);
    }
}

/* ---- Rescue: copies while the gate is closed ---- */

/* Figure 3's outage, with three seconds in the player's buffer. already: bytes that were re-injected before it. */
static uint64_t time_with_a_full_buffer(uint64_t rescue_gain_us, uint64_t already, uint64_t *reinjected) {
    pair p;
    two_paths(&p, 76, 10000, 60000, "stream");
    p.server_config.scheme.qoe_control = true;
    p.server_config.scheme.t_th1_us = 300000;
    p.server_config.scheme.t_th2_us = 1000000;
    p.server_config.scheme.rescue = rescue_gain_us > 0;
    p.server_config.scheme.rescue_gain_us = rescue_gain_us;
    start(&p);
    xl_connection_set_qoe(p.cc, &play_of_3_s, p.now);
    pair_finish(&p, pair_ask(&p, 2 * PACKET), 2000000); /* something to acknowledge */
    pair_run(&p, 200000);
    xl_connection_set_qoe(p.cc, &play_of_3_s, p.now);
    uint64_t before = p.sc->stats.reinjected_bytes += already;
    size_t i = pair_ask(&p, 18 * PACKET);
    until_flushed(&p, i);
    uint64_t from = p.now;
    lose_newest(&p, 1, 3);
    pair_set_dark(&p.link[1], true);
    assert_true(pair_finish(&p, i, 20000000) != UINT64_MAX);
    *reinjected = p.sc->stats.reinjected_bytes - before;
    uint64_t took = p.request[i].done_at - from;
    pair_free(&p);
    return took;
}

TEST(what_would_come_much_too_late_is_rescued_at_a_price_that_rises) {
    uint64_t copied;
    uint64_t without = time_with_a_full_buffer(0, 0, &copied);
    assert_int_equal(0, copied);
    uint64_t with = time_with_a_full_buffer(120000, 0, &copied);
    assert_true(copied >= 3 * PACKET - 100);
    assert_true(with + 100000 < without);
    uint64_t later = time_with_a_full_buffer(120000, 2 * 32000, &copied); /* a longer silence is required */
    assert_true(copied >= 3 * PACKET - 100);
    assert_true(with + 100000 < later && later + 100000 < without);
    time_with_a_full_buffer(120000, 3 * 32000 - PACKET, &copied); /* enough for one packet, but not for all */
    assert_int_equal(0, copied);
}

TEST(a_request_is_sent_on_every_path_where_copies_rescue) {
    for (int rescue = 0; rescue <= 1; rescue++) {
        pair p;
        two_paths(&p, 77, 10000, 60000, "stream");
        p.client_config.scheme.rescue = rescue;
        start(&p);
        pair_finish(&p, pair_ask(&p, 2 * PACKET), 2000000);
        if (rescue)
            assert_in_range(p.cc->stats.reinjected_bytes, 1, 512);
        else
            assert_int_equal(0, p.cc->stats.reinjected_bytes);
        pair_free(&p);
    }
}

TEST(a_signal_in_a_frame_of_its_own_needs_nothing_to_acknowledge) {
    for (int k = XL_QOE_OFF; k <= XL_QOE_IN_BOTH; k++) {
        pair p;
        with_control(&p, (xl_qoe_carrier)k);
        xl_connection_set_qoe(p.cc, &play_of_3_s, p.now);
        pair_run(&p, 12000); /* one way */
        assert_int_equal((k & XL_QOE_IN_SIGNALS) != 0, p.sc->qoe.gate.has_signal);
        pair_finish(&p, pair_ask(&p, 18 * PACKET), 2000000);
        pair_run(&p, 200000);
        assert_int_equal(k != XL_QOE_OFF, p.sc->qoe.gate.has_signal);
        assert_false(p.cc->qoe.is_fresh); /* each state goes out once */
        pair_free(&p);
    }
}

PAIR_TEST(signals_are_sent_on_change_and_one_in_50_ms_at_most) {
    with_control(p, XL_QOE_IN_SIGNALS);
    xl_qoe qoe = play_of_3_s;
    for (int ms = 0; ms < 1000; ms++) {
        qoe.cached_bytes -= 500;
        xl_connection_set_qoe(p->cc, &qoe, p->now);
        pair_run(p, 1000);
    }
    assert_in_range(p->cc->qoe.signals, 18, 21);
    pair_run(p, 100000);
    assert_int_equal(qoe.cached_bytes, p->sc->qoe.gate.signal.cached_bytes); /* the last one too */
    uint64_t sent = p->cc->qoe.signals;
    for (int k = 0; k < 20; k++) { /* nothing new */
        xl_connection_set_qoe(p->cc, &qoe, p->now);
        pair_run(p, 60000);
    }
    assert_int_equal(sent, p->cc->qoe.signals);
}

/* The first signal says 100 ms, and is overtaken by one that says 3 s. */
static void second_signal_comes_first(pair *p) {
    pair_run(p, 51000);
    xl_connection_set_qoe(p->cc, &play_of_3_s, p->now);
    pair_run(p, 15000);
    assert_int_equal(2, p->cc->qoe.signals);
    assert_int_equal(play_of_3_s.cached_bytes, p->sc->qoe.gate.signal.cached_bytes);
    pair_run(p, 150000);
    assert_int_equal(play_of_3_s.cached_bytes, p->sc->qoe.gate.signal.cached_bytes);
    xl_connection_set_qoe(p->cc, &play_of_100_ms, p->now);
    pair_run(p, 15000);
    assert_int_equal(play_of_100_ms.cached_bytes, p->sc->qoe.gate.signal.cached_bytes); /* the next one counts */
    pair_free(p);
}

TEST(a_signal_that_was_overtaken_on_its_path_does_not_count) {
    pair p;
    with_control(&p, XL_QOE_IN_SIGNALS);
    p.link[0].delay_us[0] = 100000;
    xl_connection_set_qoe(p.cc, &play_of_100_ms, p.now);
    pair_run(&p, 100);
    assert_int_equal(1, p.cc->qoe.signals);
    p.link[0].delay_us[0] = 10000;
    second_signal_comes_first(&p);
}

TEST(a_signal_that_was_overtaken_by_one_on_a_faster_path_does_not_count) {
    pair p;
    two_paths(&p, 75, 10000, 120000, "stream");
    p.server_config.scheme.qoe_control = true;
    p.client_config.scheme.qoe_carrier = XL_QOE_IN_SIGNALS;
    start(&p);
    pair_ask(&p, 2000 * PACKET); /* acknowledgements all the time, which bound the time of a signal */
    pair_run(&p, 100000);
    uint64_t srtt = p.cc->path[0]->rtt.smoothed;
    p.cc->path[0]->rtt.smoothed = 1000000; /* so it takes the slow path */
    xl_connection_set_qoe(p.cc, &play_of_100_ms, p.now);
    pair_run(&p, 100);
    assert_int_equal(1, p.cc->qoe.signals);
    p.cc->path[0]->rtt.smoothed = srtt;
    second_signal_comes_first(&p);
}

PAIR_TEST(a_lost_signal_is_followed_by_the_newest_unless_one_is_under_way) {
    with_control(p, XL_QOE_IN_SIGNALS);
    p->link[0].dark[0] = p->link[1].dark[0] = true;
    xl_connection_set_qoe(p->cc, &play_of_3_s, p->now);
    pair_run(p, 20000);
    p->link[0].dark[0] = p->link[1].dark[0] = false;
    assert_int_equal(1, p->cc->qoe.signals);
    pair_run(p, 1000000);
    assert_int_equal(2, p->cc->qoe.signals); /* lost, and sent again */
    assert_int_equal(play_of_3_s.cached_bytes, p->sc->qoe.gate.signal.cached_bytes);

    p->link[0].dark[0] = p->link[1].dark[0] = true;
    xl_connection_set_qoe(p->cc, &play_of_100_ms, p->now);
    pair_run(p, 5000);
    p->link[0].dark[0] = p->link[1].dark[0] = false;
    pair_run(p, 50000);
    xl_connection_set_qoe(p->cc, &play_of_3_s, p->now);
    pair_run(p, 3000000);
    assert_int_equal(4, p->cc->qoe.signals); /* the lost one is not sent again */
    assert_int_equal(play_of_3_s.cached_bytes, p->sc->qoe.gate.signal.cached_bytes);
}

/* ---- Equation 1 ---- */

/* Three paths with RTTs of 20, 60 and 800 ms; an answer of `packets` fills them in this order, ten packets each. The
 * play time left is 300 ms, between the thresholds. */
static void ask_with_300_ms_left(size_t packets, bool *open, double *deliver_time_max_ms) {
    pair p;
    pair_init(&p, 76, 3, 10000);
    pair_multipath(&p, "minrtt", "stream");
    pair_capture_qlog(&p);
    pair_delay(&p.link[1], 30000);
    pair_delay(&p.link[2], 400000);
    p.server_config.scheme.reinjection_unconditional = p.server_config.scheme.qoe_control = true;
    p.server_config.scheme.qoe_extrapolation = false;
    p.server_config.scheme.t_th1_us = 0;
    p.server_config.scheme.t_th2_us = 1000000;
    p.client_config.scheme.qoe_carrier = XL_QOE_IN_SIGNALS;
    start(&p);
    pair_run(&p, 2000000);
    xl_connection_set_qoe(p.cc, &(xl_qoe){.cached_frames = 300, .fps = 1000}, p.now);
    pair_run(&p, 2000000); /* the signal is acknowledged, all paths are quiet */
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(0, p.sc->path[i]->flight.eliciting);
    pair_finish(&p, pair_ask(&p, packets * PACKET), 2000000);
    *open = p.sc->stats.reinjected_bytes > 0;
    json_t *records = read_log(&p);
    const json_t *gate = last_event(records, "xlink:qoe_gate");
    assert_non_null(gate);
    assert_true(number(gate, "play_time_left_ms") == 300);
    *deliver_time_max_ms = number(gate, "deliver_time_max_ms");
    assert_string_equal(*open ? "below deliverTime_max" : "above deliverTime_max", text(gate, "why"));
    json_decref(records);
    pair_free(&p);
}

TEST(delivery_time_counts_paths_with_unacknowledged_packets_only) {
    bool open;
    double longest_ms;
    ask_with_300_ms_left(15, &open, &longest_ms); /* the slowest path is idle */
    assert_false(open);
    assert_true(longest_ms > 60 && longest_ms < 200);
    ask_with_300_ms_left(25, &open, &longest_ms); /* it carries five packets */
    assert_true(open);
    assert_true(longest_ms > 800);
}

TEST_MAIN(NULL, NULL)
