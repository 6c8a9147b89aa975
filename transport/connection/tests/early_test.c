/* 0-RTT and resumption between a client and a server that know each other (RFC 9001 section 4.6, RFC 9000 section
 * 7.4.1). */
#include "testing/early_world.h"

WORLD_TEST(early_data_is_answered_within_one_round_trip) {
    world_known(w, 1);
    come_back(w);
    assert_true(early_event(&w->p));
    size_t i = pair_ask(&w->p, 2000);
    uint64_t took = finish(w, i);
    assert_in_range(took, 40000, 45000); /* one RTT of 40 ms; a full handshake takes two */
    pair_handshake(&w->p);
    assert_true(xl_connection_is_early_accepted(w->p.cc));
    assert_true(xl_connection_is_resumed(w->p.cc));
    pair_run(&w->p, 1000000);
    assert_true(pair_finish(&w->p, pair_ask(&w->p, 300000), 10000000) != UINT64_MAX);
}

/* RFC 9001 section 4.9.3: three PTOs after the handshake, even if no late packet has come. */
WORLD_TEST(a_server_discards_the_keys_of_early_data) {
    world_known(w, 21);
    come_back(w);
    size_t i = pair_ask(&w->p, 2000);
    pair_handshake(&w->p);
    finish(w, i);
    assert_non_null(xl_conn_early_read_keys(w->p.sc)); /* for packets that were overtaken */
    pair_run(&w->p, 5000000);
    finish(w, pair_ask(&w->p, 2000));
    assert_null(xl_conn_early_read_keys(w->p.sc));
}

/* A client's packets, recorded and replayed: a server that took their data once does not take it again. */
typedef struct {
    size_t count, len[16];
    uint8_t data[16][PAIR_MTU + 64];
} recorder;

static void record(void *user, bool to_server, uint8_t *data, size_t len) {
    recorder *r = user;
    if (!to_server || r->count == 16)
        return;
    memcpy(r->data[r->count], data, len);
    r->len[r->count++] = len;
}

/* Sends the first `count` of them to the server again, from another address. */
static void replay(const recorder *r, size_t count, world *w) {
    uint8_t copy[PAIR_MTU + 64];
    xl_datagram d = {.local = w->p.link[0].server, .remote = pair_addr(77, 4000)};
    for (size_t k = 0; k < count; k++) {
        memcpy(copy, r->data[k], r->len[k]);
        d.len = r->len[k];
        xl_endpoint_receive(w->p.server, &d, copy, w->p.now);
    }
}

WORLD_TEST(replayed_early_data_is_not_accepted) {
    recorder *r = calloc(1, sizeof *r);
    world_known(w, 2);
    come_back(w);
    w->p.tamper = record;
    w->p.tamper_user = r;
    assert_true(early_event(&w->p));
    size_t i = pair_ask(&w->p, 2000);
    pair_flush(&w->p);
    size_t recorded = r->count;
    assert_true(recorded > 0);
    finish(w, i);
    size_t before = w->p.server->count;
    replay(r, recorded, w);
    /* The packets' CID leads to the existing connection or to a new one. None of the new ones has taken the data. */
    for (size_t k = before; k < w->p.server->count; k++) {
        const xl_connection *c = w->p.server->connection[k];
        assert_false(c->early.is_accepted);
        assert_int_equal(0, c->streams.count);
    }
    /* Then on a server that has freed the closed connection. */
    while (w->p.server->count > 0)
        xl_connection_free(w->p.server->connection[0]);
    replay(r, recorded, w);
    assert_int_equal(1, w->p.server->count);
    assert_false(w->p.server->connection[0]->early.is_accepted);
    assert_int_equal(0, w->p.server->connection[0]->streams.count);
    free(r);
}

static void forget_tickets(world *w) {
    memset(w->p.server_credentials->outstanding, 0, sizeof *w->p.server_credentials->outstanding);
}

/* Makes the server anew, with the present configuration. */
static void restart_server(world *w) {
    int error;
    xl_endpoint_free(w->p.server);
    w->p.server = xl_endpoint_new(&w->p.server_config, w->p.now, &error);
}

