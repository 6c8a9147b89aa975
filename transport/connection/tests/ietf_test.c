/* Connections in the dialect `ietf` (RFC 10069): negotiation, paths by ID, connection IDs of each path, abandonment,
 * preferences, migration of a path within its ID, key updates, and the same schemes as in `xlink`. */
#include "testing/pair.h"

#include "connection/acks.h"
#include "connection/own_cids.h"
#include "connection/path_table.h"
#include "wire/frame.h"

static void ietf(pair *p, uint64_t seed, size_t links) {
    pair_init_multipath(p, seed, links, 20000);
    p->server_config.scheme.dialect = XL_DIALECT_IETF;
}

static void start(pair *p, uint64_t seed, size_t links) {
    ietf(p, seed, links);
    pair_settle(p, 300000);
    assert_non_null(p->sc);
}

static size_t open_paths(const xl_connection *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->path_count; i++)
        n += xl_path_may_carry_data(c->path[i]);
    return n;
}

/* ---- Negotiation ---- */

TEST(the_server_chooses_where_the_client_offers_both) {
    for (int dialect = XL_DIALECT_XLINK; dialect <= XL_DIALECT_IETF; dialect++) {
        pair p;
        ietf(&p, 1, 2);
        p.server_config.scheme.dialect = (xl_dialect)dialect;
        pair_establish(&p);
        assert_true(xl_connection_is_multipath(p.cc) && xl_connection_is_multipath(p.sc));
        assert_int_equal(xl_connection_dialect(p.cc), dialect);
        assert_int_equal(xl_connection_dialect(p.sc), dialect);
        pair_free(&p);
    }
}

PAIR_TEST_EACH(without_the_parameter_of_either_side_there_is_no_multipath, int, side, 0, 2) {
    ietf(p, 3, 2);
    (side ? &p->server_config : &p->client_config)->scheme.enable_multipath = false;
    pair_establish(p);
    pair_transfer(p, 100000, 10000000);
    assert_false(xl_connection_is_multipath(p->cc) || xl_connection_is_multipath(p->sc));
    assert_null(p->cc->path_ids);
}

/* ---- Paths ---- */

PAIR_TEST(a_path_has_the_same_id_in_both_directions_and_a_number_space_of_its_own) {
    start(p, 4, 3);
    assert_int_equal(open_paths(p->cc), 3);
    assert_int_equal(open_paths(p->sc), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(p->cc->path[i]->cids.remote_path_id, i);
        assert_int_equal(p->cc->path[i]->cids.local_path_id, i);
        assert_int_equal(p->sc->path[i]->cids.remote_path_id, i);
        assert_int_equal(p->sc->path[i]->cids.local_path_id, i);
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(p->cc->path[i]->space, p->cc->path[k]->space);
    }
}

PAIR_TEST(data_goes_over_both_paths) {
    ietf(p, 5, 2);
    for (size_t i = 0; i < 2; i++)
        pair_limit(&p->link[i], 1000000, 100000);
    pair_establish(p);
    size_t i = pair_ask(p, 4000000);
    uint64_t took = pair_finish(p, i, 20000000);
    assert_true(took < 3200000); /* one path alone takes 4 s */
    assert_true(pair_server_path(p, 0).bytes_sent > 1200000 && pair_server_path(p, 1).bytes_sent > 1200000);
}

PAIR_TEST(eight_paths_carry_one_download) {
    start(p, 6, PAIR_PATHS);
    for (uint8_t i = PAIR_PATHS; i < XL_MAX_PATHS; i++) {
        const pair_link *l = &p->link[i % PAIR_PATHS]; /* two paths may have one pair of addresses (section 5.2) */
        assert_int_equal(i, xl_connection_add_path(p->cc, &l->client, &l->server, XL_TECH_LTE, p->now));
    }
    pair_run(p, 500000);
    assert_int_equal(open_paths(p->cc), XL_MAX_PATHS);
    assert_int_equal(open_paths(p->sc), XL_MAX_PATHS);
    pair_transfer(p, 1000000, 20000000);
}

/* The client opens both before the server has validated either: bytes from that address count for one of them. */
PAIR_TEST(paths_with_one_pair_of_addresses_open_at_once) {
    ietf(p, 23, 2);
    pair_establish(p);
    for (uint8_t i = 2; i < XL_MAX_PATHS; i++)
        xl_connection_add_path(p->cc, &p->link[1].client, &p->link[1].server, XL_TECH_LTE, p->now);
    pair_run(p, 300000);
    assert_int_equal(open_paths(p->cc), XL_MAX_PATHS);
    assert_int_equal(open_paths(p->sc), XL_MAX_PATHS);
}

