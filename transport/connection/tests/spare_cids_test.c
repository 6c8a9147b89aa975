/* Spare connection IDs (RFC 9000 section 5.1.1, RFC 10069 section 3.2.1): there is a fresh one for each change of a
 * path's address, even for a peer that takes one at each change and retires none. */
#include "testing/pair.h"

#include "connection/own_cids.h"
#include "connection/path_table.h"
#include "connection/paths.h"
#include "connection/state.h"
#include "wire/frame.h"

#define CHANGES 20

static void start(pair *p) {
    pair_settle(p, 300000);
}

/* A server that, like some, takes a connection ID for each new address of the client and keeps the old ones. */
static void takes_one_for_each(pair *p, size_t path, const xl_cids *issued, uint64_t limit) {
    for (uint16_t n = 0; n < CHANGES; n++) {
        p->link[path].nat = pair_addr(77, (uint16_t)(9000 + n));
        uint64_t before = p->sc->path[path]->cids.remote_sequence;
        assert_true(xl_conn_take_dcid(p->sc, p->sc->path[path]));
        assert_true(p->sc->path[path]->cids.remote_sequence > before);
        pair_transfer(p, 50000, 10000000);
        pair_run(p, 200000);
        assert_true(xl_cids_active(issued) <= limit);
    }
    assert_false(p->client_closed || p->server_closed);
}

TEST(each_rebinding_of_a_path_id_finds_a_spare_connection_id) {
    for (uint64_t limit = 2; limit <= XL_MAX_PATHS; limit += 6) {
        pair p;
        pair_init(&p, 31, 2, 10000);
        pair_multipath(&p, "redundant", "none"); /* both paths carry the requests */
        p.server_config.scheme.dialect = XL_DIALECT_IETF;
        start(&p);
        p.cc->peer_params.active_connection_id_limit = limit;
        takes_one_for_each(&p, 1, xl_path_ids_find(p.cc->path_ids, 1)->local, limit);
        pair_free(&p);
    }
}

PAIR_TEST(each_rebinding_of_a_single_path_finds_a_spare_connection_id) {
    pair_init(p, 32, 1, 10000);
    start(p);
    takes_one_for_each(p, 0, &p->cc->local_cids, XL_MAX_PATHS);
}

/* The client uses more addresses than the server keeps paths. */
PAIR_TEST(each_migration_to_a_new_address_has_connection_ids_of_its_own) {
    pair_init(p, 33, 2, 10000);
    p->client_config.scheme.enable_migration = true;
    start(p);
    for (unsigned n = 0; n < CHANGES; n++) {
        size_t from = n % 2, to = 1 - from;
        uint64_t before = p->sc->path[p->sc->active]->cids.remote_sequence;
        p->link[to].nat = pair_addr((uint8_t)(100 + n), 7000);
        pair_set_dark(&p->link[to], false);
        pair_set_dark(&p->link[from], true);
        pair_transfer(p, 50000, 30000000);
        pair_run(p, 2000000);
        assert_int_equal(p->server_migrations, n + 1);
        assert_true(p->sc->path[p->sc->active]->cids.remote_sequence != before);
    }
    assert_false(p->client_closed || p->server_closed);
}

/* … also for a client that does not ask for its connection ID back. */
PAIR_TEST(a_path_in_the_place_of_another_gives_its_connection_id_back) {
    pair_init(p, 34, 1, 10000);
    start(p);
    xl_conn_enter(p->sc, p->now);
    for (uint8_t i = 1; i < XL_MAX_PATHS; i++) {
        xl_addr remote = pair_addr((uint8_t)(50 + i), 4000);
        assert_true(xl_conn_take_dcid(p->sc, xl_conn_path_new(p->sc, &p->link[0].server, &remote, XL_TECH_UNKNOWN)));
    }
    uint64_t old = p->sc->path[1]->cids.remote_sequence;
    xl_addr remote = pair_addr(99, 4000);
    xl_path *replaced = xl_conn_path_new(p->sc, &p->link[0].server, &remote, XL_TECH_UNKNOWN);
    assert_ptr_equal(replaced, p->sc->path[1]);
    assert_true(pair_finish(p, pair_ask(p, 1000), 1000000) != UINT64_MAX);
    pair_run(p, 100000);
    assert_null(xl_cids_by_sequence(&p->cc->local_cids, old));
    assert_true(xl_conn_take_dcid(p->sc, replaced));
}

PAIR_TEST(no_more_are_issued_than_the_peer_takes) {
    pair_init(p, 35, 1, 10000);
    start(p);
    for (uint64_t limit = 2; limit <= XL_MAX_PATHS; limit++) {
        p->sc->local_cids.count = 1;
        p->sc->peer_params.active_connection_id_limit = limit;
        xl_conn_issue_cids(p->sc);
        assert_int_equal(p->sc->local_cids.count, limit);
    }
}

TEST_MAIN(NULL, NULL)
