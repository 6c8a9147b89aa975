#include "testing/pair.h"

TEST(unknown_names_are_refused) {
    pair p;
    pair_init(&p, 1, 1, 10000);
    int error = 0;
    const char *good[] = {p.client_config.scheme.scheduler, p.client_config.scheme.reinjection,
                          p.client_config.scheme.cc};
    for (int i = 0; i < 3; i++) {
        xl_config c = p.client_config;
        const char **field[] = {&c.scheme.scheduler, &c.scheme.reinjection, &c.scheme.cc};
        *field[i] = "nonesuch";
        assert_null(xl_endpoint_new(&c, 0, &error));
        assert_int_equal(XL_ERR_ARGUMENT, error);
        assert_non_null(good[i]);
    }
    xl_credentials_free(p.client_credentials);
    xl_credentials_free(p.server_credentials);
}

/* Otherwise every connection would fail, a server's silently. */
TEST(what_no_connection_could_begin_with_is_refused) {
    pair p;
    pair_init(&p, 1, 1, 10000);
    int error = 0;
    const xl_config good = p.server_config;
    xl_config bad[12];
    for (size_t i = 0; i < 12; i++)
        bad[i] = good;
    bad[0].limits.max_data = UINT64_MAX;
    bad[1].limits.max_stream_data = UINT64_C(1) << 62;
    bad[2].limits.max_streams_bidi = (UINT64_C(1) << 60) + 1;
    bad[3].limits.max_streams_uni = UINT64_MAX;
    bad[4].limits.max_datagram_frame_bytes = SIZE_MAX;
    bad[5].limits.path_mtu_bytes = XL_MIN_DATAGRAM - 1;
    bad[6].limits.versions = XL_VERSIONS_BOTH + 1;
    bad[7].alpn = "";
    bad[8].alpn = "h3,";
    bad[9].alpn = "a,b,c,d,e,f,g,h,i";
    char long_name[257];
    memset(long_name, 'a', 256);
    long_name[256] = '\0';
    bad[10].alpn = long_name;
    bad[11].credentials = p.client_credentials;
    for (size_t i = 0; i < 12; i++) {
        assert_null(xl_endpoint_new(&bad[i], 0, &error));
        assert_int_equal(XL_ERR_ARGUMENT, error);
    }
    xl_config most = good;
    most.limits.max_data = most.limits.max_stream_data = (UINT64_C(1) << 62) - 1;
    most.limits.max_streams_bidi = most.limits.max_streams_uni = UINT64_C(1) << 60;
    most.alpn = long_name + 1;
    xl_endpoint *ep = xl_endpoint_new(&most, 0, &error);
    assert_non_null(ep);
    xl_endpoint_free(ep);
    xl_credentials_free(p.client_credentials);
    xl_credentials_free(p.server_credentials);
}

PAIR_TEST(a_limit_of_zero_is_its_default) {
    xl_limits defaults;
    xl_limits_init(&defaults);
    pair_init(p, 1, 1, 10000);
    p->server_config.limits = (xl_limits){.retry_above = 7};
    pair_connect(p);
    const xl_limits *l = &p->server->config.limits;
    assert_int_equal(defaults.idle_timeout_us, l->idle_timeout_us);
    assert_int_equal(defaults.datagram_queue_bytes, l->datagram_queue_bytes);
    assert_int_equal(defaults.path_management.reopen_us, l->path_management.reopen_us);
    assert_int_equal(7, l->retry_above);
}

PAIR_TEST(addresses_that_no_path_joins_are_refused) {
    pair_init(p, 1, 1, 10000);
    pair_establish(p);
    const xl_addr v4 = p->link[0].client, v6 = {.family = 6, .ip = {0x20, 1}, .port = 1}, unset = {0},
                  odd = {.family = 9};
    const xl_addr *const wrong[][2] = {{&v6, &v4},    {&v4, &v6},       {&unset, &v4},
                                       {&v4, &unset}, {&unset, &unset}, {&odd, &odd}};
    for (size_t i = 0; i < 6; i++) {
        assert_null(xl_endpoint_connect(p->client, "a", wrong[i][0], wrong[i][1], XL_TECH_UNKNOWN, p->now));
        assert_int_equal(XL_ERR_ARGUMENT,
                         xl_connection_add_path(p->cc, wrong[i][0], wrong[i][1], XL_TECH_UNKNOWN, p->now));
    }
}

