/* Key updates (RFC 9001 section 6) between honest ends, by a peer that breaks the rules, and at the limits of use. */
#include "testing/pair.h"
#include "crypto/keys.h"

/* ---- A client that sends any frames, under keys of any generation ---- */

typedef struct {
    pair p;
    xl_keys *generation[4];
    bool names_other_phase; /* the packets' key phase is not that of their keys */
    uint64_t first_pn;      /* above all numbers that the client itself has sent */
} attack;

static void attack_free(attack *a) {
    for (int i = 0; i < 4; i++)
        xl_keys_free(a->generation[i]);
    pair_free(&a->p);
}

/* Ends what began before. */
static void attack_init(attack *a, size_t links) {
    if (a->p.client)
        attack_free(a);
    memset(a, 0, sizeof *a);
    pair_init(&a->p, 1, links, 10000);
    if (links > 1)
        pair_multipath(&a->p, "minrtt", "none");
}

static void attack_connect(attack *a) {
    pair_settle(&a->p, 500000);
    const xl_keys *write = a->p.cc->level[XL_LEVEL_APP].write;
    a->generation[0] = xl_keys_from_secret(XL_VERSION_1, write->aead, write->secret, write->secret_len);
    for (int i = 1; i < 4; i++)
        a->generation[i] = xl_keys_next(a->generation[i - 1]);
    assert_non_null(a->generation[3]);
    a->first_pn = 1 << 20; /* beyond those of the genuine sender */
}

static void attack_start(attack *a, size_t links) {
    attack_init(a, links);
    attack_connect(a);
}

#define ATTACK_TEST(name) TEST_OF(name, attack, a, attack_free)

/* Delivers a packet with these frames to the server now. `flips` is XORed into its last octet. */
static void deliver(attack *a, size_t path, int generation, uint64_t pn, const uint8_t *frames, size_t len,
                    uint8_t flips) {
    pair *p = &a->p;
    uint8_t packet[200] = {0};
    const xl_path *from = p->cc->path[path];
    xl_writer w = xl_writer_of(packet, sizeof packet - XL_AEAD_TAG);
    xl_packet_put_short(&w, &from->cids.remote, false, (generation % 2) ^ a->names_other_phase, a->first_pn + pn, 4);
    size_t pn_offset = (size_t)(w.p - packet) - 4;
    xl_write_bytes(&w, frames, len);
    assert_false(w.failed);
    uint64_t path_id = p->sc->multipath ? from->cids.remote_path_id : 0;
    size_t n = xl_keys_protect(a->generation[generation], path_id, a->first_pn + pn, packet, pn_offset, 4, len);
    assert_true(n > 0);
    packet[n - 1] ^= flips;
    pair_inject(p, true, &p->link[path], packet, n);
}

static void ping(attack *a, int generation, uint64_t pn) {
    deliver(a, 0, generation, pn, (const uint8_t[]){XL_FRAME_PING}, 1, 0);
}

static void forged(attack *a, size_t path, int generation, uint64_t pn) {
    deliver(a, path, generation, pn, (const uint8_t[]){XL_FRAME_PING}, 1, 0x40);
}

/* Lets the server send what it has; nothing of it arrives. */
static void answer(attack *a) {
    uint8_t buf[PAIR_MTU];
    xl_datagram d;
    while (xl_endpoint_transmit(a->p.server, buf, sizeof buf, &d, a->p.now) > 0)
        ;
}

static void pass(attack *a, uint64_t duration_us) {
    answer(a);
    for (uint64_t end = a->p.now + duration_us; a->p.now < end;) {
        uint64_t at = xl_endpoint_next_timeout(a->p.server);
        a->p.now = at > end ? end : at > a->p.now ? at : a->p.now;
        xl_endpoint_handle_timeout(a->p.server, a->p.now);
        answer(a);
    }
}

static void assert_closed_with(const xl_connection *c, uint64_t code) {
    assert_int_equal(XL_CONN_CLOSING, c->state);
    assert_false(c->closing.is_application);
    assert_int_equal(code, c->closing.code);
}

/* ---- The peer's updates ---- */

ATTACK_TEST(an_update_is_followed_and_answered_under_the_new_keys) {
    attack_start(a, 1);
    xl_connection *s = a->p.sc;
    ping(a, 0, 0);
    assert_int_equal(0, s->key_update.generation);
    ping(a, 1, 1);
    assert_int_equal(1, s->key_update.generation);
    assert_false(s->key_update.phase_answered);
    ping(a, 1, 2); /* the second one is acknowledged at once */
    pass(a, 1000);
    assert_true(s->key_update.phase_answered);
    assert_int_equal(1, s->key_update.write_generation);
    assert_int_equal(XL_CONN_OPEN, s->state);
}

