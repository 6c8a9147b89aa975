/* Loss, acknowledgements and probe timeouts of a connection (RFC 9002 sections 6 and 7). */
#include "testing/pair.h"

#include "connection/acks.h"
#include "connection/path_table.h"
#include "connection/state.h"

/* Begins a download on one path of 20 Mbit/s and runs until it has settled. */
static void begin(pair *p, uint64_t seed) {
    pair_init(p, seed, 1, 20000);
    pair_limit(&p->link[0], 2500000, 50000);
    pair_establish(p);
    pair_ask(p, 50000000);
    pair_run(p, 2000000);
}

static void set_dark(pair *p, bool to_server, bool to_client) {
    p->link[0].dark[0] = to_server;
    p->link[0].dark[1] = to_client;
}

static void until_ptos(pair *p, uint64_t count) {
    uint64_t end = p->now + 20000000;
    while (p->sc->path[0]->flight.pto_count < count && p->now < end)
        pair_step(p);
    assert_int_equal(count, p->sc->path[0]->flight.pto_count);
}

/* The PTO is about 70 ms. */
PAIR_TEST(requests_that_follow_each_other_do_not_hide_a_dark_path) {
    pair_init(p, 7, 2, 10000);
    pair_multipath(p, "redundant", "none"); /* a request goes on both paths */
    pair_settle(p, 1000000);
    pair_set_dark(&p->link[1], true);
    for (int i = 0; i < 20; i++) {
        size_t asked = pair_ask(p, 1000);
        pair_run(p, 40000);
        assert_true(p->request[asked].done);
    }
    assert_int_equal(XL_PATH_SUSPECT, p->cc->path[1]->state);
}

/* What the link held back in a stall arrives afterwards: the first probe took 8 s, the last one less than one. */
PAIR_TEST(a_stalled_path_is_found_out_as_fast_the_next_time) {
    pair_init(p, 9, 2, 10000);
    pair_multipath(p, "redundant", "none");
    pair_limit(&p->link[1], 2500000, 0);
    pair_settle(p, 1000000);
    p->link[1].busy_until[0] = p->link[1].busy_until[1] = p->now + 8000000;
    pair_ask(p, 1000);
    pair_run(p, 7900000);
    assert_int_equal(XL_PATH_SUSPECT, p->cc->path[1]->state);
    pair_run(p, 600000);
    assert_int_equal(XL_PATH_ACTIVE, p->cc->path[1]->state);
    assert_in_range(p->cc->path[1]->ack_rtt.latest, 20000, 25000); /* it was probed once more as soon as it answered */
    pair_set_dark(&p->link[1], true);
    pair_ask(p, 1000);
    pair_run(p, 5000000);
    assert_int_equal(XL_PATH_SUSPECT, p->cc->path[1]->state);
}

/* While both are dark, the probes of the suspect path carry data, too. */
PAIR_TEST(what_probes_carried_on_a_suspect_path_is_sent_on_the_one_that_answers) {
    pair_init_multipath(p, 8, 2, 20000);
    for (size_t i = 0; i < 2; i++)
        pair_limit(&p->link[i], 2500000, 50000);
    pair_establish(p);
    size_t asked = pair_ask(p, 10000000);
    pair_run(p, 1000000);
    pair_set_dark(&p->link[0], true);
    pair_run(p, 1000000);
    assert_int_equal(XL_PATH_SUSPECT, p->sc->path[0]->state);
    pair_set_dark(&p->link[1], true);
    pair_run(p, 6000000);
    assert_int_equal(XL_PATH_ACTIVE, p->sc->path[1]->state);
    assert_true(p->sc->path[1]->outage.until == XL_NEVER); /* although it is not suspect */
    pair_set_dark(&p->link[1], false);
    pair_run(p, 10000000);
    assert_int_equal(XL_PATH_SUSPECT, p->sc->path[0]->state);
    assert_true(p->request[asked].done);
}

/* Runs until the first acknowledgement after an outage, which declares the packets of the outage lost. Returns the
 * window then. */
static uint64_t window_after_outage(pair *p) {
    uint64_t lost = p->sc->path[0]->stats.packets_lost, end = p->now + 20000000;
    set_dark(p, false, false);
    while (p->sc->path[0]->stats.packets_lost == lost && p->now < end)
        pair_step(p);
    assert_true(p->sc->path[0]->stats.packets_lost > lost);
    return xl_path_window(p->sc->path[0]);
}

