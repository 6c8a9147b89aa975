/* Path management on the virtual clock: acknowledgements and RTTs, PATH_STATUS, paths that come and go. */
#include "testing/pair.h"
#include "connection/acks.h"
#include "connection/path_status.h"
#include "connection/paths.h"

/* A path's rate in both directions, with 100 ms of queue. */
static void limit(pair_link *l, uint64_t mbps) {
    l->bytes_per_s[0] = l->bytes_per_s[1] = mbps * 125000;
    l->queue_us = 100000;
}

static void delay(pair_link *l, uint64_t one_way_us) {
    l->delay_us[0] = l->delay_us[1] = one_way_us;
}

/* Two paths of 20 Mbps, both validated. */
static void start(pair *p, uint64_t seed) {
    if (!p->client_config.scheme.scheduler || strcmp(p->client_config.scheme.scheduler, "xlink") != 0)
        pair_multipath(p, "minrtt", "none");
    for (size_t i = 0; i < p->link_count; i++)
        if (p->link[i].bytes_per_s[0] == 0)
            limit(&p->link[i], 20);
    pair_connect(p);
    pair_handshake(p);
    pair_run(p, 400000);
    for (size_t i = 0; i < p->link_count; i++)
        assert_int_equal(XL_PATH_ACTIVE, pair_server_path(p, i).state);
    (void)seed;
}

static void darken(pair_link *l) {
    l->dark[0] = l->dark[1] = true;
}

static uint64_t sent_on(pair *p, size_t path) {
    return pair_server_path(p, path).stream_bytes_sent;
}

/* ---- acknowledgements on the fastest path ---- */

/* 10 ms and 80 ms one way. */
static void start_unequal(pair *p, uint64_t seed) {
    pair_init(p, seed, 2, 10000);
    delay(&p->link[1], 80000);
    p->client_config.scheme.ack_path = p->server_config.scheme.ack_path = XL_ACK_FASTEST;
    start(p, seed);
}

static void an_ack_from_elsewhere_does_not_poison_the_rtt(void **state) {
    (void)state;
    pair p;
    start_unequal(&p, 100);
    size_t i = pair_ask(&p, 20000000);
    pair_run(&p, 1500000);
    assert_false(p.request[i].done);
    /* There on the slow path, back on the fast one: 80 + 10 ms and what queues; the path itself takes 160. */
    assert_in_range(p.sc->path[1].rtt.min, 160000, 161000);
    assert_true(p.sc->path[1].rtt.smoothed >= 160000);
    assert_in_range(p.sc->path[1].ack_rtt.min, 90000, 92000);
    assert_in_range(p.sc->path[0].rtt.min, 20000, 21000);
    /* The fast path's acknowledgements come back on it: both are one. */
    assert_int_equal(p.sc->path[0].rtt.min, p.sc->path[0].ack_rtt.min);
    pair_free(&p);
}

static void the_rtt_stays_fresh_while_acks_come_from_elsewhere(void **state) {
    (void)state;
    pair p;
    start_unequal(&p, 101);
    size_t i = pair_ask(&p, 20000000);
    pair_run(&p, 500000);
    delay(&p.link[1], 180000); /* the path turns slower, which no acknowledgement can say */
    pair_run(&p, 3000000);
    assert_false(p.request[i].done);
    assert_true(p.sc->path[1].rtt.smoothed >= 240000);
    pair_free(&p);
}

static void with_acks_on_the_original_path_both_rtts_are_one(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 102, 2, 10000);
    delay(&p.link[1], 60000);
    start(&p, 102);
    assert_true(pair_finish(&p, pair_ask(&p, 5000000), 20000000) != UINT64_MAX);
    for (int k = 0; k < 2; k++)
        assert_memory_equal(&p.sc->path[k].rtt, &p.sc->path[k].ack_rtt, sizeof(xl_rtt));
    pair_free(&p);
}

static void the_fastest_path_carries_the_acks(void **state) {
    (void)state;
    pair p;
    start_unequal(&p, 103);
    size_t i = pair_ask(&p, 4000000);
    uint64_t before = p.link[1].packets[0];
    assert_true(pair_finish(&p, i, 20000000) != UINT64_MAX);
    assert_true(p.link[1].packets[1] > 700); /* data came on the slow path, too */
    assert_true(p.link[1].packets[0] - before < 60);
    pair_free(&p);
}

