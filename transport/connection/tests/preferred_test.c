/* The server's preferred address: RFC 9000 section 9.6, and RFC 10069 section 3. */
#include "testing/pair.h"

#include "connection/preferred.h"
#include "wire/frame.h"

static const xl_addr preferred = {.family = 4, .ip = {10, 0, 0, 9}, .port = 4433};

static void configure(pair *p, uint64_t seed, size_t links) {
    pair_init(p, seed, links, 20000);
    p->server_config.preferred_address_v4 = preferred;
}

static void ietf(pair *p, uint64_t seed) {
    configure(p, seed, 2);
    pair_multipath(p, "minrtt", "none");
    p->server_config.scheme.dialect = XL_DIALECT_IETF;
}

/* Begins a download, which is under way when the handshake is confirmed. */
static size_t begin(pair *p) {
    pair_connect(p);
    while (!p->cc->handshake.is_complete)
        pair_step(p);
    return pair_ask(p, 400000);
}

static const xl_path *active(const xl_connection *c) {
    return c->path[c->active];
}

PAIR_TEST(a_client_moves_to_the_preferred_address_and_nothing_is_lost) {
    configure(p, 1, 1);
    size_t request = begin(p);
    assert_true(pair_finish(p, request, 10000000) != UINT64_MAX);
    assert_true(xl_addr_equal(&active(p->cc)->remote, &preferred));
    assert_true(xl_addr_equal(&active(p->sc)->local, &preferred));
    assert_int_equal(active(p->cc)->cids.remote_sequence, 1);
    assert_int_equal(p->client_migrations, 1);
    assert_int_equal(p->server_migrations, 1);
    assert_int_equal(p->cc->stats.datagrams_dropped, 0); /* packets from the old address were accepted */
    pair_run(p, 5000000);
    assert_null(xl_cids_by_sequence(&p->sc->local_cids, 0)); /* retired */
    assert_true(pair_finish(p, pair_ask(p, 10000), 10000000) != UINT64_MAX);
}

PAIR_TEST(a_client_stays_where_the_preferred_address_does_not_answer) {
    configure(p, 2, 1);
    p->unreachable = preferred;
    size_t request = begin(p);
    uint64_t took = pair_finish(p, request, 20000000);
    assert_in_range(took, 1, 1000000); /* data goes on meanwhile */
    pair_run(p, 20000000);
    assert_int_equal(p->cc->active, 0);
    assert_true(xl_addr_equal(&active(p->cc)->remote, &p->link[0].server));
    assert_int_equal(p->client_migrations + p->server_migrations, 0);
    assert_true(pair_finish(p, pair_ask(p, 10000), 10000000) != UINT64_MAX);
}

PAIR_TEST(a_candidate_of_a_migrating_client_leads_to_the_preferred_address_too) {
    configure(p, 3, 2);
    p->client_config.scheme.enable_migration = true;
    size_t request = begin(p);
    assert_true(pair_finish(p, request, 10000000) != UINT64_MAX);
    pair_set_dark(&p->link[0], true);
    assert_true(pair_finish(p, pair_ask(p, 50000), 30000000) != UINT64_MAX);
    assert_true(xl_addr_equal(&active(p->cc)->local, &p->link[1].client));
    assert_true(xl_addr_equal(&active(p->cc)->remote, &preferred));
}

PAIR_TEST(with_path_ids_path_0_moves_and_keeps_its_id) {
    ietf(p, 4);
    size_t request = begin(p);
    assert_true(pair_finish(p, request, 10000000) != UINT64_MAX);
    pair_run(p, 1000000);
    const xl_path *path = p->cc->path[0];
    assert_true(xl_addr_equal(&path->remote, &preferred));
    assert_true(path->cids.local_path_id == 0 && path->cids.remote_path_id == 0 && path->validation.is_done);
    assert_int_equal(path->cids.remote_sequence, 1);
    assert_true(xl_addr_equal(&p->sc->path[0]->local, &preferred) && p->sc->path[0]->validation.is_done);
    assert_true(xl_addr_equal(&p->cc->path[1]->remote, &p->link[1].server));
    uint64_t before = p->sc->path[0]->stats.stream_bytes_sent;
    assert_true(pair_finish(p, pair_ask(p, 400000), 10000000) != UINT64_MAX);
    assert_true(p->sc->path[0]->stats.stream_bytes_sent > before);
}

