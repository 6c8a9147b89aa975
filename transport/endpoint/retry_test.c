#include "testing/pair.h"
#include "crypto/crypto.h"
#include "endpoint/retry.h"
#include "wire/frame.h"

static const xl_addr HERE = {.family = 4, .ip = {192, 0, 2, 1}, .port = 4000};

typedef struct {
    uint8_t key[XL_RETRY_KEY_BYTES], retry[XL_RETRY_MAX_BYTES], token[XL_RETRY_MAX_BYTES];
    xl_packet_header initial; /* the client's first, then its second, which has the token */
    xl_cid scid, first_dcid;
} exchange;

static xl_cid cid_of(uint8_t len, uint8_t byte) {
    xl_cid cid = {.len = len};
    memset(cid.id, byte, len);
    return cid;
}

/* A Retry at `now`, and the Initial that answers it. */
static void exchange_init(exchange *e, uint8_t dcid_len, uint64_t now) {
    memcpy(e->key, (uint8_t[XL_RETRY_KEY_BYTES]){1, 2, 3}, sizeof e->key);
    e->first_dcid = cid_of(dcid_len, 0xdd);
    e->scid = cid_of(XL_MAX_CID_BYTES, 0x55);
    e->initial = (xl_packet_header){
        .type = XL_PACKET_INITIAL, .version = XL_VERSION_1, .dcid = e->first_dcid, .scid = cid_of(20, 0xcc)};
    size_t n = xl_retry_put(e->key, &e->initial, &HERE, &e->scid, 0x5a, now, e->retry, sizeof e->retry);
    assert_true(n > 0);
    xl_packet_header h;
    assert_int_equal(0, xl_packet_parse(e->retry, n, 8, &h));
    assert_int_equal(XL_PACKET_RETRY, h.type);
    assert_true(xl_cid_equal(&h.dcid, &e->initial.scid));
    assert_true(xl_cid_equal(&h.scid, &e->scid));
    uint8_t tag[XL_AEAD_TAG];
    assert_int_equal(0, xl_retry_tag(XL_VERSION_1, &e->first_dcid, e->retry, n - sizeof tag, tag));
    assert_memory_equal(tag, e->retry + n - sizeof tag, sizeof tag);
    memcpy(e->token, h.token, h.token_len);
    e->initial.token = e->token;
    e->initial.token_len = h.token_len;
    e->initial.dcid = e->scid;
}

static xl_token_verdict verdict(const exchange *e, const xl_addr *from, uint64_t now) {
    xl_cid odcid;
    return xl_retry_check(e->key, &e->initial, from, now, &odcid);
}

TEST(a_token_gives_back_the_first_destination) {
    for (uint8_t len = 8; len <= XL_MAX_CID_BYTES; len++) {
        exchange e;
        exchange_init(&e, len, 5000);
        xl_cid odcid;
        assert_int_equal(XL_TOKEN_VALID, xl_retry_check(e.key, &e.initial, &HERE, 6000, &odcid));
        assert_true(xl_cid_equal(&odcid, &e.first_dcid));
    }
}

TEST(a_token_is_of_one_address_one_retry_and_a_short_time) {
    exchange e;
    exchange_init(&e, 8, 5000);
    assert_int_equal(XL_TOKEN_VALID, verdict(&e, &HERE, 5000));
    assert_int_equal(XL_TOKEN_VALID, verdict(&e, &HERE, 5000 + XL_RETRY_LIFETIME_US));
    assert_int_equal(XL_TOKEN_INVALID, verdict(&e, &HERE, 5001 + XL_RETRY_LIFETIME_US));
    assert_int_equal(XL_TOKEN_INVALID, verdict(&e, &HERE, 4999)); /* issued in the future: of another clock */
    xl_addr other = HERE;
    other.port++;
    assert_int_equal(XL_TOKEN_INVALID, verdict(&e, &other, 5000));
    other = HERE;
    other.ip[3]++;
    assert_int_equal(XL_TOKEN_INVALID, verdict(&e, &other, 5000));
    other = HERE;
    other.family = 6;
    assert_int_equal(XL_TOKEN_INVALID, verdict(&e, &other, 5000));
    e.initial.dcid.id[0]++;
    assert_int_equal(XL_TOKEN_INVALID, verdict(&e, &HERE, 5000));
    e.initial.dcid.id[0]--;
    e.key[0]++;
    assert_int_equal(XL_TOKEN_INVALID, verdict(&e, &HERE, 5000));
}

