/* Somebody on the way who has no keys but those of Initial packets, which everybody can make: it replays, changes, cuts
 * and joins what it saw, forges packets and sends from addresses that are not its own. A connection that is up does not
 * mind, and nobody is sent more than three times what came from there (RFC 9000 sections 8.1, 9.3, 21.1). */
#include "testing/pair.h"

#define SEEN_MOST  64
#define STRANGERS  256
#define ROUNDS     60
#define EVIL_BYTES (2 * (PAIR_MTU + 64))

/* Few by default, so that the test is short; RAILYARD_FUZZ_RUNS=20000 takes a night. */
static uint64_t runs(uint64_t few) {
    const char *wanted = getenv("RAILYARD_FUZZ_RUNS");
    return wanted ? strtoull(wanted, NULL, 10) : few;
}

typedef struct {
    bool to_server;
    size_t len;
    uint8_t data[PAIR_MTU + 64];
} sight;

typedef struct {
    pair p;
    xl_random random;
    sight seen[SEEN_MOST];
    size_t seen_count;
} outsider;

static uint64_t below(outsider *o, uint64_t n) {
    return (xl_random_next(&o->random) >> 11) % n;
}

static void see(void *user, bool to_server, uint8_t *data, size_t len) {
    outsider *o = user;
    sight *s = &o->seen[o->seen_count < SEEN_MOST ? o->seen_count++ : below(o, SEEN_MOST)];
    s->to_server = to_server;
    s->len = len;
    memcpy(s->data, data, len);
}

static size_t flip(outsider *o, uint8_t *data, size_t len, size_t within) {
    for (uint64_t n = 1 + below(o, 4); n > 0; n--)
        data[below(o, len < within ? len : within)] ^= (uint8_t)(1u << below(o, 8));
    return len;
}

/* A datagram that was seen, as it was or changed. */
static size_t from_sight(outsider *o, uint8_t *out, bool *to_server) {
    const sight *s = &o->seen[below(o, o->seen_count)], *other = &o->seen[below(o, o->seen_count)];
    memcpy(out, s->data, s->len);
    *to_server = s->to_server;
    switch (below(o, 5)) {
    case 0:
        return 1 + below(o, s->len);
    case 1:
        return flip(o, out, s->len, s->len);
    case 2:
        return flip(o, out, s->len, 40);
    case 3: /* two in one datagram */
        memcpy(out + s->len, other->data, other->len);
        return s->len + other->len;
    default:
        return s->len;
    }
}

static void put_frames(outsider *o, xl_writer *w) {
    static const uint8_t noise[64] = {0x16, 0x03, 0x01};
    switch (below(o, 4)) {
    case 0:
        xl_frame_put_crypto_header(w, below(o, 70000), sizeof noise);
        xl_write_bytes(w, noise, sizeof noise);
        break;
    case 1:
        xl_frame_put_ack(w, &(xl_ack_range){0, below(o, 9)}, 1, below(o, 1000), XL_FRAME_ACK, 0, false, NULL);
        break;
    case 2:
        xl_frame_put_close(w, false, below(o, 20), 0, "go away");
        break;
    default:
        xl_write_varint(w, XL_FRAME_PING);
    }
}

/* An Initial that decrypts. */
static size_t forge_initial(outsider *o, uint8_t *out, bool to_server) {
    const xl_connection *c = o->p.cc;
    xl_keys *client = NULL, *server = NULL;
    xl_writer w = xl_writer_of(out, PAIR_MTU - XL_AEAD_TAG);
    const xl_cid *dcid = to_server ? &c->handshake.odcid : &c->local_cids.at[0].cid;
    const xl_cid *scid = to_server ? &c->local_cids.at[0].cid : &c->handshake.initial_scid_peer;
    uint64_t pn = below(o, 20);
    size_t length_at;
    xl_packet_put_long(&w, XL_VERSION_1, XL_PACKET_INITIAL, dcid, scid, NULL, 0, pn, 4, out, &length_at);
    uint8_t *payload = w.p;
    put_frames(o, &w);
    while (w.p - out < 1200 - XL_AEAD_TAG)
        xl_write_u8(&w, 0);
    size_t n = (size_t)(w.p - payload);
    xl_packet_set_length(out, length_at, 4 + n + XL_AEAD_TAG);
    assert_int_equal(0, xl_keys_initial(XL_VERSION_1, &c->handshake.odcid, &client, &server));
    assert_true(xl_keys_protect(to_server ? client : server, 0, pn, out, (size_t)(payload - out) - 4, 4, n) > 0);
    xl_keys_free(client);
    xl_keys_free(server);
    return 1200;
}