/* The sum of the time and the limit must not overflow. */
PAIR_TEST(a_handshake_may_have_no_time_limit) {
    pair_init(p, 1, 1, 10000);
    p->client_config.limits.handshake_timeout_us = p->server_config.limits.handshake_timeout_us = XL_NEVER;
    pair_establish(p);
    assert_false(p->client_closed);
}

/* Delivers one datagram to the server and returns the length of its answer, or 0. */
static size_t answer(pair *p, uint8_t *data, size_t len, uint8_t *out) {
    xl_datagram d = {.local = p->link[0].server, .remote = p->link[0].client, .len = len}, to;
    xl_endpoint_receive(p->server, &d, data, p->now);
    size_t n = xl_endpoint_transmit(p->server, out, PAIR_MTU, &to, p->now);
    if (n)
        assert_true(xl_addr_equal(&to.remote, &p->link[0].client));
    return n;
}

PAIR_TEST(an_unknown_version_is_answered_with_ours) {
    pair_init(p, 2, 1, 10000);
    pair_connect(p);
    uint8_t data[1200] = {0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8, 1, 2, 3, 4, 5, 6, 7, 8, 4, 9, 9, 9, 9}, out[PAIR_MTU];
    size_t n = answer(p, data, sizeof data, out);
    xl_packet_header h;
    assert_int_equal(0, xl_packet_parse(out, n, 8, &h));
    assert_int_equal(XL_PACKET_VERSION_NEGOTIATION, h.type);
    assert_int_equal(4, h.dcid.len); /* CIDs are swapped */
    assert_int_equal(8, h.scid.len);
    bool has_version_1 = false;
    for (size_t i = 0; i + 4 <= h.token_len; i += 4)
        has_version_1 |= memcmp(h.token + i, "\0\0\0\1", 4) == 0;
    assert_true(has_version_1);
    data[1] = 0x1a;
    assert_int_equal(0, answer(p, data, 600, out)); /* too short to deserve an answer (RFC 9000 section 6.1) */
}

/* Answers the client's first packet by a Version Negotiation that lists this version. */
static void negotiate(pair *p, uint64_t seed, uint8_t version) {
    pair_init(p, seed, 1, 10000);
    pair_connect(p);
    uint8_t first[PAIR_MTU], vn[64];
    xl_datagram d;
    size_t n = xl_endpoint_transmit(p->client, first, PAIR_MTU, &d, p->now);
    xl_packet_header h;
    assert_int_equal(0, xl_packet_parse(first, n, 8, &h));
    n = xl_packet_put_version_negotiation(vn, sizeof vn, &h.scid, &h.dcid, XL_VERSIONS_1, 7);
    uint8_t *listed = memmem(vn, n, "\0\0\0\1", 4);
    assert_non_null(listed);
    listed[3] = version;
    pair_inject(p, false, &p->link[0], vn, n);
    pair_events(p);
}

PAIR_TEST(a_client_gives_up_when_the_server_lacks_version_1) {
    negotiate(p, 3, 9);
    assert_true(p->client_closed && p->client_close.close_reason == XL_CLOSE_VERSION);
}

PAIR_TEST(a_client_ignores_a_version_negotiation_that_lists_version_1) {
    negotiate(p, 3, 1);
    assert_false(p->client_closed);
    pair_handshake(p); /* sends its first packet again */
    assert_true(p->cc->handshake.is_confirmed);
}

PAIR_TEST(a_lost_server_state_is_told_by_stateless_reset) {
    pair_init(p, 4, 1, 10000);
    pair_settle(p, 100000);
    /* The server restarts with the same seed, and so with the same reset key, and without its connections. */
    xl_endpoint_free(p->server);
    int error;
    p->server = xl_endpoint_new(&p->server_config, p->now, &error);
    p->sc = NULL;
    pair_ask(p, 1000);
    pair_run(p, 500000);
    assert_true(p->client_closed && p->client_close.close_reason == XL_CLOSE_STATELESS_RESET);
    assert_string_equal("stateless reset", p->client_close.reason);
}