/* The fast path dies, one way or both: acknowledgements of what the slow one brings leave it within a probe timeout. */
static void acks_leave_a_path_that_has_gone_dark(void **state) {
    (void)state;
    for (int both = 0; both < 2; both++) {
        pair p;
        start_unequal(&p, 104);
        size_t i = pair_ask(&p, 20000000);
        pair_run(&p, 1000000);
        p.link[0].dark[0] = true;
        p.link[0].dark[1] = both;
        uint64_t pto = xl_rtt_pto(&p.cc->path[0].rtt, XL_MAX_ACK_DELAY_US);
        assert_true(pto < 150000);
        pair_run(&p, 2 * pto);
        uint64_t before = p.link[1].packets[0], brought = p.link[1].packets[1];
        pair_run(&p, 300000);
        assert_true(p.link[1].packets[1] - brought > 100);
        assert_true(2 * (p.link[1].packets[0] - before) > 100);
        assert_true(pair_server_path(&p, 1).state == XL_PATH_ACTIVE);
        assert_false(p.request[i].done);
        pair_free(&p);
    }
}

/* ---- PATH_STATUS ---- */

static void a_standby_path_carries_no_data_and_stays_validated(void **state) {
    (void)state;
    for (int by_server = 0; by_server < 2; by_server++) {
        pair p;
        pair_init(&p, 110, 2, 10000);
        start(&p, 110);
        xl_connection *who = by_server ? p.sc : p.cc;
        assert_int_equal(0, xl_connection_set_path_status(who, 1, XL_STATUS_STANDBY, p.now));
        pair_run(&p, 100000);
        assert_int_equal(XL_PATH_STANDBY, p.cc->path[1].state);
        assert_int_equal(XL_PATH_STANDBY, p.sc->path[1].state);
        uint64_t before = sent_on(&p, 1), packets = p.link[1].packets[1];
        assert_true(pair_finish(&p, pair_ask(&p, 8000000), 20000000) >= 3200000); /* the time of one path */
        assert_int_equal(before, sent_on(&p, 1));
        assert_in_range(p.link[1].packets[1] - packets, 2, 20); /* it was asked whether it is there */
        assert_true(p.sc->path[1].validated);
        assert_true(p.now - p.sc->path[1].last_received_at < 1200000);
        /* Available again: by the side that asked, and it is used. */
        assert_int_equal(0, xl_connection_set_path_status(who, 1, XL_STATUS_AVAILABLE, p.now));
        assert_true(pair_finish(&p, pair_ask(&p, 8000000), 20000000) < 2600000);
        assert_true(sent_on(&p, 1) > before + 2000000);
        pair_free(&p);
    }
}

/* The first path began with the 1200 bytes of the handshake: nothing of that stays. */
static void the_first_path_is_as_good_as_later_ones(void **state) {
    (void)state;
    for (size_t i = 0; xl_congestion_name(i); i++) {
        pair p;
        pair_init(&p, 112 + i, 2, 10000);
        p.client_config.scheme.congestion = p.server_config.scheme.congestion = xl_congestion_name(i);
        pair_multipath(&p, "minrtt", "none");
        pair_connect(&p);
        assert_true(xl_connection_add_path(p.cc, &p.link[1].client, &p.link[1].server, XL_TECH_LTE, p.now) > 0);
        pair_handshake(&p);
        pair_run(&p, 100000);
        xl_connection *const ends[] = {p.cc, p.sc};
        for (size_t end = 0; end < 2; end++) {
            xl_path *first = &ends[end]->path[0], *second = &ends[end]->path[1];
            assert_int_equal(PAIR_MTU, first->mtu);
            assert_int_equal(second->mtu, first->mtu);
            assert_true(xl_path_window(first) >= 10 * PAIR_MTU && xl_path_window(second) >= 10 * PAIR_MTU);
            assert_int_equal(second->pacer.burst, first->pacer.burst);
            first->cc->on_persistent_congestion(first->cc_state, p.now);
            second->cc->on_persistent_congestion(second->cc_state, p.now);
            assert_int_equal(xl_path_window(second), xl_path_window(first)); /* so many packets, of one size */
            assert_int_equal(0, xl_path_window(first) % PAIR_MTU);
        }
        pair_free(&p);
    }
}