ATTACK_TEST(a_second_update_before_the_first_is_acknowledged_is_an_error) {
    attack_start(a, 1);
    ping(a, 0, 0);
    pass(a, 100);
    ping(a, 1, 1);
    pass(a, 100); /* it has the next keys by then, but the acknowledgement waits for more */
    assert_non_null(a->p.sc->key_update.next_read);
    assert_false(a->p.sc->key_update.phase_answered);
    ping(a, 2, 2);
    assert_closed_with(a->p.sc, XL_QERR_KEY_UPDATE);
    attack_start(a, 1);
    ping(a, 1, 1);
    pass(a, 1000000);
    assert_true(a->p.sc->key_update.phase_answered);
    a->p.sc->key_update.phase_answered = false; /* as if it had not been able to answer until now */
    ping(a, 2, 2);
    assert_closed_with(a->p.sc, XL_QERR_KEY_UPDATE);
}

ATTACK_TEST(updates_that_keep_an_end_busy_are_an_error) {
    for (int is_late = 0; is_late < 2; is_late++) {
        attack_start(a, 1);
        ping(a, 1, 1);
        ping(a, 1, 2);
        pass(a, is_late ? 10000 : 9000); /* less than a PTO */
        assert_true(a->p.sc->key_update.phase_answered);
        ping(a, 2, 3);
        if (is_late)
            assert_int_equal(2, a->p.sc->key_update.generation);
        else
            assert_closed_with(a->p.sc, XL_QERR_KEY_UPDATE);
    }
}

ATTACK_TEST(old_keys_on_a_higher_number_than_new_ones_are_an_error) {
    attack_start(a, 1);
    xl_connection *s = a->p.sc;
    ping(a, 1, 10);
    ping(a, 0, 9); /* late */
    ping(a, 1, 13);
    ping(a, 0, 8);
    ping(a, 1, 12);
    assert_int_equal(XL_CONN_OPEN, s->state);
    assert_int_equal(a->first_pn + 13, s->space[XL_LEVEL_APP].largest_received);
    assert_true(xl_space_is_duplicate(&s->space[XL_LEVEL_APP], a->first_pn + 8));
    ping(a, 0, 11);
    assert_closed_with(s, XL_QERR_KEY_UPDATE);
}

ATTACK_TEST(new_keys_on_a_lower_number_than_old_ones_are_an_error) {
    attack_start(a, 1);
    ping(a, 0, 10);
    ping(a, 1, 9);
    assert_closed_with(a->p.sc, XL_QERR_KEY_UPDATE);
    attack_start(a, 1);
    ping(a, 1, 20);
    ping(a, 0, 15);
    ping(a, 1, 14);
    assert_closed_with(a->p.sc, XL_QERR_KEY_UPDATE);
}

ATTACK_TEST(each_path_has_numbers_of_its_own) {
    attack_start(a, 2);
    static const uint8_t frame[] = {XL_FRAME_PING};
    deliver(a, 0, 1, 10, frame, 1, 0);
    deliver(a, 1, 0, 500, frame, 1, 0); /* sent before, on the other path */
    deliver(a, 1, 1, 501, frame, 1, 0);
    deliver(a, 1, 0, 499, frame, 1, 0);
    assert_int_equal(XL_CONN_OPEN, a->p.sc->state);
    assert_int_equal(1, a->p.sc->key_update.generation);
    deliver(a, 1, 0, 502, frame, 1, 0);
    assert_closed_with(a->p.sc, XL_QERR_KEY_UPDATE);
}

ATTACK_TEST(an_acknowledgement_of_new_keys_under_old_ones_is_an_error) {
    attack_start(a, 1);
    xl_connection *s = a->p.sc;
    ping(a, 0, 0);
    pass(a, 100000);
    assert_int_equal(0, xl_conn_update_keys(s));
    uint64_t pn = s->space[XL_LEVEL_APP].ledger.next_pn;
    xl_connection_ping(s, a->p.now);
    pass(a, 100);
    uint8_t frames[32];
    xl_writer w = xl_writer_of(frames, sizeof frames);
    assert_true(xl_frame_put_ack(&w, &(xl_ack_range){pn, pn}, 1, 0, XL_FRAME_ACK, 0, false, NULL) > 0);
    deliver(a, 0, 0, 1, frames, (size_t)(w.p - frames), 0);
    assert_closed_with(s, XL_QERR_KEY_UPDATE);
}

