/* A peer that has valid keys, speaks the dialect `ietf` (RFC 10069) and breaks its rules: which error the connection
 * closes with, what is ignored, and what stays bounded. */
#include "testing/attack.h"
#include "connection/transmit.h"
#include "endpoint/hooks.h"

static void put_with_path_id(xl_writer *w, int kind, uint64_t id) {
    xl_cid cid = cid_of(9);
    switch (kind) {
    case 0:
        xl_frame_put_ack(w, &(xl_ack_range){0, 0}, 1, 0, XL_FRAME_PATH_ACK, id, false, NULL);
        break;
    case 1:
        XL_FRAME_PUT(w, XL_FRAME_PATH_ABANDON, id, 0);
        break;
    case 2:
        XL_FRAME_PUT(w, XL_FRAME_PATH_STATUS_BACKUP, id, 5);
        break;
    case 3:
        XL_FRAME_PUT(w, XL_FRAME_PATH_STATUS_AVAILABLE, id, 5);
        break;
    case 4:
        xl_frame_put_new_cid(w, XL_FRAME_PATH_NEW_CONNECTION_ID, id, 1, 0, &cid, token);
        break;
    case 5:
        XL_FRAME_PUT(w, XL_FRAME_PATH_RETIRE_CONNECTION_ID, id, 0);
        break;
    case 6:
        XL_FRAME_PUT(w, XL_FRAME_PATHS_BLOCKED, 0, id);
        break;
    default:
        XL_FRAME_PUT(w, XL_FRAME_PATH_CIDS_BLOCKED, id, 0);
    }
}
#define KINDS 8

ATTACK_TEST(a_path_id_above_our_limit_is_a_violation_in_every_frame) {
    for (int kind = 0; kind < KINDS; kind++)
        for (int to_server = 0; to_server < 2; to_server++) {
            begin(a, to_server, XL_DIALECT_IETF, 1);
            put_with_path_id(&a->w, kind, victim(a)->path_ids->local_max + 1);
            assert_int_equal(outcome(a), XL_QERR_PROTOCOL_VIOLATION);
            begin(a, to_server, XL_DIALECT_IETF, 1);
            put_with_path_id(&a->w, kind, XL_VARINT_MAX);
            assert_int_equal(outcome(a), XL_QERR_PROTOCOL_VIOLATION);
        }
}

ATTACK_TEST(without_negotiation_its_frames_are_of_unknown_type) {
    for (int kind = 0; kind < KINDS; kind++) {
        begin(a, true, XL_DIALECT_XLINK, 1);
        put_with_path_id(&a->w, kind, 0);
        assert_int_equal(outcome(a), XL_QERR_FRAME_ENCODING);
    }
    begin(a, true, XL_DIALECT_XLINK, 1);
    XL_FRAME_PUT(&a->w, XL_FRAME_MAX_PATH_ID, 0, 9);
    assert_int_equal(outcome(a), XL_QERR_FRAME_ENCODING);
}

ATTACK_TEST(frames_of_the_other_dialect_are_a_violation) {
    begin(a, true, XL_DIALECT_IETF, 1);
    xl_frame_put_ack(&a->w, &(xl_ack_range){0, 0}, 1, 0, XL_FRAME_ACK_MP, 0, true, NULL);
    assert_int_equal(outcome(a), XL_QERR_MP_PROTOCOL_VIOLATION);
    begin(a, true, XL_DIALECT_IETF, 1);
    XL_FRAME_PUT(&a->w, XL_FRAME_PATH_STATUS, 0, 1, XL_STATUS_STANDBY, 0);
    assert_int_equal(outcome(a), XL_QERR_MP_PROTOCOL_VIOLATION);
}