static void an_idle_connection_does_not_keep_a_standby_path_awake(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 111, 2, 10000);
    p.client_config.limits.idle_timeout_us = 5000000;
    start(&p, 111);
    xl_connection_set_path_status(p.cc, 1, XL_STATUS_STANDBY, p.now);
    pair_run(&p, 6000000);
    assert_true(p.client_closed && p.client_close.close_reason == XL_CLOSE_IDLE_TIMEOUT);
    pair_free(&p);
}

static void a_standby_path_takes_over_when_the_available_one_fails(void **state) {
    (void)state;
    for (int abandoned = 0; abandoned < 2; abandoned++) {
        pair p;
        pair_init(&p, 112, 2, 10000);
        start(&p, 112);
        xl_connection_set_path_status(p.cc, 1, XL_STATUS_STANDBY, p.now);
        pair_run(&p, 100000);
        size_t i = pair_ask(&p, 6000000);
        pair_run(&p, 1000000);
        uint64_t before = sent_on(&p, 1), pto = xl_rtt_pto(&p.sc->path[0].rtt, XL_MAX_ACK_DELAY_US);
        darken(&p.link[0]);
        if (abandoned)
            assert_int_equal(0, xl_connection_set_path_status(p.sc, 0, XL_STATUS_ABANDON, p.now));
        /* Dark: after the two probe timeouts that make a path suspect (one, and one doubled). Abandoned: at once. */
        pair_run(&p, abandoned ? 50000 : 3 * pto + 50000);
        assert_true(sent_on(&p, 1) > before);
        assert_true(pair_finish(&p, i, 20000000) != UINT64_MAX);
        assert_int_equal(XL_PATH_STANDBY, p.sc->path[1].state);
        pair_free(&p);
    }
}

/* While both are dark neither is suspect: there is no healthy one. The first that answers makes the other one suspect,
 * which has nothing in flight then. */
static void a_path_that_is_given_up_when_another_answers_is_still_asked(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 126, 2, 10000);
    start(&p, 126);
    size_t i = pair_ask(&p, 20000000);
    pair_run(&p, 500000);
    darken(&p.link[0]);
    darken(&p.link[1]);
    pair_run(&p, 2000000);
    p.link[0].dark[0] = p.link[0].dark[1] = false;
    pair_run(&p, 2500000);
    assert_int_equal(XL_PATH_ACTIVE, p.sc->path[0].state);
    assert_int_equal(XL_PATH_SUSPECT, p.sc->path[1].state);
    p.link[1].dark[0] = p.link[1].dark[1] = false;
    uint64_t before = sent_on(&p, 1);
    pair_run(&p, 2500000);
    assert_false(p.request[i].done);
    assert_int_equal(XL_PATH_ACTIVE, p.sc->path[1].state);
    assert_true(sent_on(&p, 1) > before + 100000);
    pair_free(&p);
}

static void each_side_takes_back_only_its_own_request(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 113, 2, 10000);
    start(&p, 113);
    xl_connection_set_path_status(p.cc, 1, XL_STATUS_STANDBY, p.now);
    xl_connection_set_path_status(p.sc, 1, XL_STATUS_STANDBY, p.now);
    pair_run(&p, 100000);
    xl_connection_set_path_status(p.cc, 1, XL_STATUS_AVAILABLE, p.now);
    pair_run(&p, 100000);
    assert_int_equal(XL_PATH_STANDBY, p.cc->path[1].state);
    assert_int_equal(XL_PATH_STANDBY, p.sc->path[1].state);
    xl_connection_set_path_status(p.sc, 1, XL_STATUS_AVAILABLE, p.now);
    pair_run(&p, 100000);
    assert_int_equal(XL_PATH_ACTIVE, p.cc->path[1].state);
    assert_int_equal(XL_PATH_ACTIVE, p.sc->path[1].state);
    pair_free(&p);
}

