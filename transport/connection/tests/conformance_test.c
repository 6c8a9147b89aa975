/* Rules of RFC 9000 and RFC 9001 for whole connections that no other test covers: docs/reference/conformance.md. */
#include "testing/attack.h"

#include "connection/key_update.h"

/* Begins without multipath, so that a test may send the peer's packets from any address. */
static void begin_plain(attack *a, size_t links) {
    attack_init(a, links);
    attack_connect(a, true);
}

static xl_cid spare_cid(const attack *a) {
    return a->p.sc->local_cids.at[1].cid;
}

static const xl_addr *server_sends_to(const attack *a) {
    return &a->p.sc->path[a->p.sc->active]->remote;
}

ATTACK_TEST(a_path_response_fills_1200_bytes) {
    begin_plain(a, 1);
    uint64_t bytes = a->p.link[0].bytes[1], packets = a->p.link[0].packets[1];
    xl_frame_put_path(&a->w, XL_FRAME_PATH_CHALLENGE, (uint8_t[8]){1});
    deliver(a);
    pair_flush(&a->p);
    assert_int_equal(a->p.link[0].packets[1] - packets, 1);
    assert_int_equal(a->p.link[0].bytes[1] - bytes, 1200);
}

ATTACK_TEST(a_probing_packet_does_not_move_the_connection) {
    begin_plain(a, 2);
    xl_cid cid = spare_cid(a);
    xl_frame_put_path(&a->w, XL_FRAME_PATH_CHALLENGE, (uint8_t[8]){1});
    deliver_to(a, &cid, 0, &a->p.link[1]);
    assert_true(xl_addr_equal(server_sends_to(a), &a->p.link[0].client));
    xl_write_varint(&a->w, XL_FRAME_PING);
    deliver_to(a, &cid, 0, &a->p.link[1]);
    assert_true(xl_addr_equal(server_sends_to(a), &a->p.link[1].client));
}

ATTACK_TEST(an_older_packet_from_another_address_does_not_move_the_connection) {
    begin_plain(a, 2);
    xl_cid cid = spare_cid(a), first = a->p.sc->local_cids.at[0].cid;
    a->pn = 1 << 20;
    xl_write_varint(&a->w, XL_FRAME_PING);
    deliver_to(a, &first, 0, &a->p.link[0]);
    a->pn = (1 << 20) - 1;
    xl_write_varint(&a->w, XL_FRAME_PING);
    deliver_to(a, &cid, 0, &a->p.link[1]);
    assert_true(xl_addr_equal(server_sends_to(a), &a->p.link[0].client));
}

/* Section 9.3.3: an attacker off the path forwards the client's packet faster than the path does. */
ATTACK_TEST(a_client_whose_packets_are_forwarded_gets_its_path_back) {
    begin_plain(a, 2);
    uint8_t packet[PAIR_MTU];
    xl_datagram d;
    xl_connection_ping(a->p.cc, a->p.now);
    assert_true((d.len = xl_endpoint_transmit(a->p.client, packet, PAIR_MTU, &d, a->p.now)) > 0);
    d = (xl_datagram){.local = d.remote, .remote = a->p.link[1].client, .len = d.len};
    xl_endpoint_receive(a->p.server, &d, packet, a->p.now);
    assert_true(xl_addr_equal(server_sends_to(a), &a->p.link[1].client));
    uint64_t before = a->p.link[0].bytes[1];
    pair_flush(&a->p);
    assert_int_equal(a->p.link[0].bytes[1] - before, 1200); /* the previous address is challenged, too */
    pair_run(&a->p, 2 * a->p.link[0].delay_us[0] + 1000);
    assert_true(xl_addr_equal(server_sends_to(a), &a->p.link[0].client));
    pair_run(&a->p, 5000000);
    assert_true(xl_addr_equal(server_sends_to(a), &a->p.link[0].client));
    assert_true(a->p.sc->path[0]->validation.is_done);
}