/* Whether 0-RTT data that the client sends now is taken; the session is resumed in any case. */
static bool is_taken(world *w) {
    come_back(w);
    assert_true(early_event(&w->p));
    finish(w, pair_ask(&w->p, 2000));
    pair_handshake(&w->p);
    assert_true(xl_connection_is_resumed(w->p.cc));
    return xl_connection_is_early_accepted(w->p.cc);
}

/* The server restarts, or is another one, with the same ticket key: it cannot know which early data was accepted
 * before. */
WORLD_TEST(a_server_takes_early_data_of_its_own_tickets_alone) {
    static const uint8_t ticket_key[XL_TICKET_KEY_BYTES] = {1, 2, 3};
    int error;
    world_known(w, 30);
    xl_endpoint_free(w->p.server);
    xl_credentials_free(w->p.server_credentials);
    w->p.server_credentials = xl_credentials_self_signed("localhost", w->p.server_config.random_key, 1700000000);
    assert_int_equal(0, xl_credentials_issue_tickets(w->p.server_credentials, ticket_key));
    world_accepts(w);
    w->p.server_config.credentials = w->p.server_credentials;
    w->p.server = xl_endpoint_new(&w->p.server_config, w->p.now, &error);
    assert_non_null(w->p.server);
    assert_false(is_taken(w));
    assert_true(is_taken(w)); /* the ticket that this one issued */
}

/* Two connections resume one session before the server has seen either. */
TEST(of_two_connections_with_one_ticket_one_has_early_data) {
    world w;
    world_known(&w, 31);
    const store ticket = w.kept;
    come_back(&w);
    pair *p = &w.p;
    w.kept = ticket;
    xl_connection *one = p->cc;
    xl_addr other = p->link[0].client;
    other.port += 100;
    pair_link second = p->link[0];
    second.client = other;
    p->link[p->link_count++] = second;
    p->cc = xl_endpoint_connect(p->client, "localhost", &other, &second.server, XL_TECH_WIFI, p->now);
    assert_non_null(p->cc);
    xl_connection *two = p->cc;
    pair_ask(p, 2000);
    p->cc = one;
    pair_ask(p, 2000);
    pair_run(p, 1000000);
    assert_true(xl_connection_is_resumed(one) && xl_connection_is_resumed(two));
    assert_int_equal(xl_connection_is_early_accepted(one) + xl_connection_is_early_accepted(two), 1);
    pair_free(p);
}

/* Early data that was accepted is not accepted again, even if the server's clock is set back. */
WORLD_TEST(a_clock_that_is_set_back_brings_no_early_data_back) {
    world_known(w, 32);
    const store ticket = w->kept;
    assert_true(is_taken(w));
    w->kept = ticket;
    for (int i = 0; i < 3; i++) {
        set_back_ns = (uint64_t)i * 500000000;
        w->kept = ticket;
        assert_false(is_taken(w));
    }
}

WORLD_TEST(rejected_early_data_is_sent_again) {
    world_known(w, 3);
    forget_tickets(w);
    come_back(w);
    assert_true(early_event(&w->p));
    size_t i = pair_ask(&w->p, 2000);
    assert_in_range(finish(w, i), 80000, 90000);
    assert_false(xl_connection_is_early_accepted(w->p.cc));
    assert_true(xl_connection_is_resumed(w->p.cc));
    assert_false(w->p.sc->early.is_accepted);
}

WORLD_TEST(rejected_early_data_beyond_lower_limits_ends_the_connection) {
    world_known(w, 4);
    forget_tickets(w);
    w->p.server_config.limits.max_streams_bidi = 1;
    restart_server(w);
    come_back(w);
    assert_true(early_event(&w->p));
    pair_ask(&w->p, 2000);
    pair_ask(&w->p, 2000);
    pair_run(&w->p, 2000000);
    assert_true(w->p.client_closed);
    assert_int_equal(XL_QERR_NO_ERROR, w->p.client_close.error_code);
}