static void only_a_newer_status_counts(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 114, 2, 10000);
    start(&p, 114);
    xl_frame f = {.type = XL_FRAME_PATH_STATUS};
    f.path_status.path_id = p.sc->path[1].local_id;
    f.path_status.sequence = 5;
    f.path_status.status = XL_STATUS_STANDBY;
    assert_int_equal(0, xl_conn_take_path_status(p.sc, &f));
    assert_int_equal(XL_PATH_STANDBY, p.sc->path[1].state);
    f.path_status.status = XL_STATUS_AVAILABLE;
    assert_int_equal(0, xl_conn_take_path_status(p.sc, &f)); /* the same number again */
    f.path_status.sequence = 4;
    f.path_status.status = XL_STATUS_ABANDON;
    assert_int_equal(0, xl_conn_take_path_status(p.sc, &f)); /* an old one that comes late */
    assert_int_equal(XL_PATH_STANDBY, p.sc->path[1].state);
    f.path_status.sequence = 6;
    f.path_status.status = XL_STATUS_AVAILABLE;
    assert_int_equal(0, xl_conn_take_path_status(p.sc, &f));
    assert_int_equal(XL_PATH_ACTIVE, p.sc->path[1].state);
    f.path_status.path_id = 77; /* no such path: ignored */
    f.path_status.status = XL_STATUS_ABANDON;
    assert_int_equal(0, xl_conn_take_path_status(p.sc, &f));
    pair_free(&p);
}

static void a_lost_status_is_sent_again_but_only_the_latest(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 115, 2, 10000);
    start(&p, 115);
    p.link[0].dark[0] = p.link[1].dark[0] = true;
    xl_connection_set_path_status(p.cc, 1, XL_STATUS_STANDBY, p.now);
    pair_run(&p, 5000);
    xl_connection_set_path_status(p.cc, 1, XL_STATUS_AVAILABLE, p.now);
    pair_run(&p, 5000);
    xl_connection_set_path_status(p.cc, 1, XL_STATUS_STANDBY, p.now);
    pair_run(&p, 200000);
    assert_int_equal(XL_PATH_ACTIVE, p.sc->path[1].state);
    p.link[0].dark[0] = p.link[1].dark[0] = false;
    pair_run(&p, 1000000);
    assert_int_equal(XL_PATH_STANDBY, p.sc->path[1].state);
    assert_int_equal(3, p.sc->path[1].peer_status_seq);
    pair_free(&p);
}

static void a_request_for_a_path_under_validation_waits_for_it(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 116, 2, 10000);
    pair_multipath(&p, "minrtt", "none");
    darken(&p.link[1]);
    pair_connect(&p);
    pair_handshake(&p);
    pair_run(&p, 100000);
    assert_int_equal(0, xl_connection_set_path_status(p.cc, 1, XL_STATUS_STANDBY, p.now));
    pair_run(&p, 1000000);
    p.link[1].dark[0] = p.link[1].dark[1] = false;
    pair_run(&p, 3000000);
    assert_int_equal(XL_PATH_STANDBY, p.cc->path[1].state);
    assert_int_equal(XL_PATH_STANDBY, p.sc->path[1].state);
    pair_free(&p);
}

static void a_status_needs_a_path_and_multipath(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 117, 2, 10000);
    pair_connect(&p);
    pair_handshake(&p);
    assert_int_equal(XL_ERR_PATH, xl_connection_set_path_status(p.cc, 0, XL_STATUS_STANDBY, p.now));
    pair_free(&p);
    pair_init(&p, 117, 2, 10000);
    start(&p, 117);
    assert_int_equal(XL_ERR_PATH, xl_connection_set_path_status(p.cc, 2, XL_STATUS_STANDBY, p.now));
    assert_int_equal(XL_ERR_PATH, xl_connection_set_path_status(p.cc, -1, XL_STATUS_STANDBY, p.now));
    assert_int_equal(0, xl_connection_close_path(p.cc, 1, p.now));
    assert_int_equal(XL_ERR_PATH, xl_connection_set_path_status(p.cc, 1, XL_STATUS_AVAILABLE, p.now));
    pair_free(&p);
}

/* ---- paths that come and go ---- */