/* As above, but the client has moved indeed, with another connection ID. */
ATTACK_TEST(the_address_that_a_client_left_is_asked_a_few_times) {
    begin_plain(a, 2);
    xl_cid cid = spare_cid(a);
    a->p.link[0].dark[1] = true;
    uint64_t before = a->p.link[0].packets[1];
    xl_write_varint(&a->w, XL_FRAME_PING);
    deliver_to(a, &cid, 0, &a->p.link[1]);
    assert_int_equal(a->p.sc->migration.count, 1);
    pair_flush(&a->p);
    assert_int_equal(a->p.link[0].packets[1] - before, 1);
    pair_run(&a->p, 20000000);
    assert_in_range(a->p.link[0].packets[1] - before, 2, 3);
}

/* Section 9: a packet from a server address that the client does not know, even if sealed with valid keys. */
ATTACK_TEST(a_client_takes_nothing_from_an_unknown_address) {
    for (int dialect = XL_DIALECT_XLINK; dialect <= XL_DIALECT_IETF; dialect++) {
        begin(a, false, (xl_dialect)dialect, 1);
        xl_cid cid = a->p.cc->local_cids.at[0].cid;
        pair_link elsewhere = a->p.link[0];
        elsewhere.server = pair_addr(99, 443);
        xl_write_varint(&a->w, XL_FRAME_PING);
        deliver_to(a, &cid, 0, &elsewhere);
        assert_true(a->p.cc->path[0]->space->largest_received < 1 << 20);
        xl_write_varint(&a->w, XL_FRAME_PING);
        deliver_to(a, &cid, 0, &a->p.link[0]);
        assert_true(a->p.cc->path[0]->space->largest_received > 1 << 20);
    }
}

/* Section 8.2.2: on the path of the challenge, even if another one is better, and once. */
ATTACK_TEST(a_path_response_goes_where_the_challenge_came) {
    for (int dialect = XL_DIALECT_XLINK; dialect <= XL_DIALECT_IETF; dialect++) {
        begin(a, true, (xl_dialect)dialect, 2);
        const xl_path *p = a->p.sc->path[1];
        const xl_cid cid = a->p.sc->path_ids
                               ? xl_path_ids_find(a->p.sc->path_ids, p->cids.local_path_id)->local->at[0].cid
                               : xl_cids_by_sequence(&a->p.sc->local_cids, p->cids.local_path_id)->cid;
        uint64_t here = a->p.link[1].packets[1], elsewhere = a->p.link[0].packets[1];
        xl_frame_put_path(&a->w, XL_FRAME_PATH_CHALLENGE, (uint8_t[8]){1});
        deliver_to(a, &cid, p->cids.local_path_id, &a->p.link[1]);
        pair_flush(&a->p);
        assert_int_equal(a->p.link[1].packets[1] - here, 1);
        assert_int_equal(a->p.link[0].packets[1], elsewhere);
    }
}

/* … even if the packet with the challenge does not move its path: it only probes, with the path's own connection ID, or
 * (with path IDs) it is late. The answer is at most three times as large. */
ATTACK_TEST(a_challenge_from_another_address_is_answered_there) {
    for (int i = 0; i < 6; i++) {
        const bool is_large = i % 2;
        if (i < 2)
            begin_plain(a, 2);
        else
            begin(a, true, i < 4 ? XL_DIALECT_XLINK : XL_DIALECT_IETF, 2);
        const xl_cid cid = a->p.sc->local_cids.at[0].cid;
        if (a->p.sc->path_ids) {
            xl_write_varint(&a->w, XL_FRAME_PING);
            deliver_to(a, &cid, 0, &a->p.link[0]);
            pair_run(&a->p, 100000);
            a->pn -= 10;
        }
        uint64_t here = a->p.link[1].packets[1], bytes = a->p.link[1].bytes[1], there = a->p.link[0].bytes[1];
        xl_frame_put_path(&a->w, XL_FRAME_PATH_CHALLENGE, (uint8_t[8]){1});
        memset(a->w.p, 0, is_large ? 1100 : 1); /* PADDING */
        a->w.p += is_large ? 1100 : 1;
        deliver_to(a, &cid, 0, &a->p.link[1]);
        assert_true(xl_addr_equal(&a->p.sc->path[0]->remote, &a->p.link[0].client));
        pair_flush(&a->p);
        assert_int_equal(a->p.link[1].packets[1] - here, 1);
        assert_in_range(a->p.link[1].bytes[1] - bytes, is_large ? 1200 : 30, is_large ? 1200 : 3 * 39);
        assert_true(a->p.link[0].bytes[1] - there < 100); /* an acknowledgement */
    }
}