WORLD_TEST(a_server_that_accepts_and_lowers_its_limits_is_left) {
    world_known(w, 5);
    w->p.server_config.limits.max_data = 1 << 20;
    restart_server(w);
    come_back(w);
    assert_true(early_event(&w->p));
    pair_ask(&w->p, 2000);
    pair_run(&w->p, 2000000);
    assert_true(w->p.client_closed);
    assert_int_equal(XL_QERR_PROTOCOL_VIOLATION, w->p.client_close.error_code);
}

WORLD_TEST(early_data_keeps_to_the_remembered_limits) {
    static const uint8_t bytes[20000];
    uint64_t id;
    world_init(w, 6);
    world_accepts(w);
    w->p.server_config.limits.max_stream_data = 3000;
    w->p.server_config.limits.max_streams_bidi = 2;
    meet(w);
    come_back(w);
    assert_true(early_event(&w->p));
    assert_int_equal(0, xl_stream_open(w->p.cc, true, &id));
    assert_true(xl_stream_send(w->p.cc, id, bytes, sizeof bytes, false, NULL) > 0);
    assert_int_equal(0, xl_stream_open(w->p.cc, true, &id));
    assert_int_equal(XL_ERR_STREAM_LIMIT, xl_stream_open(w->p.cc, true, &id));
    pair_flush(&w->p);
    assert_int_equal(3000, xl_conn_stream(w->p.cc, 0)->send.sent);
}

/* The second datagram, which has only 0-RTT packets, overtakes the first one with the ClientHello. */
WORLD_TEST(early_data_that_overtakes_its_client_hello_is_held) {
    static const uint8_t bytes[2500];
    uint64_t id;
    world_known(w, 7);
    come_back(w);
    assert_true(early_event(&w->p));
    assert_int_equal(0, xl_stream_open(w->p.cc, true, &id));
    assert_int_equal(2500, xl_stream_send(w->p.cc, id, bytes, sizeof bytes, true, NULL));
    pair_flush(&w->p);
    pair_datagram *first = w->p.queue, *last = first;
    assert_true(first && first->next);
    w->p.queue = first->next;
    while (last->next)
        last = last->next;
    last->next = first;
    first->next = NULL;
    first->at = last->at + 5000;
    pair_run(&w->p, 26000);
    assert_non_null(w->p.sc);
    assert_int_equal(2500, w->p.sc->stats.stream_bytes_received);
    assert_int_equal(0, w->p.cc->path[0]->stats.packets_lost);
}

WORLD_TEST(a_server_that_takes_no_early_data_holds_none) {
    world_init(w, 8);
    pair_connect(&w->p);
    uint8_t packet[1200] = {0xd0, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0x44, 0x90};
    xl_datagram d = {.local = w->p.link[0].server, .remote = pair_addr(77, 4000), .len = sizeof packet};
    for (int i = 0; i < 100; i++)
        xl_endpoint_receive(w->p.server, &d, packet, w->p.now);
    assert_null(w->p.server->held);
    world_accepts(w);
    for (int i = 0; i < 100; i++)
        xl_endpoint_receive(w->p.server, &d, packet, w->p.now);
    assert_non_null(w->p.server->held);
    assert_int_equal(0, w->p.server->count); /* and keeps no more than XL_HELD_MAX */
}

WORLD_TEST(a_client_follows_a_retry_with_its_early_data) {
    world_known(w, 9);
    w->p.server_config.limits.retry_always = true;
    restart_server(w);
    come_back(w);
    assert_true(early_event(&w->p));
    assert_in_range(finish(w, pair_ask(&w->p, 2000)), 80000, 90000);
    assert_true(w->p.cc->handshake.has_retry);
    pair_handshake(&w->p);
    assert_true(xl_connection_is_early_accepted(w->p.cc));
}