TEST(its_frames_in_a_handshake_packet_are_a_violation) {
    for (int kind = 0; kind < KINDS; kind++) {
        uint8_t bytes[64];
        xl_writer w = xl_writer_of(bytes, sizeof bytes);
        xl_frame f;
        put_with_path_id(&w, kind, 0);
        xl_reader r = xl_reader_of(bytes, (size_t)(w.p - bytes));
        assert_int_equal(xl_frame_parse(&r, false, &f), 0);
        assert_false((xl_frame_info_of(f.type)->packets >> XL_PACKET_HANDSHAKE & 1) ||
                     (xl_frame_info_of(f.type)->packets >> XL_PACKET_0RTT & 1));
    }
}

ATTACK_TEST(a_maximum_beyond_32_bits_or_below_the_initial_one_is_a_violation) {
    const uint64_t wrong[] = {(uint64_t)XL_PATH_ID_MAX + 1, XL_VARINT_MAX, XL_PATH_IDS_MAX - 2, 0};
    for (size_t i = 0; i < 4; i++) {
        begin(a, true, XL_DIALECT_IETF, 1);
        XL_FRAME_PUT(&a->w, XL_FRAME_MAX_PATH_ID, 0, wrong[i]);
        assert_int_equal(outcome(a), XL_QERR_PROTOCOL_VIOLATION);
    }
}

ATTACK_TEST(a_maximum_that_raises_nothing_is_ignored) {
    begin(a, true, XL_DIALECT_IETF, 1);
    XL_FRAME_PUT(&a->w, XL_FRAME_MAX_PATH_ID, 0, 20);
    XL_FRAME_PUT(&a->w, XL_FRAME_MAX_PATH_ID, 0, 12);
    deliver(a);
    assert_true(xl_conn_is_live(a->p.sc));
    assert_int_equal(a->p.sc->path_ids->peer_max, 20);
}

ATTACK_TEST(blocked_at_a_number_that_was_not_issued_is_a_violation) {
    for (uint64_t beyond = 0; beyond < 2; beyond++) {
        begin(a, true, XL_DIALECT_IETF, 1);
        uint64_t next = xl_path_ids_find(a->p.sc->path_ids, 1)->local->next_sequence;
        XL_FRAME_PUT(&a->w, XL_FRAME_PATH_CIDS_BLOCKED, 1, next + beyond);
        assert_int_equal(outcome(a), beyond ? XL_QERR_PROTOCOL_VIOLATION : STILL_OPEN);
    }
}

ATTACK_TEST(a_cid_for_two_paths_is_a_violation) {
    xl_cid cid = cid_of(1);
    begin(a, true, XL_DIALECT_IETF, 1);
    xl_frame_put_new_cid(&a->w, XL_FRAME_PATH_NEW_CONNECTION_ID, 1, 1, 0, &cid, token);
    xl_frame_put_new_cid(&a->w, XL_FRAME_PATH_NEW_CONNECTION_ID, 2, 1, 0, &cid, token);
    assert_int_equal(outcome(a), XL_QERR_PROTOCOL_VIOLATION);
}

ATTACK_TEST(a_number_with_two_cids_is_a_violation) {
    xl_cid one = cid_of(1), two = cid_of(2);
    begin(a, true, XL_DIALECT_IETF, 1);
    xl_frame_put_new_cid(&a->w, XL_FRAME_PATH_NEW_CONNECTION_ID, 1, 1, 0, &one, token);
    xl_frame_put_new_cid(&a->w, XL_FRAME_PATH_NEW_CONNECTION_ID, 1, 1, 0, &two, token);
    assert_int_equal(outcome(a), XL_QERR_PROTOCOL_VIOLATION);
}

ATTACK_TEST(numbers_count_for_each_path) {
    begin(a, true, XL_DIALECT_IETF, 1);
    for (uint8_t id = 0; id < XL_PATH_IDS_MAX; id++) {
        xl_cid cid = cid_of((uint8_t)(0x20 + id));
        xl_frame_put_new_cid(&a->w, XL_FRAME_PATH_NEW_CONNECTION_ID, id, 2, 0, &cid, token); /* number 2 of each */
    }
    assert_int_equal(outcome(a), STILL_OPEN);
}