PAIR_TEST(a_lossy_path_costs_time_and_nothing_else) {
    ietf(p, 7, 2);
    p->link[1].loss = 0.05;
    pair_establish(p);
    pair_transfer(p, 3000000, 60000000);
    assert_true(pair_server_path(p, 1).packets_lost > 0);
}

PAIR_TEST(reinjection_runs_over_the_standard) {
    ietf(p, 8, 2);
    pair_multipath(p, "xlink", "stream");
    for (size_t i = 0; i < 2; i++)
        pair_limit(&p->link[i], i ? 100000 : 1000000, 2000000);
    pair_establish(p);
    pair_transfer(p, 1000000, 30000000);
    xl_connection_stats s;
    xl_connection_get_stats(p->sc, &s);
    assert_true(s.reinjected_bytes > 0);
}

/* ---- Connection IDs ---- */

PAIR_TEST(each_unused_id_has_a_cid_and_each_used_one_a_spare) {
    start(p, 9, 2);
    for (size_t i = 0; i < XL_PATH_IDS_MAX; i++) {
        const xl_path_id *at_client = xl_path_ids_find(p->cc->path_ids, i),
                         *at_server = xl_path_ids_find(p->sc->path_ids, i);
        size_t wanted = i < 2 ? 2 : 1;
        assert_int_equal(at_client->local->count, wanted);
        assert_int_equal(at_client->remote->count, wanted);
        assert_int_equal(at_server->local->count, wanted);
        assert_int_equal(at_server->remote->count, wanted);
    }
}

/* The server knows the client's limit, 2, before it issues any. */
PAIR_TEST(no_cids_are_issued_above_the_peers_maximum) {
    ietf(p, 21, 1);
    pair_connect(p);
    while (!p->sc)
        pair_step(p);
    for (size_t i = 0; i < XL_PATH_IDS_MAX; i++) {
        xl_cids *cids = xl_path_ids_find(p->sc->path_ids, i)->local;
        if (i > 0)
            cids->count = 0;
    }
    p->sc->path_ids->peer_max = 2;
    xl_conn_issue_cids(p->sc);
    for (size_t i = 1; i < XL_PATH_IDS_MAX; i++)
        assert_int_equal(xl_path_ids_find(p->sc->path_ids, i)->local->count, i <= 2);
}

PAIR_TEST(a_retired_cid_is_replaced_and_the_path_goes_on) {
    start(p, 10, 2);
    xl_path_id *id = xl_path_ids_find(p->cc->path_ids, 1);
    uint64_t old = p->cc->path[1]->cids.remote_sequence;
    assert_true(xl_conn_take_dcid(p->cc, p->cc->path[1]));
    xl_cids_retire(id->remote, old);
    pair_transfer(p, 500000, 10000000);
    assert_int_not_equal(p->cc->path[1]->cids.remote_sequence, old);
    assert_int_equal(id->remote->count, 2);
    assert_int_equal(xl_path_ids_find(p->sc->path_ids, 1)->local->next_sequence, 3);
    assert_int_equal(open_paths(p->cc), 2);
}

PAIR_TEST(a_path_without_cids_waits_and_says_so) {
    start(p, 11, 1);
    xl_path_id *id = xl_path_ids_find(p->cc->path_ids, 1);
    xl_cids_init(id->remote); /* as if the server had sent none yet */
    int index = xl_connection_add_path(p->cc, &p->link[0].client, &p->link[0].server, XL_TECH_LTE, p->now);
    assert_int_equal(p->cc->path[index]->state, XL_PATH_NEW);
    assert_true(id->cids_blocked_pending);
    pair_run(p, 100000);
    assert_false(id->cids_blocked_pending);
    assert_false(p->client_closed || p->server_closed);
}

/* ---- The end of a path ---- */

static void empty_slot_1(xl_connection *c) {
    c->path_count = 1;
    xl_space_free(c->path[1]->space);
    free(c->path[1]->space);
    free(c->path[1]);
    c->path[1] = NULL;
}