/* Frames that a 0-RTT packet must not have (RFC 9000 section 12.4). */
TEST(forbidden_frames_in_early_data_are_a_violation) {
    const uint8_t frames[][12] = {{0x02, 0, 0, 0, 0},              /* ACK */
                                  {0x06, 0, 1, 0},                 /* CRYPTO */
                                  {0x1e},                          /* HANDSHAKE_DONE */
                                  {0x07, 1, 9},                    /* NEW_TOKEN */
                                  {0x1b, 1, 2, 3, 4, 5, 6, 7, 8}}; /* PATH_RESPONSE */
    const size_t lens[] = {5, 4, 1, 3, 9};
    for (size_t k = 0; k < sizeof lens / sizeof lens[0]; k++) {
        world w;
        uint8_t packet[256] = {0};
        size_t length_offset;
        world_init(&w, 10 + k);
        world_accepts(&w);
        meet(&w);
        come_back(&w);
        assert_true(early_event(&w.p));
        pair_run(&w.p, 1000); /* its first packets are under way */
        xl_writer out = xl_writer_of(packet, sizeof packet);
        xl_packet_put_long(&out, XL_VERSION_1, XL_PACKET_0RTT, &w.p.cc->handshake.odcid, &w.p.cc->local_cids.at[0].cid,
                           NULL, 0, 100, 4, packet, &length_offset);
        size_t payload_at = (size_t)(out.p - packet);
        memcpy(out.p, frames[k], lens[k]);
        xl_packet_set_length(packet, length_offset, 4 + lens[k] + XL_AEAD_TAG);
        size_t n = xl_keys_protect(w.p.cc->early.keys, 0, 100, packet, payload_at - 4, 4, lens[k]);
        assert_true(n > 0);
        pair_run(&w.p, 19500);
        xl_connection *sc = w.p.server->connection[w.p.server->count - 1];
        assert_true(sc->early.is_accepted);
        pair_inject(&w.p, true, &w.p.link[0], packet, n);
        assert_int_equal(XL_CONN_CLOSING, sc->state);
        assert_int_equal(XL_QERR_PROTOCOL_VIOLATION, sc->closing.code);
        pair_free(&w.p);
    }
}

/* 0-RTT data proves no address: the server sends at most three times what it received (RFC 9000 section 8.1). */
WORLD_TEST(an_answer_to_early_data_keeps_to_the_limit) {
    world_known(w, 20);
    come_back(w);
    assert_true(early_event(&w->p));
    pair_ask(&w->p, 100000);
    uint64_t up = w->p.link[0].bytes[0], down = w->p.link[0].bytes[1];
    pair_run(&w->p, 39000); /* only the first flight has come */
    assert_true(w->p.link[0].bytes[1] - down > 2000);
    assert_true(w->p.link[0].bytes[1] - down <= 3 * (w->p.link[0].bytes[0] - up));
}

WORLD_TEST(a_session_offers_early_data_once) {
    xl_session session;
    world_init(w, 21);
    world_accepts(w);
    w->p.server_config.limits.issue_tokens = true;
    meet(w);
    assert_true(xl_session_read(&session, w->kept.bytes, w->kept.len) && session.allows_early);
    assert_int_equal(XL_NEW_TOKEN_BYTES, session.token.len);
    w->p.link[0].dark[1] = true; /* no newer ticket comes */
    come_back(w);
    assert_true(early_event(&w->p));
    assert_true(xl_session_read(&session, w->kept.bytes, w->kept.len) && !session.allows_early);
    assert_int_equal(0, session.token.len);
    come_back(w);
    assert_false(early_event(&w->p));
}

WORLD_TEST(a_ticket_whose_time_is_over_carries_no_early_data) {
    xl_session session;
    world_known(w, 22);
    assert_true(xl_session_read(&session, w->kept.bytes, w->kept.len));
    session.lifetime_s = 5;
    store bent = w->kept;
    bent.len = xl_session_write(&session, bent.bytes, sizeof bent.bytes);
    uint8_t copy[XL_SESSION_MAX_BYTES];
    memcpy(copy, bent.bytes, bent.len);
    memcpy(w->kept.bytes, copy, bent.len);
    come_back(w);
    assert_false(early_event(&w->p));
    pair_handshake(&w->p);
    assert_true(w->p.cc->handshake.is_confirmed);
}