PAIR_TEST(with_path_ids_path_0_returns_where_the_address_does_not_answer) {
    ietf(p, 5);
    p->unreachable = preferred;
    size_t request = begin(p);
    assert_true(pair_finish(p, request, 20000000) != UINT64_MAX);
    pair_run(p, 5000000);
    assert_true(xl_addr_equal(&p->cc->path[0]->remote, &p->link[0].server));
    assert_true(p->cc->path[0]->validation.is_done && p->cc->path[0]->state == XL_PATH_ACTIVE);
    uint64_t before = p->sc->path[0]->stats.stream_bytes_sent;
    assert_true(pair_finish(p, pair_ask(p, 400000), 10000000) != UINT64_MAX);
    assert_true(p->sc->path[0]->stats.stream_bytes_sent > before);
}

PAIR_TEST(an_address_of_the_other_ip_version_is_not_used) {
    configure(p, 6, 1);
    p->server_config.preferred_address_v4.family = 0;
    p->server_config.preferred_address_v6 = (xl_addr){.family = 6, .ip = {0x20, 1}, .port = 443};
    assert_true(pair_finish(p, begin(p), 10000000) != UINT64_MAX);
    assert_true(p->cc->peer_params.has_preferred_address);
    assert_int_equal(p->client_migrations, 0);
}

PAIR_TEST(a_server_without_connection_ids_may_name_no_address) {
    configure(p, 7, 1);
    begin(p);
    assert_int_equal(xl_conn_learn_preferred_address(p->cc), 0);
    p->cc->handshake.initial_scid_peer.len = 0;
    assert_int_equal(xl_conn_learn_preferred_address(p->cc), XL_QERR_TRANSPORT_PARAMETER);
}

/* disable_active_migration applies to the address of the handshake (RFC 9000 section 18.2). */
PAIR_TEST_EACH(a_client_at_the_preferred_address_may_migrate, int, is_there, 0, 2) {
    configure(p, 8, 2);
    p->client_config.scheme.enable_migration = true;
    if (!is_there)
        p->unreachable = preferred;
    size_t request = begin(p);
    p->cc->peer_params.disable_active_migration = true;
    assert_true(pair_finish(p, request, 10000000) != UINT64_MAX);
    assert_int_equal(p->client_migrations, is_there);
    pair_run(p, 5000000);
    pair_set_dark(&p->link[0], true);
    bool is_answered = pair_finish(p, pair_ask(p, 50000), 10000000) != UINT64_MAX;
    assert_int_equal(is_answered, is_there);
}

/* … and with path IDs further paths may lead to any other address of the server (RFC 10069 section 2.2). */
PAIR_TEST(further_paths_may_lead_to_another_address_of_the_server) {
    ietf(p, 9);
    p->link_count = 1;
    size_t request = begin(p);
    p->cc->peer_params.disable_active_migration = true;
    p->link_count = 2;
    int to_handshake = xl_connection_add_path(p->cc, &p->link[1].client, &p->link[1].server, XL_TECH_LTE, p->now);
    int to_preferred = xl_connection_add_path(p->cc, &p->link[1].client, &preferred, XL_TECH_LTE, p->now);
    assert_true(pair_finish(p, request, 10000000) != UINT64_MAX);
    pair_run(p, 1000000);
    assert_int_equal(p->cc->path[to_handshake]->state, XL_PATH_NEW);
    assert_int_equal(p->cc->path[to_preferred]->state, XL_PATH_ACTIVE);
}

TEST_MAIN(NULL, NULL)