ATTACK_TEST(more_cids_of_a_path_than_the_limit_are_refused) {
    begin(a, true, XL_DIALECT_IETF, 1);
    for (uint8_t i = 1; i <= XL_MAX_PATHS; i++) {
        xl_cid cid = cid_of(i);
        xl_frame_put_new_cid(&a->w, XL_FRAME_PATH_NEW_CONNECTION_ID, 3, i, 0, &cid, token);
    }
    assert_int_equal(outcome(a), XL_QERR_CONNECTION_ID_LIMIT);
}

ATTACK_TEST(retiring_what_was_never_issued_is_a_violation) {
    begin(a, true, XL_DIALECT_IETF, 1);
    XL_FRAME_PUT(&a->w, XL_FRAME_PATH_RETIRE_CONNECTION_ID, 1,
                 xl_path_ids_find(a->p.sc->path_ids, 1)->local->next_sequence);
    assert_int_equal(outcome(a), XL_QERR_PROTOCOL_VIOLATION);
}

ATTACK_TEST(retire_connection_id_and_new_connection_id_are_of_path_0) {
    xl_cid cid = cid_of(1);
    begin(a, true, XL_DIALECT_IETF, 2);
    size_t of_1 = xl_path_ids_find(a->p.sc->path_ids, 1)->remote->count;
    xl_frame_put_new_cid(&a->w, XL_FRAME_NEW_CONNECTION_ID, 0, 2, 0, &cid, token);
    XL_FRAME_PUT(&a->w, XL_FRAME_RETIRE_CONNECTION_ID, 0, 1);
    deliver(a);
    assert_true(xl_conn_is_live(a->p.sc));
    assert_non_null(xl_cids_find(&a->p.sc->remote_cids, &cid));
    assert_null(xl_cids_by_sequence(&a->p.sc->local_cids, 1));
    assert_int_equal(xl_path_ids_find(a->p.sc->path_ids, 1)->remote->count, of_1);
    assert_int_equal(a->p.sc->path[1]->state, XL_PATH_ACTIVE);
}

ATTACK_TEST(a_retired_cid_in_use_does_not_end_the_path_and_exhaustion_makes_it_wait) {
    begin(a, true, XL_DIALECT_IETF, 2);
    xl_path *p = a->p.sc->path[1];
    xl_cid cid = cid_of(1), other = cid_of(2);
    xl_frame_put_new_cid(&a->w, XL_FRAME_PATH_NEW_CONNECTION_ID, 1, 2, 2, &cid,
                         token); /* all before number 2 are to be retired */
    deliver(a);
    assert_true(p->cids.has_remote);
    assert_int_equal(p->cids.remote_sequence, 2);
    xl_path_id *id = xl_path_ids_find(a->p.sc->path_ids, 1);
    xl_cids_init(id->remote);
    id->remote->next_sequence = 3;
    id->remote->retire_prior_to = 2;
    xl_frame_put_new_cid(&a->w, XL_FRAME_PATH_NEW_CONNECTION_ID, 1, 3, 3, &other, token);
    deliver(a);
    assert_true(xl_conn_is_live(a->p.sc));
    assert_int_not_equal(p->state, XL_PATH_CLOSED);
}

ATTACK_TEST(acknowledging_a_path_that_never_was_is_a_violation) {
    begin(a, true, XL_DIALECT_IETF, 2);
    xl_frame_put_ack(&a->w, &(xl_ack_range){0, 0}, 1, 0, XL_FRAME_PATH_ACK, 5, false, NULL);
    assert_int_equal(outcome(a), XL_QERR_PROTOCOL_VIOLATION);
    begin(a, true, XL_DIALECT_IETF, 2);
    uint64_t next = a->p.sc->path[1]->space->ledger.next_pn;
    xl_frame_put_ack(&a->w, &(xl_ack_range){next, next}, 1, 0, XL_FRAME_PATH_ACK, 1, false, NULL);
    assert_int_equal(outcome(a), XL_QERR_PROTOCOL_VIOLATION);
}

