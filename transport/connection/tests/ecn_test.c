/* ECN over whole connections: RFC 9000 section 13.4. */
#include "testing/pair.h"

static void start(pair *p, size_t links) {
    pair_init(p, 21, links, 20000);
    p->client_config.limits.enable_ecn = p->server_config.limits.enable_ecn = true;
    if (links > 1)
        pair_multipath(p, "roundrobin", "none");
    for (size_t i = 0; i < links; i++)
        pair_limit(&p->link[i], 2500000, 500000);
}

static void connect_ends(pair *p) {
    pair_establish(p);
    assert_true(p->cc->handshake.is_confirmed);
}

PAIR_TEST(both_ends_validate_a_path_that_passes_marks) {
    start(p, 1);
    connect_ends(p);
    assert_true(pair_finish(p, pair_ask(p, 2000000), 10000000) != UINT64_MAX);
    assert_int_equal(XL_ECN_CAPABLE, p->sc->path[0]->ecn.state);
    assert_int_equal(XL_ECN_CAPABLE, p->cc->path[0]->ecn.state);
    const xl_ecn_space *sent = &p->sc->path[0]->space->ecn, *received = &p->cc->path[0]->space->ecn;
    assert_true(received->received.ect0 > 1300 && received->received.ce == 0);
    assert_true(sent->reported.ect0 > 1300 && sent->reported.ect0 <= sent->sent);
}

PAIR_TEST(nothing_is_marked_where_it_is_not_enabled) {
    start(p, 1);
    p->client_config.limits.enable_ecn = p->server_config.limits.enable_ecn = false;
    connect_ends(p);
    assert_true(pair_finish(p, pair_ask(p, 1000000), 10000000) != UINT64_MAX);
    assert_int_equal(0, p->link[0].marked[0] + p->link[0].marked[1]);
}

/* For every controller: a mark is a congestion event, and no packet is lost for it. */
TEST(a_mark_takes_the_window_down_without_loss) {
    const char *const controllers[] = {"cubic", "cubic-tolerant", "newreno", "olia"};
    for (size_t k = 0; k < 4; k++) {
        pair p;
        start(&p, 1);
        p.server_config.scheme.cc = controllers[k];
        connect_ends(&p);
        size_t i = pair_ask(&p, 20000000);
        pair_run(&p, 400000);
        uint64_t before = 0;
        p.link[0].ce = 1;
        while (pair_server_path(&p, 0).ce_marks == 0) {
            before = pair_server_path(&p, 0).cwnd_bytes;
            assert_true(pair_step(&p));
        }
        p.link[0].ce = 0;
        xl_path_stats after = pair_server_path(&p, 0);
        assert_true(after.cwnd_bytes < before * 3 / 4);
        assert_int_equal(0, after.packets_lost);
        assert_int_equal(XL_ECN_CAPABLE, p.sc->path[0]->ecn.state);
        assert_true(pair_finish(&p, i, 60000000) != UINT64_MAX);
        pair_free(&p);
    }
}

PAIR_TEST(a_path_that_bleaches_marks_carries_none_after_the_test) {
    start(p, 1);
    p->link[0].bleaches = true;
    connect_ends(p);
    assert_true(pair_finish(p, pair_ask(p, 2000000), 10000000) != UINT64_MAX);
    assert_int_equal(XL_ECN_FAILED, p->sc->path[0]->ecn.state);
    assert_in_range(p->link[0].marked[1], 1, 10);
}

PAIR_TEST(a_path_that_drops_marked_packets_is_used_without_marks) {
    start(p, 1);
    p->link[0].drops_marked = true;
    connect_ends(p);
    assert_true(pair_finish(p, pair_ask(p, 2000000), 5000000) != UINT64_MAX);
    assert_true(p->sc->path[0]->ecn.state != XL_ECN_CAPABLE);
    assert_in_range(p->link[0].marked[1], 1, 10);
}

static void validate_one_by_one(xl_dialect dialect) {
    pair p;
    start(&p, 2);
    p.server_config.scheme.dialect = dialect;
    p.link[1].bleaches = true;
    connect_ends(&p);
    assert_true(pair_finish(&p, pair_ask(&p, 4000000), 10000000) != UINT64_MAX);
    assert_int_equal(XL_ECN_CAPABLE, p.sc->path[0]->ecn.state);
    assert_int_equal(XL_ECN_FAILED, p.sc->path[1]->ecn.state);
    assert_true(p.link[0].marked[1] > 1000);
    assert_in_range(p.link[1].marked[1], 1, 10);
    pair_free(&p);
}

TEST(paths_are_validated_one_by_one) {
    validate_one_by_one(XL_DIALECT_XLINK);
    validate_one_by_one(XL_DIALECT_IETF);
}

PAIR_TEST(marks_and_the_qoe_signal_share_an_acknowledgement) {
    start(p, 2);
    connect_ends(p);
    pair_run(p, 300000);
    size_t i = pair_ask(p, 4000000);
    pair_run(p, 200000);
    xl_connection_set_qoe(p->cc, &(xl_qoe){.cached_bytes = 700000, .cached_frames = 90, .bps = 2000000, .fps = 30},
                          p->now);
    assert_true(pair_finish(p, i, 10000000) != UINT64_MAX);
    assert_false(p->client_closed || p->server_closed);
    assert_int_equal(XL_ECN_CAPABLE, p->sc->path[0]->ecn.state);
    assert_int_equal(XL_ECN_CAPABLE, p->sc->path[1]->ecn.state);
}

/* A server may send little on a path that is not validated: if that were marked, nothing would arrive. */
PAIR_TEST(a_further_path_that_drops_marked_packets_is_validated) {
    start(p, 2);
    p->link[1].drops_marked = true;
    connect_ends(p);
    pair_run(p, 6000000);
    assert_int_equal(XL_PATH_ACTIVE, p->sc->path[1]->state);
    assert_int_equal(XL_PATH_ACTIVE, p->cc->path[1]->state);
}

/* RFC 9000 section 13.4.2: the new network may drop marked packets even if the old one passes them. */
PAIR_TEST(a_path_that_the_client_moves_is_tested_again) {
    start(p, 2);
    p->server_config.scheme.dialect = XL_DIALECT_IETF;
    p->link[1].drops_marked = true;
    p->link_count = 1; /* the other address is used later */
    connect_ends(p);
    pair_transfer(p, 2000000, 10000000);
    assert_int_equal(XL_ECN_CAPABLE, p->cc->path[0]->ecn.state);
    p->link_count = 2;
    pair_set_dark(&p->link[0], true);
    assert_int_equal(0, xl_connection_move_path(p->cc, 0, &p->link[1].client, p->now));
    pair_transfer(p, 100000, 10000000);
    assert_true(p->cc->path[0]->ecn.state != XL_ECN_CAPABLE);
}

TEST_MAIN(NULL, NULL)