TEST(every_changed_bit_and_every_cut_is_noticed) {
    exchange e;
    exchange_init(&e, 13, 5000);
    for (size_t bit = 0; bit < 8 * e.initial.token_len; bit++) {
        e.token[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(bit < 8 ? XL_TOKEN_NONE : XL_TOKEN_INVALID, verdict(&e, &HERE, 5000));
        e.token[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t len = e.initial.token_len; len-- > 0;) {
        e.initial.token_len = len;
        assert_int_not_equal(XL_TOKEN_VALID, verdict(&e, &HERE, 5000));
    }
    e.initial.token_len = XL_RETRY_MAX_BYTES;
    assert_int_equal(XL_TOKEN_NONE, verdict(&e, &HERE, 5000)); /* another server's */
}

TEST(nothing_is_written_past_the_buffer) {
    exchange e;
    exchange_init(&e, XL_MAX_CID_BYTES, 0);
    uint8_t buf[XL_RETRY_MAX_BYTES];
    size_t whole = xl_retry_put(e.key, &e.initial, &HERE, &e.scid, 0, 0, buf, sizeof buf);
    size_t refusal = xl_retry_put_refusal(&e.initial, XL_QERR_INVALID_TOKEN, buf, sizeof buf);
    assert_true(whole > 0 && refusal > 0);
    for (size_t cap = 0; cap < sizeof buf; cap++) {
        uint8_t *tight = malloc(cap + 1);
        assert_int_equal(cap >= whole ? whole : 0, xl_retry_put(e.key, &e.initial, &HERE, &e.scid, 0, 0, tight, cap));
        assert_int_equal(cap >= refusal ? refusal : 0,
                         xl_retry_put_refusal(&e.initial, XL_QERR_INVALID_TOKEN, tight, cap));
        free(tight);
    }
}

TEST(a_server_that_always_asks_serves_after_one_more_round_trip) {
    uint64_t done[2];
    for (int always = 0; always < 2; always++) {
        pair p;
        pair_init(&p, 3, 1, 10000);
        p.server_config.limits.retry_always = always;
        pair_establish(&p);
        size_t i = pair_ask(&p, 100000);
        pair_run(&p, 2000000);
        assert_true(p.request[i].done && !p.request[i].failed);
        done[always] = p.request[i].done_at;
        xl_endpoint_stats stats;
        xl_endpoint_get_stats(p.server, &stats);
        assert_int_equal(always, stats.retries);
        assert_int_equal(1, stats.connections);
        assert_int_equal(0, p.server->half_open);
        pair_free(&p);
    }
    assert_int_equal(20000, done[1] - done[0]);
}

/* RFC 9002 section 6.3. */
PAIR_TEST(a_retry_ends_the_backoff_of_probe_timeouts) {
    pair_init(p, 6, 1, 10000);
    p->server_config.limits.retry_always = true;
    p->link[0].dark[0] = true;
    pair_connect(p);
    pair_run(p, 3500000);
    assert_true(p->cc->path[0]->flight.pto_count >= 2);
    p->link[0].dark[0] = false;
    while (!p->cc->handshake.has_retry && pair_step(p))
        ;
    assert_int_equal(0, p->cc->path[0]->flight.pto_count);
}

PAIR_TEST(a_proven_address_is_not_limited_in_bytes) {
    pair_init(p, 3, 1, 10000);
    p->server_config.limits.retry_always = true;
    pair_connect(p);
    pair_run(p, 35000); /* Initial, Retry, Initial; the server's first flight is on its way */
    assert_int_equal(1, p->server->count);
    assert_int_equal(UINT64_MAX, xl_path_amplification_left(p->server->connection[0]->path[0]));
}

/* The first packet of a new client, taken from its endpoint, which is freed at the end of the test. */
typedef struct {
    xl_endpoint *endpoint;
    uint8_t data[PAIR_MTU];
    xl_datagram d;
} newcomer;

static void newcomer_init(newcomer *c, pair *p, uint64_t seed) {
    int error;
    xl_config config = p->client_config;
    pair_seed(&config, seed);
    c->endpoint = xl_endpoint_new(&config, p->now, &error);
    xl_addr from = pair_addr(9, (uint16_t)(1000 + seed));
    assert_non_null(xl_endpoint_connect(c->endpoint, "localhost", &from, &p->link[0].server, XL_TECH_WIFI, p->now));
    size_t n = xl_endpoint_transmit(c->endpoint, c->data, PAIR_MTU, &c->d, p->now);
    c->d = (xl_datagram){.local = p->link[0].server, .remote = from, .len = n};
}

static size_t server_takes(pair *p, const newcomer *c, uint8_t out[PAIR_MTU]) {
    uint8_t copy[PAIR_MTU];
    xl_datagram to;
    memcpy(copy, c->data, c->d.len);
    xl_endpoint_receive(p->server, &c->d, copy, p->now);
    return xl_endpoint_transmit(p->server, out, PAIR_MTU, &to, p->now);
}

PAIR_TEST(a_flood_of_handshakes_is_answered_without_remembering_it) {
    pair_init(p, 4, 1, 10000);
    p->server_config.limits.retry_above = 5;
    pair_connect(p);
    for (uint64_t i = 0; i < 50; i++) {
        newcomer c;
        uint8_t out[PAIR_MTU];
        xl_packet_header h;
        newcomer_init(&c, p, 100 + i);
        size_t n = 0, bytes = 0;
        xl_datagram to;
        for (n = server_takes(p, &c, out); n > 0 && i < 5;
             n = xl_endpoint_transmit(p->server, out, PAIR_MTU, &to, p->now))
            bytes += n;
        if (i >= 5) {
            assert_int_equal(0, xl_packet_parse(out, n, 8, &h));
            assert_int_equal(XL_PACKET_RETRY, h.type);
            bytes = n;
        }
        assert_true(bytes <= 3 * c.d.len);
        xl_endpoint_free(c.endpoint);
    }
    assert_int_equal(5, p->server->count);
    assert_int_equal(5, p->server->half_open);
    pair_run(p, 12000000); /* … and the pair's client succeeds, by Retry */
    assert_non_null(p->sc);
    assert_int_equal(6, p->server->count); /* the five were given up, and count until they are freed */
    for (size_t i = 6; i-- > 0;)
        if (p->server->connection[i] != p->sc)
            xl_connection_free(p->server->connection[i]);
    assert_int_equal(0, p->server->half_open);
}

/* RFC 9000 section 8.1.3: a client with an invalid token of ours gets an error at once. */
PAIR_TEST(an_invalid_token_is_refused_by_an_error) {
    pair_init(p, 5, 1, 10000);
    p->server_config.limits.retry_always = true;
    pair_connect(p);
    newcomer c;
    newcomer_init(&c, p, 1);
    uint8_t out[PAIR_MTU];
    size_t n = server_takes(p, &c, out);
    xl_datagram d = {.local = c.d.remote, .remote = c.d.local, .len = n};
    xl_endpoint_receive(c.endpoint, &d, out, p->now);
    c.d.len = xl_endpoint_transmit(c.endpoint, c.data, PAIR_MTU, &d, p->now); /* the second Initial */
    c.d.remote.port++;                                                        /* which comes from elsewhere */
    n = server_takes(p, &c, out);
    assert_int_equal(0, p->server->count);
    d = (xl_datagram){.local = d.local, .remote = d.remote, .len = n};
    xl_endpoint_receive(c.endpoint, &d, out, p->now);
    xl_endpoint_handle_timeout(c.endpoint, p->now + 10000000);
    xl_event e;
    bool is_closed = false;
    while (xl_endpoint_poll_event(c.endpoint, &e))
        if (e.type == XL_EVENT_CLOSED) {
            is_closed = true;
            assert_int_equal(XL_QERR_INVALID_TOKEN, e.error_code);
        }
    assert_true(is_closed);
    xl_endpoint_free(c.endpoint);
}

TEST_MAIN(NULL, NULL)