PAIR_TEST(resets_are_shorter_than_what_they_answer) {
    pair_init(p, 5, 1, 10000);
    pair_connect(p);
    for (size_t len = 21; len < 200; len++) {
        uint8_t data[200] = {0x40, 1, 2, 3, 4, 5, 6, 7, 8}, out[PAIR_MTU];
        assert_true(answer(p, data, len, out) < len); /* so that two endpoints cannot answer each other for ever */
    }
}

PAIR_TEST(floods_are_bounded) {
    pair_init(p, 6, 1, 10000);
    p->server_config.limits.max_connections = 3;
    pair_connect(p);
    xl_datagram d, to;
    uint8_t data[1200], out[PAIR_MTU];
    for (unsigned i = 0; i < 100; i++) { /* unknown connections */
        memset(data, 0x40 + (int)(i % 8), sizeof data);
        pair_inject(p, true, &p->link[0], data, 100);
    }
    unsigned answers = 0;
    while (xl_endpoint_transmit(p->server, out, PAIR_MTU, &to, p->now) > 0)
        answers++;
    assert_true(answers <= XL_STATELESS_MAX);
    /* Genuine first packets of many clients: only as many connections as allowed. */
    for (uint64_t i = 0; i < 10; i++) {
        int error;
        xl_config c = p->client_config;
        pair_seed(&c, 1000 + i);
        xl_endpoint *client = xl_endpoint_new(&c, p->now, &error);
        xl_endpoint_connect(client, "localhost", &p->link[0].client, &p->link[0].server, XL_TECH_WIFI, p->now);
        size_t n = xl_endpoint_transmit(client, data, sizeof data, &d, p->now);
        pair_inject(p, true, &p->link[0], data, n);
        xl_endpoint_free(client);
    }
    assert_int_equal(3, p->server->count);
}

PAIR_TEST(first_packets_that_are_not_genuine_leave_nothing_behind) {
    pair_init(p, 12, 1, 10000);
    pair_connect(p);
    uint8_t first[PAIR_MTU];
    xl_datagram d;
    size_t n = xl_endpoint_transmit(p->client, first, PAIR_MTU, &d, p->now);
    d = (xl_datagram){.local = p->link[0].server, .remote = p->link[0].client, .len = n};
    first[n - 1] ^= 1;
    for (unsigned i = 0; i < 300; i++) {
        uint8_t copy[PAIR_MTU];
        memcpy(copy, first, n);
        xl_endpoint_receive(p->server, &d, copy, p->now);
    }
    assert_int_equal(0, p->server->count);
    assert_int_equal(0, p->server->map.count);
    assert_true(p->server->event_head == p->server->event_next);
    assert_int_equal(64, p->server->event_cap); /* there was one event of each */
    assert_true(XL_NEVER == xl_endpoint_next_timeout(p->server));
}

/* A server that asks for address validation: its Retry, made by hand. */
PAIR_TEST(a_client_follows_a_retry) {
    pair_init(p, 7, 1, 10000);
    pair_connect(p);
    uint8_t first[PAIR_MTU], retry[128];
    xl_datagram d;
    size_t n = xl_endpoint_transmit(p->client, first, PAIR_MTU, &d, p->now);
    xl_packet_header h;
    assert_int_equal(0, xl_packet_parse(first, n, 8, &h));
    size_t at = 0;
    memcpy(retry, "\xf0\0\0\0\1", 5);
    at = 5;
    retry[at++] = h.scid.len;
    memcpy(retry + at, h.scid.id, h.scid.len);
    at += h.scid.len;
    retry[at++] = 5;
    memcpy(retry + at, "RETRY", 5);
    at += 5;
    memcpy(retry + at, "a token", 7);
    at += 7;
    xl_cid odcid = h.dcid;
    assert_int_equal(0, xl_retry_tag(XL_VERSION_1, &odcid, retry, at, retry + at));
    at += 16;
    for (int forged = 1; forged >= 0; forged--) {
        uint8_t copy[128];
        memcpy(copy, retry, at);
        copy[at - 1] ^= (uint8_t)forged;
        pair_inject(p, false, &p->link[0], copy, at);
        n = xl_endpoint_transmit(p->client, first, PAIR_MTU, &d, p->now);
        assert_int_equal(forged ? 0 : 1200, n);
    }
    assert_int_equal(0, xl_packet_parse(first, n, 8, &h));
    assert_int_equal(7, h.token_len);
    assert_memory_equal("a token", h.token, 7);
    assert_int_equal(5, h.dcid.len);
}

