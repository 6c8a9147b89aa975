/* Both sides of HTTP/3 against a peer that writes its streams by hand: frames and field sections of every kind, often
 * nearly valid, complete and truncated, in any order. The session responds, resets streams or closes the connection,
 * and closes every body that it has opened. */
#include "http/testing/http3_pair.h"

#define STREAMS_MOST 60
#define WRITES       40

/* Returns the number of runs: few by default; RAILYARD_FUZZ_RUNS=20000 takes a night. */
static uint64_t runs(uint64_t few) {
    const char *wanted = getenv("RAILYARD_FUZZ_RUNS");
    return wanted ? strtoull(wanted, NULL, 10) : few;
}

typedef struct {
    uint64_t random;
    bool is_wild; /* fatal errors are frequent; otherwise connections live longer */
    uint8_t data[4096];
    size_t len;
} writer;

static uint64_t below(writer *w, uint64_t n) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (w->random >> 11) % n;
}

/* Whether to write something that ends the connection. */
static bool dares(writer *w) {
    return below(w, w->is_wild ? 30 : 600) == 0;
}

static uint64_t number(writer *w) {
    static const uint64_t edges[] = {13, 63, 64, 255, 16383, 16384, 65536, UINT64_C(1) << 32, (UINT64_C(1) << 62) - 1};
    return below(w, 3) ? below(w, 10) : edges[below(w, sizeof edges / sizeof edges[0])];
}

static void put(writer *w, const void *data, size_t len) {
    if (len > sizeof w->data - w->len)
        return;
    memcpy(w->data + w->len, data, len);
    w->len += len;
}

static void put_u8(writer *w, uint64_t value) {
    put(w, &(uint8_t){(uint8_t)value}, 1);
}

static void put_varint(writer *w, uint64_t value) {
    unsigned log = value < 64 ? 0 : value < 16384 ? 1 : value < (1u << 30) ? 2 : 3;
    for (unsigned i = 1u << log; i-- > 0;)
        put_u8(w, (i + 1 == 1u << log ? log << 6 : 0u) | (uint8_t)(value >> 8 * i));
}

/* RFC 7541 section 5.1, as QPACK uses it. */
static void put_prefixed(writer *w, uint8_t first, unsigned bits, uint64_t value) {
    uint64_t most = (1u << bits) - 1;
    put_u8(w, first | (value < most ? value : most));
    if (value < most)
        return;
    for (value -= most; value >= 128; value >>= 7)
        put_u8(w, 0x80 | (value & 0x7f));
    put_u8(w, value);
}

static void put_string(writer *w, uint8_t first, unsigned bits, const char *text) {
    size_t len = strlen(text);
    put_prefixed(w, first, bits, dares(w) ? number(w) : len);
    put(w, text, len);
}

static void put_field(writer *w, const char *name, const char *value) {
    put_string(w, 0x20, 3, name);
    put_string(w, 0x00, 7, value);
}

static void put_frame(writer *w, uint64_t type, const writer *payload) {
    put_varint(w, type);
    put_varint(w, dares(w) ? number(w) : payload->len);
    put(w, payload->data, payload->len);
}

static const char *one_of(writer *w, const char *const *words) {
    size_t n = 0;
    while (words[n])
        n++;
    return words[below(w, w->is_wild ? 2 : 12) ? 0 : below(w, n)];
}

static void put_request_fields(writer *w) {
    static const char *const methods[] = {"GET", "HEAD", "POST", "CONNECT", "", NULL};
    static const char *const paths[] = {"/synthetic/1000", "/synthetic/18446744073709551616", "/../x", "", "x", NULL};
    static const char *const ranges[] = {
        "bytes=0-99", "bytes=0-18446744073709551615", "bytes=9-3", "bytes=-0", "lines=1", "bytes=", NULL};
    if (!dares(w))
        put_field(w, ":method", one_of(w, methods));
    if (!dares(w))
        put_field(w, ":scheme", "https");
    if (!dares(w))
        put_field(w, ":authority", "server.test");
    if (!dares(w))
        put_field(w, ":path", one_of(w, paths));
    if (below(w, 3) == 0)
        put_field(w, "range", one_of(w, ranges));
    if (below(w, 10) == 0)
        put_field(w, "priority", below(w, 2) ? "u=0, i" : "u=99,i=?x,,");
}

