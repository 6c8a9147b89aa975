/* Paths whose addresses change, on the virtual clock: NAT rebinding, migration of a single-path connection. */
#include "testing/paths.h"
#include "connection/acks.h"
#include "connection/paths.h"
#include "minmax.h"

/* ---- NAT rebinding: the server sees a new address on path 1 while path 0 goes on ---- */

/* Runs until the first packet from path 1's new address has reached the server. */
static void wait_until_rebound(pair *p) {
    uint64_t end = p->now + 1000000;
    while (p->sc->path[1]->validation.is_done && p->now < end)
        pair_step(p);
    assert_false(p->sc->path[1]->validation.is_done);
}

PAIR_TEST(a_new_port_is_validated_while_the_other_path_goes_on) {
    pair_init(p, 130, 2, 10000);
    start(p);
    size_t i = pair_ask(p, 12000000);
    pair_run(p, 800000);
    uint64_t cid = p->cc->path[1]->cids.remote_path_id, on_0 = sent_on(p, 0);
    xl_path_stats was = pair_server_path(p, 1);
    p->link[1].nat = pair_addr(3, 5000);
    /* After the first packet from there the path is not valid, and nothing but the challenge goes there. */
    wait_until_rebound(p);
    uint64_t on_1 = sent_on(p, 1);
    pair_run(p, 10000);
    assert_false(p->sc->path[1]->validation.is_done);
    assert_int_equal(on_1, sent_on(p, 1));
    assert_true(sent_on(p, 0) > on_0 + 10000);
    pair_run(p, 120000); /* a round trip, with the queue of the link */
    assert_true(p->sc->path[1]->validation.is_done);
    xl_path_stats is = pair_server_path(p, 1);
    assert_true(xl_addr_equal(&is.remote, &p->link[1].nat));
    /* Only the port changed: the path's measurements are kept (RFC 9000 section 9.4). */
    assert_int_equal(was.min_rtt_us, is.min_rtt_us);
    assert_true(is.cwnd_bytes > was.cwnd_bytes / 2);
    assert_int_equal(cid, p->cc->path[1]->cids.remote_path_id); /* the client does not know */
    assert_true(pair_finish(p, i, 20000000) != UINT64_MAX);
    assert_true(sent_on(p, 1) > on_1 + 1000000);
    assert_int_equal(2, p->sc->path_count);
}

PAIR_TEST(a_new_host_starts_with_a_new_window_and_rtt) {
    pair_init(p, 131, 2, 10000);
    start(p);
    size_t i = pair_ask(p, 12000000);
    pair_run(p, 800000);
    assert_true(pair_server_path(p, 1).cwnd_bytes > 100000);
    p->link[1].nat = pair_addr(77, 4000);
    wait_until_rebound(p);
    assert_true(pair_server_path(p, 1).cwnd_bytes <= 10 * PAIR_MTU);
    assert_int_equal(0, pair_server_path(p, 1).min_rtt_us);
    assert_int_equal(0, p->sc->path[1]->flight.bytes - p->sc->path[1]->validation.sent_bytes); /* the challenge alone */
    assert_true(pair_finish(p, i, 20000000) != UINT64_MAX);
    assert_true(xl_addr_equal(&p->sc->path[1]->remote, &p->link[1].nat));
}

/* The new address never answers: little is sent there, and the path returns to the validated one. */
PAIR_TEST(an_address_that_does_not_answer_gets_little_and_loses_the_path) {
    pair_init(p, 132, 2, 10000);
    start(p);
    size_t i = pair_ask(p, 20000000);
    pair_run(p, 800000);
    p->link[1].nat = pair_addr(66, 6666);
    p->link[1].dark[1] = true;
    wait_until_rebound(p);
    p->link[1].dark[0] = true; /* one packet from there, a copy perhaps, and no more */
    pair_run(p, 500000);
    assert_true(p->sc->path[1]->validation.received_bytes > 0);
    assert_true(p->sc->path[1]->validation.sent_bytes <= 3 * p->sc->path[1]->validation.received_bytes);
    p->link[1].nat.family = 0;
    pair_run(p, 5000000);
    assert_true(xl_addr_equal(&p->sc->path[1]->remote, &p->link[1].client));
    assert_true(p->sc->path[1]->state != XL_PATH_CLOSED);
    pair_set_dark(&p->link[1], false);
    assert_true(pair_finish(p, i, 20000000) != UINT64_MAX);
}

PAIR_TEST(a_packet_from_the_old_address_takes_the_path_back) {
    pair_init(p, 133, 2, 10000);
    start(p);
    size_t i = pair_ask(p, 12000000);
    pair_run(p, 800000);
    p->link[1].nat = pair_addr(66, 6666);
    wait_until_rebound(p);
    p->link[1].nat.family = 0;
    pair_run(p, 15000); /* shorter than a round trip: no PATH_RESPONSE can have come */
    assert_true(p->sc->path[1]->validation.is_done);
    assert_true(xl_addr_equal(&p->sc->path[1]->remote, &p->link[1].client));
    assert_true(pair_finish(p, i, 20000000) != UINT64_MAX);
}

