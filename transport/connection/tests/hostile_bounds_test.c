/* A peer with valid keys that follows the syntax but sends as much as it can. What the other side stores and sends is
 * bounded by the limits that it granted, not by how long the peer goes on. */
#include "testing/pair.h"

#include "connection/builder.h"
#include "connection/content.h"
#include "minmax.h"

/* Sends packets from the client to the server, past the client's own connection. The client gets no answer. */
typedef struct {
    pair p;
    uint64_t pn, sent_bytes, answer_bytes;
    uint8_t packet[PAIR_MTU];
    xl_writer w;
    size_t pn_offset;
    bool comes_from_elsewhere;
} attack;

static void attack_free(attack *a) {
    pair_free(&a->p);
}

#define ATTACK_TEST(name) TEST_OF(name, attack, a, attack_free)

static void attack_init(attack *a) {
    memset(a, 0, sizeof *a);
    pair_init(&a->p, 1, 1, 5000);
}

static void attack_connect(attack *a) {
    pair_settle(&a->p, 100000);
    a->pn = a->p.cc->space[XL_LEVEL_APP].ledger.next_pn;
}

static xl_writer *begin(attack *a) {
    a->w = xl_writer_of(a->packet, sizeof a->packet - XL_AEAD_TAG);
    xl_packet_put_short(&a->w, &a->p.cc->path[0]->cids.remote, false, false, a->pn, 4);
    a->pn_offset = (size_t)(a->w.p - a->packet) - 4;
    return &a->w;
}

/* Delivers the packet to the server, which may answer for duration_us. */
static void deliver(attack *a, uint64_t duration_us) {
    pair *p = &a->p;
    uint8_t buf[PAIR_MTU];
    size_t payload = (size_t)(a->w.p - a->packet) - a->pn_offset - 4;
    assert_false(a->w.failed);
    assert_true(xl_keys_protect(p->cc->level[XL_LEVEL_APP].write, 0, a->pn++, a->packet, a->pn_offset, 4, payload) > 0);
    xl_datagram d = {.local = p->link[0].server, .remote = p->link[0].client};
    if (a->comes_from_elsewhere)
        d.remote = pair_addr(99, 4433);
    d.len = a->pn_offset + 4 + payload + XL_AEAD_TAG;
    a->sent_bytes += d.len;
    xl_endpoint_receive(p->server, &d, a->packet, p->now);
    for (uint64_t end = p->now + duration_us;;) {
        xl_event e;
        while (xl_endpoint_poll_event(p->server, &e))
            ;
        while (xl_endpoint_transmit(p->server, buf, sizeof buf, &d, p->now) > 0)
            a->answer_bytes += d.len;
        uint64_t at = xl_endpoint_next_timeout(p->server);
        if (at > end) {
            p->now = end;
            return;
        }
        p->now = at > p->now ? at : p->now;
        xl_endpoint_handle_timeout(p->server, p->now);
    }
}

ATTACK_TEST(a_peer_that_acknowledges_nothing_is_shown_the_door) {
    attack_init(a);
    a->p.server_config.limits.max_data = 1 << 16;
    attack_connect(a);
    const xl_connection *s = a->p.sc;
    for (int i = 0; i < 20000 && xl_conn_is_live(s); i++) {
        xl_write_varint(begin(a), XL_FRAME_PING);
        deliver(a, 20);
    }
    assert_int_equal(XL_CONN_CLOSING, s->state);
    assert_int_equal(XL_QERR_PROTOCOL_VIOLATION, s->closing.code);
    assert_true(s->space[XL_LEVEL_APP].ledger.cap <= 8192);
}

ATTACK_TEST(one_that_acknowledges_now_and_then_may_go_on) {
    attack_init(a);
    a->p.server_config.limits.max_data = 1 << 16;
    attack_connect(a);
    const xl_connection *s = a->p.sc;
    for (int i = 0; i < 20000; i++) {
        xl_writer *w = begin(a);
        xl_write_varint(w, XL_FRAME_PING);
        xl_ledger *ledger = &a->p.sc->space[XL_LEVEL_APP].ledger;
        uint64_t newest = ledger->next_pn - 1;
        if (i % 4000 == 3999 && xl_ledger_find(ledger, newest))
            xl_frame_put_ack(w, &(xl_ack_range){newest, newest}, 1, 0, XL_FRAME_ACK, 0, false, NULL);
        deliver(a, 20);
    }
    assert_true(xl_conn_is_live(s));
    assert_true(s->space[XL_LEVEL_APP].ledger.cap <= 8192);
}