static void a_path_comes_and_goes_in_mid_download(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 120, 2, 10000);
    start(&p, 120);
    size_t i = pair_ask(&p, 30000000);
    uint64_t path_id = p.cc->path[1].remote_id;
    int index = 1;
    /* More often than there are slots: those of abandoned paths serve again. */
    for (int k = 0; k < 12; k++) {
        assert_int_equal(0, xl_connection_close_path(p.cc, index, p.now));
        pair_run(&p, 300000);
        uint64_t before = p.link[1].bytes[1];
        pair_run(&p, 200000);
        assert_true(p.link[1].bytes[1] - before < 5000);
        index = xl_connection_add_path(p.cc, &p.link[1].client, &p.link[1].server, XL_TECH_LTE, p.now);
        assert_in_range(index, 1, XL_MAX_PATHS - 1);
        pair_run(&p, 300000);
        assert_int_equal(XL_PATH_ACTIVE, p.cc->path[index].state);
        assert_true(p.cc->path[index].remote_id > path_id); /* a new path */
        path_id = p.cc->path[index].remote_id;
        assert_true(p.link[1].bytes[1] - before > 100000);
    }
    assert_true(pair_finish(&p, i, 60000000) != UINT64_MAX);
    assert_false(p.client_closed);
    pair_free(&p);
}

static void the_first_path_may_go_and_another_come(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 121, 2, 10000);
    start(&p, 121);
    size_t i = pair_ask(&p, 8000000);
    pair_run(&p, 500000);
    assert_int_equal(0, xl_connection_close_path(p.cc, 0, p.now));
    pair_run(&p, 500000);
    int index = xl_connection_add_path(p.cc, &p.link[0].client, &p.link[0].server, XL_TECH_WIFI, p.now);
    assert_int_equal(2, index);
    pair_run(&p, 300000);
    assert_int_equal(XL_PATH_ACTIVE, p.cc->path[2].state);
    assert_true(pair_finish(&p, i, 60000000) != UINT64_MAX);
    assert_true(sent_on(&p, 2) > 1000000);
    pair_free(&p);
}

/* ---- NAT rebinding: the server sees a new address on path 1 while path 0 goes on ---- */

/* The first packet from path 1's new address has reached the server. */
static void wait_until_rebound(pair *p) {
    uint64_t end = p->now + 1000000;
    while (p->sc->path[1].validated && p->now < end)
        pair_step(p);
    assert_false(p->sc->path[1].validated);
}

static void a_new_port_is_validated_while_the_other_path_goes_on(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 130, 2, 10000);
    start(&p, 130);
    size_t i = pair_ask(&p, 12000000);
    pair_run(&p, 800000);
    uint64_t cid = p.cc->path[1].remote_id, on_0 = sent_on(&p, 0);
    xl_path_stats was = pair_server_path(&p, 1);
    p.link[1].nat = pair_addr(3, 5000);
    /* As soon as a packet has come from there: not valid, nothing but the challenge goes there. */
    wait_until_rebound(&p);
    uint64_t on_1 = sent_on(&p, 1);
    pair_run(&p, 10000);
    assert_false(p.sc->path[1].validated);
    assert_int_equal(on_1, sent_on(&p, 1));
    assert_true(sent_on(&p, 0) > on_0 + 10000);
    pair_run(&p, 120000); /* a round trip, with the queue of the link */
    assert_true(p.sc->path[1].validated);
    xl_path_stats is = pair_server_path(&p, 1);
    assert_true(xl_addr_equal(&is.remote, &p.link[1].nat));
    /* Only the port changed: what is known of the network path holds (RFC 9000 section 9.4). */
    assert_int_equal(was.min_rtt_us, is.min_rtt_us);
    assert_true(is.cwnd_bytes > was.cwnd_bytes / 2);
    assert_int_equal(cid, p.cc->path[1].remote_id); /* the client does not know */
    assert_true(pair_finish(&p, i, 20000000) != UINT64_MAX);
    assert_true(sent_on(&p, 1) > on_1 + 1000000);
    assert_int_equal(2, p.sc->path_count);
    pair_free(&p);
}

static void a_new_host_starts_with_a_new_window_and_rtt(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 131, 2, 10000);
    start(&p, 131);
    size_t i = pair_ask(&p, 12000000);
    pair_run(&p, 800000);
    assert_true(pair_server_path(&p, 1).cwnd_bytes > 100000);
    p.link[1].nat = pair_addr(77, 4000);
    wait_until_rebound(&p);
    assert_true(pair_server_path(&p, 1).cwnd_bytes <= 10 * PAIR_MTU);
    assert_int_equal(0, pair_server_path(&p, 1).min_rtt_us);
    assert_int_equal(0, p.sc->path[1].bytes_in_flight - p.sc->path[1].sent_unvalidated); /* the challenge alone */
    assert_true(pair_finish(&p, i, 20000000) != UINT64_MAX);
    assert_true(xl_addr_equal(&p.sc->path[1].remote, &p.link[1].nat));
    pair_free(&p);
}

