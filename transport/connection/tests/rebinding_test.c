/* A NAT that moves several paths at once: paths over one pair of addresses (RFC 10069 section 5.2), opened before,
 * while and after their addresses change. In any order, both ends use every path once the links work again. */
#include "testing/pair.h"
#include "connection/path_table.h"

typedef struct {
    uint64_t moves_at;  /* µs after the second path was registered */
    uint64_t returns;   /* µs until the old binding is back; 0: never */
    uint64_t dark;      /* µs for which the new address gets nothing; 0: it answers */
    bool with_download; /* while data flows */
} nat_story;

static void begin(pair *p, xl_dialect dialect, const nat_story *story) {
    pair_init_multipath(p, 50, 1, 20000);
    p->server_config.scheme.dialect = dialect;
    pair_limit(&p->link[0], 1000000, 100000);
    pair_settle(p, 300000);
    if (story->with_download)
        pair_ask(p, 3000000);
}

static void play(pair *p, const nat_story *story) {
    pair_link *l = &p->link[0];
    assert_int_equal(1, xl_connection_add_path(p->cc, &l->client, &l->server, XL_TECH_LTE, p->now));
    pair_run(p, story->moves_at);
    l->nat = pair_addr(l->client.ip[3], 5000);
    l->dark[1] = story->dark > 0;
    xl_connection_ping(p->cc, p->now);
    if (story->dark) {
        pair_run(p, story->dark);
        l->dark[1] = false;
    }
    if (story->returns) {
        pair_run(p, story->returns);
        l->nat.family = 0;
        xl_connection_ping(p->cc, p->now);
    }
    pair_run(p, 8000000);
    xl_connection_ping(p->cc, p->now); /* the next packet shows the server that the NAT has moved */
    pair_run(p, 4000000);
}

static void check_that_all_work(pair *p) {
    const xl_addr *seen = p->link[0].nat.family ? &p->link[0].nat : &p->link[0].client;
    assert_false(p->client_closed || p->server_closed);
    for (size_t i = 0; i < 2; i++) {
        const xl_path *ours = p->cc->path[i], *theirs = p->sc->path[i];
        assert_int_equal(XL_PATH_ACTIVE, ours->state);
        assert_int_equal(XL_PATH_ACTIVE, theirs->state);
        assert_true(theirs->validation.is_done);
        assert_false(theirs->validation.is_pending);
        assert_true(xl_addr_equal(seen, &theirs->remote));
    }
    pair_transfer(p, 200000, 20000000);
}

static void run(const nat_story *story) {
    for (int dialect = XL_DIALECT_XLINK; dialect <= XL_DIALECT_IETF; dialect++) {
        pair p;
        begin(&p, (xl_dialect)dialect, story);
        play(&p, story);
        check_that_all_work(&p);
        pair_free(&p);
    }
}

TEST(a_second_path_opened_while_a_nat_moves_both_works) {
    for (uint64_t at = 0; at <= 120000; at += 15000)
        for (int download = 0; download < 2; download++)
            run(&(nat_story){.moves_at = at, .with_download = download});
}

TEST(a_second_path_works_when_the_old_binding_comes_back) {
    for (uint64_t at = 0; at <= 80000; at += 20000)
        for (uint64_t back = 5000; back <= 95000; back += 30000)
            run(&(nat_story){.moves_at = at, .returns = back, .with_download = at & 32});
}

TEST(a_second_path_works_after_a_new_binding_that_was_dark_at_first) {
    for (uint64_t at = 0; at <= 80000; at += 20000)
        for (uint64_t dark = 50000; dark <= 3200000; dark *= 4)
            for (int back = 0; back < 2; back++)
                run(&(nat_story){.moves_at = at, .dark = dark, .returns = back ? 10000 : 0});
}

/* The first path has validated the new address by then: bytes from there count for that path. */
PAIR_TEST(a_path_that_moves_to_an_address_that_another_one_has_proven_works) {
    begin(p, XL_DIALECT_IETF, &(nat_story){0});
    pair_link *l = &p->link[0];
    assert_int_equal(1, xl_connection_add_path(p->cc, &l->client, &l->server, XL_TECH_LTE, p->now));
    pair_run(p, 500000);
    l->nat = pair_addr(l->client.ip[3], 5000);
    p->cc->path[0]->flight.ping_pending = true;
    xl_conn_wake(p->cc);
    pair_run(p, 200000);
    assert_true(xl_addr_equal(&p->sc->path[0]->remote, &l->nat) && p->sc->path[0]->validation.is_done);
    assert_true(xl_addr_equal(&p->sc->path[1]->remote, &l->client));
    xl_connection_ping(p->cc, p->now);
    pair_run(p, 1000000);
    check_that_all_work(p);
}

static void both_dialects(void (*each)(pair *)) {
    for (int dialect = XL_DIALECT_XLINK; dialect <= XL_DIALECT_IETF; dialect++) {
        pair p;
        begin(&p, (xl_dialect)dialect, &(nat_story){0});
        each(&p);
        pair_free(&p);
    }
}

