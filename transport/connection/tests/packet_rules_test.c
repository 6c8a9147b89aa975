/* Rules on packets and on who may send which frame (RFC 9000 sections 6.1, 7.2, 9, 17.2, 17.3, 19.7 and 19.20; RFC 9001
 * section 5.8). */
#include "testing/attack.h"

#include "endpoint/retry.h"

/* ---- With valid keys ---- */

/* Returns the error after a PING in a packet whose first byte has these bits besides those of its form. */
static uint64_t error_of_first_byte(attack *a, bool to_server, uint8_t bits) {
    begin(a, to_server, XL_DIALECT_XLINK, 1);
    xl_connection *from = to_server ? a->p.cc : a->p.sc;
    uint8_t packet[PAIR_MTU];
    xl_writer w = xl_writer_of(packet, sizeof packet - XL_AEAD_TAG);
    xl_packet_put_short(&w, &from->path[0]->cids.remote, false, from->key_update.phase, a->pn, 4);
    packet[0] |= bits;
    size_t pn_offset = (size_t)(w.p - packet) - 4;
    xl_write_u8(&w, 1);
    assert_true(xl_keys_protect(from->level[XL_LEVEL_APP].write, 0, a->pn, packet, pn_offset, 4, 1) > 0);
    pair_inject(&a->p, to_server, &a->p.link[0], packet, pn_offset + 4 + 1 + XL_AEAD_TAG);
    return xl_conn_is_live(victim(a)) ? STILL_OPEN : victim(a)->closing.code;
}

ATTACK_TEST(reserved_bits_that_are_set_are_a_violation) {
    for (int to_server = 0; to_server < 2; to_server++) {
        assert_int_equal(error_of_first_byte(a, to_server, 0), STILL_OPEN);
        assert_int_equal(error_of_first_byte(a, to_server, 0x08), XL_QERR_PROTOCOL_VIOLATION);
        assert_int_equal(error_of_first_byte(a, to_server, 0x10), XL_QERR_PROTOCOL_VIOLATION);
    }
}

ATTACK_TEST(a_packet_without_frames_is_a_violation) {
    begin(a, true, XL_DIALECT_XLINK, 1);
    deliver_to(a, &a->p.cc->path[0]->cids.remote, 0, &a->p.link[0]);
    assert_int_equal(a->p.sc->closing.code, XL_QERR_PROTOCOL_VIOLATION);
}

ATTACK_TEST(what_only_servers_send_is_a_violation_from_a_client) {
    begin(a, true, XL_DIALECT_XLINK, 1);
    xl_write_varint(&a->w, XL_FRAME_HANDSHAKE_DONE);
    assert_int_equal(outcome(a), XL_QERR_PROTOCOL_VIOLATION);
    begin(a, true, XL_DIALECT_XLINK, 1);
    xl_write_varint(&a->w, XL_FRAME_NEW_TOKEN);
    xl_write_varint(&a->w, 3);
    xl_write_bytes(&a->w, token, 3);
    assert_int_equal(outcome(a), XL_QERR_PROTOCOL_VIOLATION);
}

/* The nonce holds 32 bits of the connection ID's sequence number: for it, 1 and 2^32 + 1 would be one path. */
ATTACK_TEST(a_connection_id_whose_number_the_nonce_cannot_hold_is_a_violation) {
    for (uint64_t sequence = UINT32_MAX; sequence <= (UINT64_C(1) << 32) + 1; sequence += 2) {
        const xl_cid cid = cid_of(1);
        begin(a, true, XL_DIALECT_XLINK, 2);
        a->p.sc->remote_cids.count = 2; /* as if the client had retired the others */
        xl_frame_put_new_cid(&a->w, XL_FRAME_NEW_CONNECTION_ID, 0, sequence, 0, &cid, token);
        assert_int_equal(sequence > UINT32_MAX ? XL_QERR_MP_PROTOCOL_VIOLATION : STILL_OPEN, outcome(a));
    }
}

ATTACK_TEST(a_token_of_no_bytes_is_no_frame) {
    begin(a, false, XL_DIALECT_XLINK, 1);
    xl_write_varint(&a->w, XL_FRAME_NEW_TOKEN);
    xl_write_varint(&a->w, 0);
    assert_int_equal(outcome(a), XL_QERR_FRAME_ENCODING);
}

/* ---- Without keys ---- */