/* Packets sent before the last acknowledgement came are part of the outage, too. */
PAIR_TEST(an_outage_longer_than_the_persistent_duration_collapses_the_window) {
    begin(p, 1);
    assert_true(xl_path_window(p->sc->path[0]) > 20 * PAIR_MTU);
    set_dark(p, true, true);
    until_ptos(p, 3);
    assert_in_range(window_after_outage(p), 1, xl_cc_minimum_window(PAIR_MTU));
}

/* RFC 9002 section 5.2: the path became three times as long during the outage. */
PAIR_TEST(persistent_congestion_restarts_the_minimum_of_the_rtt) {
    begin(p, 1);
    const xl_path *path = p->sc->path[0];
    assert_in_range(path->ack_rtt.min, 40000, 45000);
    set_dark(p, true, true);
    until_ptos(p, 5);
    pair_delay(&p->link[0], 60000);
    assert_in_range(window_after_outage(p), 1, xl_cc_minimum_window(PAIR_MTU));
    assert_true(path->ack_rtt.min >= 120000);
    assert_true(path->rtt.min >= 120000);
}

/* RFC 9002 section 7.6.2. Three first packets are lost, the fourth is answered after 2 x 10 ms. */
PAIR_TEST(probes_lost_before_the_first_rtt_sample_are_no_persistent_congestion) {
    pair_init(p, 1, 1, 10000);
    set_dark(p, true, true);
    pair_connect(p);
    while (p->cc->path[0]->flight.pto_count < 3)
        pair_step(p);
    set_dark(p, false, false);
    pair_handshake(p);
    assert_true(p->cc->path[0]->stats.packets_lost > 1);
    assert_true(xl_path_window(p->cc->path[0]) > xl_cc_minimum_window(PAIR_MTU));
}

PAIR_TEST(a_short_outage_is_one_congestion_event) {
    begin(p, 1);
    uint64_t before = xl_path_window(p->sc->path[0]);
    set_dark(p, false, true);
    pair_run(p, 20000);
    assert_in_range(window_after_outage(p), before * 7 / 10, before * 3 / 4);
}

PAIR_TEST(an_outage_in_which_a_packet_arrived_is_not_persistent) {
    begin(p, 1);
    set_dark(p, true, true);
    until_ptos(p, 1);
    set_dark(p, true, false); /* the second probe arrives, its acknowledgement does not */
    until_ptos(p, 2);
    pair_run(p, 50000);
    set_dark(p, true, true);
    until_ptos(p, 3);
    assert_true(window_after_outage(p) > 10 * PAIR_MTU);
}

/* RFC 9002 section 7: only the probes of a timeout may exceed the window. */
PAIR_TEST(pings_and_measurements_keep_to_the_congestion_window) {
    begin(p, 1);
    xl_path *path = p->sc->path[0];
    unsigned full = 0, waited = 0;
    for (int i = 0; i < 500; i++) {
        pair_run(p, 1000);
        uint64_t before = path->flight.bytes;
        if (xl_path_has_window(path) || path->flight.probes > 0)
            continue;
        full++;
        xl_connection_ping(p->sc, p->now);
        xl_conn_start_rtt_probe(p->sc, path);
        pair_flush(p);
        assert_true(path->flight.bytes <= before);
        waited += path->flight.ping_pending && path->validation.is_pending;
        pair_run(p, 20000);
        assert_false(path->flight.ping_pending || path->validation.is_pending);
    }
    assert_true(full > 10);
    assert_int_equal(full, waited);
}

/* The client sends a PING, or none, and then an acknowledgement, or a PATH_RESPONSE to another address, which is the
 * largest packet that the server acknowledges. Returns whether that gave an RTT sample. */