PAIR_TEST(algorithms_change_in_mid_life) {
    pair_init_multipath(p, 8, 2, 10000);
    pair_settle(p, 100000);
    xl_scheme s = p->server_config.scheme;
    s.scheduler = "xlink";
    s.reinjection = "stream";
    s.cc = "newreno";
    s.ack_path = XL_ACK_FASTEST;
    s.qoe_control = true;
    s.t_th1_us = 123;
    s.t_th2_us = 456;
    assert_int_equal(0, xl_endpoint_reconfigure(p->server, &s, p->now));
    assert_string_equal("xlink", p->sc->scheduler->name);
    assert_string_equal("stream", p->sc->reinjection->name);
    assert_string_equal("cubic-tolerant", p->sc->cc->name); /* of later connections */
    assert_string_equal("newreno", p->server->config.scheme.cc);
    assert_true(p->sc->qoe.gate.enabled);
    assert_int_equal(123, p->sc->qoe.gate.t_th1_us);
    assert_int_equal(456, p->sc->qoe.gate.t_th2_us);
    assert_int_equal(XL_ACK_FASTEST, p->sc->config->scheme.ack_path);
    s.scheduler = "nonesuch";
    s.t_th1_us = 5;
    assert_int_equal(XL_ERR_ARGUMENT, xl_endpoint_reconfigure(p->server, &s, p->now));
    s.scheduler = "clairvoyant"; /* without foresight */
    assert_int_equal(XL_ERR_ARGUMENT, xl_endpoint_reconfigure(p->server, &s, p->now));
    assert_string_equal("xlink", p->sc->scheduler->name);
    assert_int_equal(123, p->sc->qoe.gate.t_th1_us);
    pair_finish(p, pair_ask(p, 500000), 5000000);
    assert_false(p->client_closed);
}

PAIR_TEST(limits_stay_when_the_algorithms_change) {
    pair_init(p, 9, 1, 10000);
    xl_limits *l = &p->server_config.limits;
    l->retry_above = 3;
    l->retry_always = l->migrate_back = l->path_management.enabled = true;
    l->migrate_ptos = 2;
    l->migrate_back_us = 7000000;
    l->probe_silence_us = 250000;
    l->standby_probe_us = 300000;
    l->max_stream_data = 100000;
    l->path_management.abandon_us = 3000000;
    pair_connect(p);
    xl_limits before = p->server->config.limits;
    xl_scheme other;
    xl_scheme_init(&other);
    other.scheduler = "xlink";
    assert_int_equal(0, xl_endpoint_reconfigure(p->server, &other, p->now));
    assert_string_equal("xlink", p->server->config.scheme.scheduler);
    assert_memory_equal(&before, &p->server->config.limits, sizeof before);
    pair_handshake(p);
    xl_endpoint_stats stats;
    xl_endpoint_get_stats(p->server, &stats);
    assert_int_equal(1, stats.retries); /* by the setting before the change */
}

/* Delivers first packets of n clients, all at one time. */
static void accept_many(pair *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        int error;
        uint8_t data[PAIR_MTU];
        xl_datagram d;
        xl_config c = p->client_config;
        pair_seed(&c, 1000 + i);
        xl_endpoint *client = xl_endpoint_new(&c, p->now, &error);
        xl_endpoint_connect(client, "localhost", &p->link[0].client, &p->link[0].server, XL_TECH_WIFI, p->now);
        size_t len = xl_endpoint_transmit(client, data, sizeof data, &d, p->now);
        pair_inject(p, true, &p->link[0], data, len);
        xl_endpoint_free(client);
    }
    assert_int_equal(n, p->server->count);
}

static void let_time_pass(pair *p, uint64_t deadline) {
    uint8_t data[PAIR_MTU];
    xl_datagram d;
    xl_event e;
    while (p->now < deadline) {
        while (xl_endpoint_transmit(p->server, data, sizeof data, &d, p->now) > 0)
            ;
        while (xl_endpoint_poll_event(p->server, &e))
            assert_int_not_equal(XL_EVENT_CLOSED, e.type);
        p->now = xl_endpoint_next_timeout(p->server);
        assert_true(p->now <= deadline);
        xl_endpoint_handle_timeout(p->server, p->now);
    }
}