PAIR_TEST(an_abandoned_path_ends_on_both_sides_and_its_id_never_comes_back) {
    start(p, 12, 2);
    for (uint64_t round = 1; round <= 20; round++) {
        assert_int_equal(p->cc->path[1]->cids.local_path_id, round);
        assert_int_equal(0, xl_connection_close_path(p->cc, 1, p->now));
        pair_run(p, 2000000);
        assert_int_equal(p->sc->path[1]->state, XL_PATH_CLOSED);
        assert_null(xl_path_ids_find(p->cc->path_ids, round));
        assert_null(xl_path_ids_find(p->sc->path_ids, round));
        assert_int_equal(p->cc->path_ids->local_max, XL_PATH_IDS_MAX - 1 + round);
        assert_int_equal(p->cc->path_ids->peer_max, XL_PATH_IDS_MAX - 1 + round);
        empty_slot_1(p->cc);
        empty_slot_1(p->sc);
        assert_int_equal(1, xl_connection_add_path(p->cc, &p->link[1].client, &p->link[1].server, XL_TECH_LTE, p->now));
        pair_run(p, 500000);
        assert_int_equal(open_paths(p->sc), 2);
    }
}

PAIR_TEST_EACH(a_download_survives_an_abandoned_path, int, by_server, 0, 2) {
    ietf(p, 13, 2);
    for (size_t i = 0; i < 2; i++)
        pair_limit(&p->link[i], 1000000, 100000);
    pair_establish(p);
    size_t i = pair_ask(p, 3000000);
    pair_run(p, 700000);
    assert_int_equal(0, xl_connection_close_path(by_server ? p->sc : p->cc, by_server, p->now)); /* path 0 too */
    assert_true(pair_finish(p, i, 30000000) != UINT64_MAX);
    assert_int_equal(open_paths(p->cc), 1);
    assert_int_equal(open_paths(p->sc), 1);
}

/* Whether the server's endpoint routes a datagram with this CID to the connection. */
static bool is_routed(pair *p, const xl_cid *cid) {
    uint8_t packet[64] = {0x40};
    uint64_t before = p->sc->stats.datagrams_received;
    xl_datagram d = {.local = p->link[1].server, .remote = p->link[1].client, .len = sizeof packet};
    memcpy(packet + 1, cid->id, cid->len);
    xl_endpoint_receive(p->server, &d, packet, p->now);
    return p->sc->stats.datagrams_received > before;
}

PAIR_TEST(the_local_cids_of_an_abandoned_path_last_three_ptos) {
    start(p, 14, 2);
    xl_cid cid = xl_path_ids_find(p->sc->path_ids, 1)->local->at[0].cid;
    xl_path_id *of;
    uint64_t pto = xl_conn_max_pto(p->sc);
    xl_connection_close_path(p->cc, 1, p->now);
    while (p->sc->path[1]->state != XL_PATH_CLOSED)
        pair_step(p);
    pair_run(p, 2 * pto);
    assert_non_null(xl_path_ids_find_local(p->sc->path_ids, &cid, &of));
    assert_true(is_routed(p, &cid));
    pair_run(p, 2 * pto);
    assert_null(xl_path_ids_find_local(p->sc->path_ids, &cid, &of));
    assert_false(is_routed(p, &cid));
}

PAIR_TEST(late_packets_on_an_abandoned_path_are_taken_and_acknowledged_elsewhere) {
    start(p, 12, 2);
    pair_run(p, 500000);
    xl_path *closed = p->sc->path[1];
    uint64_t before = closed->space->largest_received, id = closed->cids.local_path_id;
    pair_ask(p, 1000);
    xl_connection_ping(p->cc, p->now);
    pair_flush(p);
    assert_int_equal(0, xl_connection_close_path(p->sc, 1, p->now));
    uint64_t sent = p->link[1].packets[1];
    pair_run(p, p->link[1].delay_us[0] + 2000);
    assert_true(closed->space->largest_received > before);
    assert_true(closed->cids.local_path_id == id && !xl_space_owes_ack(closed->space));
    assert_int_equal(p->link[1].packets[1], sent);
    assert_true(xl_conn_is_live(p->cc) && xl_conn_is_live(p->sc));
}

PAIR_TEST(an_abandoned_last_path_ends_the_connection) {
    start(p, 15, 1);
    xl_connection_close_path(p->cc, 0, p->now);
    pair_run(p, 5000000);
    assert_true(p->client_closed && p->server_closed);
    assert_int_equal(p->server_close.error_code, XL_QERR_NO_ERROR);
}

/* Returns a packet that acknowledges more than a few packets of another path and is not acknowledged by the server. */
static const xl_sent_packet *acknowledges_another_path(xl_connection *c, xl_path **acknowledged) {
    for (size_t i = 0; i < XL_MAX_PATHS; i++) {
        xl_ledger *sent = &c->path[i]->space->ledger;
        for (uint64_t pn = sent->first_pn; pn < sent->next_pn; pn++) {
            const xl_sent_packet *packet = xl_ledger_find(sent, pn);
            for (const xl_sent_frame *r = packet ? packet->frames : NULL; r; r = r->next)
                for (size_t k = 1; k < XL_MAX_PATHS; k++) {
                    *acknowledged = c->path[k];
                    if (k != i && r->kind == XL_SF_ACK && r->offset > 10 &&
                        r->id == xl_conn_space_number(c, c->path[k]->space))
                        return packet;
                }
        }
    }
    return NULL;
}