static void put_response_fields(writer *w) {
    static const char *const statuses[] = {"206", "200", "103", "404", "304", "999", "1", "abc", "", NULL};
    static const char *const lengths[] = {"1000", "0", "18446744073709551616", "-1", "1001", NULL};
    static const char *const ranges[] = {"bytes 0-999/100000", "bytes 9-1/2", "bytes 0-18446744073709551615/1",
                                         "bytes */100",        "x",           NULL};
    if (!dares(w))
        put_field(w, ":status", one_of(w, statuses));
    if (below(w, 3))
        put_field(w, "content-length", one_of(w, lengths));
    if (below(w, 3))
        put_field(w, "content-range", one_of(w, ranges));
}

static void put_headers(writer *w, bool is_request) {
    writer section = {.random = w->random, .is_wild = w->is_wild};
    put_u8(&section, dares(&section) ? number(&section) : 0); /* Required Insert Count, Base */
    put_u8(&section, dares(&section) ? number(&section) : 0);
    is_request ? put_request_fields(&section) : put_response_fields(&section);
    for (uint64_t n = below(&section, 10) ? 0 : below(&section, 80); n > 0; n--)
        put_field(&section, "x-filler", "of which there is a lot");
    if (dares(&section)) /* from a table, perhaps the dynamic one, which is not used */
        put_prefixed(&section, below(&section, 2) ? 0xc0 : 0x80, 6, number(&section));
    if (dares(&section))
        section.data[below(&section, section.len)] ^= (uint8_t)(1u << below(&section, 8));
    w->random = section.random;
    put_frame(w, 0x01, &section);
}

static void put_data(writer *w) {
    writer body = {.len = below(w, 2) ? 1000 : below(w, 1500)};
    put_frame(w, 0x00, &body);
}

/* SETTINGS, GOAWAY, MAX_PUSH_ID, CANCEL_PUSH, PUSH_PROMISE, PRIORITY_UPDATE, reserved and unknown ones. */
static void put_other(writer *w) {
    static const uint64_t types[] = {0x04, 0x07, 0x0d, 0x03, 0x05, 0xf0700, 0xf0701, 0x02, 0x21, 0x40};
    writer payload = {.random = w->random};
    uint64_t type = types[w->is_wild ? below(&payload, 10) : 8 + below(&payload, 2)];
    for (uint64_t n = type == 0x04 ? 2 * below(&payload, 5) : 1; n > 0; n--)
        put_varint(&payload, number(&payload));
    if (type >= 0xf0700)
        put(&payload, "u=1,i=?q;;", below(&payload, 11));
    w->random = payload.random;
    put_frame(w, type, &payload);
}

static void put_something(writer *w, bool is_request) {
    uint64_t shape = below(w, 8);
    w->len = 0;
    if (shape < 6 || (shape == 6 && !dares(w)))
        put_headers(w, is_request);
    if (shape == 5 && dares(w)) /* twice: as trailers, or after an interim response */
        put_headers(w, is_request);
    if (shape >= 3 && shape < 7)
        put_data(w);
    if (shape == 7)
        put_other(w);
    if (w->len > 0 && dares(w))
        w->data[below(w, w->len)] = (uint8_t)below(w, 256);
}