ATTACK_TEST(plain_ack_is_still_of_path_0) {
    begin(a, true, XL_DIALECT_IETF, 2);
    xl_connection *s = a->p.sc;
    uint64_t newest = s->space[XL_LEVEL_APP].ledger.next_pn - 1;
    xl_frame_put_ack(&a->w, &(xl_ack_range){newest, newest}, 1, 0, XL_FRAME_ACK, 0, false, NULL);
    deliver(a);
    assert_true(xl_conn_is_live(s));
    assert_int_equal(s->space[XL_LEVEL_APP].ledger.largest_acked, newest);
}

/* Each retirement is answered by a new connection ID. Its number is predictable, so that without this check one packet
 * could ask for hundreds. */
ATTACK_TEST(retiring_what_was_issued_and_not_sent_yet_is_a_violation) {
    begin(a, true, XL_DIALECT_IETF, 2);
    xl_cids *cids = xl_path_ids_find(a->p.sc->path_ids, 2)->local;
    uint64_t first = cids->at[0].sequence;
    for (uint64_t i = 0; i < 100; i++)
        XL_FRAME_PUT(&a->w, XL_FRAME_PATH_RETIRE_CONNECTION_ID, 2, first + i);
    deliver(a);
    assert_int_equal(a->p.sc->closing.code, XL_QERR_PROTOCOL_VIOLATION);
    assert_in_range(cids->next_sequence, first + 1, first + 3);
}

ATTACK_TEST(frames_for_an_id_that_is_used_up_are_ignored) {
    for (int kind = 0; kind < KINDS; kind++) {
        begin(a, true, XL_DIALECT_IETF, 2);
        xl_connection_close_path(a->p.cc, 1, a->p.now);
        pair_run(&a->p, 3000000);
        assert_null(xl_path_ids_find(a->p.sc->path_ids, 1));
        put_with_path_id(&a->w, kind, 1);
        assert_int_equal(outcome(a), STILL_OPEN);
    }
}

ATTACK_TEST(an_abandoned_id_is_not_opened_again_by_its_connection_ids) {
    begin(a, true, XL_DIALECT_IETF, 2);
    xl_cid cid = xl_path_ids_find(a->p.sc->path_ids, 1)->local->at[0].cid;
    xl_connection_close_path(a->p.cc, 1, a->p.now);
    while (a->p.sc->path[1]->state != XL_PATH_CLOSED)
        pair_step(&a->p);
    uint64_t sent = a->p.link[1].packets[1];
    for (uint8_t i = 0; i < 100; i++) { /* acknowledged, but nothing is sent there, whatever address it came from */
        xl_frame_put_path(&a->w, XL_FRAME_PATH_CHALLENGE, (uint8_t[8]){i});
        deliver_to(a, &cid, 1, &a->p.link[i % 2]);
    }
    pair_run(&a->p, 1000);
    assert_int_equal(a->p.link[1].packets[1], sent);
    assert_int_equal(a->p.sc->path_count, 2);
    assert_int_equal(a->p.sc->path[1]->state, XL_PATH_CLOSED);
}

ATTACK_TEST(a_packet_without_a_challenge_opens_a_path_too) {
    begin(a, true, XL_DIALECT_IETF, 2);
    xl_cid cid = xl_path_ids_find(a->p.sc->path_ids, 2)->local->at[0].cid;
    xl_write_varint(&a->w, XL_FRAME_PING);
    deliver_to(a, &cid, 2, &a->p.link[1]);
    assert_int_equal(a->p.sc->path_count, 3);
    assert_int_equal(a->p.sc->path[2]->state, XL_PATH_VALIDATING);
    assert_int_equal(a->p.sc->path[0]->state, XL_PATH_ACTIVE); /* the others are as before */
    assert_int_equal(a->p.sc->path[1]->state, XL_PATH_ACTIVE);
}