/* The client acknowledges packets of one path on another, and sends nothing that makes the server acknowledge that. The
 * path is closed, and a new one takes its slot. Then the server's acknowledgement comes. */
PAIR_TEST(what_confirms_acknowledgements_of_a_path_leaves_the_one_in_its_place_alone) {
    ietf(p, 22, PAIR_PATHS);
    p->client_config.scheme.ack_path = XL_ACK_FASTEST;
    for (size_t i = 0; i < PAIR_PATHS; i++)
        p->link[i].bytes_per_s[1] = 400000, p->link[i].queue_us = 200000;
    pair_establish(p);
    for (uint8_t i = PAIR_PATHS; i < XL_MAX_PATHS; i++)
        xl_connection_add_path(p->cc, &p->link[3].client, &p->link[3].server, XL_TECH_LTE, p->now);
    pair_run(p, 500000);
    assert_int_equal(open_paths(p->cc), XL_MAX_PATHS);
    pair_transfer(p, 4000000, 20000000);
    xl_path *closed;
    const xl_sent_packet *packet = acknowledges_another_path(p->cc, &closed);
    assert_non_null(packet);
    xl_path *by = p->cc->path[packet->path];
    xl_ack_frame f = {.range_count = 1, .ranges = {{packet->pn, packet->pn}}};
    assert_int_equal(0, xl_connection_close_path(p->cc, closed->index, p->now));
    assert_int_equal(closed->index,
                     xl_connection_add_path(p->cc, &p->link[3].client, &p->link[3].server, XL_TECH_LTE, p->now));
    pair_run(p, 3000000);
    assert_int_equal(closed->cids.local_path_id, XL_MAX_PATHS);
    xl_space *fresh = closed->space;
    uint64_t least = fresh->received.at[0].start, beyond = fresh->largest_received + 1000;
    assert_int_equal(
        0, xl_ranges_add(&fresh->received, beyond, beyond + 1)); /* what is below is not in the newest range */
    assert_int_equal(0, xl_conn_take_ack(p->cc, by->space, by, &f));
    assert_true(xl_ranges_contains(&fresh->received, least));
    assert_false(xl_space_is_duplicate(fresh, beyond - 1));
}

/* ---- Preferences ---- */

PAIR_TEST(a_backup_path_carries_no_data_while_another_is_usable) {
    start(p, 16, 2);
    assert_int_equal(0, xl_connection_set_path_status(p->cc, 1, XL_STATUS_STANDBY, p->now));
    pair_run(p, 200000);
    assert_int_equal(p->sc->path[1]->state, XL_PATH_STANDBY);
    uint64_t before = pair_server_path(p, 1).bytes_sent;
    pair_transfer(p, 1000000, 10000000);
    assert_true(pair_server_path(p, 1).bytes_sent - before < 20000);
    assert_int_equal(0, xl_connection_set_path_status(p->cc, 1, XL_STATUS_AVAILABLE, p->now));
    pair_run(p, 200000);
    assert_int_equal(p->sc->path[1]->state, XL_PATH_ACTIVE);
}

/* ---- A path that moves keeps its ID ---- */

PAIR_TEST(a_path_behind_a_nat_that_rebinds_keeps_its_id) {
    ietf(p, 17, 2);
    for (size_t i = 0; i < 2; i++)
        pair_limit(&p->link[i], 500000, 100000);
    pair_establish(p);
    size_t i = pair_ask(p, 2000000);
    pair_run(p, 500000);
    p->link[1].nat = pair_addr(77, 9999);
    assert_true(pair_finish(p, i, 30000000) != UINT64_MAX);
    pair_run(p, 500000);
    assert_int_equal(p->sc->path_count, 2);
    assert_int_equal(p->sc->path[1]->cids.local_path_id, 1);
    assert_true(xl_addr_equal(&p->sc->path[1]->remote, &p->link[1].nat));
    assert_true(p->sc->path[1]->validation.is_done);
}