/* Sends the data in one piece or several, with pauses, and may end or reset the stream. */
static void send_by_hand(pair *p, side *evil, writer *w, uint64_t stream) {
    bool fin = (stream & 2) == 0 ? below(w, 2) : dares(w); /* unidirectional streams must not end */
    for (size_t at = 0; at < w->len && !evil->closed;) {
        size_t n = below(w, 3) ? w->len - at : 1 + below(w, w->len - at);
        ssize_t took = xl_stream_send(evil->connection, stream, w->data + at, n, fin && at + n == w->len, NULL);
        if (took <= 0)
            break;
        at += (size_t)took;
        run(p, below(w, 2) ? 0 : below(w, 5000));
    }
    if (((stream & 2) == 0 ? below(w, 12) == 0 : dares(w)) && !evil->closed)
        (void)xl_stream_reset(evil->connection, stream, number(w));
    if (below(w, 12) == 0 && !evil->closed)
        (void)xl_stream_stop(evil->connection, stream, number(w));
}

/* Writes a unidirectional stream: control, QPACK or an unknown type, of any number. */
static void send_unidirectional(pair *p, side *evil, writer *w, bool is_first) {
    uint64_t stream;
    if (evil->closed || xl_stream_open(evil->connection, false, &stream) != 0)
        return;
    w->len = 0;
    put_varint(w, is_first ? 0x00 : dares(w) ? number(w) : 0x21);
    if (is_first)
        put(w, "\x04\x00", 2);
    for (uint64_t n = below(w, 3); n > 0; n--)
        put_other(w);
    send_by_hand(p, evil, w, stream);
}

TEST(a_server_bears_any_client) {
    unsigned requests = 0, closed = 0;
    for (uint64_t seed = 1; seed <= runs(60); seed++) {
        writer w = {.random = seed * UINT64_C(0x9e3779b97f4a7c15), .is_wild = seed % 2};
        pair *p = pair_new(true);
        uint64_t stream[STREAMS_MOST], count = 0;
        p->body_bytes = 5000;
        send_unidirectional(p, &p->client, &w, true);
        for (int k = 0; k < WRITES && !p->client.closed; k++) {
            if (below(&w, 12) == 0)
                send_unidirectional(p, &p->client, &w, false);
            bool fresh = count == 0 || !dares(&w);
            if (fresh && (count == STREAMS_MOST || xl_stream_open(p->client.connection, true, &stream[count]) != 0))
                break;
            count += fresh;
            put_something(&w, true);
            send_by_hand(p, &p->client, &w, stream[fresh ? count - 1 : below(&w, count)]);
            run(p, below(&w, 5000));
        }
        run(p, 1000000);
        requests += p->requests;
        closed += p->client.closed;
        pair_free(p); /* checks that no body is open */
    }
    assert_true(requests > 60);
    assert_true(closed > 10);
}

/* http3_pair.h checks the order of callbacks. */
TEST(a_client_bears_any_server) {
    unsigned responses = 0, closed = 0;
    for (uint64_t seed = 1; seed <= runs(60); seed++) {
        writer w = {.random = seed * UINT64_C(0xbf58476d1ce4e5b9), .is_wild = seed % 2};
        pair *p = pair_new(false);
        h3_session_free(p->server.session); /* it has opened the control stream; then by hand */
        p->server.session = NULL;
        p->server.by_hand = true;
        size_t asked = 0;
        for (int k = 0; k < WRITES && !p->server.closed && !p->client.closed; k++) {
            if (below(&w, 12) == 0)
                send_unidirectional(p, &p->server, &w, false);
            if (asked < MAX_REQUESTS && !dares(&w) && get(p, asked, "GET", "bytes=0-999") == 0)
                asked++;
            run(p, 30000);
            put_something(&w, false);
            if (asked > 0 && !p->server.closed)
                send_by_hand(p, &p->server, &w, p->exchanges[dares(&w) ? below(&w, asked) : asked - 1].stream);
            run(p, below(&w, 20000));
        }
        run(p, 1000000);
        for (size_t i = 0; i < asked; i++)
            responses += p->exchanges[i].responded;
        closed += p->server.closed || p->client.closed;
        pair_free(p);
    }
    assert_true(responses > 60);
    assert_true(closed > 10);
}

TEST_MAIN(NULL, NULL)
