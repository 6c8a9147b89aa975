/* Tokens of NEW_TOKEN: a client that comes back proves its address with its first packet (RFC 9000 section 8.1.3). */
#include "testing/early_world.h"

static bool is_known_at_once(world *w) {
    const xl_endpoint *server = w->p.server;
    size_t before = server->count;
    come_back(w);
    pair_run(&w->p, 20500); /* the first flight has arrived */
    return server->count > before && server->connection[server->count - 1]->path[0]->validation.is_done;
}

WORLD_TEST(a_token_validates_the_address_it_was_made_for) {
    world_init(w, 23);
    w->p.server_config.limits.issue_tokens = true;
    w->p.server_config.limits.retry_always = true;
    pair_settle(&w->p, 500000);
    assert_true(is_known_at_once(w)); /* no Retry, although every other client gets one */
    assert_false(w->p.cc->handshake.has_retry);
    pair_run(&w->p, 500000);
    w->p.link[0].client.ip[3] ^= 1;
    come_back(w);
    pair_run(&w->p, 500000);
    assert_true(w->p.cc->handshake.has_retry); /* a token of another address counts as none */
    assert_true(w->p.cc->handshake.is_confirmed);
}

/* A client whose address changes comes back from the new one (section 9.3: another token once it is validated). */
TEST(a_client_that_moved_has_a_token_for_its_new_address) {
    for (int multipath = 0; multipath < 2; multipath++) {
        world w;
        world_init(&w, 28);
        w.p.server_config.limits.issue_tokens = true;
        w.p.server_config.limits.retry_always = true;
        if (multipath)
            pair_multipath(&w.p, "minrtt", "none");
        pair_establish(&w.p);
        size_t i = pair_ask(&w.p, 3000000);
        pair_run(&w.p, 100000);
        w.p.link[0].nat = pair_addr(77, 9999);
        assert_true(pair_finish(&w.p, i, 20000000) != UINT64_MAX);
        assert_true(is_known_at_once(&w));
        assert_false(w.p.cc->handshake.has_retry);
        pair_free(&w.p);
    }
}

WORLD_TEST(a_new_port_brings_no_other_token) {
    world_init(w, 29);
    w->p.server_config.limits.issue_tokens = true;
    meet(w);
    size_t i = pair_ask(&w->p, 3000000);
    pair_run(&w->p, 100000);
    w->p.link[0].nat = w->p.link[0].client;
    w->p.link[0].nat.port++;
    unsigned saves = w->kept.saves;
    assert_true(pair_finish(&w->p, i, 20000000) != UINT64_MAX);
    assert_true(w->p.sc->path[0]->remote.port == w->p.link[0].nat.port && w->p.sc->path[0]->validation.is_done);
    assert_int_equal(w->kept.saves, saves);
}

WORLD_TEST(a_token_that_came_before_proves_nothing) {
    world_init(w, 24);
    w->p.server_config.limits.issue_tokens = true;
    meet(w);
    const store before = w->kept;
    assert_true(is_known_at_once(w));
    w->kept = before;
    assert_false(is_known_at_once(w));
}

/* Restarts the server's machine `us` later, with a clock that begins again. The server's secret stays. */
static void restart_machine(world *w, uint64_t us) {
    pair *p = &w->p;
    int error;
    xl_endpoint_free(p->server);
    p->server_config.epoch_us += p->now + us - PAIR_START;
    set_back_ns -= (p->now + us - PAIR_START) * 1000;
    p->now = PAIR_START;
    p->server = xl_endpoint_new(&p->server_config, p->now, &error);
    assert_non_null(p->server);
}

TEST(a_token_keeps_its_age_when_the_machine_starts_again) {
    static const struct {
        uint64_t lives_us, away_us;
        bool is_known;
    } table[] = {
        {10 * UINT64_C(60000000), 60000000, true},               /* the new clock is behind the token's time */
        {0, 10 * UINT64_C(60000000), true},                      /* the new clock is past the token's time */
        {0, 24 * XL_TOKEN_LIFETIME_US, false},                   /* the new clock shows nearly the token's time */
        {XL_TOKEN_LIFETIME_US / 2, XL_TOKEN_LIFETIME_US, false}, /* too old, and the new clock behind its time */
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        world w;
        world_init(&w, 25);
        w.p.server_config.limits.issue_tokens = true;
        w.p.server_config.limits.retry_always = true;
        w.p.server_config.epoch_us = MIDNIGHT_NS / 1000;
        w.p.now += table[i].lives_us;
        pair_settle(&w.p, 500000);
        xl_endpoint_free(w.p.client);
        w.p.client = NULL;
        pair_drop_queue(&w.p);
        restart_machine(&w, table[i].away_us);
        assert_int_equal(table[i].is_known, is_known_at_once(&w));
        pair_free(&w.p);
    }
}

TEST(a_token_is_good_for_an_hour) {
    const uint8_t key[XL_TOKEN_KEY_BYTES] = {1}, other[XL_TOKEN_KEY_BYTES] = {2}, nonce[XL_TOKEN_NONCE_BYTES] = {3};
    const xl_addr here = pair_addr(2, 4000), elsewhere = pair_addr(3, 4000), port = pair_addr(2, 4001);
    uint8_t token[XL_TOKEN_BYTES];
    assert_int_equal(0, xl_token_make(key, nonce, &here, 5000, token));
    assert_true(xl_token_is_valid(key, token, sizeof token, &here, 5000));
    assert_true(xl_token_is_valid(key, token, sizeof token, &port, 5000 + XL_TOKEN_LIFETIME_US));
    assert_false(xl_token_is_valid(key, token, sizeof token, &here, 5001 + XL_TOKEN_LIFETIME_US));
    assert_false(xl_token_is_valid(key, token, sizeof token, &here, 4999));
    assert_false(xl_token_is_valid(key, token, sizeof token, &elsewhere, 6000));
    assert_false(xl_token_is_valid(other, token, sizeof token, &here, 6000));
    assert_false(xl_token_is_valid(key, token, sizeof token - 1, &here, 6000));
    for (size_t i = 0; i < sizeof token; i++) {
        token[i] ^= 1;
        assert_false(xl_token_is_valid(key, token, sizeof token, &here, 6000));
        token[i] ^= 1;
    }
}

TEST_MAIN(NULL, NULL)
