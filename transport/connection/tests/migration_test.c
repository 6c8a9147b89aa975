/* Migration by the letter of RFC 9000 sections 8.2 and 9: what the peer forbids, what is validated before, and when
 * connection IDs are retired. */
#include "testing/pair.h"

static void start(pair *p) {
    pair_limit(&p->link[0], 2500000, 100000);
    pair_limit(&p->link[1], 2500000, 100000);
    pair_establish(p);
    assert_true(p->cc->handshake.is_confirmed);
}

/* The client has a second path that it may migrate to. */
static void start_migrating(pair *p) {
    pair_init(p, 7, 2, 15000);
    p->client_config.scheme.enable_migration = true;
    start(p);
}

/* Asks for a download, and makes the first path dark in the middle of it. Returns the download's index. */
static size_t ask_and_lose_the_first_path(pair *p) {
    size_t i = pair_ask(p, 6000000);
    pair_run(p, 1000000);
    pair_set_dark(&p->link[0], true);
    return i;
}

PAIR_TEST_EACH(a_client_stays_where_the_server_disables_active_migration, int, disabled, 0, 2) {
    start_migrating(p);
    p->cc->peer_params.disable_active_migration = disabled;
    size_t i = ask_and_lose_the_first_path(p);
    pair_run(p, 5000000);
    assert_int_equal(disabled ? 0 : 1, p->client_migrations);
    assert_int_equal(disabled, p->link[1].packets[0] == 0);
    pair_set_dark(&p->link[0], false);
    assert_true(pair_finish(p, i, 60000000) != UINT64_MAX);
}

PAIR_TEST(a_client_opens_no_path_where_the_server_disables_active_migration) {
    pair_init_multipath(p, 7, 1, 15000);
    start(p);
    p->cc->peer_params.disable_active_migration = true;
    p->link_count = 2;
    p->link[1] = (pair_link){.client = pair_addr(3, 4000), .server = pair_addr(1, 443)};
    assert_int_equal(1, xl_connection_add_path(p->cc, &p->link[1].client, &p->link[1].server, XL_TECH_LTE, p->now));
    assert_true(pair_finish(p, pair_ask(p, 1000000), 60000000) != UINT64_MAX);
    assert_int_equal(0, p->link[1].packets[0]);
}

/* A candidate with the addresses of the path in use: a client may register its only interface twice. */
PAIR_TEST(a_client_may_migrate_to_a_path_with_the_same_addresses) {
    pair_init(p, 7, 1, 15000);
    p->client_config.scheme.enable_migration = true;
    pair_limit(&p->link[0], 2500000, 100000);
    pair_establish(p);
    assert_int_equal(1, xl_connection_add_path(p->cc, &p->link[0].client, &p->link[0].server, XL_TECH_LTE, p->now));
    size_t i = pair_ask(p, 50000000);
    for (uint64_t away_us = 500000; p->client_migrations == 0 && away_us < 5000000; away_us += 50000) {
        pair_set_dark(&p->link[0], true); /* until the first packet to come back is the answer to a challenge */
        pair_run(p, away_us);
        pair_set_dark(&p->link[0], false);
        pair_run(p, 200000);
    }
    assert_int_equal(1, p->client_migrations);
    uint64_t before = p->request[i].received;
    pair_run(p, 2000000);
    assert_true(p->request[i].received > before + 2000000);
    assert_int_equal(1, p->client_migrations);
}

/* RFC 9000 section 9.5. */
PAIR_TEST(a_path_that_is_probed_has_a_connection_id_of_its_own) {
    start_migrating(p);
    size_t i = ask_and_lose_the_first_path(p);
    while (p->cc->migration.to < 0)
        assert_true(pair_step(p));
    assert_false(xl_cid_equal(&p->cc->path[1]->cids.remote, &p->cc->path[0]->cids.remote));
    assert_true(pair_finish(p, i, 60000000) != UINT64_MAX);
    assert_false(
        xl_cid_equal(&p->sc->path[1]->cids.remote, &p->sc->path[0]->cids.remote)); /* in the server's answers, too */
}

/* The server may need the old CID until it uses the new path. */
PAIR_TEST(the_old_connection_id_stays_until_the_server_has_followed) {
    start_migrating(p);
    size_t i = ask_and_lose_the_first_path(p);
    while (p->client_migrations == 0)
        assert_true(pair_step(p));
    p->link[1].dark[1] = true; /* the PATH_RESPONSE was the last that came */
    pair_run(p, 700000);
    assert_non_null(xl_cids_by_sequence(&p->sc->local_cids, 0));
    p->link[1].dark[1] = false;
    assert_true(pair_finish(p, i, 60000000) != UINT64_MAX);
    pair_run(p, 2000000);
    assert_null(xl_cids_by_sequence(&p->sc->local_cids, 0));
}