/* ---- Forgeries ---- */

ATTACK_TEST(forged_updates_change_nothing) {
    attack_start(a, 1);
    xl_connection *s = a->p.sc;
    const xl_keys *next = s->key_update.next_read, *read = s->level[XL_LEVEL_APP].read;
    assert_non_null(next);
    for (uint64_t i = 0; i < 1000; i++)
        forged(a, 0, 1, i);
    assert_ptr_equal(next, s->key_update.next_read);
    assert_ptr_equal(read, s->level[XL_LEVEL_APP].read);
    assert_int_equal(0, s->key_update.generation);
    assert_int_equal(1000, s->key_update.forged_packets);
}

ATTACK_TEST(keys_of_another_phase_than_the_packet_names_open_nothing) {
    attack_start(a, 1);
    a->names_other_phase = true;
    ping(a, 0, 0);
    ping(a, 1, 1);
    assert_int_equal(2, a->p.sc->key_update.forged_packets);
    a->names_other_phase = false;
    ping(a, 1, 2);
    a->names_other_phase = true;
    ping(a, 1, 3); /* before the next keys are there */
    ping(a, 0, 1); /* under the previous keys, but with the present key phase */
    assert_int_equal(4, a->p.sc->key_update.forged_packets);
    assert_int_equal(XL_CONN_OPEN, a->p.sc->state);
}

ATTACK_TEST(forgeries_are_counted_over_all_keys_and_paths_up_to_the_limit) {
    attack_init(a, 2);
    a->p.server_config.limits.forged_packets = 30;
    attack_connect(a);
    xl_connection *s = a->p.sc;
    for (uint64_t i = 0; i < 10; i++) {
        forged(a, 0, 0, i);
        forged(a, 1, 1, i);
    }
    ping(a, 1, 50);
    for (uint64_t i = 0; i < 5; i++) {
        forged(a, 0, 0, 51 + i);
        forged(a, 1, 1, 51 + i);
    }
    assert_int_equal(30, s->key_update.forged_packets);
    assert_int_equal(XL_CONN_OPEN, s->state);
    forged(a, 1, 0, 99);
    assert_closed_with(s, XL_QERR_AEAD_LIMIT);
}

/* Anybody who sees the first packet, or chose its connection ID, can forge them. */
PAIR_TEST(forged_initials_do_not_count) {
    uint8_t first[PAIR_MTU], copy[PAIR_MTU];
    xl_datagram d;
    pair_init(p, 1, 1, 10000);
    p->server_config.limits.forged_packets = 30;
    pair_connect(p);
    size_t n = xl_endpoint_transmit(p->client, first, sizeof first, &d, p->now);
    assert_true(n >= 1200);
    d = (xl_datagram){.local = p->link[0].server, .remote = p->link[0].client, .len = n};
    for (int i = 0; i < 100; i++) { /* the first of them is the client's own */
        memcpy(copy, first, n);
        copy[n - 1] ^= (uint8_t)i;
        xl_endpoint_receive(p->server, &d, copy, p->now);
    }
    pair_handshake(p);
    pair_run(p, 100000);
    assert_non_null(p->sc);
    assert_int_equal(XL_CONN_OPEN, p->sc->state);
    assert_int_equal(0, p->sc->key_update.forged_packets);
}

/* ---- Our own updates ---- */

PAIR_TEST(honest_ends_update_as_often_as_they_may_without_a_fault) {
    pair_init_multipath(p, 3, 2, 10000);
    for (int i = 0; i < 2; i++) {
        pair_limit(&p->link[i], 500000, 100000);
        p->link[i].reorder = 0.05;
        p->link[i].loss = 0.02;
    }
    pair_delay(&p->link[1], 40000);
    pair_establish(p);
    size_t i = pair_ask(p, 8000000);
    uint64_t began = p->now, updates = 0, longest = 0, last = p->now;
    while (!p->request[i].done && p->now < began + 60000000) {
        pair_run(p, 5000);
        for (int side = 0; side < 2; side++) {
            xl_connection *c = side ? p->cc : p->sc;
            xl_conn_enter(c, p->now);
            if (!xl_conn_may_update_keys(c))
                continue;
            assert_int_equal(0, xl_conn_update_keys(c));
            xl_conn_wake(c);
            longest = updates > 0 && p->now - last > longest ? p->now - last : longest;
            last = p->now;
            updates++;
        }
    }
    assert_true(p->request[i].done && !p->request[i].failed);
    assert_false(p->client_closed || p->server_closed);
    assert_int_equal(p->cc->key_update.generation, p->sc->key_update.generation);
    assert_in_range(p->cc->key_update.generation, 8, (p->request[i].done_at - began) / 100000);
}

