/* Rules of the handshake that a peer, or anybody who knows the keys of Initial packets, can break (RFC 9000 sections 7,
 * 8.1.2, 10.2.3, 14.1 and 17.2; RFC 9001 section 5.7). */
#include "testing/attack.h"

#include "endpoint/retry.h"

/* Begins a handshake; the client's first flight is under way. */
static void begin_handshake(pair *p, uint64_t seed) {
    pair_init(p, seed, 1, 20000);
    pair_connect(p);
    pair_flush(p);
}

static void until_server_knows(pair *p) {
    while (p->server->count == 0)
        assert_true(pair_step(p));
    p->sc = p->server->connection[0];
}

typedef struct {
    bool to_server;
    xl_cid scid;
    const uint8_t *token;
    size_t token_len, bytes; /* bytes: of the datagram */
    uint64_t pn;
} initial;

/* Delivers an Initial with a PING, sealed with keys that everybody can derive. */
static void deliver_initial(pair *p, const initial *i) {
    uint8_t packet[PAIR_MTU] = {0};
    xl_keys *client, *server;
    size_t length_offset;
    const xl_connection *to = i->to_server ? p->sc : p->cc;
    xl_cid dcid = to->local_cids.at[0].cid;
    assert_int_equal(0, xl_keys_initial(XL_VERSION_1, &p->cc->handshake.initial_dcid, &client, &server));
    xl_writer w = xl_writer_of(packet, sizeof packet);
    xl_packet_put_long(&w, XL_VERSION_1, XL_PACKET_INITIAL, &dcid, &i->scid, i->token, i->token_len, i->pn, 4, packet,
                       &length_offset);
    size_t payload_at = (size_t)(w.p - packet), payload = i->bytes - payload_at - XL_AEAD_TAG;
    packet[payload_at] = 1; /* PING; the rest is PADDING */
    xl_packet_set_length(packet, length_offset, 4 + payload + XL_AEAD_TAG);
    assert_true(xl_keys_protect(i->to_server ? client : server, 0, i->pn, packet, payload_at - 4, 4, payload) > 0);
    xl_keys_free(client);
    xl_keys_free(server);
    pair_inject(p, i->to_server, &p->link[0], packet, i->bytes);
}

static bool takes(pair *p, const initial *i) {
    deliver_initial(p, i);
    return (i->to_server ? p->sc : p->cc)->space[XL_LEVEL_INITIAL].largest_received == i->pn;
}

PAIR_TEST(an_initial_of_a_client_in_a_small_datagram_is_dropped) {
    begin_handshake(p, 1);
    until_server_knows(p);
    initial i = {.to_server = true, .scid = p->cc->local_cids.at[0].cid, .bytes = 1199, .pn = (1 << 20) + 50};
    assert_false(takes(p, &i));
    i.bytes = 1200;
    assert_true(takes(p, &i));
}

/* Delivers an Initial to the client, which takes them until the server's Handshake packets come. */
static void until_client_has_an_initial(pair *p) {
    until_server_knows(p);
    initial i = {.scid = p->sc->local_cids.at[0].cid, .bytes = 1200, .pn = 40};
    assert_true(takes(p, &i));
}

PAIR_TEST(an_initial_of_a_server_with_a_token_is_dropped) {
    begin_handshake(p, 2);
    until_client_has_an_initial(p);
    initial i = {
        .scid = p->sc->local_cids.at[0].cid, .token = token, .token_len = 3, .bytes = 1200, .pn = (1 << 20) + 50};
    assert_false(takes(p, &i));
    i.token_len = 0;
    assert_true(takes(p, &i));
}

PAIR_TEST_EACH(who_answered_first_is_the_peer, int, to_server, 0, 2) {
    begin_handshake(p, 3);
    until_client_has_an_initial(p);
    initial i = {.to_server = to_server, .scid = cid_of(1), .bytes = 1200, .pn = (1 << 20) + 50};
    assert_false(takes(p, &i));
    i.scid = (to_server ? p->cc : p->sc)->local_cids.at[0].cid;
    assert_true(takes(p, &i));
}

/* Delivers a Retry that anybody on the path can make. */
static void deliver_retry(pair *p, uint8_t number) {
    const uint8_t key[XL_RETRY_KEY_BYTES] = {number};
    uint8_t packet[XL_RETRY_MAX_BYTES];
    xl_cid scid = cid_of(number);
    xl_packet_header first = {.type = XL_PACKET_INITIAL,
                              .version = XL_VERSION_1,
                              .dcid = p->cc->handshake.odcid,
                              .scid = p->cc->local_cids.at[0].cid};
    size_t len = xl_retry_put(key, &first, &p->link[0].client, &scid, 0, p->now, packet, sizeof packet);
    assert_true(len > 0);
    pair_inject(p, false, &p->link[0], packet, len);
}

/* A zero-length connection ID is one, too. */
PAIR_TEST(who_answered_first_without_a_connection_id_is_the_peer) {
    begin_handshake(p, 6);
    until_server_knows(p);
    initial i = {.bytes = 1200, .pn = 40};
    assert_true(takes(p, &i));
    i.scid = cid_of(1);
    i.pn = (1 << 20) + 50;
    assert_false(takes(p, &i));
    deliver_retry(p, 1);
    assert_false(p->cc->handshake.has_retry);
}