/* No client sends any more. Runs until all handshakes have timed out at one moment, and then their closing periods. */
static void let_handshakes_time_out(pair *p) {
    let_time_pass(p, p->now + p->server_config.limits.handshake_timeout_us);
    let_time_pass(p, p->server->connection[0]->closing.deadline);
}

PAIR_TEST(timers_of_one_moment_run_in_the_order_of_the_connections) {
    pair_init(p, 9, 1, 10000);
    pair_connect(p);
    accept_many(p, 20);
    let_handshakes_time_out(p);
    xl_event e;
    for (size_t i = 0; i < 20; i++) {
        assert_true(xl_endpoint_poll_event(p->server, &e));
        assert_int_equal(XL_EVENT_CLOSED, e.type);
        assert_ptr_equal(p->server->connection[i], e.connection);
    }
    assert_false(xl_endpoint_poll_event(p->server, &e));
    assert_true(XL_NEVER == xl_endpoint_next_timeout(p->server));
}

PAIR_TEST(a_freed_connection_takes_along_what_waits_for_it) {
    pair_init(p, 10, 1, 10000);
    pair_connect(p);
    accept_many(p, 20);
    xl_connection *of[20];
    memcpy(of, p->server->connection, sizeof of);
    /* Each has something to send and an event for its first path. */
    static const size_t freed[] = {0, 19, 7, 8, 1, 18};
    for (size_t i = 0; i < sizeof freed / sizeof *freed; i++) {
        xl_connection_free(of[freed[i]]);
        of[freed[i]] = NULL;
        xl_endpoint_next_timeout(p->server);
    }
    xl_event e;
    for (size_t i = 0; i < 20; i++) {
        if (!of[i])
            continue;
        assert_true(xl_endpoint_poll_event(p->server, &e));
        assert_ptr_equal(of[i], e.connection);
        assert_ptr_equal(of[i], p->server->ready_head);
        uint8_t data[PAIR_MTU];
        xl_datagram d;
        assert_int_equal(1200, xl_endpoint_transmit(p->server, data, sizeof data, &d, p->now));
        assert_ptr_equal(of[i], p->server->ready_tail); /* to the end of the queue */
    }
    assert_false(xl_endpoint_poll_event(p->server, &e));
    let_handshakes_time_out(p);
    assert_true(XL_NEVER == xl_endpoint_next_timeout(p->server));
    while (p->server->count > 0)
        xl_connection_free(p->server->connection[p->server->count / 2]);
    assert_int_equal(0, p->server->map.count);
    assert_false(xl_endpoint_poll_event(p->server, &e));
    assert_null(p->server->ready_head);
    assert_null(p->server->ready_tail);
}

/* Deadlines are computed again only for touched connections, so every call has to touch its connection. */
PAIR_TEST(whatever_enters_a_connection_touches_it) {
    pair_init_multipath(p, 11, 2, 10000);
    pair_settle(p, 100000);
    uint64_t id;
    uint8_t data[PAIR_MTU] = {0};
    bool fin;
    xl_datagram d;
    xl_addr spare = pair_addr(9, 4000);
    xl_connection *c = p->cc;
#define TOUCHES(call)                                                                                                  \
    do {                                                                                                               \
        xl_endpoint_next_timeout(p->client);                                                                           \
        assert_false(c->slot.is_touched);                                                                              \
        (void)(call);                                                                                                  \
        assert_true(c->slot.is_touched);                                                                               \
    } while (0)
    TOUCHES(xl_stream_open(c, true, &id));
    TOUCHES(xl_stream_send(c, id, data, 1, false, NULL));
    TOUCHES(xl_stream_read(c, id, data, sizeof data, &fin));
    TOUCHES(xl_stream_set_priority(c, id, 1));
    TOUCHES(xl_stream_stop(c, id, 0));
    TOUCHES(xl_stream_reset(c, id, 0));
    TOUCHES((xl_connection_ping(c, p->now), 0));
    TOUCHES((xl_connection_set_qoe(c, &(xl_qoe){.bps = 1}, p->now), 0));
    TOUCHES(xl_connection_add_path(c, &spare, &p->link[0].server, XL_TECH_LTE, p->now));
    TOUCHES(xl_connection_set_path_status(c, 1, XL_STATUS_STANDBY, p->now));
    TOUCHES(xl_connection_close_path(c, 1, p->now));
    TOUCHES(xl_endpoint_reconfigure(p->client, &p->client_config.scheme, p->now));
    size_t len = 0;
    TOUCHES(len = xl_endpoint_transmit(p->client, data, sizeof data, &d, p->now));
    assert_true(len > 0);
    d = (xl_datagram){.local = p->link[0].client, .remote = p->link[0].server, .len = 100};
    data[0] = 0x40;
    memcpy(data + 1, c->local_cids.at[0].cid.id, c->local_cids.at[0].cid.len);
    TOUCHES((xl_endpoint_receive(p->client, &d, data, p->now), 0));
    TOUCHES((xl_endpoint_handle_timeout(p->client, xl_endpoint_next_timeout(p->client)), 0));
    TOUCHES((xl_connection_close(c, 0, "", p->now), 0));
#undef TOUCHES
}