/* Section 7.5. */
ATTACK_TEST(crypto_data_beyond_the_buffer_is_an_error) {
    for (int is_beyond = 0; is_beyond < 2; is_beyond++) {
        begin_plain(a, 1);
        xl_frame_put_crypto_header(&a->w, is_beyond ? XL_CRYPTO_BUFFER : 4095, 1);
        xl_write_u8(&a->w, 0);
        assert_int_equal(outcome(a), is_beyond ? XL_QERR_CRYPTO_BUFFER_EXCEEDED : STILL_OPEN);
    }
}

/* Section 4.5: data of a stream that was reset is discarded, and its final size stays. */
ATTACK_TEST(the_final_size_of_a_stream_that_was_reset_stays) {
    static const struct {
        size_t len;
        bool fin;
        uint64_t error;
    } after[] = {{4, true, STILL_OPEN}, {5, false, XL_QERR_FINAL_SIZE}, {3, true, XL_QERR_FINAL_SIZE}};
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++) {
        begin_plain(a, 1);
        XL_FRAME_PUT(&a->w, XL_FRAME_RESET_STREAM, 0, 7, 4);
        deliver(a);
        assert_true(xl_conn_is_live(a->p.sc));
        xl_frame_put_stream_header(&a->w, 0, 0, after[i].len, after[i].fin);
        xl_write_bytes(&a->w, (const uint8_t *)"bytes", after[i].len);
        assert_int_equal(outcome(a), after[i].error);
    }
}

/* Section 12.2: a 1-RTT packet follows a Handshake packet, for which there are no keys any more. */
ATTACK_TEST(a_packet_to_another_connection_id_than_the_first_of_its_datagram_is_ignored) {
    for (int is_other = 0; is_other < 2; is_other++) {
        begin_plain(a, 1);
        uint8_t datagram[PAIR_MTU] = {0};
        const xl_cid first = a->p.sc->local_cids.at[0].cid, spare = spare_cid(a);
        size_t length_at;
        xl_writer w = xl_writer_of(datagram, sizeof datagram);
        xl_packet_put_long(&w, XL_VERSION_1, XL_PACKET_HANDSHAKE, &first, &a->p.cc->local_cids.at[0].cid, NULL, 0, 0, 4,
                           datagram, &length_at);
        xl_packet_set_length(datagram, length_at, 4 + 20);
        w.p += 20;
        uint8_t *packet = w.p;
        xl_packet_put_short(&w, is_other ? &spare : &first, false, a->p.cc->key_update.phase, a->pn, 4);
        size_t pn_offset = (size_t)(w.p - packet) - 4, len;
        xl_write_u8(&w, XL_FRAME_PING);
        len = xl_keys_protect(a->p.cc->level[XL_LEVEL_APP].write, 0, a->pn, packet, pn_offset, 4, 1);
        const pair_link *l = &a->p.link[0];
        xl_datagram d = {.local = l->server, .remote = l->client, .len = (size_t)(packet - datagram) + len};
        xl_endpoint_receive(a->p.server, &d, datagram, a->p.now);
        assert_int_equal(!is_other, a->p.sc->space[XL_LEVEL_APP].largest_received == a->pn);
    }
}

/* Section 17.4: another connection ID because the path moved, and (below) because the peer retired the old one. */
PAIR_TEST(the_spin_bit_is_zero_again_with_another_connection_id) {
    pair_init_multipath(p, 1, 2, 5000);
    p->server_config.scheme.dialect = XL_DIALECT_IETF;
    pair_settle(p, 200000);
    p->cc->path[0]->spin = true;
    const xl_addr elsewhere = pair_addr(p->link[0].client.ip[3], 4001);
    assert_int_equal(0, xl_connection_move_path(p->cc, 0, &elsewhere, p->now));
    assert_false(p->cc->path[0]->spin);
}