/* Discarded data returns its credit, so its memory has to be freed as well. Here each stream takes half of the
 * connection's window and is reset. Its sending half stays open because nobody acknowledges. */
ATTACK_TEST(streams_that_are_reset_hold_neither_memory_nor_credit) {
    attack_init(a);
    a->p.server_config.limits.max_data = 1 << 20;
    a->p.server_config.limits.max_stream_data = 1 << 19;
    attack_connect(a);
    const xl_connection *s = a->p.sc;
    for (uint64_t id = 0; id < 400; id += 4) {
        xl_writer *w = begin(a);
        xl_frame_put_stream_header(w, id, (1 << 19) - 1, 1, false);
        xl_write_u8(w, 'x');
        XL_FRAME_PUT(w, XL_FRAME_RESET_STREAM, id, 0, 1 << 19);
        deliver(a, 1000);
    }
    assert_true(xl_conn_is_live(s));
    assert_int_equal(100, s->streams.count);
    for (size_t i = 0; i < s->streams.count; i++)
        assert_null(s->streams.at[i]->recv.ring);
    assert_int_equal(100u << 19, s->streams.flow_in.consumed);
}

static void send_piece(attack *a, uint64_t id, uint64_t offset, size_t len) {
    static const uint8_t data[1200];
    uint8_t waste[4096];
    bool fin;
    xl_writer *w = begin(a);
    xl_frame_put_stream_header(w, id, offset, len, false);
    xl_write_bytes(w, data, len);
    deliver(a, 20);
    while (xl_stream_read(a->p.sc, id, waste, sizeof waste, &fin) > 0)
        ;
}

/* One stream after another uses all its credit by its last byte, is filled and read, and stays open, with no more data
 * or with one byte behind a gap. */
static void fill_one_after_another(attack *a, bool leaves_one) {
    const uint64_t credit = 1 << 17, streams = 40;
    attack_init(a);
    a->p.server_config.limits.max_data = 2 * credit;
    a->p.server_config.limits.max_stream_data = credit;
    attack_connect(a);
    const xl_connection *s = a->p.sc;
    for (uint64_t id = 0; id < 4 * streams; id += 4) {
        send_piece(a, id, credit - 1, 1);
        for (uint64_t at = 0; at < credit - 1; at += 1200)
            send_piece(a, id, at, (size_t)xl_min(1200, credit - 1 - at));
        if (leaves_one)
            send_piece(a, id, credit + 9, 1);
    }
    size_t held = 0;
    assert_true(xl_conn_is_live(s));
    assert_int_equal(streams, s->streams.count);
    for (size_t i = 0; i < s->streams.count; i++)
        held += s->streams.at[i]->recv.cap;
    assert_true(held <= 4 * s->streams.flow_in.window);
}

ATTACK_TEST(streams_that_were_read_hold_no_more_than_the_connection_may) {
    fill_one_after_another(a, false);
}

ATTACK_TEST(nor_do_streams_with_a_byte_behind_a_hole) {
    fill_one_after_another(a, true);
}

/* RFC 9000 section 8.2.2 requires each PATH_RESPONSE in a datagram of 1200 bytes; the challenge takes 38 bytes. */
ATTACK_TEST(challenges_in_numbers_are_answered_within_the_window) {
    attack_init(a);
    attack_connect(a);
    const xl_path *path = a->p.sc->path[0];
    uint64_t window = xl_path_window(path);
    a->answer_bytes = 0;
    for (int i = 0; i < 2000; i++) {
        xl_frame_put_path(begin(a), XL_FRAME_PATH_CHALLENGE, (const uint8_t[8]){(uint8_t)i});
        deliver(a, 10);
    }
    assert_true(path->flight.bytes <= window + 10 * (uint64_t)PAIR_MTU);
    assert_true(a->answer_bytes < window + 30 * (uint64_t)PAIR_MTU + 1000 * 40); /* 1000 acknowledgements */
    assert_true(path->responses.count <= XL_PATH_RESPONSES_MAX);
}