static void update_client(pair *p) {
    xl_conn_enter(p->cc, p->now);
    assert_true(xl_conn_may_update_keys(p->cc));
    assert_int_equal(0, xl_conn_update_keys(p->cc));
    xl_connection_ping(p->cc, p->now);
}

/* After its client has moved, the server assumes an RTT of 333 ms for the path until it has a sample. */
PAIR_TEST(an_end_with_a_longer_rtt_takes_updates_from_one_with_a_shorter) {
    pair_init(p, 8, 1, 10000);
    pair_settle(p, 500000);
    for (uint64_t generation = 1; generation <= 4; generation++) {
        update_client(p);
        pair_run(p, 40000);
        xl_rtt_init(&p->sc->path[0]->ack_rtt);
        pair_run(p, 400000);
        assert_int_equal(generation, p->sc->key_update.generation);
        assert_false(p->client_closed || p->server_closed);
    }
}

PAIR_TEST(old_keys_are_kept_until_three_ptos_after_the_new_ones_came) {
    pair_init(p, 4, 1, 10000);
    pair_settle(p, 200000);
    xl_conn_enter(p->sc, p->now);
    assert_int_equal(0, xl_conn_update_keys(p->sc));
    p->link[0].dark[1] = true; /* the client does not know */
    size_t i = pair_ask(p, 1000);
    pair_run(p, 2000000);
    assert_non_null(p->sc->key_update.previous_read);
    assert_true(p->response[0].has_request); /* what it sent under the old keys was read */
    p->link[0].dark[1] = false;
    assert_true(pair_finish(p, i, 20000000) != UINT64_MAX);
    assert_int_equal(1, p->cc->key_update.generation);
    while (p->sc->key_update.previous_read_until == XL_NEVER)
        assert_true(pair_step(p));
    uint64_t until = p->sc->key_update.previous_read_until;
    assert_true(until > p->now + 50000);
    pair_run(p, until - p->now - 1);
    assert_non_null(p->sc->key_update.previous_read);
    pair_run(p, 1000); /* though nothing else happens */
    assert_null(p->sc->key_update.previous_read);
    pair_run(p, 1000000);
    assert_null(p->cc->key_update.previous_read);
}

PAIR_TEST(a_client_follows_though_the_handshakes_confirmation_was_lost) {
    pair_init(p, 5, 1, 10000);
    pair_connect(p);
    while (!p->cc->handshake.is_complete)
        assert_true(pair_step(p));
    p->link[0].dark[1] = true; /* HANDSHAKE_DONE does not arrive */
    while (!p->sc)
        assert_true(pair_step(p));
    pair_flush(p);
    xl_conn_enter(p->sc, p->now);
    assert_int_equal(0, xl_conn_update_keys(p->sc));
    p->link[0].dark[1] = false;
    assert_false(p->cc->handshake.is_confirmed);
    pair_transfer(p, 50000, 5000000);
    assert_true(p->cc->handshake.is_confirmed);
    assert_int_equal(1, p->cc->key_update.generation);
}

static void start_limited(pair *p, size_t links, uint64_t packets) {
    pair_init(p, 6, links, 10000);
    if (links > 1)
        pair_multipath(p, "minrtt", "none");
    for (size_t i = 0; i < links; i++)
        pair_limit(&p->link[i], 125000, 100000);
    p->client_config.limits.packets_per_key = p->server_config.limits.packets_per_key = packets;
    pair_establish(p);
}

PAIR_TEST(keys_are_updated_before_they_are_used_up) {
    start_limited(p, 2, 400);
    size_t i = pair_ask(p, 2000000);
    uint64_t most = 0, end = p->now + 60000000;
    while (!p->request[i].done && p->now < end && pair_step(p)) {
        uint64_t sealed = xl_keys_sealed_count(p->sc->level[XL_LEVEL_APP].write);
        most = sealed > most ? sealed : most;
    }
    assert_true(p->request[i].done && !p->request[i].failed);
    assert_in_range(most, 199, 399);
    assert_true(p->sc->key_update.generation >= 4);
}