static bool gives_a_sample(pair *p, bool pings, bool is_aside) {
    xl_connection *c = p->cc;
    xl_space *space = &c->space[XL_LEVEL_APP];
    const uint64_t first = space->ledger.next_pn, before = c->path[0]->ack_rtt.latest;
    if (pings)
        xl_connection_ping(c, p->now);
    pair_flush(p);
    if (is_aside) {
        c->elsewhere = (xl_elsewhere){.local = c->path[0]->local, .remote = pair_addr(9, 9), .room = XL_MIN_DATAGRAM};
    } else {
        space->unacked_eliciting = 1;
        space->ack_now = true;
    }
    xl_conn_wake(c);
    pair_flush(p);
    const uint64_t last = space->ledger.next_pn - 1;
    assert_int_equal(first + pings, last);
    assert_false(xl_ledger_find(&space->ledger, last)->ack_eliciting);
    c->now = p->now + 51000;
    const xl_ack_frame f = {.range_count = 1, .ranges = {{first, last}}};
    assert_int_equal(0, xl_conn_take_ack(c, space, c->path[0], &f));
    return c->path[0]->ack_rtt.latest != before && c->path[0]->ack_rtt.latest == 51000;
}

PAIR_TEST(a_packet_that_asks_for_an_acknowledgement_makes_the_largest_acknowledged_one_a_sample) {
    pair_init(p, 1, 1, 20000);
    pair_settle(p, 500000);
    set_dark(p, true, true);
    assert_false(gives_a_sample(p, false, false));
    assert_false(gives_a_sample(p, true, true));
    assert_true(gives_a_sample(p, true, false));
}

PAIR_TEST(a_connection_rests_between_transfers_and_not_within_one) {
    begin(p, 1);
    const xl_ledger *sent = &p->sc->path[0]->space->ledger;
    xl_connection_rest(p->sc);
    assert_true(p->sc->path[0]->flight.bytes > 0 && sent->outstanding > 0);
    pair_run(p, 25000000);
    xl_connection_rest(p->sc);
    assert_int_equal(0, p->sc->path[0]->flight.bytes);
    assert_int_equal(0, sent->cap);
    assert_int_equal(0, p->sc->records.slab_count);
    pair_transfer(p, 1000000, 2000000);
    assert_int_equal(XL_CONN_OPEN, p->sc->state);
}

/* With an RTT of 600 ms and no variation a probe timeout is 625 ms, and a packet is lost after 675 ms. */
PAIR_TEST(no_probe_leaves_while_a_packet_waits_for_the_time_threshold) {
    pair_init(p, 1, 1, 300000);
    pair_establish(p);
    for (int i = 0; i < 20; i++)
        pair_transfer(p, 1000, 5000000);
    assert_true(p->cc->path[0]->ack_rtt.var < 5000);
    set_dark(p, true, false);
    size_t lost = pair_ask(p, 1000);
    pair_flush(p);
    set_dark(p, false, false);
    pair_run(p, 1000);
    pair_ask(p, 1000);
    pair_run(p, 640000);
    assert_true(p->cc->space[XL_LEVEL_APP].loss_time != XL_NEVER);
    assert_int_equal(0, p->cc->path[0]->stats.pto_count);
    assert_true(pair_finish(p, lost, 2000000) != UINT64_MAX);
    assert_int_equal(1, p->cc->path[0]->stats.packets_lost);
}

/* RFC 9000 section 13.2.4: ranges whose acknowledgement was acknowledged are omitted from later ones. */
TEST(acknowledged_acknowledgements_are_not_repeated) {
    for (size_t links = 1; links <= 2; links++) {
        pair p;
        pair_init(&p, 5, links, 10000);
        if (links > 1)
            pair_multipath(&p, "roundrobin", "none");
        for (size_t i = 0; i < links; i++)
            p.link[i].loss = 0.03;
        pair_settle(&p, 500000);
        assert_true(pair_finish(&p, pair_ask(&p, 2000000), 60000000) != UINT64_MAX);
        for (size_t i = 0; i < links; i++)
            p.link[i].loss = 0;
        assert_true(pair_finish(&p, pair_ask(&p, 500000), 60000000) != UINT64_MAX);
        for (size_t i = 0; i < links; i++) {
            const xl_space *received = p.cc->path[i]->space;
            assert_true(received->largest_received > 300);
            assert_true(received->received.count < 5);
            assert_true(received->duplicate_floor > 100);
        }
        pair_free(&p);
    }
}

PAIR_TEST(a_handshake_outlasts_fifteen_seconds_without_a_path) {
    pair_init(p, 6, 1, 20000);
    set_dark(p, true, true);
    pair_connect(p);
    pair_run(p, 15000000);
    set_dark(p, false, false);
    pair_handshake(p);
    assert_true(p->cc->handshake.is_confirmed);
    assert_true(p->now - PAIR_START < 18000000);
}

TEST_MAIN(NULL, NULL)