PAIR_TEST(nothing_answers_a_version_negotiation) {
    pair_init(p, 1, 1, 10000);
    pair_connect(p);
    uint8_t data[7 + 8 + 8 + 4 * 300] = {0}, out[PAIR_MTU];
    xl_cid to = cid_of(1), from = cid_of(2);
    assert_true(xl_packet_put_version_negotiation(data, sizeof data, &to, &from, XL_VERSIONS_1, 7) > 0);
    xl_datagram d = {.local = p->link[0].server, .remote = p->link[0].client, .len = sizeof data};
    xl_endpoint_receive(p->server, &d, data, p->now);
    assert_int_equal(0, xl_endpoint_transmit(p->server, out, sizeof out, &d, p->now));
}

/* Whether a client's first packet is admitted, as it is or with a shorter destination connection ID. */
static bool is_admitted(size_t dcid_bytes) {
    pair p;
    pair_init(&p, 2, 1, 10000);
    p.client_config.scheme.enable_multipath = false;
    pair_connect(&p);
    uint8_t packet[PAIR_MTU] = {0};
    xl_keys *client, *server;
    size_t length_offset;
    xl_cid dcid = {.len = (uint8_t)dcid_bytes, .id = {1, 2, 3, 4, 5, 6, 7, 8}}, scid = cid_of(3);
    assert_int_equal(0, xl_keys_initial(XL_VERSION_1, &dcid, &client, &server));
    xl_writer w = xl_writer_of(packet, sizeof packet);
    xl_packet_put_long(&w, XL_VERSION_1, XL_PACKET_INITIAL, &dcid, &scid, NULL, 0, 0, 4, packet, &length_offset);
    size_t payload_at = (size_t)(w.p - packet), payload = 1200 - payload_at - XL_AEAD_TAG;
    packet[payload_at] = 1; /* PING */
    xl_packet_set_length(packet, length_offset, 4 + payload + XL_AEAD_TAG);
    assert_true(xl_keys_protect(client, 0, 0, packet, payload_at - 4, 4, payload) > 0);
    xl_keys_free(client);
    xl_keys_free(server);
    pair_inject(&p, true, &p.link[0], packet, 1200);
    bool is = p.server->count > 0;
    pair_free(&p);
    return is;
}

PAIR_TEST(the_first_destination_has_eight_bytes_at_least) {
    assert_true(is_admitted(8));
    assert_false(is_admitted(7));
    assert_false(is_admitted(0));
    pair_init(p, 3, 1, 10000);
    pair_connect(p);
    assert_true(p->cc->handshake.odcid.len >= 8);
}

PAIR_TEST_EACH(a_retry_whose_tag_is_wrong_is_dropped, int, is_damaged, 0, 2) {
    pair_init(p, 4, 1, 10000);
    pair_connect(p);
    pair_flush(p);
    const uint8_t key[XL_RETRY_KEY_BYTES] = {5};
    uint8_t packet[XL_RETRY_MAX_BYTES];
    xl_cid scid = cid_of(4);
    xl_packet_header first = {.type = XL_PACKET_INITIAL,
                              .version = XL_VERSION_1,
                              .dcid = p->cc->handshake.odcid,
                              .scid = p->cc->local_cids.at[0].cid};
    size_t len = xl_retry_put(key, &first, &p->link[0].client, &scid, 0, p->now, packet, sizeof packet);
    packet[len - 1] ^= (uint8_t)is_damaged;
    pair_inject(p, false, &p->link[0], packet, len);
    assert_int_equal(p->cc->handshake.has_retry, !is_damaged);
}

/* ---- Migration ---- */

PAIR_TEST(a_client_does_not_move_before_the_handshake_is_confirmed) {
    pair_init(p, 5, 2, 15000);
    p->client_config.scheme.enable_migration = true;
    p->client_config.limits.probe_silence_us = 50000;
    pair_connect(p);
    while (!p->cc->handshake.is_complete)
        assert_true(pair_step(p));
    assert_false(p->cc->handshake.is_confirmed);
    bool retired;
    xl_cid spare = cid_of(6);
    assert_int_equal(0, xl_cids_learn(&p->cc->remote_cids, 1, 0, &spare, token, XL_MAX_PATHS, &retired));
    pair_set_dark(&p->link[0], true);
    pair_ask(p, 1000);
    pair_run(p, 3000000);
    assert_int_equal(p->link[1].packets[0], 0);
}

TEST_MAIN(NULL, NULL)