static void start_with_idle_path(pair *p, bool suspect) {
    pair_init_multipath(p, 7, 2, 10000);
    p->client_config.scheme.suspect = p->server_config.scheme.suspect = suspect;
    pair_limit(&p->link[0], 125000, 100000);
    pair_delay(&p->link[1], 300000); /* a window's data never goes there */
    p->client_config.limits.packets_per_key = p->server_config.limits.packets_per_key = 1000;
    pair_settle(p, 3000000);
}

static void download(pair *p) {
    size_t i = pair_ask(p, 12000);
    assert_true(pair_finish(p, i, 10000000) != UINT64_MAX);
    p->request[i].used = false;
}

PAIR_TEST(a_path_that_is_not_used_is_asked_so_that_the_keys_can_be_updated) {
    start_with_idle_path(p, true);
    assert_int_equal(XL_PATH_ACTIVE, p->sc->path[1]->state);
    for (int k = 0; k < 160; k++)
        download(p);
    assert_false(p->client_closed);
    assert_true(p->sc->key_update.generation >= 2); /* the packets that opened the path permit the first */
    assert_int_equal(p->sc->key_update.generation, p->cc->key_update.generation);
}

/* Without the suspect state a path that has gone dark stays active. */
PAIR_TEST(a_dark_path_does_not_keep_the_keys_from_being_updated) {
    start_with_idle_path(p, false);
    pair_set_dark(&p->link[1], true);
    for (int k = 0; k < 600; k++) {
        download(p);
        pair_run(p, 200000);
    }
    assert_int_equal(XL_PATH_ACTIVE, p->sc->path[1]->state);
    assert_true(p->sc->key_update.generation >= 4);
}

PAIR_TEST(keys_that_cannot_be_updated_end_the_connection_before_they_are_used_up) {
    start_limited(p, 1, 400);
    pair_run(p, 500000);
    p->sc->key_update.may_from = p->cc->key_update.may_from = XL_NEVER;
    size_t i = pair_ask(p, 2000000);
    assert_true(pair_finish(p, i, 60000000) == UINT64_MAX);
    assert_closed_with(p->sc, XL_QERR_AEAD_LIMIT);
    assert_true(xl_keys_sealed_count(p->sc->level[XL_LEVEL_APP].write) <= 400);
    pair_run(p, 1000000);
    assert_true(p->client_closed && p->client_close.error_code == XL_QERR_AEAD_LIMIT);
}

PAIR_TEST(an_end_waits_for_three_ptos_after_the_last_update_was_confirmed) {
    pair_init(p, 9, 1, 10000);
    pair_settle(p, 500000);
    update_client(p);
    pair_run(p, 5000000);
    assert_int_equal(1, p->sc->key_update.generation);
    assert_null(p->sc->key_update.previous_read);
    assert_false(p->sc->key_update.phase_acked); /* it has sent nothing that asks for an acknowledgement */
    xl_connection_ping(p->sc, p->now);
    while (!p->sc->key_update.phase_acked)
        assert_true(pair_step(p));
    uint64_t from = p->now + 3 * xl_conn_max_pto(p->sc);
    xl_conn_enter(p->sc, from - 1000);
    assert_false(xl_conn_may_update_keys(p->sc));
    xl_conn_enter(p->sc, from);
    assert_true(xl_conn_may_update_keys(p->sc));
}

PAIR_TEST(every_open_path_that_answers_counts) {
    pair_init_multipath(p, 10, 2, 10000);
    pair_settle(p, 500000);
    xl_conn_enter(p->sc, p->now);
    assert_true(xl_conn_may_update_keys(p->sc));
    p->sc->path[1]->phase.is_acked = false;
    assert_false(xl_conn_may_update_keys(p->sc));
    p->sc->path[1]->state = XL_PATH_STANDBY;
    assert_false(xl_conn_may_update_keys(p->sc));
    p->sc->path[1]->state = XL_PATH_SUSPECT;
    assert_true(xl_conn_may_update_keys(p->sc));
    p->sc->path[0]->phase.is_acked = false;
    p->sc->path[0]->state = XL_PATH_SUSPECT; /* no path counts, and nothing of the phase is acknowledged */
    assert_false(xl_conn_may_update_keys(p->sc));
}

PAIR_TEST(a_limit_that_leaves_no_room_for_an_update_is_refused) {
    int error = 0;
    pair_init(p, 8, 1, 10000);
    p->server_config.limits.packets_per_key = 63;
    assert_null(xl_endpoint_new(&p->server_config, p->now, &error));
    assert_int_equal(XL_ERR_ARGUMENT, error);
    p->server_config.limits.packets_per_key = 64;
    pair_connect(p);
}

TEST_MAIN(NULL, NULL)