/* The server acknowledges the probe of the other path on this one, whose downlink works: no sign that the client's
 * packets arrive there. */
PAIR_TEST(a_client_leaves_a_path_whose_uplink_alone_is_dark) {
    start_migrating(p);
    size_t i = pair_ask(p, 6000000);
    pair_run(p, 1000000);
    p->link[0].dark[0] = true;
    assert_true(pair_finish(p, i, 10000000) != UINT64_MAX);
    assert_int_equal(1, p->client_migrations);
}

/* A step with a server that answers on no path that is only probed, such as one that has no spare connection ID. */
static void step_without_answers_to_probes(pair *p) {
    p->link[1].dark[1] = p->sc->active == 0;
    assert_true(pair_step(p));
}

PAIR_TEST(a_client_whose_probes_are_not_answered_moves_all_the_same) {
    pair_init(p, 11, 2, 15000);
    p->client_config.scheme.enable_migration = true;
    start(p);
    size_t i = ask_and_lose_the_first_path(p);
    for (uint64_t end = p->now + 10000000; p->now < end && !p->request[i].done;)
        step_without_answers_to_probes(p);
    assert_true(p->request[i].done && !p->request[i].failed);
    assert_int_equal(1, p->client_migrations);
}

/* A path that is only slow, or loses one packet, must not move the server. */
PAIR_TEST(the_first_probes_leave_the_server_where_it_is) {
    pair_init(p, 12, 2, 15000);
    p->client_config.scheme.enable_migration = true;
    start(p);
    ask_and_lose_the_first_path(p);
    while (p->cc->path[1]->validation.tries < 2)
        step_without_answers_to_probes(p);
    pair_run(p, 100000);
    assert_int_equal(0, p->sc->active);
}

typedef struct {
    size_t largest; /* largest datagram to the client */
} sizes;

static void note_size(void *user, bool to_server, uint8_t *data, size_t len) {
    sizes *s = user;
    (void)data;
    if (!to_server && len > s->largest)
        s->largest = len;
}

/* A PING of about 40 bytes from a new address permits an answer of at most three times its size. */
PAIR_TEST(a_challenge_that_had_to_be_small_is_repeated_in_a_large_datagram) {
    sizes seen = {0};
    pair_init(p, 9, 2, 15000);
    p->tamper = note_size;
    p->tamper_user = &seen;
    start(p);
    pair_run(p, 1000000);
    seen.largest = 0;
    p->link[0].nat = pair_addr(77, 4001);
    xl_connection_ping(p->cc, p->now);
    pair_run(p, 2000000);
    assert_true(xl_addr_equal(&p->link[0].nat, &p->sc->path[p->sc->active]->remote));
    assert_true(p->sc->path[p->sc->active]->validation.is_done);
    assert_false(p->sc->path[p->sc->active]->validation.is_outstanding);
    assert_true(seen.largest >= XL_MIN_DATAGRAM);
}

PAIR_TEST(a_client_of_multipath_migrates_where_the_server_knows_none) {
    pair_init_multipath(p, 7, 2, 15000);
    p->server_config.scheme.enable_multipath = false;
    p->client_config.scheme.enable_migration = true;
    start(p);
    assert_false(xl_connection_is_multipath(p->cc));
    size_t i = ask_and_lose_the_first_path(p);
    assert_true(pair_finish(p, i, 30000000) != UINT64_MAX);
    assert_int_equal(1, p->client_migrations);
}

/* Both paths are dark for longer than a validation lasts; then only the second one comes back. */
PAIR_TEST(a_candidate_that_did_not_answer_is_asked_again) {
    start_migrating(p);
    size_t i = ask_and_lose_the_first_path(p);
    pair_set_dark(&p->link[1], true);
    pair_run(p, 20000000);
    assert_int_equal(0, p->client_migrations);
    pair_set_dark(&p->link[1], false);
    assert_true(pair_finish(p, i, 30000000) != UINT64_MAX);
    assert_int_equal(1, p->client_migrations);
}

/* RFC 9000 section 8.2.3: an answer to any earlier PATH_CHALLENGE counts. Each is repeated here before it is
 * answered. */
PAIR_TEST(a_path_slower_than_the_repetition_is_validated_by_the_first_answer) {
    pair_init(p, 7, 2, 15000);
    p->client_config.scheme.enable_migration = true;
    pair_delay(&p->link[1], 900000);
    start(p);
    size_t i = ask_and_lose_the_first_path(p);
    while (p->cc->migration.to < 0)
        assert_true(pair_step(p));
    pair_run(p, 1850000);
    assert_int_equal(1, p->client_migrations);
    assert_true(pair_finish(p, i, 60000000) != UINT64_MAX);
}

TEST_MAIN(NULL, NULL)