/* The new address never answers: little goes there, and the path returns to the one that was validated. */
static void an_address_that_does_not_answer_gets_little_and_loses_the_path(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 132, 2, 10000);
    start(&p, 132);
    size_t i = pair_ask(&p, 20000000);
    pair_run(&p, 800000);
    p.link[1].nat = pair_addr(66, 6666);
    p.link[1].dark[1] = true;
    wait_until_rebound(&p);
    p.link[1].dark[0] = true; /* one packet from there, a copy perhaps, and no more */
    pair_run(&p, 500000);
    assert_true(p.sc->path[1].received_unvalidated > 0);
    assert_true(p.sc->path[1].sent_unvalidated <= 3 * p.sc->path[1].received_unvalidated);
    p.link[1].nat.family = 0;
    pair_run(&p, 5000000);
    assert_true(xl_addr_equal(&p.sc->path[1].remote, &p.link[1].client));
    assert_true(p.sc->path[1].state != XL_PATH_CLOSED);
    p.link[1].dark[0] = p.link[1].dark[1] = false;
    assert_true(pair_finish(&p, i, 20000000) != UINT64_MAX);
    pair_free(&p);
}

static void a_packet_from_the_old_address_takes_the_path_back(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 133, 2, 10000);
    start(&p, 133);
    size_t i = pair_ask(&p, 12000000);
    pair_run(&p, 800000);
    p.link[1].nat = pair_addr(66, 6666);
    wait_until_rebound(&p);
    p.link[1].nat.family = 0;
    pair_run(&p, 15000); /* shorter than a round trip: no PATH_RESPONSE can have come */
    assert_true(p.sc->path[1].validated);
    assert_true(xl_addr_equal(&p.sc->path[1].remote, &p.link[1].client));
    assert_true(pair_finish(&p, i, 20000000) != UINT64_MAX);
    pair_free(&p);
}

static void a_single_path_survives_a_new_port_without_starting_anew(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 134, 1, 10000);
    limit(&p.link[0], 20);
    pair_connect(&p);
    pair_handshake(&p);
    size_t i = pair_ask(&p, 4000000);
    pair_run(&p, 800000);
    uint64_t window = pair_server_path(&p, 0).cwnd_bytes;
    p.link[0].nat = pair_addr(2, 5555);
    pair_run(&p, 200000);
    assert_int_equal(0, p.sc->migration.count);
    assert_int_equal(1, p.sc->path_count);
    assert_true(p.sc->path[0].validated);
    assert_true(pair_server_path(&p, 0).cwnd_bytes > window / 3);
    assert_true(pair_finish(&p, i, 20000000) != UINT64_MAX);
    pair_free(&p);
}

/* ---- migration of a single-path connection ---- */

static void start_migrating(pair *p, uint64_t seed, unsigned ptos) {
    pair_init(p, seed, 2, 15000);
    p->client_config.scheme.enable_migration = true;
    p->client_config.limits.migrate_ptos = ptos;
    limit(&p->link[0], 20);
    limit(&p->link[1], 20);
    pair_connect(p);
    pair_handshake(p);
}

static void set_dark(pair_link *l, bool dark) {
    l->dark[0] = l->dark[1] = dark;
}

/* How long after the outage the client moves, in its PTOs of that moment. */
static double ptos_until_migration(unsigned ptos) {
    pair p;
    start_migrating(&p, 140, ptos);
    size_t i = pair_ask(&p, 6000000);
    pair_run(&p, 1000000);
    set_dark(&p.link[0], true);
    pair_run(&p, 20000); /* what was on its way still comes */
    uint64_t pto = xl_rtt_pto(&p.cc->path[0].ack_rtt, XL_MAX_ACK_DELAY_US), since = p.cc->path[0].last_received_at;
    while (p.client_migrations == 0)
        assert_true(pair_step(&p) && p.now < since + 30000000);
    double took = (double)(p.now - since) / (double)pto;
    assert_true(pair_finish(&p, i, 30000000) != UINT64_MAX);
    assert_int_equal(1, p.client_migrations);
    pair_free(&p);
    return took;
}