/* RFC 8446 section 4.6.1, for any lifetime that a server gives its ticket. */
TEST(a_session_is_resumed_for_a_week_at_most) {
    static const struct {
        uint32_t lifetime_s;
        uint64_t age_days;
        bool is_resumed;
    } cases[] = {{30 * 86400, 6, true}, {30 * 86400, 8, false}, {86400, 2, false}, {0, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world w;
        xl_session session;
        world_known(&w, 22);
        assert_true(xl_session_read(&session, w.kept.bytes, w.kept.len));
        session.lifetime_s = cases[i].lifetime_s;
        session.arrived_ns -= cases[i].age_days * 86400 * UINT64_C(1000000000);
        store bent;
        bent.len = xl_session_write(&session, bent.bytes, sizeof bent.bytes);
        memcpy(w.kept.bytes, bent.bytes, bent.len);
        come_back(&w);
        pair_handshake(&w.p);
        assert_int_equal(cases[i].is_resumed, xl_connection_is_resumed(w.p.cc));
        pair_free(&w.p);
    }
}

/* Makes the client's ticket `ms` older. The TLS library's data has the ticket's time of arrival in seconds (64 bits)
 * and nanoseconds (32 bits). */
static void make_older(world *w, uint32_t ms) {
    xl_session session;
    assert_true(xl_session_read(&session, w->kept.bytes, w->kept.len));
    uint64_t near = session.arrived_ns / 1000000000;
    for (size_t at = 0; at + 12 <= session.tls.len; at++) {
        uint8_t *p = w->kept.bytes + (session.tls.at - w->kept.bytes) + at;
        uint64_t s = 0, ns = 0;
        for (int i = 0; i < 8; i++)
            s = s << 8 | p[i];
        for (int i = 8; i < 12; i++)
            ns = ns << 8 | p[i];
        if (s + 1 < near || s > near || ns >= 1000000000)
            continue;
        uint64_t t = s * 1000000000 + ns - (uint64_t)ms * 1000000;
        for (int i = 0; i < 8; i++)
            p[i] = (uint8_t)(t / 1000000000 >> (56 - 8 * i));
        for (int i = 0; i < 4; i++)
            p[8 + i] = (uint8_t)(t % 1000000000 >> (24 - 8 * i));
        assert_true(xl_session_seal(w->kept.bytes, w->kept.len));
        return;
    }
    fail_msg("the session has no time of arrival");
}

TEST(a_client_may_be_a_second_ahead_with_the_age_of_its_ticket) {
    const uint32_t ahead_ms[] = {0, 900, 5000};
    for (int i = 0; i < 3; i++) {
        world w;
        world_known(&w, 27);
        make_older(&w, ahead_ms[i]);
        come_back(&w);
        assert_true(early_event(&w.p));
        finish(&w, pair_ask(&w.p, 2000));
        pair_handshake(&w.p);
        assert_int_equal(ahead_ms[i] < 1000, xl_connection_is_early_accepted(w.p.cc));
        assert_true(xl_connection_is_resumed(w.p.cc));
        pair_free(&w.p);
    }
}

/* RFC 9001 section 4.6.1. */
WORLD_TEST(a_ticket_with_a_limit_of_early_data_is_a_violation) {
    uint8_t ticket[] = {4, 0, 0, 23, 0, 0, 0x0e, 0x10, 1, 2, 3, 4, 1, 0, 0, 1, 9, 0, 8, 0, 42, 0, 4, 0, 0, 0x40, 0};
    world_init(w, 25);
    meet(w);
    unsigned saves = w->kept.saves;
    assert_int_equal(-1, xl_tls_receive(w->p.cc->handshake.tls, XL_LEVEL_APP, ticket, sizeof ticket));
    assert_true(xl_tls_is_violation(w->p.cc->handshake.tls));
    assert_int_equal(saves, w->kept.saves);
}

WORLD_TEST(a_server_cannot_have_a_session_saved_without_end) {
    world_init(w, 26);
    meet(w);
    unsigned saves = w->kept.saves;
    for (uint8_t i = 0; i < 100; i++)
        xl_tls_remember(w->p.cc->handshake.tls, XL_TLS_TOKEN, &i, 1);
    assert_in_range(w->kept.saves - saves, 1, 8);
}

TEST_MAIN(NULL, NULL)