/* Each comes from an address that is not the path's, so that no congestion window limits the answers. A peer that asked
 * for few acknowledgements sends none itself. */
ATTACK_TEST(challenges_from_elsewhere_that_acknowledge_nothing_are_bounded) {
    attack_init(a);
    a->p.server_config.limits.max_data = 1 << 16;
    a->p.server_config.limits.enable_ack_frequency = true;
    attack_connect(a);
    const xl_connection *s = a->p.sc;
    XL_FRAME_PUT(begin(a), XL_FRAME_ACK_FREQUENCY, 0, 1000000, 10000000, 0);
    deliver(a, 20);
    xl_connection_ping(a->p.sc, a->p.now); /* stays unacknowledged, so that the ledger keeps all that follows */
    a->comes_from_elsewhere = true;
    for (int i = 0; i < 40000 && xl_conn_is_live(s); i++) {
        xl_frame_put_path(begin(a), XL_FRAME_PATH_CHALLENGE, (const uint8_t[8]){(uint8_t)i});
        xl_write_u8(&a->w, 0);
        deliver(a, 20);
    }
    assert_true(a->answer_bytes <= 3 * a->sent_bytes);
    assert_true(s->space[XL_LEVEL_APP].ledger.cap <= 8192);
}

/* An honest peer's challenge is answered even if the window is full of data that waits in a queue. */
ATTACK_TEST(a_single_challenge_is_answered_though_the_window_is_full) {
    attack_init(a);
    attack_connect(a);
    xl_path *path = a->p.sc->path[0];
    path->flight.bytes = xl_path_window(path);
    a->answer_bytes = 0;
    xl_frame_put_path(begin(a), XL_FRAME_PATH_CHALLENGE, (const uint8_t[8]){7});
    deliver(a, 10);
    assert_true(a->answer_bytes >= XL_MIN_DATAGRAM);
}

ATTACK_TEST(of_many_acknowledgements_in_a_packet_the_first_count) {
    attack_init(a);
    attack_connect(a);
    xl_ledger *ledger = &a->p.sc->space[XL_LEVEL_APP].ledger;
    xl_connection_ping(a->p.sc, a->p.now);
    xl_write_varint(begin(a), XL_FRAME_PING);
    deliver(a, 50000);
    uint64_t newest = ledger->next_pn - 1;
    while (!xl_ledger_find(ledger, newest))
        newest--;
    for (int copies = 2 * XL_MAX_PATHS; copies >= 0; copies -= 2 * XL_MAX_PATHS) {
        xl_writer *w = begin(a);
        for (int i = 0; i < copies; i++)
            xl_frame_put_ack(w, &(xl_ack_range){ledger->start, ledger->start}, 1, 0, XL_FRAME_ACK, 0, false, NULL);
        xl_frame_put_ack(w, &(xl_ack_range){newest, newest}, 1, 0, XL_FRAME_ACK, 0, false, NULL);
        uint64_t acked = ledger->largest_acked;
        deliver(a, 0);
        assert_int_equal(copies ? acked : newest, ledger->largest_acked);
    }
}

/* Steps until all requests are complete. Returns the most bytes that the server's send buffers held meanwhile. */
static size_t most_held(pair *p, size_t requests, uint64_t limit_us) {
    size_t most = 0, done = 0;
    for (uint64_t end = p->now + limit_us; p->now < end && done < requests && pair_step(p);) {
        most = p->sc->streams.budget.held > most ? p->sc->streams.budget.held : most;
        done = 0;
        for (size_t i = 0; i < PAIR_REQUESTS; i++)
            done += p->request[i].used && p->request[i].done;
    }
    return done == requests ? most : SIZE_MAX;
}