PAIR_TEST(a_client_takes_one_retry) {
    begin_handshake(p, 4);
    deliver_retry(p, 1);
    assert_true(p->cc->handshake.has_retry);
    deliver_retry(p, 2);
    const xl_cid first = cid_of(1);
    assert_true(xl_cid_equal(&p->cc->handshake.retry_scid, &first));
    assert_true(xl_cid_equal(&p->cc->path[0]->cids.remote, &first));
}

PAIR_TEST(a_client_takes_no_retry_after_another_packet) {
    begin_handshake(p, 5);
    until_client_has_an_initial(p);
    deliver_retry(p, 1);
    assert_false(p->cc->handshake.has_retry);
    assert_null(p->cc->handshake.token);
}

PAIR_TEST_EACH(a_client_takes_no_version_negotiation_after_another_packet, int, after, 0, 2) {
    begin_handshake(p, 6);
    if (after)
        until_client_has_an_initial(p);
    uint8_t packet[64];
    xl_cid dcid = p->cc->local_cids.at[0].cid;
    size_t len =
        xl_packet_put_version_negotiation(packet, sizeof packet, &dcid, &p->cc->handshake.odcid, XL_VERSIONS_2, 0);
    assert_true(len > 0);
    pair_inject(p, false, &p->link[0], packet, len);
    assert_int_equal(xl_conn_is_live(p->cc), after);
}

/* Section 7.3: if an attacker changed connection IDs in the handshake, they differ from the transport parameters. */
PAIR_TEST_EACH(connection_ids_that_the_parameters_do_not_confirm_are_an_error, int, what, 0, 3) {
    begin_handshake(p, 7);
    if (what == 1)
        p->cc->handshake.odcid.id[0] ^= 1;
    if (what == 2)
        p->cc->handshake.has_retry = true;
    pair_handshake(p);
    pair_run(p, 1000000);
    assert_int_equal(p->cc->handshake.is_confirmed, what == 0);
    assert_int_equal(p->cc->closing.code, what == 0 ? XL_QERR_NO_ERROR : XL_QERR_TRANSPORT_PARAMETER);
}

/* Loses the client's Finished, so that the server has no keys for 1-RTT packets yet. */
static void until_client_alone_is_complete(pair *p) {
    while (!p->cc->handshake.is_complete) {
        p->link[0].dark[0] = p->server->count > 0;
        assert_true(pair_step(p));
    }
    p->link[0].dark[0] = false;
}

PAIR_TEST(a_client_that_closes_at_once_is_understood) {
    begin_handshake(p, 8);
    until_client_alone_is_complete(p);
    xl_connection_close(p->cc, 7, "a secret", p->now);
    pair_run(p, 100000);
    assert_true(p->server->count == 0 || !xl_conn_is_live(p->server->connection[0]));
    assert_int_equal(p->server_close.close_reason, XL_CLOSE_PEER);
    assert_string_equal(p->server_close.reason, "");
    assert_int_equal(p->server_close.error_code, 0x0c); /* section 10.2.3: APPLICATION_ERROR */
    assert_false(p->server_close.application_error);
}

PAIR_TEST(an_application_close_in_the_handshake_does_not_show_its_code) {
    begin_handshake(p, 9);
    until_server_knows(p);
    xl_connection_close(p->sc, 7, "a secret", p->now);
    pair_run(p, 100000);
    assert_int_equal(p->client_close.close_reason, XL_CLOSE_PEER);
    assert_int_equal(p->client_close.error_code, 0x0c);
    assert_string_equal(p->client_close.reason, "");
    assert_false(p->client_close.application_error);
}

/* RFC 9001 section 5.7: a request that arrives although the client's Finished did not. */
PAIR_TEST(requests_wait_for_the_end_of_the_handshake) {
    begin_handshake(p, 10);
    until_client_alone_is_complete(p);
    pair_ask(p, 1000);
    uint64_t sent = p->cc->space[XL_LEVEL_APP].ledger.next_pn;
    pair_flush(p);
    assert_true(p->cc->space[XL_LEVEL_APP].ledger.next_pn > sent);
    xl_connection *server = p->server->connection[0];
    pair_run(p, 25000);
    assert_false(server->handshake.is_complete);
    assert_true(server->stats.datagrams_dropped > 0);
    assert_int_equal(server->space[XL_LEVEL_APP].largest_received, UINT64_MAX);
    assert_int_equal(server->streams.count, 0);
}

/* Section 10.1: at least three probe timeouts, even if the timeout that was agreed on is shorter. */
PAIR_TEST(the_idle_timeout_leaves_time_for_three_ptos) {
    pair_init(p, 11, 1, 100000);
    p->client_config.limits.idle_timeout_us = p->server_config.limits.idle_timeout_us = 50000;
    pair_establish(p);
    assert_true(p->cc->handshake.is_confirmed);
    pair_run(p, 200000);
    assert_true(xl_conn_is_live(p->cc) && xl_conn_is_live(p->sc));
    assert_true(p->sc->idle_deadline >= p->now - 200000 + 3 * 200000);
    pair_run(p, 5000000);
    assert_true(p->client_closed && p->server_closed);
}

TEST_MAIN(NULL, NULL)
