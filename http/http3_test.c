/* HTTP/3 between two real endpoints in one process: datagrams are exchanged in memory on a virtual clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http/http3.h"

#define ONE_WAY_US   10000
#define MAX_IN_AIR   4096
#define MTU_BYTES    1452
#define MAX_REQUESTS 16
#define SEND_BUFFER  (256 * 1024)

typedef struct {
    uint64_t at;
    bool to_server;
    xl_datagram head;
    uint8_t data[MTU_BYTES];
} flight;

typedef struct pair pair;

typedef struct {
    pair *owner;
    bool used, responded, ended, aborted, wrong_content;
    uint64_t stream, abort_code;
    h3_response_head head;
    uint64_t first, received;
} exchange;

/* The side of one endpoint: its connection, its HTTP/3 session unless the test speaks by hand. */
typedef struct {
    xl_endpoint *endpoint;
    xl_connection *connection;
    h3_session *session;
    bool by_hand, connected, closed;
    uint64_t close_code;
    bool application_error;
} side;

struct pair {
    uint64_t now;
    xl_credentials *server_credentials, *client_credentials;
    side client, server;
    flight *air;
    size_t in_air;
    bool network_down;

    /* What the server answers, and what happened to it. */
    uint64_t body_bytes;
    uint64_t fail_body_at; /* UINT64_MAX: never */
    h3_body_mark mark;
    uint64_t body_pulled;
    unsigned requests, bodies_open, responses_written, responses_acknowledged, server_aborts, client_goaways;
    uint64_t server_abort_code;
    char last_path[64], last_range[64], last_method[16];

    exchange exchanges[MAX_REQUESTS];
    uint8_t raw[65536]; /* stream read by hand */
    size_t raw_len;
    uint64_t raw_stream;
    bool raw_fin;
};