TEST(cids_are_found_and_forgotten) {
    xl_cid_map m;
    assert_int_equal(0, xl_cid_map_init(&m, 1, 2));
    xl_random r;
    xl_random_seed(&r, 3);
    xl_cid cid[2000];
    static xl_connection owner[2];
    xl_connection *a = &owner[0], *b = &owner[1];
    for (size_t i = 0; i < 2000; i++) {
        cid[i].len = (uint8_t)(4 + i % 17);
        xl_random_bytes(&r, cid[i].id, cid[i].len);
        assert_int_equal(0, xl_cid_map_put(&m, &cid[i], i % 2 ? a : b));
    }
    for (size_t i = 0; i < 2000; i++)
        assert_ptr_equal(i % 2 ? a : b, xl_cid_map_get(&m, &cid[i]));
    xl_cid_map_remove(&m, &cid[7]);
    assert_null(xl_cid_map_get(&m, &cid[7]));
    xl_cid_map_remove_all_of(&m, b);
    assert_null(b->slot.cid_head);
    for (size_t i = 0; i < 2000; i++)
        assert_ptr_equal(i % 2 && i != 7 ? a : NULL, xl_cid_map_get(&m, &cid[i]));
    assert_int_equal(999, m.count);
    assert_int_equal(0, xl_cid_map_put(&m, &cid[1], b)); /* changes its connection */
    xl_cid_map_remove_all_of(&m, a);
    assert_int_equal(1, m.count);
    assert_ptr_equal(b, xl_cid_map_get(&m, &cid[1]));
    xl_cid_map_free(&m);
}

/* Carries datagrams between the server and a client that is not the pair's, until there are none. */
static void exchange(pair *p, xl_endpoint *client) {
    uint8_t buf[PAIR_MTU];
    xl_datagram d;
    for (bool any = true; any;) {
        any = false;
        while (xl_endpoint_transmit(client, buf, PAIR_MTU, &d, p->now) > 0) {
            xl_datagram in = {.local = d.remote, .remote = d.local, .len = d.len};
            xl_endpoint_receive(p->server, &in, buf, p->now);
            any = true;
        }
        while (xl_endpoint_transmit(p->server, buf, PAIR_MTU, &d, p->now) > 0) {
            xl_datagram in = {.local = d.remote, .remote = d.local, .len = d.len};
            xl_endpoint_receive(client, &in, buf, p->now);
            any = true;
        }
    }
}

PAIR_TEST(two_clients_with_one_seed_have_a_connection_each) {
    pair_init(p, 31, 1, 10000);
    pair_settle(p, 200000);
    int error;
    xl_endpoint *twin = xl_endpoint_new(&p->client_config, p->now, &error);
    xl_addr elsewhere = pair_addr(9, 4000);
    xl_connection *c = xl_endpoint_connect(twin, "localhost", &elsewhere, &p->link[0].server, XL_TECH_WIFI, p->now);
    assert_true(xl_cid_equal(&c->handshake.odcid, &p->cc->handshake.odcid));
    xl_connection *first = p->sc;
    exchange(p, twin);
    pair_events(p);
    p->sc = first;
    assert_true(c->handshake.is_confirmed);
    xl_endpoint_stats stats;
    xl_endpoint_get_stats(p->server, &stats);
    assert_int_equal(2, stats.connections);
    assert_true(pair_finish(p, pair_ask(p, 100000), 5000000) != UINT64_MAX); /* the first goes on */
    xl_endpoint_free(twin);
}

TEST_MAIN(NULL, NULL)