static size_t make_noise(outsider *o, uint8_t *out) {
    static const uint8_t first[] = {0x40, 0x43, 0xc0, 0xc3, 0xd0, 0xe3, 0xf0, 0x80};
    size_t len = 21 + below(o, 1400);
    xl_random_bytes(&o->random, out, len);
    out[0] = first[below(o, sizeof first)];
    if (below(o, 2)) { /* as a long header it makes sense */
        memcpy(out + 1, below(o, 4) ? "\0\0\0\1" : "\0\0\0\0", 4);
        out[5] = 8;
        memcpy(out + 6, o->p.cc->local_cids.at[0].cid.id, 8);
        out[14] = (uint8_t)below(o, 24);
    } else { /* claims to be a stateless reset */
        memcpy(out + 1, o->p.cc->local_cids.at[0].cid.id, 8);
    }
    return len;
}

static void interfere(outsider *o) {
    uint8_t buf[EVIL_BYTES];
    bool to_server = below(o, 2);
    pair_link *l = &o->p.link[0];
    uint64_t kind = below(o, 8);
    size_t len = kind < 5    ? from_sight(o, buf, &to_server)
                 : kind == 5 ? forge_initial(o, buf, to_server)
                             : make_noise(o, buf);
    xl_datagram d = {.local = to_server ? l->server : l->client, .remote = to_server ? l->client : l->server};
    if (below(o, 3) == 0)
        d.remote = pair_addr((uint8_t)(100 + below(o, 100)), (uint16_t)below(o, 65536));
    d.len = len;
    uint8_t *exact = malloc(len); /* an exact buffer, so that a read past the end is noticed */
    assert_non_null(exact);
    memcpy(exact, buf, len);
    xl_endpoint_receive(to_server ? o->p.server : o->p.client, &d, exact, o->p.now);
    free(exact);
}

TEST(a_connection_that_is_up_does_not_mind_outsiders) {
    outsider *o = malloc(sizeof *o);
    assert_non_null(o);
    for (uint64_t seed = 1; seed <= runs(40); seed++) {
        memset(o, 0, sizeof *o);
        xl_random_seed(&o->random, seed * 104729);
        pair_init(&o->p, seed, 1 + seed % 2, 5000);
        if (seed % 3)
            pair_multipath(&o->p, "xlink", "stream");
        o->p.tamper = see;
        o->p.tamper_user = o;
        pair_establish(&o->p);
        size_t request = pair_ask(&o->p, 300000);
        for (int k = 0; k < ROUNDS && !o->p.request[request].done; k++) {
            for (uint64_t n = below(o, 4); n > 0; n--)
                interfere(o);
            pair_step(&o->p);
        }
        assert_true(pair_finish(&o->p, request, 60000000) != UINT64_MAX);
        assert_true(xl_conn_is_live(o->p.cc) && xl_conn_is_live(o->p.sc));
        pair_free(&o->p);
    }
    free(o);
}

/* During the handshake it can do harm (RFC 9000 section 21.1.1), but the endpoints end in order. */
TEST(a_handshake_that_is_disturbed_ends_one_way_or_the_other) {
    outsider *o = malloc(sizeof *o);
    assert_non_null(o);
    for (uint64_t seed = 1; seed <= runs(60); seed++) {
        memset(o, 0, sizeof *o);
        xl_random_seed(&o->random, seed * 48271);
        pair_init(&o->p, seed, 1, 5000);
        o->p.tamper = see;
        o->p.tamper_user = o;
        pair_connect(&o->p);
        pair_flush(&o->p);
        for (int k = 0; k < ROUNDS && !o->p.client_closed; k++) {
            for (uint64_t n = below(o, 3); n > 0; n--)
                interfere(o);
            pair_step(&o->p);
        }
        pair_run(&o->p, 100000000);
        assert_true(o->p.client_closed); /* by the idle timeout at the latest */
        /* A copy of the client's first packet from elsewhere may have made a second one. The application frees them. */
        for (size_t i = 0; i < o->p.server->count; i++)
            assert_int_equal(XL_CONN_CLOSED, o->p.server->connection[i]->state);
        pair_free(&o->p);
    }
    free(o);
}