/* The client goes on probing, so the server does not close the path although it gets no answer. */
static void opened_while_nothing_comes_back(pair *p) {
    pair_link *l = &p->link[0];
    l->dark[1] = true;
    assert_int_equal(1, xl_connection_add_path(p->cc, &l->client, &l->server, XL_TECH_LTE, p->now));
    pair_run(p, 20000000);
    assert_int_equal(XL_PATH_VALIDATING, p->sc->path[1]->state);
    l->dark[1] = false;
    pair_run(p, 15000000);
    check_that_all_work(p);
}

TEST(a_path_that_was_opened_in_a_long_outage_works_afterwards) {
    both_dialects(opened_while_nothing_comes_back);
}

/* In the dialect `xlink` the client learns from the first packet which connection ID the server gave a path. */
static void opened_at_once(pair *p) {
    pair_link *l = &p->link[0];
    l->reorder = 0.5;
    for (int i = 1; i < XL_MAX_PATHS; i++)
        assert_int_equal(i, xl_connection_add_path(p->cc, &l->client, &l->server, XL_TECH_LTE, p->now));
    pair_run(p, 3000000);
    for (size_t i = 0; i < XL_MAX_PATHS; i++) {
        const xl_path *ours = p->cc->path[i], *theirs = xl_conn_path_by_local_id(p->sc, ours->cids.remote_path_id);
        assert_int_equal(XL_PATH_ACTIVE, ours->state);
        assert_non_null(theirs);
        assert_int_equal(XL_PATH_ACTIVE, theirs->state);
        assert_int_equal(theirs->cids.remote_path_id, ours->cids.local_path_id);
    }
}

TEST(paths_over_one_pair_of_addresses_are_not_confused) {
    both_dialects(opened_at_once);
}

/* The client does not know yet which of its connection IDs the server uses there. It gets the close once it does. */
static void closed_by_the_server_before_it_is_heard(pair *p) {
    pair_link *l = &p->link[0];
    l->dark[1] = true;
    assert_int_equal(1, xl_connection_add_path(p->cc, &l->client, &l->server, XL_TECH_LTE, p->now));
    pair_run(p, 100000);
    assert_int_equal(XL_PATH_VALIDATING, p->sc->path[1]->state);
    assert_int_equal(0, xl_connection_set_path_status(p->sc, 1, XL_STATUS_STANDBY, p->now));
    assert_int_equal(0, xl_connection_close_path(p->sc, 1, p->now));
    assert_int_equal(XL_ERR_PATH, xl_connection_set_path_status(p->sc, 1, XL_STATUS_AVAILABLE, p->now));
    pair_run(p, 2000000);
    l->dark[1] = false;
    pair_run(p, 15000000);
    assert_int_equal(XL_PATH_CLOSED, p->cc->path[1]->state);
    assert_int_equal(XL_PATH_CLOSED, p->sc->path[1]->state);
    assert_int_equal(2, xl_connection_add_path(p->cc, &l->client, &l->server, XL_TECH_LTE, p->now));
    pair_run(p, 1000000);
    assert_int_equal(XL_PATH_ACTIVE, p->cc->path[2]->state);
    assert_int_equal(XL_PATH_ACTIVE, p->sc->path[2]->state);
}

TEST(a_path_that_the_server_closes_before_it_is_heard_is_closed_at_both_ends) {
    both_dialects(closed_by_the_server_before_it_is_heard);
}

/* A client that has just moved is moved again by its NAT, and then gets nothing for a while. */
TEST(a_single_path_that_was_dark_while_it_moved_works_afterwards) {
    for (uint64_t after = 0; after <= 60000; after += 10000) {
        pair p;
        pair_init(&p, 60, 2, 20000);
        p.client_config.scheme.enable_migration = true;
        p.client_config.limits.idle_timeout_us = p.server_config.limits.idle_timeout_us = 200000000;
        p.link[0].bytes_per_s[1] = p.link[1].bytes_per_s[1] = 500000;
        pair_establish(&p);
        size_t i = pair_ask(&p, 2000000);
        pair_run(&p, 500000);
        pair_set_dark(&p.link[0], true);
        while (p.sc->active == 0)
            assert_true(pair_step(&p));
        pair_run(&p, after);
        p.link[1].nat = pair_addr(77, 9999);
        p.link[1].dark[1] = true;
        xl_connection_ping(p.cc, p.now);
        pair_run(&p, 20000000);
        p.link[1].dark[1] = false;
        for (int k = 0; k < 10; k++) { /* as a client does to keep a binding alive */
            xl_connection_ping(p.cc, p.now);
            pair_run(&p, 2000000);
        }
        assert_true(p.request[i].done && !p.request[i].failed);
        pair_free(&p);
    }
}

TEST_MAIN(NULL, NULL)