ATTACK_TEST(the_spin_bit_is_zero_again_when_the_peer_retires_the_connection_id) {
    begin_plain(a, 1);
    a->to_server = false;
    const xl_cid fresh = cid_of(1);
    const uint64_t next = a->p.cc->remote_cids.next_sequence;
    a->p.cc->path[0]->spin = true;
    xl_frame_put_new_cid(&a->w, XL_FRAME_NEW_CONNECTION_ID, 0, next, next, &fresh, token);
    deliver(a);
    assert_int_equal(a->p.cc->path[0]->cids.remote_sequence, next);
    assert_false(a->p.cc->path[0]->spin);
}

/* Sends 100 packets to the server. Returns how many it sends. */
static uint64_t answers_to_100_packets(attack *a) {
    uint64_t before = a->p.link[0].packets[1];
    xl_cid cid = a->p.sc->local_cids.at[0].cid;
    for (int i = 0; i < 100; i++) {
        xl_write_varint(&a->w, XL_FRAME_PING);
        deliver_to(a, &cid, 0, &a->p.link[0]);
        pair_flush(&a->p);
    }
    return a->p.link[0].packets[1] - before;
}

ATTACK_TEST(a_closing_endpoint_answers_ever_more_rarely) {
    begin_plain(a, 1);
    a->p.link[0].dark[1] = true; /* the peer does not learn of it */
    xl_connection_close(a->p.sc, 7, "", a->p.now);
    pair_flush(&a->p);
    assert_in_range(answers_to_100_packets(a), 1, 7);
}

ATTACK_TEST(a_draining_endpoint_sends_nothing) {
    begin_plain(a, 1);
    xl_frame_put_close(&a->w, false, XL_QERR_NO_ERROR, 0, "bye");
    deliver(a);
    assert_int_equal(a->p.sc->state, XL_CONN_DRAINING);
    assert_int_equal(0, answers_to_100_packets(a));
}

/* cid: NULL for one that no connection has. */
static void send_reset(attack *a, uint8_t first, const xl_cid *cid, const uint8_t reset_token[16], const pair_link *l) {
    uint8_t datagram[60] = {first, 1, 2, 3};
    memcpy(datagram + sizeof datagram - 16, reset_token, 16);
    if (cid)
        memcpy(datagram + 1, cid->id, cid->len);
    pair_inject(&a->p, a->to_server, l, datagram, sizeof datagram);
}

static void deliver_reset(attack *a, const uint8_t reset_token[16]) {
    a->to_server = false;
    send_reset(a, 0x40, &a->p.cc->local_cids.at[0].cid, reset_token, &a->p.link[0]);
}

static const xl_cid_entry *cid_of_path(xl_connection *c, size_t path) {
    const xl_path *p = c->path[path];
    xl_path_id *id = c->path_ids ? xl_path_ids_find(c->path_ids, p->cids.remote_path_id) : NULL;
    return xl_cids_by_sequence(id ? id->remote : &c->remote_cids, p->cids.remote_sequence);
}

/* Section 10.3.1: a datagram that belongs to no connection ends with the token of the second path's connection ID.
 * Section 10.3: it may look like a packet of another version, or like none. */
ATTACK_TEST(the_token_of_any_path_resets_at_either_side_whatever_it_looks_like) {
    static const uint8_t first[] = {0x40, 0x00, 0xc0, 0x80};
    for (size_t i = 0; i < 2 * 2 * sizeof first; i++) {
        begin(a, i & 1, i & 2 ? XL_DIALECT_IETF : XL_DIALECT_XLINK, 2);
        const xl_cid_entry *e = cid_of_path(victim(a), 1);
        uint8_t reset_token[16];
        assert_true(e->has_token);
        memcpy(reset_token, e->reset_token, 16);
        reset_token[15] ^= 1;
        send_reset(a, first[i / 4], NULL, reset_token, &a->p.link[1]);
        assert_true(xl_conn_is_live(victim(a)));
        reset_token[15] ^= 1;
        send_reset(a, first[i / 4], NULL, reset_token, &a->p.link[1]);
        assert_int_equal(XL_CONN_DRAINING, victim(a)->state);
        pair_run(&a->p, 10000);
        assert_int_equal(XL_CLOSE_STATELESS_RESET,
                         a->to_server ? a->p.server_close.close_reason : a->p.client_close.close_reason);
    }
}