/* Genuine first packets, with the sender's address changed. */
PAIR_TEST(strangers_are_sent_at_most_three_times_what_came_from_them) {
    uint8_t buf[PAIR_MTU + 64];
    xl_datagram d;
    uint64_t sent_to[STRANGERS] = {0};
    pair_init(p, 1, 1, 5000);
    p->server_config.limits.retry_above = STRANGERS / 2;
    pair_connect(p);
    for (uint16_t i = 0; i < STRANGERS; i++) {
        const xl_addr from = pair_addr(99, i);
        xl_connection *c = xl_endpoint_connect(p->client, "localhost", &from, &p->link[0].server, XL_TECH_LTE, p->now);
        while ((d.len = xl_endpoint_transmit(p->client, buf, PAIR_MTU, &d, p->now)) > 0 && d.local.port != i)
            ;
        assert_int_equal(XL_MIN_DATAGRAM, d.len);
        xl_connection_free(c);
        xl_endpoint_receive(p->server, &(xl_datagram){.local = p->link[0].server, .remote = from, .len = d.len}, buf,
                            p->now);
    }
    for (uint64_t end = p->now + 60000000; p->now < end;) {
        xl_event e;
        while (xl_endpoint_transmit(p->server, buf, PAIR_MTU, &d, p->now) > 0)
            if (d.remote.ip[3] == 99)
                sent_to[d.remote.port] += d.len;
        while (xl_endpoint_poll_event(p->server, &e))
            if (e.type == XL_EVENT_CLOSED)
                xl_connection_free(e.connection);
        uint64_t at = xl_endpoint_next_timeout(p->server);
        p->now = at < end ? (at > p->now ? at : p->now) : end;
        xl_endpoint_handle_timeout(p->server, p->now);
    }
    unsigned answered = 0;
    for (size_t i = 0; i < STRANGERS; i++) {
        assert_true(sent_to[i] <= 3 * XL_MIN_DATAGRAM);
        answered += sent_to[i] > 0;
    }
    assert_int_equal(STRANGERS, answered);
    xl_endpoint_stats stats;
    xl_endpoint_get_stats(p->server, &stats);
    assert_int_equal(0, stats.connections);
}

static size_t cids_in_use(const xl_cids *cids) {
    size_t n = 0;
    for (size_t i = 0; i < cids->count; i++)
        n += cids->at[i].in_use;
    return n;
}

/* The CIDs of the other paths can be seen on the way: packets carry them in plain. */
TEST(forged_datagrams_take_neither_paths_nor_connection_ids) {
    static const size_t sizes[] = {21, 24, 40, 1200};
    for (int multipath = 0; multipath < 2; multipath++) {
        pair p;
        uint8_t data[1200];
        pair_init(&p, 5, 2, 5000);
        if (multipath)
            pair_multipath(&p, "minrtt", "none");
        pair_settle(&p, 300000);
        size_t paths = p.sc->path_count, cids = cids_in_use(&p.sc->remote_cids);
        for (size_t i = 0; i < 4 * p.sc->local_cids.count; i++) {
            const xl_cid *cid = &p.sc->local_cids.at[i / 4].cid;
            memset(data, (int)i, sizeof data);
            data[0] = 0x43;
            memcpy(data + 1, cid->id, cid->len);
            xl_datagram d = {
                .local = p.link[0].server, .remote = pair_addr(200, (uint16_t)(1000 + i)), .len = sizes[i % 4]};
            xl_endpoint_receive(p.server, &d, data, p.now);
            pair_run(&p, 1000);
        }
        assert_int_equal(paths, p.sc->path_count);
        assert_int_equal(cids, cids_in_use(&p.sc->remote_cids));
        if (multipath) {
            xl_addr third = pair_addr(2, 4001);
            p.link[p.link_count] = p.link[0];
            p.link[p.link_count++].client = third;
            int index = xl_connection_add_path(p.cc, &third, &p.link[0].server, XL_TECH_LTE, p.now);
            pair_run(&p, 300000);
            assert_int_equal(XL_PATH_ACTIVE, p.cc->path[index]->state);
        }
        assert_int_not_equal(UINT64_MAX, pair_finish(&p, pair_ask(&p, 100000), 5000000));
        pair_free(&p);
    }
}

TEST_MAIN(NULL, NULL)