PAIR_TEST(a_path_that_the_client_moves_has_a_new_cid_each_way_and_its_old_id) {
    start(p, 18, 2);
    uint64_t to_client = p->sc->path[1]->cids.remote_sequence, to_server = p->cc->path[1]->cids.remote_sequence;
    xl_addr moved = pair_addr(3, 5555);
    p->link[1].client = moved;
    assert_int_equal(0, xl_connection_move_path(p->cc, 1, &moved, p->now));
    pair_run(p, 500000);
    assert_int_equal(p->sc->path_count, 2);
    assert_int_equal(p->sc->path[1]->cids.local_path_id, 1);
    assert_true(xl_addr_equal(&p->sc->path[1]->remote, &moved) && p->sc->path[1]->validation.is_done);
    assert_int_not_equal(p->sc->path[1]->cids.remote_sequence, to_client);
    assert_int_not_equal(p->cc->path[1]->cids.remote_sequence, to_server);
    pair_transfer(p, 1000000, 10000000);
}

/* disable_active_migration applies to the address of the handshake, also for open paths (RFC 9000 section 18.2). */
PAIR_TEST(a_path_to_the_address_of_the_handshake_does_not_move_where_the_server_forbids_it) {
    start(p, 21, 2);
    const xl_addr moved = pair_addr(3, 5555), before = p->link[1].client;
    p->cc->peer_params.disable_active_migration = true;
    assert_int_equal(XL_ERR_PATH, xl_connection_move_path(p->cc, 1, &moved, p->now));
    assert_true(xl_addr_equal(&p->cc->path[1]->local, &before));
    p->cc->handshake.server.port++; /* the path leads to another address of the server */
    assert_int_equal(0, xl_connection_move_path(p->cc, 1, &moved, p->now));
}

PAIR_TEST(no_path_moves_before_the_handshake_is_confirmed) {
    start(p, 22, 1);
    const xl_addr moved = pair_addr(3, 5555);
    p->cc->handshake.is_confirmed = false;
    assert_int_equal(XL_ERR_PATH, xl_connection_move_path(p->cc, 0, &moved, p->now));
    p->cc->handshake.is_confirmed = true;
    assert_int_equal(0, xl_connection_move_path(p->cc, 0, &moved, p->now));
}

/* The server may give up a path for which it has no connection ID yet (section 4.2.1). */
PAIR_TEST(a_path_waits_until_our_connection_id_of_it_was_sent) {
    ietf(p, 23, 2);
    p->link_count = 1;
    pair_settle(p, 300000);
    xl_cids *cids = xl_path_ids_find(p->cc->path_ids, 1)->local;
    xl_cids_note_lost(cids, &cids->at[0]);
    cids->at[0].was_sent = false;
    p->link_count = 2;
    assert_int_equal(1, xl_connection_add_path(p->cc, &p->link[1].client, &p->link[1].server, XL_TECH_LTE, p->now));
    assert_int_equal(p->cc->path[1]->state, XL_PATH_NEW);
    xl_conn_issue_cids(p->cc); /* there is something to send */
    pair_run(p, 300000);
    assert_int_equal(p->cc->path[1]->state, XL_PATH_ACTIVE);
}

/* ---- Keys ---- */

PAIR_TEST(keys_are_updated_across_paths) {
    ietf(p, 19, 2);
    p->server_config.limits.packets_per_key = 1500;
    for (size_t i = 0; i < 2; i++)
        pair_limit(&p->link[i], 500000, 100000);
    pair_establish(p);
    pair_transfer(p, 4000000, 60000000);
    assert_true(p->sc->key_update.generation >= 2);
    assert_int_equal(p->cc->key_update.generation, p->sc->key_update.generation);
}

/* ---- The player's signal ---- */

PAIR_TEST(the_signal_rides_in_frames_of_its_own) {
    ietf(p, 20, 2);
    p->server_config.scheme.qoe_control = true;
    pair_establish(p);
    xl_connection_set_qoe(p->cc, &(xl_qoe){1000, 20, 8000, 30}, p->now);
    pair_run(p, 200000);
    assert_true(p->sc->qoe.gate.has_signal);
}

/* The fast path's PTO is about 60 ms, and a signal leaves every 50 ms. */
PAIR_TEST(signals_do_not_put_off_the_probe_of_a_request) {
    ietf(p, 21, 2);
    p->server_config.scheme.qoe_control = true;
    pair_delay(&p->link[1], 40000);
    pair_settle(p, 1000000);
    pair_set_dark(&p->link[0], true);
    xl_qoe qoe = {1000, 20, 8000, 30};
    size_t i = pair_ask(p, 1000);
    for (; qoe.cached_bytes < 1020; qoe.cached_bytes++) {
        xl_connection_set_qoe(p->cc, &qoe, p->now);
        pair_run(p, 50000);
    }
    assert_true(p->request[i].done);
    assert_true(p->cc->qoe.signals >= 10);
}

TEST_MAIN(NULL, NULL)