/* The addresses and connection IDs of a peer change: a server keeps only the tokens of those in use. */
ATTACK_TEST(a_server_keeps_the_reset_tokens_of_connection_ids_in_use_alone) {
    begin(a, true, XL_DIALECT_IETF, 2);
    a->p.link[0].dark[1] = a->p.link[1].dark[1] = true; /* the genuine client has issued none of these connection IDs */
    for (uint8_t i = 10; i < 30; i++) {
        const xl_cid cid = cid_of(i);
        const uint8_t reset_token[16] = {i};
        xl_frame_put_new_cid(&a->w, XL_FRAME_NEW_CONNECTION_ID, 0, i, i, &cid, reset_token);
        deliver(a);
        pair_flush(&a->p);
        assert_true(xl_cid_equal(&victim(a)->path[0]->cids.remote, &cid));
    }
    assert_int_equal(2, a->p.server->reset_tokens.count);
    xl_connection_free(a->p.sc);
    assert_int_equal(0, a->p.server->reset_tokens.count);
    a->p.sc = NULL;
}

ATTACK_TEST(only_the_token_of_a_connection_id_in_use_resets) {
    begin_plain(a, 1);
    const xl_cid_entry *used = &a->p.cc->remote_cids.at[0], *unused = &a->p.cc->remote_cids.at[1];
    assert_true(used->in_use && !unused->in_use);
    deliver_reset(a, unused->reset_token);
    assert_true(xl_conn_is_live(a->p.cc));
    deliver_reset(a, used->reset_token);
    assert_false(xl_conn_is_live(a->p.cc));
}

/* Sections 10.3.1 and 10.2.1: the state ends with the closing period, and the application gets the reason of its own
 * close. */
ATTACK_TEST(a_stateless_reset_silences_a_closing_endpoint) {
    begin_plain(a, 1);
    xl_connection_close(a->p.cc, 7, "enough", a->p.now);
    pair_flush(&a->p);
    const uint64_t sent = a->p.link[0].packets[0], until = a->p.cc->closing.deadline;
    deliver_reset(a, a->p.cc->remote_cids.at[0].reset_token);
    assert_int_equal(XL_CONN_DRAINING, a->p.cc->state);
    pair_run(&a->p, until - a->p.now + 1);
    assert_int_equal(sent, a->p.link[0].packets[0]);
    assert_true(a->p.client_closed);
    assert_int_equal(XL_CLOSE_LOCAL, a->p.client_close.close_reason);
    assert_int_equal(7, a->p.client_close.error_code);
    assert_string_equal("enough", a->p.client_close.reason);
}

PAIR_TEST(keys_are_discarded_as_the_handshake_goes_on) {
    pair_init(p, 2, 1, 20000);
    pair_connect(p);
    while (!p->cc->handshake.is_complete)
        pair_step(p);
    pair_flush(p);
    assert_true(p->cc->level_discarded[XL_LEVEL_INITIAL]); /* it has sent a Handshake packet */
    assert_false(p->cc->level_discarded[XL_LEVEL_HANDSHAKE]);
    assert_false(xl_conn_may_update_keys(p->cc)); /* RFC 9001 section 6.1: not before it is confirmed */
    pair_handshake(p);
    assert_true(p->sc->level_discarded[XL_LEVEL_INITIAL] && p->sc->level_discarded[XL_LEVEL_HANDSHAKE]);
    assert_true(p->cc->level_discarded[XL_LEVEL_HANDSHAKE]);
    assert_null(p->cc->level[XL_LEVEL_HANDSHAKE].read);
}

typedef struct {
    unsigned initials, small;
} sizes;

static void see(void *user, bool to_server, uint8_t *data, size_t len) {
    sizes *s = user;
    bool is_initial = (data[0] & 0xf0) == 0xc0;
    (void)to_server;
    s->initials += is_initial;
    s->small += is_initial && len < 1200;
}

PAIR_TEST_EACH(datagrams_with_initials_have_1200_bytes, uint64_t, seed, 0, 10) {
    sizes s = {0};
    pair_init(p, seed, 1, 20000);
    p->link[0].loss = 0.3;
    p->tamper = see;
    p->tamper_user = &s;
    pair_establish(p);
    assert_true(s.initials >= 2);
    assert_int_equal(s.small, 0);
}

TEST_MAIN(NULL, NULL)