static uint8_t content(uint64_t i) {
    return (uint8_t)((i * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

/* ---- server application ---- */

static bool read_body(void *user, uint64_t offset, uint8_t *buf, size_t len) {
    pair *p = user;
    if (offset + len > p->fail_body_at)
        return false;
    for (size_t i = 0; i < len; i++)
        buf[i] = content(offset + i);
    p->body_pulled += len;
    return true;
}

static void close_body(void *user) {
    pair *p = user;
    p->bodies_open--;
}

static void on_request(void *user, uint64_t stream, const h3_request *request) {
    pair *p = user;
    p->requests++;
    snprintf(p->last_path, sizeof p->last_path, "%s", request->path);
    snprintf(p->last_range, sizeof p->last_range, "%s", request->range ? request->range : "");
    snprintf(p->last_method, sizeof p->last_method, "%s", request->method);
    char length[24], range[64];
    snprintf(length, sizeof length, "%llu", (unsigned long long)p->body_bytes);
    snprintf(range, sizeof range, "bytes 100-%llu/%llu", (unsigned long long)(99 + p->body_bytes),
             (unsigned long long)(1000 + p->body_bytes));
    const h3_header headers[] = {{"content-length", length}, {"content-range", range}};
    if (strcmp(request->method, "HEAD") == 0) {
        assert_int_equal(h3_respond(p->server.session, stream, 200, headers, 1, NULL, NULL), 0);
        return;
    }
    p->bodies_open++;
    const h3_body body = {.length = p->body_bytes, .read = read_body, .close = close_body, .user = p};
    assert_int_equal(h3_respond(p->server.session, stream, 206, headers, 2, &body, &p->mark), 0);
}

static void on_response_written(void *user, uint64_t stream) {
    (void)stream;
    ((pair *)user)->responses_written++;
}

static void on_response_acknowledged(void *user, uint64_t stream) {
    (void)stream;
    ((pair *)user)->responses_acknowledged++;
}

static void on_server_abort(void *user, uint64_t stream, uint64_t code) {
    pair *p = user;
    (void)stream;
    p->server_aborts++;
    p->server_abort_code = code;
}

/* ---- client application ---- */

static exchange *find_exchange(pair *p, uint64_t stream) {
    for (size_t i = 0; i < MAX_REQUESTS; i++) {
        if (p->exchanges[i].used && p->exchanges[i].stream == stream)
            return &p->exchanges[i];
    }
    fail_msg("callback for an unknown stream");
    return NULL;
}

static void on_response(void *user, uint64_t stream, const h3_response_head *head) {
    exchange *e = find_exchange(user, stream);
    assert_false(e->responded);
    e->responded = true;
    e->head = *head;
}

static void on_body(void *user, uint64_t stream, const uint8_t *data, size_t len) {
    exchange *e = find_exchange(user, stream);
    assert_true(e->responded && !e->ended && !e->aborted);
    for (size_t i = 0; i < len; i++)
        e->wrong_content |= data[i] != content(e->received + i);
    e->received += len;
}

static void on_end(void *user, uint64_t stream) {
    exchange *e = find_exchange(user, stream);
    assert_false(e->ended || e->aborted);
    e->ended = true;
}

static void on_abort(void *user, uint64_t stream, uint64_t code) {
    exchange *e = find_exchange(user, stream);
    assert_false(e->ended || e->aborted);
    e->aborted = true;
    e->abort_code = code;
}

static void on_goaway(void *user) {
    ((pair *)user)->client_goaways++;
}

static int get(pair *p, size_t slot, const char *method, const char *range) {
    exchange *e = &p->exchanges[slot];
    const h3_header headers[] = {{"range", range ? range : ""}};
    int rv = h3_submit(p->client.session, method, "server.test", "/synthetic/1000", headers, range ? 1 : 0, &e->stream);
    e->used = rv == 0;
    return rv;
}

/* ---- the network and the two sides ---- */

static void read_raw(pair *p, side *s) {
    ssize_t n = 1;
    while (n > 0 && !p->raw_fin) {
        n = xl_stream_read(s->connection, p->raw_stream, p->raw + p->raw_len, sizeof p->raw - p->raw_len, &p->raw_fin);
        p->raw_len += n > 0 ? (size_t)n : 0;
    }
}

static void side_events(pair *p, side *s, bool is_server) {
    xl_event event;
    while (xl_endpoint_poll_event(s->endpoint, &event)) {
        if (event.type == XL_EVENT_CONNECTED) {
            s->connected = true;
            s->connection = event.connection;
            if (!s->by_hand && is_server) {
                const h3_callbacks callbacks = {.user = p,
                                                .request = on_request,
                                                .response_written = on_response_written,
                                                .response_acknowledged = on_response_acknowledged,
                                                .abort = on_server_abort};
                s->session = h3_session_server(event.connection, &callbacks);
                assert_non_null(s->session);
            }
        }
        if (event.type == XL_EVENT_CLOSED) {
            s->closed = true;
            s->close_code = event.error_code;
            s->application_error = event.application_error;
        }
        if (s->by_hand && event.type == XL_EVENT_STREAM_READABLE && event.stream_id == p->raw_stream)
            read_raw(p, s);
        if (s->session && event.type != XL_EVENT_CLOSED)
            h3_on_event(s->session, &event, p->now);
    }
    if (s->session && !s->closed)
        h3_pump(s->session, p->now);
}

static void side_transmit(pair *p, side *s, bool to_server) {
    xl_datagram head;
    uint8_t buf[MTU_BYTES];
    size_t len;
    while ((len = xl_endpoint_transmit(s->endpoint, buf, sizeof buf, &head, p->now)) > 0) {
        if (p->network_down || p->in_air == MAX_IN_AIR)
            continue;
        flight *f = &p->air[p->in_air++];
        f->at = p->now + ONE_WAY_US;
        f->to_server = to_server;
        f->head = head;
        f->head.local = head.remote;
        f->head.remote = head.local;
        f->head.len = len;
        memcpy(f->data, buf, len);
    }
}

static void side_timeout(pair *p, side *s) {
    if (xl_endpoint_next_timeout(s->endpoint) <= p->now)
        xl_endpoint_handle_timeout(s->endpoint, p->now);
}

static uint64_t min_u64(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Lets everything happen that is due now, then jumps to the next moment, but not past `until`. */
static void step(pair *p, uint64_t until) {
    size_t kept = 0;
    for (size_t i = 0; i < p->in_air; i++) {
        flight *f = &p->air[i];
        if (f->at <= p->now)
            xl_endpoint_receive(f->to_server ? p->server.endpoint : p->client.endpoint, &f->head, f->data, p->now);
        else
            p->air[kept++] = *f;
    }
    p->in_air = kept;
    side_timeout(p, &p->client);
    side_timeout(p, &p->server);
    side_events(p, &p->client, false);
    side_events(p, &p->server, true);
    side_transmit(p, &p->client, true);
    side_transmit(p, &p->server, false);
    uint64_t next = min_u64(
        until, min_u64(xl_endpoint_next_timeout(p->client.endpoint), xl_endpoint_next_timeout(p->server.endpoint)));
    for (size_t i = 0; i < p->in_air; i++)
        next = min_u64(next, p->air[i].at);
    p->now = next > p->now ? next : p->now + 1;
}

static void run(pair *p, uint64_t us) {
    uint64_t until = p->now + us;
    while (p->now < until)
        step(p, until);
}

static pair *pair_new(bool client_by_hand) {
    pair *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->air = calloc(MAX_IN_AIR, sizeof *p->air);
    assert_non_null(p->air);
    p->now = 1000000;
    p->fail_body_at = UINT64_MAX;
    p->raw_stream = UINT64_MAX;
    p->server_credentials = xl_credentials_self_signed("server.test", 1, 1700000000);
    p->client_credentials = xl_credentials_client(NULL);
    assert_non_null(p->server_credentials);
    assert_non_null(p->client_credentials);
    xl_config config;
    xl_config_init(&config);
    config.alpn = "h3";
    config.seed = 7;
    config.max_udp_payload_bytes = MTU_BYTES;
    config.send_buffer_bytes = SEND_BUFFER;
    config.credentials = p->client_credentials;
    int error = 0;
    p->client.endpoint = xl_endpoint_new(&config, p->now, &error);
    assert_non_null(p->client.endpoint);
    config.is_server = true;
    config.seed = 8;
    config.credentials = p->server_credentials;
    p->server.endpoint = xl_endpoint_new(&config, p->now, &error);
    assert_non_null(p->server.endpoint);

    const xl_addr local = {.family = 4, .ip = {10, 0, 0, 1}, .port = 50000};
    const xl_addr remote = {.family = 4, .ip = {10, 0, 0, 2}, .port = 443};
    p->client.connection =
        xl_endpoint_connect(p->client.endpoint, "server.test", &local, &remote, XL_TECH_WIFI, p->now);
    assert_non_null(p->client.connection);
    p->client.by_hand = client_by_hand;
    if (!client_by_hand) {
        const h3_callbacks callbacks = {
            .user = p, .response = on_response, .body = on_body, .end = on_end, .abort = on_abort, .goaway = on_goaway};
        p->client.session = h3_session_client(p->client.connection, &callbacks);
        assert_non_null(p->client.session);
        assert_int_equal(get(p, 0, "GET", NULL), XL_ERR_STREAM_STATE);
    }
    run(p, 200000);
    assert_true(p->client.connected);
    assert_true(p->server.connected);
    return p;
}

static void pair_free(pair *p) {
    h3_session_free(p->client.session);
    h3_session_free(p->server.session);
    assert_int_equal(p->bodies_open, 0);
    xl_endpoint_free(p->client.endpoint);
    xl_endpoint_free(p->server.endpoint);
    xl_credentials_free(p->client_credentials);
    xl_credentials_free(p->server_credentials);
    free(p->air);
    free(p);
}

/* ---- tests: both sides by this code ---- */

static void a_range_request_is_answered_intact(void **state) {
    (void)state;
    pair *p = pair_new(false);
    p->body_bytes = 3 * H3_DATA_FRAME_BYTES + 77;
    assert_int_equal(get(p, 0, "GET", "bytes=100-49325"), 0);
    run(p, 3000000);
    exchange *e = &p->exchanges[0];
    assert_string_equal(p->last_range, "bytes=100-49325");
    assert_string_equal(p->last_path, "/synthetic/1000");
    assert_string_equal(p->last_method, "GET");
    assert_int_equal(e->head.status, 206);
    assert_true(e->head.has_content_length);
    assert_int_equal(e->head.content_length, p->body_bytes);
    assert_true(e->head.has_content_range);
    assert_int_equal(e->head.first, 100);
    assert_int_equal(e->head.last, 99 + p->body_bytes);
    assert_int_equal(e->head.total, 1000 + p->body_bytes);
    assert_true(e->ended);
    assert_false(e->aborted);
    assert_int_equal(e->received, p->body_bytes);
    assert_false(e->wrong_content);
    assert_int_equal(p->responses_written, 1);
    assert_int_equal(p->responses_acknowledged, 1);
    pair_free(p);
}

static void bodies_of_every_awkward_length_arrive_whole(void **state) {
    (void)state;
    const uint64_t lengths[] = {
        0, 1, 63, 64, H3_DATA_FRAME_BYTES - 1, H3_DATA_FRAME_BYTES, H3_DATA_FRAME_BYTES + 1, 2 * H3_DATA_FRAME_BYTES};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        pair *p = pair_new(false);
        p->body_bytes = lengths[i];
        assert_int_equal(get(p, 0, "GET", NULL), 0);
        run(p, 2000000);
        assert_true(p->exchanges[0].ended);
        assert_int_equal(p->exchanges[0].received, lengths[i]);
        assert_false(p->exchanges[0].wrong_content);
        pair_free(p);
    }
}

static void a_head_request_gets_the_length_and_no_body(void **state) {
    (void)state;
    pair *p = pair_new(false);
    p->body_bytes = 5000;
    assert_int_equal(get(p, 0, "HEAD", NULL), 0);
    run(p, 1000000);
    assert_true(p->exchanges[0].ended);
    assert_int_equal(p->exchanges[0].head.content_length, 5000);
    assert_int_equal(p->exchanges[0].received, 0);
    pair_free(p);
}

static void several_requests_at_once_are_all_answered(void **state) {
    (void)state;
    pair *p = pair_new(false);
    p->body_bytes = 400000; /* more than the send buffer takes */
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(get(p, i, "GET", NULL), 0);
    run(p, 30000000);
    for (size_t i = 0; i < 8; i++) {
        assert_true(p->exchanges[i].ended);
        assert_int_equal(p->exchanges[i].received, p->body_bytes);
        assert_false(p->exchanges[i].wrong_content);
    }
    assert_int_equal(p->responses_written, 8);
    pair_free(p);
}

static void a_huge_body_is_pulled_no_further_than_the_send_buffer(void **state) {
    (void)state;
    pair *p = pair_new(false);
    p->body_bytes = UINT64_C(1) << 30;
    assert_int_equal(get(p, 0, "GET", NULL), 0);
    run(p, ONE_WAY_US + 5000); /* the request has arrived, no acknowledgement has come back */
    assert_int_equal(p->requests, 1);
    assert_in_range(p->body_pulled, 1, SEND_BUFFER + 2 * H3_DATA_FRAME_BYTES);
    p->network_down = true;
    uint64_t pulled = p->body_pulled;
    run(p, 500000);
    assert_in_range(p->body_pulled, pulled, pulled + SEND_BUFFER + 2 * H3_DATA_FRAME_BYTES);
    pair_free(p);
}

static void a_cancelled_request_stops_the_server(void **state) {
    (void)state;
    pair *p = pair_new(false);
    p->body_bytes = UINT64_C(1) << 30;
    assert_int_equal(get(p, 0, "GET", NULL), 0);
    run(p, 300000);
    assert_int_equal(p->bodies_open, 1);
    h3_cancel(p->client.session, p->exchanges[0].stream, H3_REQUEST_CANCELLED);
    run(p, 300000);
    assert_int_equal(p->bodies_open, 0);
    assert_int_equal(p->server_aborts, 1);
    assert_int_equal(p->server_abort_code, H3_REQUEST_CANCELLED);
    assert_false(p->exchanges[0].ended || p->exchanges[0].aborted);

    p->body_bytes = 2000; /* the connection lives */
    assert_int_equal(get(p, 1, "GET", NULL), 0);
    run(p, 2000000);
    assert_true(p->exchanges[1].ended);
    pair_free(p);
}

static void a_body_that_fails_resets_its_stream_only(void **state) {
    (void)state;
    pair *p = pair_new(false);
    p->body_bytes = 200000;
    p->fail_body_at = 150000;
    assert_int_equal(get(p, 0, "GET", NULL), 0);
    run(p, 3000000);
    assert_true(p->exchanges[0].aborted);
    assert_int_equal(p->exchanges[0].abort_code, H3_INTERNAL_ERROR);
    p->fail_body_at = UINT64_MAX;
    assert_int_equal(get(p, 1, "GET", NULL), 0);
    run(p, 3000000);
    assert_true(p->exchanges[1].ended);
    assert_false(p->client.closed || p->server.closed);
    pair_free(p);
}

static void after_goaway_open_requests_finish_and_new_ones_are_refused(void **state) {
    (void)state;
    pair *p = pair_new(false);
    p->body_bytes = 300000;
    assert_int_equal(get(p, 0, "GET", NULL), 0);
    run(p, ONE_WAY_US + 1000);
    h3_shutdown(p->server.session, p->now);
    run(p, 10000000);
    assert_int_equal(p->client_goaways, 1);
    assert_true(p->exchanges[0].ended);
    assert_int_equal(get(p, 1, "GET", NULL), XL_ERR_CLOSED);
    pair_free(p);
}

static void a_field_section_beyond_the_limit_costs_only_its_stream(void **state) {
    (void)state;
    pair *p = pair_new(false);
    p->body_bytes = 10;
    char *big = malloc(9000);
    assert_non_null(big);
    memset(big, 'x', 8999);
    big[8999] = '\0';
    const h3_header headers[] = {{"x-a", big}, {"x-b", big}};
    exchange *e = &p->exchanges[0];
    assert_int_equal(h3_submit(p->client.session, "GET", "server.test", "/", headers, 2, &e->stream), 0);
    e->used = true;
    run(p, 1000000);
    free(big);
    assert_int_equal(p->requests, 0);
    assert_true(e->aborted);
    assert_int_equal(e->abort_code, H3_EXCESSIVE_LOAD);
    assert_int_equal(get(p, 1, "GET", NULL), 0);
    run(p, 1000000);
    assert_true(p->exchanges[1].ended);
    pair_free(p);
}

/* ---- tests: the client's bytes by hand ---- */

static void send_raw(pair *p, uint64_t stream, const void *data, size_t len, bool fin) {
    assert_int_equal(xl_stream_send(p->client.connection, stream, data, len, fin, NULL), len);
}

static uint64_t open_raw(pair *p, bool bidirectional) {
    uint64_t id;
    assert_int_equal(xl_stream_open(p->client.connection, bidirectional, &id), 0);
    return id;
}

static const uint8_t settings_bytes[] = {0x00, 0x04, 0x00}; /* stream type control, SETTINGS, length 0 */
/* HEADERS: prefix 00 00; :method GET (static 17), :scheme https (23), :path / (1), :authority (0) "a". */
static const uint8_t get_bytes[] = {0x01, 0x08, 0x00, 0x00, 0xd1, 0xd7, 0xc1, 0x50, 0x01, 'a'};

static void expect_close(pair *p, uint64_t code) {
    run(p, 1000000);
    assert_true(p->client.closed);
    assert_true(p->client.application_error);
    assert_int_equal(p->client.close_code, code);
}

/* Fetches a body by hand and checks that the marked bytes of the stream are the marked bytes of the body. */
static void check_mark(uint64_t body_bytes, uint64_t first, uint64_t size) {
    pair *p = pair_new(true);
    const h3_body_mark mark = {.first = first, .size = size, .priority = 0};
    p->body_bytes = body_bytes;
    p->mark = mark;
    send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
    p->raw_stream = open_raw(p, true);
    send_raw(p, p->raw_stream, get_bytes, sizeof get_bytes, true);
    run(p, 3000000);
    assert_true(p->raw_fin);
    assert_int_equal(p->raw[0], 0x01);
    uint64_t headers_bytes = p->raw[1] < 64 ? 2u + p->raw[1] : 3u + ((p->raw[1] & 0x3fu) << 8 | p->raw[2]);

    xl_frame_mark in_stream = h3_mark_in_stream(headers_bytes, body_bytes, &mark);
    assert_true(in_stream.position + in_stream.size <= p->raw_len);
    uint64_t body_at = 0, marked = 0, first_marked = UINT64_MAX;
    size_t at = (size_t)headers_bytes;
    while (at < p->raw_len) {
        size_t header_at = at;
        assert_int_equal(p->raw[at], 0x00);
        size_t len = p->raw[at + 1] < 64 ? p->raw[at + 1] : ((p->raw[at + 1] & 0x3fu) << 8 | p->raw[at + 2]);
        at += p->raw[at + 1] < 64 ? 2 : 3;
        /* A frame header lies in the mark exactly if a marked byte comes right after it. */
        bool inside = header_at >= in_stream.position && header_at < in_stream.position + in_stream.size;
        assert_int_equal(inside, body_at >= first && body_at < first + size);
        for (size_t i = 0; i < len; i++, at++, body_at++) {
            assert_int_equal(p->raw[at], content(body_at));
            if (at >= in_stream.position && at < in_stream.position + in_stream.size) {
                first_marked = first_marked == UINT64_MAX ? body_at : first_marked;
                marked++;
            }
        }
    }
    assert_int_equal(body_at, body_bytes);
    assert_int_equal(marked, size);
    assert_int_equal(first_marked, first);
    pair_free(p);
}

static void a_frame_mark_covers_the_frame_and_the_headers_inside_it(void **state) {
    (void)state;
    check_mark(40, 0, 40);
    check_mark(40, 3, 10);
    check_mark(30000, 0, 5000);
    check_mark(50000, 0, H3_DATA_FRAME_BYTES);
    check_mark(50000, 0, H3_DATA_FRAME_BYTES + 1);
    check_mark(50000, H3_DATA_FRAME_BYTES, 2 * H3_DATA_FRAME_BYTES);
    check_mark(50000, 100, 49900);
    check_mark(H3_DATA_FRAME_BYTES + 20, 16000, 403);
}

static void a_mark_past_the_body_is_empty(void **state) {
    (void)state;
    const h3_body_mark mark = {.first = 500, .size = 10};
    assert_int_equal(h3_mark_in_stream(50, 400, &mark).size, 0);
    const h3_body_mark clipped = {.first = 390, .size = UINT64_MAX};
    assert_int_equal(h3_mark_in_stream(50, 400, &clipped).size, 10);
}

static void a_body_before_the_headers_is_an_unexpected_frame(void **state) {
    (void)state;
    pair *p = pair_new(true);
    send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
    send_raw(p, open_raw(p, true), "\x00\x01x", 3, true);
    expect_close(p, 0x0105);
    pair_free(p);
}

static void a_control_stream_without_settings_is_refused(void **state) {
    (void)state;
    pair *p = pair_new(true);
    send_raw(p, open_raw(p, false), "\x00\x07\x01\x00", 4, false); /* GOAWAY first */
    expect_close(p, 0x010a);
    pair_free(p);
}

static void closing_the_control_stream_closes_the_connection(void **state) {
    (void)state;
    pair *p = pair_new(true);
    send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, true);
    expect_close(p, 0x0104);
    pair_free(p);
}

static void resetting_the_control_stream_closes_the_connection(void **state) {
    (void)state;
    pair *p = pair_new(true);
    uint64_t id = open_raw(p, false);
    send_raw(p, id, settings_bytes, sizeof settings_bytes, false);
    run(p, 100000);
    assert_int_equal(xl_stream_reset(p->client.connection, id, 0x0100), 0);
    expect_close(p, 0x0104);
    pair_free(p);
}

static void a_second_control_stream_is_refused(void **state) {
    (void)state;
    pair *p = pair_new(true);
    send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
    send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
    expect_close(p, 0x0103);
    pair_free(p);
}

static void a_broken_field_section_fails_decompression(void **state) {
    (void)state;
    pair *p = pair_new(true);
    send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
    /* A reference to the dynamic table, whose capacity is 0. */
    send_raw(p, open_raw(p, true), "\x01\x03\x02\x00\x80", 5, true);
    expect_close(p, 0x0200);
    pair_free(p);
}

static void a_request_without_path_is_malformed_and_costs_its_stream(void **state) {
    (void)state;
    pair *p = pair_new(true);
    p->body_bytes = 10;
    send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
    send_raw(p, open_raw(p, true), "\x01\x04\x00\x00\xd1\xd7", 6, true);
    run(p, 1000000);
    assert_int_equal(p->requests, 0);
    assert_false(p->client.closed);
    p->raw_stream = open_raw(p, true);
    send_raw(p, p->raw_stream, get_bytes, sizeof get_bytes, true);
    run(p, 1000000);
    assert_int_equal(p->requests, 1);
    assert_true(p->raw_fin);
    pair_free(p);
}

static void a_request_cut_off_by_a_reset_is_forgotten(void **state) {
    (void)state;
    pair *p = pair_new(true);
    p->body_bytes = 10;
    send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
    for (int i = 0; i < 150; i++) { /* more than may be open at a time: they must really go */
        uint64_t id = open_raw(p, true);
        send_raw(p, id, get_bytes, 5, false);
        run(p, 50000);
        assert_int_equal(xl_stream_reset(p->client.connection, id, H3_REQUEST_CANCELLED), 0);
        run(p, 100000);
    }
    assert_int_equal(p->requests, 0);
    assert_false(p->client.closed);
    pair_free(p);
}

static void random_input_never_breaks_the_server(void **state) {
    (void)state;
    uint32_t lcg = 12345;
    for (int round = 0; round < 60; round++) {
        pair *p = pair_new(true);
        p->body_bytes = 100;
        bool control = round % 3 != 0;
        if (control)
            send_raw(p, open_raw(p, false), settings_bytes, sizeof settings_bytes, false);
        for (int i = 0; i < 12 && !p->client.closed; i++) {
            uint8_t bytes[64];
            size_t len = 1 + (lcg >> 8) % sizeof bytes;
            memcpy(bytes, get_bytes, sizeof get_bytes);
            for (size_t k = i % 2 ? 0 : sizeof get_bytes; k < len; k++) {
                lcg = lcg * 1664525 + 1013904223;
                bytes[k] = (uint8_t)(lcg >> 24 & (round % 2 ? 0xff : 0x0f));
            }
            uint64_t id;
            if (xl_stream_open(p->client.connection, lcg >> 31, &id) != 0)
                break;
            (void)xl_stream_send(p->client.connection, id, bytes, len, lcg >> 30 & 1, NULL);
            lcg = lcg * 1664525 + 1013904223;
            run(p, 50000);
        }
        run(p, 300000);
        pair_free(p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_request_is_answered_intact),
        cmocka_unit_test(bodies_of_every_awkward_length_arrive_whole),
        cmocka_unit_test(a_head_request_gets_the_length_and_no_body),
        cmocka_unit_test(several_requests_at_once_are_all_answered),
        cmocka_unit_test(a_huge_body_is_pulled_no_further_than_the_send_buffer),
        cmocka_unit_test(a_cancelled_request_stops_the_server),
        cmocka_unit_test(a_body_that_fails_resets_its_stream_only),
        cmocka_unit_test(after_goaway_open_requests_finish_and_new_ones_are_refused),
        cmocka_unit_test(a_field_section_beyond_the_limit_costs_only_its_stream),
        cmocka_unit_test(a_frame_mark_covers_the_frame_and_the_headers_inside_it),
        cmocka_unit_test(a_mark_past_the_body_is_empty),
        cmocka_unit_test(a_body_before_the_headers_is_an_unexpected_frame),
        cmocka_unit_test(a_control_stream_without_settings_is_refused),
        cmocka_unit_test(closing_the_control_stream_closes_the_connection),
        cmocka_unit_test(resetting_the_control_stream_closes_the_connection),
        cmocka_unit_test(a_second_control_stream_is_refused),
        cmocka_unit_test(a_broken_field_section_fails_decompression),
        cmocka_unit_test(a_request_without_path_is_malformed_and_costs_its_stream),
        cmocka_unit_test(a_request_cut_off_by_a_reset_is_forgotten),
        cmocka_unit_test(random_input_never_breaks_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