PAIR_TEST(a_single_path_survives_a_new_port_without_starting_anew) {
    pair_init(p, 134, 1, 10000);
    limit(&p->link[0], 20);
    pair_establish(p);
    size_t i = pair_ask(p, 4000000);
    pair_run(p, 800000);
    uint64_t window = pair_server_path(p, 0).cwnd_bytes;
    p->link[0].nat = pair_addr(2, 5555);
    pair_run(p, 200000);
    assert_int_equal(0, p->sc->migration.count);
    assert_int_equal(1, p->sc->path_count);
    assert_true(p->sc->path[0]->validation.is_done);
    assert_true(pair_server_path(p, 0).cwnd_bytes > window / 3);
    assert_true(pair_finish(p, i, 20000000) != UINT64_MAX);
}

/* ---- migration of a single-path connection ---- */

static void init_migrating(pair *p, uint64_t seed) {
    pair_init(p, seed, 2, 15000);
    p->client_config.scheme.enable_migration = true;
    limit(&p->link[0], 20);
    limit(&p->link[1], 20);
}

static void start_migrating(pair *p, uint64_t seed, unsigned ptos) {
    init_migrating(p, seed);
    p->client_config.limits.migrate_ptos = ptos;
    pair_establish(p);
}

/* Returns how long after the outage the client moves, in PTOs of that moment. */
static double ptos_until_migration(unsigned ptos) {
    pair p;
    start_migrating(&p, 140, ptos);
    size_t i = pair_ask(&p, 6000000);
    pair_run(&p, 1000000);
    pair_set_dark(&p.link[0], true);
    pair_run(&p, 20000); /* what was on its way still comes */
    uint64_t pto = xl_rtt_pto(&p.cc->path[0]->ack_rtt, XL_MAX_ACK_DELAY_US), since = p.cc->path[0]->last_received_at;
    while (p.client_migrations == 0)
        assert_true(pair_step(&p) && p.now < since + 30000000);
    double took = (double)(p.now - since) / (double)pto;
    assert_true(pair_finish(&p, i, 30000000) != UINT64_MAX);
    assert_int_equal(1, p.client_migrations);
    pair_free(&p);
    return took;
}

TEST(migration_may_wait_for_consecutive_ptos) {
    /* The PING after one PTO (or what else is in flight), then the timeouts 1 + 2 + 4 + …, and a round trip to
     * validate. */
    double one = ptos_until_migration(1), two = ptos_until_migration(2), three = ptos_until_migration(3);
    assert_true(one > 1.2 && one < 3.0);
    assert_true(two - one > 1.8 && two - one < 2.2);
    assert_true(three - two > 3.8 && three - two < 4.2);
}

PAIR_TEST(answers_restart_the_count_of_ptos) {
    start_migrating(p, 141, 2);
    size_t i = pair_ask(p, 20000000);
    for (int k = 0; k < 5; k++) { /* outages of about two probe timeouts: the PING, and the first timeout */
        pair_run(p, 700000);
        uint64_t pto = xl_rtt_pto(&p->cc->path[0]->ack_rtt, XL_MAX_ACK_DELAY_US);
        pair_set_dark(&p->link[0], true);
        pair_run(p, 2 * pto);
        pair_set_dark(&p->link[0], false);
    }
    assert_int_equal(0, p->client_migrations);
    assert_true(pair_finish(p, i, 60000000) != UINT64_MAX);
}

PAIR_TEST_EACH(migration_returns_when_the_primary_has_been_back_for_a_while, int, back, 0, 2) {
    init_migrating(p, 142);
    p->client_config.limits.migrate_back = back;
    p->client_config.limits.migrate_back_us = 3000000;
    pair_establish(p);
    size_t i = pair_ask(p, 40000000);
    pair_run(p, 1000000);
    pair_set_dark(&p->link[0], true);
    pair_run(p, 2000000);
    assert_int_equal(1, p->cc->active);
    pair_set_dark(&p->link[0], false); /* back for a short time only: the client does not return */
    pair_run(p, 2500000);
    pair_set_dark(&p->link[0], true);
    pair_run(p, 2500000);
    assert_int_equal(1, p->cc->active);
    pair_set_dark(&p->link[0], false);
    pair_run(p, 2500000);
    assert_int_equal(1, p->cc->active);
    pair_run(p, 3000000);
    assert_int_equal(back ? 0 : 1, p->cc->active);
    assert_int_equal(back ? 0 : 1, p->sc->active);
    assert_int_equal(back ? 2 : 1, p->client_migrations);
    assert_true(pair_finish(p, i, 60000000) != UINT64_MAX);
}

