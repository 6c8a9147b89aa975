/* When a connection's qlog begins, and what it contains then. */
#include "testing/attack.h"

#include "connection/path_table.h"

typedef struct {
    pair p;
    unsigned opened, closed;
    pair_log log;
} logged;

static void *open_log(void *user, bool is_server, const uint8_t *odcid, size_t len) {
    logged *l = user;
    (void)odcid;
    assert_true(is_server && len >= 8);
    l->opened++;
    return l;
}

static void write_log(void *sink, const char *text, size_t len) {
    pair_log_write(&((logged *)sink)->log, text, len);
}

static void close_log(void *sink) {
    ((logged *)sink)->closed++;
}

static void start(logged *l, uint64_t seed) {
    memset(l, 0, sizeof *l);
    pair_init(&l->p, seed, 1, 10000);
    l->p.server_config.log =
        (xl_log){.user = l, .qlog_open = open_log, .qlog_write = write_log, .qlog_close = close_log};
    pair_connect(&l->p);
}

static void finish(logged *l) {
    pair_free(&l->p);
    free(l->log.text);
}

/* Delivers a client's first flight, with a ClientHello that is answered, and nothing more. */
static void send_first_flight(logged *l, uint64_t seed) {
    pair *p = &l->p;
    int error;
    uint8_t buf[PAIR_MTU];
    xl_datagram d;
    xl_config config = p->client_config;
    pair_seed(&config, seed);
    xl_endpoint *stranger = xl_endpoint_new(&config, p->now, &error);
    const xl_addr from = pair_addr(9, (uint16_t)seed);
    assert_non_null(xl_endpoint_connect(stranger, "localhost", &from, &p->link[0].server, XL_TECH_WIFI, p->now));
    while (xl_endpoint_transmit(stranger, buf, sizeof buf, &d, p->now) > 0) {
        const xl_datagram in = {.local = d.remote, .remote = d.local, .len = d.len};
        xl_endpoint_receive(p->server, &in, buf, p->now);
    }
    xl_endpoint_free(stranger);
}

TEST(first_packets_alone_open_no_log_on_a_server) {
    logged l;
    start(&l, 1);
    for (uint64_t i = 0; i < 100; i++)
        send_first_flight(&l, 1000 + i);
    assert_int_equal(100, l.p.server->count);
    pair_flush(&l.p); /* it answers them */
    assert_int_equal(0, l.opened);
    l.p.link[0].dark[0] = true;
    pair_run(&l.p, 60000000);
    assert_int_equal(0, l.opened);
    finish(&l);
    assert_int_equal(0, l.opened);
}

TEST(a_servers_log_begins_with_the_first_packet_though_it_is_opened_later) {
    logged l;
    start(&l, 2);
    while (!l.p.sc) {
        assert_true(pair_step(&l.p));
        assert_true(l.opened == 0 || l.p.server->connection[0]->level_discarded[XL_LEVEL_INITIAL]);
    }
    assert_int_equal(1, l.opened);
    pair_transfer(&l.p, 100000, 5000000);
    xl_connection_free(l.p.sc);
    assert_int_equal(1, l.opened);
    assert_int_equal(1, l.closed);
    static const char *const order[] = {"\"file_schema\"",
                                        "xlink:connection_started",
                                        "quic:packet_received\",\"data\":{\"header\":{\"packet_type\":\"initial\"",
                                        "quic:packet_sent\",\"data\":{\"header\":{\"packet_type\":\"initial\"",
                                        "\"packet_type\":\"handshake\"",
                                        "xlink:handshake_complete"};
    const char *at = l.log.text;
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++) {
        at = strstr(at, order[k]);
        if (!at)
            fail_msg("%s is not in the log, or not in its place", order[k]);
    }
    assert_null(strstr(l.log.text, "xlink:events_omitted"));
    finish(&l);
}

/* Acknowledgements come back on another path, so that nothing else has the RTT. */
ATTACK_TEST(an_rtt_that_a_path_response_measures_is_in_the_log) {
    pair *p = &a->p;
    pair_init_multipath(p, 1, 2, 10000);
    pair_capture_qlog(p);
    pair_settle(p, 200000);
    a->to_server = true;
    a->w = xl_writer_of(a->frames, sizeof a->frames);
    xl_path *path = p->sc->path[1];
    xl_conn_enter(p->sc, p->now);
    xl_conn_start_rtt_probe(p->sc, path);
    p->link[1].dark[1] = true;
    pair_flush(p);
    p->now += 43210;
    xl_frame_put_path(&a->w, XL_FRAME_PATH_RESPONSE, path->validation.challenge);
    deliver(a);
    assert_int_equal(43210, path->rtt.latest);
    xl_connection_free(p->sc);
    p->sc = NULL;
    assert_non_null(strstr(p->qlog.text, "\"latest_rtt\":43.21"));
}

TEST_MAIN(NULL, NULL)