ATTACK_TEST(a_server_opens_no_path) {
    begin(a, false, XL_DIALECT_IETF, 2);
    xl_cid cid = xl_path_ids_find(a->p.cc->path_ids, 2)->local->at[0].cid;
    uint64_t dropped = a->p.cc->stats.datagrams_dropped;
    xl_write_varint(&a->w, XL_FRAME_PING);
    deliver_to(a, &cid, 2, &a->p.link[1]);
    assert_int_equal(a->p.cc->path_count, 2);
    assert_int_equal(a->p.cc->stats.datagrams_dropped, dropped + 1);
}

ATTACK_TEST(the_path_id_is_part_of_the_nonce) {
    begin(a, true, XL_DIALECT_IETF, 2);
    xl_cid cid = xl_path_ids_find(a->p.sc->path_ids, 1)->local->at[0].cid;
    uint64_t forged = a->p.sc->key_update.forged_packets;
    xl_write_varint(&a->w, XL_FRAME_PING);
    deliver_to(a, &cid, 0, &a->p.link[1]); /* sealed for path 0 */
    assert_int_equal(a->p.sc->key_update.forged_packets, forged + 1);
    xl_write_varint(&a->w, XL_FRAME_PING);
    deliver_to(a, &cid, 1, &a->p.link[1]);
    assert_int_equal(a->p.sc->key_update.forged_packets, forged + 1);
}

ATTACK_TEST(an_old_preference_is_ignored_for_its_path_alone) {
    begin(a, true, XL_DIALECT_IETF, 2);
    xl_connection *s = a->p.sc;
    XL_FRAME_PUT(&a->w, XL_FRAME_PATH_STATUS_BACKUP, 1, 7);
    XL_FRAME_PUT(&a->w, XL_FRAME_PATH_STATUS_AVAILABLE, 1, 7); /* the same number */
    XL_FRAME_PUT(&a->w, XL_FRAME_PATH_STATUS_AVAILABLE, 1, 3); /* overtaken */
    deliver(a);
    assert_int_equal(s->path[1]->state, XL_PATH_STANDBY);
    XL_FRAME_PUT(&a->w, XL_FRAME_PATH_STATUS_BACKUP, 0, 3); /* of another path, which has its own numbers */
    deliver(a);
    assert_int_equal(s->path[0]->state, XL_PATH_STANDBY);
    XL_FRAME_PUT(&a->w, XL_FRAME_PATH_STATUS_AVAILABLE, 1, 8);
    deliver(a);
    assert_int_equal(s->path[1]->state, XL_PATH_ACTIVE);
}

ATTACK_TEST(a_preference_before_the_path_is_open_counts_when_it_is) {
    begin(a, true, XL_DIALECT_IETF, 1);
    XL_FRAME_PUT(&a->w, XL_FRAME_PATH_STATUS_BACKUP, 1, 4);
    XL_FRAME_PUT(&a->w, XL_FRAME_PATH_STATUS_AVAILABLE, 1, 2);
    deliver(a);
    pair *p = &a->p;
    p->link[1] = p->link[0];
    p->link[1].client = pair_addr(3, 4000);
    p->link_count = 2;
    xl_connection_add_path(p->cc, &p->link[1].client, &p->link[1].server, XL_TECH_LTE, p->now);
    pair_run(p, 300000);
    assert_int_equal(p->sc->path[1]->state, XL_PATH_STANDBY);
}

ATTACK_TEST(an_abandoned_path_is_answered_by_path_abandon) {
    begin(a, true, XL_DIALECT_IETF, 2);
    XL_FRAME_PUT(&a->w, XL_FRAME_PATH_ABANDON, 1, XL_QERR_APPLICATION_ABANDON_PATH);
    XL_FRAME_PUT(&a->w, XL_FRAME_PATH_ABANDON, 3, 0); /* never used: no error either */
    deliver(a);
    assert_int_equal(a->p.sc->path[1]->state, XL_PATH_CLOSED);
    assert_false(a->p.sc->path[1]->cids.has_remote);
    assert_int_equal(xl_path_ids_find(a->p.sc->path_ids, 1)->remote->count, 0);
    pair_run(&a->p, 100000);
    assert_true(xl_path_ids_find(a->p.cc->path_ids, 1)->is_abandoned); /* our answer made the client abandon it, too */
    assert_true(xl_path_ids_find(a->p.cc->path_ids, 3)->is_abandoned);
}