static void migration_may_wait_for_consecutive_ptos(void **state) {
    (void)state;
    /* The PING after one PTO (or what else is in flight), then the timeouts 1 + 2 + 4 + …, and a round trip to
     * validate. */
    double one = ptos_until_migration(1), two = ptos_until_migration(2), three = ptos_until_migration(3);
    assert_true(one > 1.2 && one < 3.0);
    assert_true(two - one > 1.8 && two - one < 2.2);
    assert_true(three - two > 3.8 && three - two < 4.2);
}

static void answers_restart_the_count_of_ptos(void **state) {
    (void)state;
    pair p;
    start_migrating(&p, 141, 2);
    size_t i = pair_ask(&p, 20000000);
    for (int k = 0; k < 5; k++) { /* outages of about two probe timeouts: the PING, and the first timeout */
        pair_run(&p, 700000);
        uint64_t pto = xl_rtt_pto(&p.cc->path[0].ack_rtt, XL_MAX_ACK_DELAY_US);
        set_dark(&p.link[0], true);
        pair_run(&p, 2 * pto);
        set_dark(&p.link[0], false);
    }
    assert_int_equal(0, p.client_migrations);
    assert_true(pair_finish(&p, i, 60000000) != UINT64_MAX);
    pair_free(&p);
}

static void migration_returns_when_the_primary_has_been_back_for_a_while(void **state) {
    (void)state;
    for (int back = 0; back < 2; back++) {
        pair p;
        pair_init(&p, 142, 2, 15000);
        p.client_config.scheme.enable_migration = true;
        p.client_config.limits.migrate_back = back;
        p.client_config.limits.migrate_back_us = 3000000;
        limit(&p.link[0], 20);
        limit(&p.link[1], 20);
        pair_connect(&p);
        pair_handshake(&p);
        size_t i = pair_ask(&p, 40000000);
        pair_run(&p, 1000000);
        set_dark(&p.link[0], true);
        pair_run(&p, 2000000);
        assert_int_equal(1, p.cc->active);
        set_dark(&p.link[0], false); /* back, but not for long: nobody goes there */
        pair_run(&p, 2500000);
        set_dark(&p.link[0], true);
        pair_run(&p, 2500000);
        assert_int_equal(1, p.cc->active);
        set_dark(&p.link[0], false);
        pair_run(&p, 2500000);
        assert_int_equal(1, p.cc->active);
        pair_run(&p, 3000000);
        assert_int_equal(back ? 0 : 1, p.cc->active);
        assert_int_equal(back ? 0 : 1, p.sc->active);
        assert_int_equal(back ? 2 : 1, p.client_migrations);
        assert_true(pair_finish(&p, i, 60000000) != UINT64_MAX);
        pair_free(&p);
    }
}

static void coming_back_starts_a_new_window(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 143, 2, 15000);
    p.client_config.scheme.enable_migration = p.client_config.limits.migrate_back = true;
    limit(&p.link[0], 20);
    limit(&p.link[1], 20);
    pair_connect(&p);
    pair_handshake(&p);
    size_t i = pair_ask(&p, 20000000);
    pair_run(&p, 1000000);
    assert_true(pair_server_path(&p, 0).cwnd_bytes > 100000);
    set_dark(&p.link[0], true);
    pair_run(&p, 1500000);
    assert_int_equal(1, p.cc->active);
    set_dark(&p.link[0], false);
    while (p.server_migrations < 2)
        assert_true(pair_step(&p) && !p.request[i].done);
    assert_int_equal(0, p.sc->active);
    assert_true(pair_server_path(&p, 0).cwnd_bytes <= 10 * PAIR_MTU);
    assert_true(pair_finish(&p, i, 60000000) != UINT64_MAX);
    pair_free(&p);
}

/* ---- one path in the place of another ---- */

/* A client whose address changes often: the server's paths have one packet number space, and a packet that was lost on
 * one arrives after all, once its place is another path's. */