PAIR_TEST(what_flow_control_holds_back_is_not_taken_from_the_application) {
    pair_init(p, 1, 1, 5000);
    p->client_config.limits.max_stream_data = 100;
    pair_establish(p);
    for (int i = 0; i < 60; i++)
        pair_ask(p, 10000);
    assert_true(most_held(p, 60, 60000000) <= 60 * 1024);
}

ATTACK_TEST(a_window_that_is_opened_byte_by_byte_holds_no_more_than_the_window) {
    static const uint8_t zeros[65536];
    attack_init(a);
    a->p.client_config.limits.max_stream_data = 1000;
    attack_connect(a);
    xl_writer *w = begin(a);
    xl_frame_put_stream_header(w, 0, 0, 1, true);
    xl_write_u8(w, 'x');
    deliver(a, 0);
    const xl_stream *s = a->p.sc->streams.at[0];
    for (uint64_t n = 0; n < 3000; n++) {
        XL_FRAME_PUT(begin(a), XL_FRAME_MAX_STREAM_DATA, 0, 1000 + n);
        deliver(a, 10);
        assert_true(xl_stream_send_capacity(a->p.sc, 0) <= 1000 + n - s->send.written);
        assert_true(xl_stream_send(a->p.sc, 0, zeros, sizeof zeros, false, NULL) >= 0);
        assert_true(s->send.written <= 1000 + n);
        assert_true(a->p.sc->streams.budget.held <= 4096);
    }
}

PAIR_TEST(all_streams_of_a_connection_keep_within_its_budget) {
    pair_init(p, 1, 1, 20000);
    p->client_config.limits.max_data = p->client_config.limits.max_stream_data = 64 << 20;
    p->server_config.limits.connection_send_bytes = 64 << 10;
    pair_establish(p);
    for (int i = 0; i < 20; i++)
        pair_ask(p, 200000);
    size_t most = most_held(p, 20, 60000000);
    assert_true(most <= 64 << 10);
    assert_true(most > 32 << 10);
}

/* An answer is under way at full speed. Whichever side resets it, its memory is freed before anything is sent. */
PAIR_TEST_EACH(a_stream_that_is_reset_holds_nothing_from_then_on, int, by_peer, 0, 2) {
    pair_init(p, 1, 1, 20000);
    pair_establish(p);
    uint64_t id = p->request[pair_ask(p, 50000000)].id;
    pair_run(p, 300000);
    assert_true(p->sc->streams.budget.held > 65536);
    if (by_peer) {
        uint64_t error = 0;
        xl_packet_context ctx = {.type = XL_PACKET_1RTT, .level = XL_LEVEL_APP};
        xl_frame f = {.type = XL_FRAME_STOP_SENDING, .stop_sending = {.stream_id = id, .error_code = 1}};
        error = xl_conn_take_frame(p->sc, &f, &ctx);
        assert_int_equal(0, error);
    } else {
        assert_int_equal(0, xl_stream_reset(p->sc, id, 1));
    }
    assert_int_equal(0, p->sc->streams.budget.held);
    assert_int_equal(0, p->server->send_pool.held);
    pair_run(p, 300000);
    assert_int_equal(0, p->sc->streams.count);
}

/* The limit of RFC 9000 section 8.1 may repeatedly leave less room than an acknowledgement takes. */
PAIR_TEST(an_acknowledgement_that_finds_no_room_leaves_nothing_behind) {
    uint8_t packet[PAIR_MTU];
    xl_builder b;
    pair_init_multipath(p, 1, 1, 5000);
    pair_settle(p, 100000);
    xl_path *path = p->sc->path[0];
    assert_int_equal(0, xl_space_receive(path->space, XL_VARINT_MAX, true, true, p->now));
    const size_t before = p->sc->records.in_use;
    assert_true(xl_builder_begin(&b, p->sc, path, XL_LEVEL_APP, packet, 64));
    b.w.end = b.w.p + 16;
    xl_content_put_acks(&b);
    assert_int_equal(0, xl_builder_finish(&b));
    assert_int_equal(before, p->sc->records.in_use);
    assert_true(xl_space_owes_ack(path->space));
}

TEST_MAIN(NULL, NULL)