ATTACK_TEST(abandoning_without_end_costs_a_limit_that_rises_and_no_memory) {
    begin(a, true, XL_DIALECT_IETF, 1);
    xl_connection *s = a->p.sc;
    for (int i = 0; i < 300; i++) {
        uint64_t from = s->path_ids->local_max - XL_PATH_IDS_MAX + 1;
        for (uint64_t id = from; id <= s->path_ids->local_max; id++)
            if (id > 0)
                XL_FRAME_PUT(&a->w, XL_FRAME_PATH_ABANDON, id, 0);
        deliver(a);
        pair_run(&a->p, 200000);
        assert_true(xl_conn_is_live(s));
        size_t cids = 0;
        for (size_t k = 0; k < XL_PATH_IDS_MAX; k++)
            cids += s->path_ids->at[k].local->count;
        assert_true(cids <= 2 * XL_PATH_IDS_MAX);
    }
    assert_true(s->path_ids->local_max > 100);
}

static void make_no_cid(xl_endpoint *ep, xl_drbg_stream *random, xl_cid *cid) {
    (void)ep, (void)random;
    *cid = (xl_cid){0};
}

static int keep_no_cid(xl_endpoint *ep, const xl_cid *cid, xl_connection *c) {
    (void)ep, (void)cid, (void)c;
    return 0;
}

static void forget_no_cid(xl_endpoint *ep, const xl_cid *cid) {
    (void)ep, (void)cid;
}

static void let_be(xl_endpoint *ep, xl_connection *c) {
    (void)ep, (void)c;
}

static void tell_nobody(xl_endpoint *ep, const xl_event *e) {
    (void)ep, (void)e;
}

/* Section 2.1. A client that is not libxlink, with a zero-length connection ID. */
static uint64_t error_without_cid_bytes(bool has_path_ids) {
    pair p;
    pair_init_multipath(&p, 41, 1, 10000);
    p.server_config.scheme.dialect = XL_DIALECT_IETF;
    p.client_config.scheme.enable_multipath = has_path_ids;
    pair_connect(&p);
    xl_connection_hooks hooks = xl_endpoint_hooks(p.client);
    hooks.make_cid = make_no_cid;
    hooks.cid_added = keep_no_cid;
    hooks.cid_removed = forget_no_cid;
    hooks.wake = hooks.touched = let_be;
    hooks.event = tell_nobody;
    xl_connection *c = xl_conn_new(&p.client->config, &hooks, false, &p.cc->random, p.now);
    assert_non_null(c);
    const pair_link *l = &p.link[0];
    assert_int_equal(0, xl_conn_start_client(c, "localhost", &l->client, &l->server, XL_TECH_WIFI, p.now));
    uint8_t packet[PAIR_MTU];
    xl_datagram d;
    size_t len;
    while ((len = xl_conn_transmit(c, packet, PAIR_MTU, &d, p.now)) > 0) {
        d = (xl_datagram){.local = l->server, .remote = l->client, .len = len};
        xl_endpoint_receive(p.server, &d, packet, p.now);
    }
    assert_int_equal(p.server->count, 1);
    const xl_connection *s = p.server->connection[0];
    uint64_t code = xl_conn_is_live(s) ? STILL_OPEN : s->closing.code;
    xl_conn_destroy(c);
    pair_free(&p);
    return code;
}

TEST(path_ids_need_connection_ids_of_some_bytes) {
    assert_int_equal(error_without_cid_bytes(true), XL_QERR_PROTOCOL_VIOLATION);
    assert_int_equal(error_without_cid_bytes(false), STILL_OPEN);
}

TEST_MAIN(NULL, NULL)