static void packets_of_a_path_do_not_count_for_the_one_in_its_place(void **state) {
    (void)state;
    pair p;
    start_migrating(&p, 145, 0);
    size_t i = pair_ask(&p, 2000000);
    pair_run(&p, 500000);
    p.link[0].loss = 0.2;
    xl_ledger *sent = &p.sc->space[XL_LEVEL_APP].ledger;
    xl_sent_packet *lost = NULL;
    while (!lost && pair_step(&p))
        for (uint64_t pn = sent->first_pn; pn < sent->next_pn && !lost; pn++)
            lost = xl_ledger_find(sent, pn) && xl_ledger_find(sent, pn)->state == XL_SENT_LOST
                       ? xl_ledger_find(sent, pn)
                       : NULL;
    while (p.sc->path_count < XL_MAX_PATHS)
        xl_conn_path_new(p.sc, &p.link[0].server, &p.link[1].client, XL_TECH_LTE);
    lost->path = 1;
    xl_ack_frame f = {.range_count = 1, .ranges = {{lost->pn, lost->pn}}};
    xl_path *fresh = xl_conn_path_new(p.sc, &p.link[0].server, &p.link[1].client, XL_TECH_LTE);
    assert_ptr_equal(fresh, &p.sc->path[1]);
    fresh->unanswered = 7; /* an acknowledgement of its own sets it back */
    assert_int_equal(0, xl_conn_take_ack(p.sc, &p.sc->space[XL_LEVEL_APP], XL_LEVEL_APP, &p.sc->path[0], &f));
    assert_int_equal(fresh->unanswered, 7);
    p.link[0].loss = 0;
    assert_true(pair_finish(&p, i, 20000000) != UINT64_MAX);
    pair_free(&p);
}

/* A status that was sent twice is confirmed twice, the second time when another path is in the place of its path. */
static void a_status_is_confirmed_for_its_own_path_alone(void **state) {
    (void)state;
    pair p;
    pair_init(&p, 146, 2, 10000);
    start(&p, 146);
    assert_int_equal(0, xl_connection_set_path_status(p.cc, 1, XL_STATUS_STANDBY, p.now));
    pair_flush(&p);
    p.cc->path[1].remote_id += 5; /* another path, whose status has the same number */
    pair_run(&p, 60000);
    assert_false(p.cc->path[1].status_confirmed);
    p.cc->path[1].remote_id -= 5;
    pair_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ack_from_elsewhere_does_not_poison_the_rtt),
        cmocka_unit_test(the_rtt_stays_fresh_while_acks_come_from_elsewhere),
        cmocka_unit_test(with_acks_on_the_original_path_both_rtts_are_one),
        cmocka_unit_test(the_fastest_path_carries_the_acks),
        cmocka_unit_test(acks_leave_a_path_that_has_gone_dark),
        cmocka_unit_test(a_standby_path_carries_no_data_and_stays_validated),
        cmocka_unit_test(the_first_path_is_as_good_as_later_ones),
        cmocka_unit_test(an_idle_connection_does_not_keep_a_standby_path_awake),
        cmocka_unit_test(a_standby_path_takes_over_when_the_available_one_fails),
        cmocka_unit_test(a_path_that_is_given_up_when_another_answers_is_still_asked),
        cmocka_unit_test(each_side_takes_back_only_its_own_request),
        cmocka_unit_test(only_a_newer_status_counts),
        cmocka_unit_test(a_lost_status_is_sent_again_but_only_the_latest),
        cmocka_unit_test(a_request_for_a_path_under_validation_waits_for_it),
        cmocka_unit_test(a_status_needs_a_path_and_multipath),
        cmocka_unit_test(a_path_comes_and_goes_in_mid_download),
        cmocka_unit_test(the_first_path_may_go_and_another_come),
        cmocka_unit_test(a_new_port_is_validated_while_the_other_path_goes_on),
        cmocka_unit_test(a_new_host_starts_with_a_new_window_and_rtt),
        cmocka_unit_test(an_address_that_does_not_answer_gets_little_and_loses_the_path),
        cmocka_unit_test(a_packet_from_the_old_address_takes_the_path_back),
        cmocka_unit_test(a_single_path_survives_a_new_port_without_starting_anew),
        cmocka_unit_test(migration_may_wait_for_consecutive_ptos),
        cmocka_unit_test(answers_restart_the_count_of_ptos),
        cmocka_unit_test(migration_returns_when_the_primary_has_been_back_for_a_while),
        cmocka_unit_test(coming_back_starts_a_new_window),
        cmocka_unit_test(packets_of_a_path_do_not_count_for_the_one_in_its_place),
        cmocka_unit_test(a_status_is_confirmed_for_its_own_path_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