/* Path 0 is dark until the client has left it. Returns when the server has followed it back. */
static void leave_and_come_back(pair *p, size_t request) {
    pair_set_dark(&p->link[0], true);
    pair_run(p, 1500000);
    assert_int_equal(1, p->cc->active);
    pair_set_dark(&p->link[0], false);
    while (p->server_migrations < 2)
        assert_true(pair_step(p) && !p->request[request].done);
}

PAIR_TEST(coming_back_starts_a_new_window) {
    init_migrating(p, 143);
    p->client_config.limits.migrate_back = true;
    pair_establish(p);
    size_t i = pair_ask(p, 20000000);
    pair_run(p, 1000000);
    assert_true(pair_server_path(p, 0).cwnd_bytes > 100000);
    leave_and_come_back(p, i);
    assert_int_equal(0, p->sc->active);
    assert_true(pair_server_path(p, 0).cwnd_bytes <= 10 * PAIR_MTU);
    assert_true(pair_finish(p, i, 60000000) != UINT64_MAX);
}

/* Packets that left the path before the client did, and are acknowledged after its return, are no sample of the rate:
 * their counts of delivered bytes are old ones. */
PAIR_TEST(coming_back_by_bbr_takes_no_rate_from_before) {
    init_migrating(p, 143);
    p->client_config.limits.migrate_back = true;
    p->client_config.scheme.cc = p->server_config.scheme.cc = "bbr";
    pair_establish(p);
    size_t i = pair_ask(p, 20000000);
    pair_run(p, 1000000);
    leave_and_come_back(p, i);
    uint64_t most = 0, end = p->now + 300000;
    while (p->now < end) {
        assert_true(pair_step(p));
        most = xl_max(most, p->sc->path[0]->pacer.rate);
    }
    assert_in_range(most, 1, 20 * 125000 * 5);
}

/* ---- one path in the place of another ---- */

/* A client whose address changes often. The server's paths have one packet number space, and a packet lost on one path
 * arrives after all when its slot is another path's. */
PAIR_TEST(packets_of_a_path_do_not_count_for_the_one_in_its_place) {
    start_migrating(p, 145, 0);
    size_t i = pair_ask(p, 2000000);
    pair_run(p, 500000);
    p->link[0].loss = 0.2;
    xl_ledger *sent = &p->sc->space[XL_LEVEL_APP].ledger;
    xl_sent_packet *lost = NULL;
    while (!lost && pair_step(p))
        for (uint64_t pn = sent->first_pn; pn < sent->next_pn && !lost; pn++)
            lost = xl_ledger_find(sent, pn) && xl_ledger_find(sent, pn)->state == XL_SENT_LOST
                       ? xl_ledger_find(sent, pn)
                       : NULL;
    while (p->sc->path_count < XL_MAX_PATHS)
        xl_conn_path_new(p->sc, &p->link[0].server, &p->link[1].client, XL_TECH_LTE);
    lost->path = 1;
    xl_ack_frame f = {.range_count = 1, .ranges = {{lost->pn, lost->pn}}};
    xl_path *fresh = xl_conn_path_new(p->sc, &p->link[0].server, &p->link[1].client, XL_TECH_LTE);
    assert_ptr_equal(fresh, p->sc->path[1]);
    fresh->flight.unanswered = 7; /* an acknowledgement of its own packets resets it */
    assert_int_equal(0, xl_conn_take_ack(p->sc, &p->sc->space[XL_LEVEL_APP], p->sc->path[0], &f));
    assert_int_equal(fresh->flight.unanswered, 7);
    p->link[0].loss = 0;
    assert_true(pair_finish(p, i, 20000000) != UINT64_MAX);
}

/* Like any suspect path, although its RTT was forgotten. */
PAIR_TEST(a_suspect_path_that_moves_is_asked_at_least_once_a_second) {
    pair_init(p, 140, 2, 10000);
    p->server_config.scheme.dialect = XL_DIALECT_IETF;
    start(p);
    pair_set_dark(&p->link[1], true);
    xl_connection_ping(p->cc, p->now);
    xl_path *path = p->cc->path[1];
    while (path->state != XL_PATH_SUSPECT)
        assert_true(pair_step(p));
    const xl_addr elsewhere = pair_addr(99, 4000); /* dark too */
    assert_int_equal(0, xl_connection_move_path(p->cc, 1, &elsewhere, p->now));
    uint64_t sent = 0, since = p->now, longest = 0;
    for (uint64_t end = p->now + 5000000; p->now < end; pair_run(p, 1000)) {
        if (path->stats.packets_sent != sent) {
            sent = path->stats.packets_sent;
            since = p->now;
        }
        longest = xl_max(longest, p->now - since);
    }
    assert_int_equal(XL_PATH_SUSPECT, path->state);
    assert_in_range(longest, 900000, 1050000); /* the first timeout is one PTO: 999 ms and the peer's delay */
}

TEST_MAIN(NULL, NULL)
