/* Probes of the handshake repair what was lost: each carries CRYPTO data while any is not acknowledged (RFC 9002
 * section 6.2.4). Some servers close the connection if a client's first packet has none. */
#include "testing/pair.h"

#include "connection/acks.h"
#include "connection/state.h"

typedef struct {
    pair *p;
    bool from_server;
    unsigned packets[XL_LEVEL_COUNT], without[XL_LEVEL_COUNT]; /* ack-eliciting ones; those without CRYPTO */
} observer;

/* Returns the keys of the sending side, which it has while the level is in use. */
static const xl_keys *keys_of(const observer *o, xl_level level) {
    const xl_endpoint *ep = o->from_server ? o->p->server : o->p->client;
    return ep && ep->count > 0 ? ep->connection[0]->level[level].write : NULL;
}

static void look(observer *o, const xl_packet_header *h, const uint8_t *packet) {
    xl_level level = h->type == XL_PACKET_INITIAL ? XL_LEVEL_INITIAL : XL_LEVEL_HANDSHAKE;
    const xl_keys *keys = keys_of(o, level);
    uint8_t copy[PAIR_MTU + 64], *payload;
    uint64_t pn;
    size_t pn_len;
    if (!keys || (h->type != XL_PACKET_INITIAL && h->type != XL_PACKET_HANDSHAKE))
        return;
    memcpy(copy, packet, h->total_len);
    assert_int_equal(0, xl_keys_unmask(keys, copy, h->total_len, h->pn_offset, &pn, &pn_len));
    ssize_t n = xl_keys_open(keys, 0, pn, copy, h->total_len, h->pn_offset, pn_len, &payload);
    assert_true(n > 0);
    xl_reader r = xl_reader_of(payload, (size_t)n);
    xl_frame f;
    bool is_eliciting = false, has_crypto = false;
    while (xl_reader_left(&r) > 0) {
        assert_int_equal(0, xl_frame_parse(&r, false, &f));
        is_eliciting |= !xl_frame_info_of(f.type)->is_silent;
        has_crypto |= f.type == XL_FRAME_CRYPTO && f.crypto.len > 0;
    }
    o->packets[level] += is_eliciting;
    o->without[level] += is_eliciting && !has_crypto;
}

static void on_datagram(void *user, bool to_server, uint8_t *data, size_t len) {
    observer *o = user;
    xl_packet_header h;
    for (size_t at = 0; to_server != o->from_server && at < len; at += h.total_len) {
        assert_int_equal(0, xl_packet_parse(data + at, len - at, XL_LOCAL_CID_BYTES, &h));
        look(o, &h, data + at);
    }
}

static void observe(observer *o, pair *p, bool from_server) {
    *o = (observer){.p = p, .from_server = from_server};
    p->tamper = on_datagram;
    p->tamper_user = o;
}

/* RFC 9002 section 6.2.1. The server has acknowledged the Finished; its HANDSHAKE_DONE is still to come. */
PAIR_TEST(application_data_sets_no_probe_timeout_before_the_handshake_is_confirmed) {
    pair_init(p, 1, 1, 10000);
    pair_connect(p);
    while (!p->cc->handshake.is_complete)
        pair_step(p);
    pair_ask(p, 1000);
    pair_flush(p);
    p->link[0].dark[1] = true;
    xl_connection *c = p->cc;
    xl_space *space = &c->space[XL_LEVEL_HANDSHAKE];
    assert_true(!c->handshake.is_confirmed && space->ledger.next_pn > space->ledger.first_pn);
    xl_ack_frame ack = {.range_count = 1, .ranges = {{space->ledger.start, space->ledger.next_pn - 1}}};
    xl_conn_enter(c, p->now);
    assert_int_equal(0, xl_conn_take_ack(c, space, c->path[0], &ack));
    assert_true(c->path[0]->flight.eliciting > 0);
    pair_run(p, 3000000);
    assert_int_equal(0, c->path[0]->stats.pto_count);
    p->link[0].dark[1] = false;
    pair_run(p, 5000000);
    assert_true(p->request[0].done);
}

/* RFC 9002 section A.3: each packet number space has its own timer. Later requests do not postpone the Finished's. */
PAIR_TEST(application_data_does_not_put_off_the_probe_timeout_of_the_handshake) {
    pair_init(p, 1, 1, 10000);
    pair_connect(p);
    while (!p->cc->handshake.is_complete)
        pair_step(p);
    p->link[0].dark[1] = true;
    const xl_path *path = p->cc->path[0];
    const uint64_t due = p->now + xl_rtt_pto(&path->ack_rtt, 0);
    for (int i = 0; i < 3; i++) {
        pair_run(p, 5000);
        pair_ask(p, 1000);
    }
    pair_run(p, due - 1 - p->now);
    assert_false(p->cc->handshake.is_confirmed);
    assert_int_equal(0, path->stats.pto_count);
    pair_run(p, 2);
    assert_int_equal(1, path->stats.pto_count);
}

PAIR_TEST(each_probe_of_a_client_carries_its_client_hello) {
    observer o;
    pair_init(p, 1, 1, 10000);
    observe(&o, p, false);
    p->link[0].dark[1] = true;
    pair_connect(p);
    pair_run(p, 8000000);
    assert_in_range(o.packets[XL_LEVEL_INITIAL], 5, 20);
    assert_int_equal(0, o.without[XL_LEVEL_INITIAL]);
}

PAIR_TEST(each_probe_of_a_server_carries_its_flight) {
    observer o;
    pair_init(p, 2, 1, 10000);
    observe(&o, p, true);
    pair_connect(p);
    pair_run(p, 15000); /* the ClientHello has arrived */
    p->link[0].dark[0] = true;
    p->server_config.limits.handshake_timeout_us = 60000000;
    assert_int_equal(1, p->server->count);
    p->server->connection[0]->path[0]->validation.received_bytes = 100000; /* as if more had come from the client */
    pair_run(p, 8000000);
    assert_true(o.packets[XL_LEVEL_HANDSHAKE] > 3 && o.packets[XL_LEVEL_INITIAL] > 3);
    assert_int_equal(0, o.without[XL_LEVEL_INITIAL]);
    assert_int_equal(0, o.without[XL_LEVEL_HANDSHAKE]);
}

PAIR_TEST(each_probe_of_a_client_carries_its_finished) {
    observer o;
    pair_init(p, 3, 1, 10000);
    pair_connect(p);
    while (p->now < PAIR_START + 1000000 && !p->cc->handshake.is_complete)
        pair_step(p);
    pair_set_dark(&p->link[0], false);
    p->link[0].loss = 0;
    observe(&o, p, false);
    p->link[0].dark[1] = true; /* the server's answer to it is lost */
    pair_run(p, 4000000);
    assert_false(p->cc->handshake.is_confirmed);
    assert_in_range(o.packets[XL_LEVEL_HANDSHAKE], 2, 20);
    assert_int_equal(0, o.without[XL_LEVEL_HANDSHAKE]);
}

TEST_MAIN(NULL, NULL)
