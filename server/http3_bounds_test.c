/* Bounds of memory and work that clients with valid keys can cause in the HTTP/3 service: the real service over real
 * connections, with datagrams in memory and a virtual clock. The only video is a file whose reads are counted. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "tests/air.h"
#include "http/http3.h"
#include "server/http3_service.h"

#define ONE_WAY_US       5000
#define FILE_BYTES       (UINT64_C(100) << 20)
#define CLIENTS_MOST     64
#define STREAM_LEAST     1024        /* size of a stream's buffer from its first byte on */
#define CRITICAL_STREAMS 3           /* of HTTP/3, per direction */
#define LOOK_AHEAD       (64 * 1024) /* above the congestion window, which may take twice its size in memory */
#define INITIAL_WINDOW   (10 * 1452)
#define IDLE_BYTES_MOST  23000 /* with one path */

typedef struct world world;

typedef struct {
    world *owner;
    xl_connection *connection;
    h3_session *session;
    bool connected, closed;
    bool reads_nothing; /* so that it returns no flow control credit */
    uint64_t ended, aborted, abort_code, received, served, put_off, overloads; /* put_off: responses 503 */
} client;

struct world {
    uint64_t now;
    xl_credentials *server_credentials, *client_credentials;
    xl_endpoint *server, *clients;
    catalogue *videos;
    http3_service *service;
    client client[CLIENTS_MOST];
    size_t client_count;
    air air;
    uint64_t file_bytes_read, request_records, numbers;
    uint64_t failure_records, failures, failure_code;
    size_t send_bytes_most; /* maximum of the server's send buffers */
};

/* ---- the file ---- */

static int file_open(void *user, const char *path, uint64_t *size) {
    (void)user;
    *size = FILE_BYTES;
    return strcmp(path, "video") == 0 ? 7 : -1;
}

static ssize_t file_read(void *user, int handle, uint64_t offset, uint8_t *buf, size_t len) {
    (void)handle;
    (void)offset;
    ((world *)user)->file_bytes_read += len;
    memset(buf, 'v', len);
    return (ssize_t)len;
}

static void file_close(void *user, int handle) {
    (void)user;
    (void)handle;
}

/* ---- server's hooks, clients' callbacks ---- */

static void count_record(void *user, const char *event, json_t *fields, uint64_t now) {
    (void)now;
    world *w = user;
    w->request_records += strcmp(event, "request") == 0;
    if (strcmp(event, "handshake_failed") == 0) {
        w->failure_records++;
        w->failures += (uint64_t)json_integer_value(json_object_get(fields, "count"));
        w->failure_code = (uint64_t)json_integer_value(json_object_get(fields, "error_code"));
    }
    json_decref(fields);
}

static uint64_t next_number(void *user) {
    return ((world *)user)->numbers++;
}

static void on_body(void *user, uint64_t stream, const uint8_t *data, size_t len) {
    (void)stream;
    (void)data;
    ((client *)user)->received += len;
}

static void on_response(void *user, uint64_t stream, const h3_response_head *head) {
    client *c = user;
    (void)stream;
    c->served += head->status == 200;
    c->put_off += head->status == 503;
}

static void on_end(void *user, uint64_t stream) {
    (void)stream;
    ((client *)user)->ended++;
}

static void on_abort(void *user, uint64_t stream, uint64_t code) {
    client *c = user;
    (void)stream;
    c->aborted++;
    c->abort_code = code;
}

/* ---- life ---- */

static void note_memory(world *w) {
    xl_endpoint_stats stats;
    xl_endpoint_get_stats(w->server, &stats);
    if (stats.send_bytes > w->send_bytes_most)
        w->send_bytes_most = stats.send_bytes;
}

static size_t send_bytes(const world *w) {
    xl_endpoint_stats stats;
    xl_endpoint_get_stats(w->server, &stats);
    return stats.send_bytes;
}

static world *world_of(const xl_limits *client_limits, size_t server_memory) {
    world *w = calloc(1, sizeof *w);
    const catalogue_files files = {.user = w, .open = file_open, .read = file_read, .close = file_close};
    const http3_service_hooks hooks = {.user = w, .log = count_record, .next_connection = next_number};
    server_config options = {.random_key = {3}};
    int rv;
    assert_non_null(w);
    w->now = 1000000;
    w->air.one_way_us = ONE_WAY_US;
    w->server_credentials = xl_credentials_self_signed("server.test", options.random_key, 1700000000);
    w->client_credentials = xl_credentials_client(NULL);
    xl_config config;
    quic_settings_init(&options.settings);
    assert_true(quic_settings_choose(&options.settings, "sp"));
    http3_service_configure(&options, &config);
    config.credentials = w->server_credentials;
    config.limits.endpoint_send_bytes = server_memory;
    w->server = xl_endpoint_new(&config, w->now, &rv);
    w->videos = catalogue_new(&options.video, &files);
    assert_non_null(w->server);
    assert_non_null(w->videos);
    w->service = http3_service_new(w->server, w->videos, &hooks);
    xl_config_init(&config);
    config.random_key[0] = 4;
    config.credentials = w->client_credentials;
    config.limits = *client_limits;
    config.limits.max_udp_payload_bytes = AIR_MTU;
    w->clients = xl_endpoint_new(&config, w->now, &rv);
    assert_non_null(w->clients);
    return w;
}

/* Clients with `stream_credit` bytes of flow control credit per response; 0: the default. */
static world *world_new(uint64_t stream_credit) {
    xl_limits limits;
    xl_limits_init(&limits);
    if (stream_credit > 0)
        limits.max_stream_data = stream_credit;
    return world_of(&limits, 0);
}

static void world_free(world *w) {
    for (size_t i = 0; i < w->client_count; i++)
        h3_session_free(w->client[i].session);
    if (w->clients)
        xl_endpoint_free(w->clients);
    http3_service_free(w->service);
    if (w->server)
        xl_endpoint_free(w->server);
    catalogue_free(w->videos);
    xl_credentials_free(w->server_credentials);
    xl_credentials_free(w->client_credentials);
    air_clear(&w->air);
    free(w);
}

#define WORLD_TEST(name) TEST_NEW(name, world, w, world_new(0), world_free)

/* ---- the network, time ---- */

static void serve(world *w) {
    http3_service_process(w->service, w->now);
    note_memory(w);
    air_take(&w->air, w->server, false, w->now);
    note_memory(w);
}

static void act(world *w) {
    xl_event e;
    while (xl_endpoint_poll_event(w->clients, &e)) {
        client *c = xl_connection_user(e.connection);
        c->connected |= e.type == XL_EVENT_CONNECTED;
        c->closed |= e.type == XL_EVENT_CLOSED;
        c->overloads += e.type == XL_EVENT_STREAM_STOPPED && e.error_code == H3_EXCESSIVE_LOAD;
        if (!c->closed && !(c->reads_nothing && e.type == XL_EVENT_STREAM_READABLE))
            h3_on_event(c->session, &e, w->now);
    }
    for (size_t i = 0; i < w->client_count; i++)
        if (!w->client[i].closed)
            h3_pump(w->client[i].session, w->now);
    air_take(&w->air, w->clients, true, w->now);
}

static void run(world *w, uint64_t us) {
    for (uint64_t end = w->now + us;;) {
        act(w);
        serve(w);
        uint64_t a = xl_endpoint_next_timeout(w->clients), b = xl_endpoint_next_timeout(w->server), at = a < b ? a : b;
        at = air_next(&w->air) < at ? air_next(&w->air) : at;
        if (at > end) {
            w->now = end;
            return;
        }
        w->now = at > w->now ? at : w->now;
        air_deliver(&w->air, w->clients, w->server, w->now);
        if (xl_endpoint_next_timeout(w->clients) <= w->now)
            xl_endpoint_handle_timeout(w->clients, w->now);
    }
}

static client *start_client(world *w) {
    client *c = &w->client[w->client_count];
    const xl_addr local = {.family = 4, .ip = {10, 0, 1, (uint8_t)w->client_count}, .port = 50000};
    const xl_addr remote = {.family = 4, .ip = {10, 0, 0, 1}, .port = 443};
    *c = (client){.owner = w};
    c->connection = xl_endpoint_connect(w->clients, "server.test", &local, &remote, XL_TECH_WIFI, w->now);
    assert_non_null(c->connection);
    xl_connection_set_user(c->connection, c);
    c->session = h3_session_client(
        c->connection,
        &(h3_callbacks){.user = c, .response = on_response, .body = on_body, .end = on_end, .abort = on_abort});
    assert_non_null(c->session);
    w->client_count++;
    run(w, 100000);
    return c;
}

static client *connect_client(world *w) {
    client *c = start_client(w);
    assert_true(c->connected);
    return c;
}

static uint64_t get(client *c, const char *path, const h3_header *header) {
    uint64_t stream;
    assert_int_equal(0, h3_submit(c->session, "GET", "server.test", path, header, header ? 1 : 0, &stream));
    return stream;
}

/* Allocated bytes, by the C library's count, or by the sanitizer's if it replaces it. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t allocated(void) {
    return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes() : mallinfo2().uordblks;
}

/* Each call of the service checks 16 connections for a rest. */
static void look_at_all(world *w) {
    for (size_t i = 0; i < w->client_count; i++)
        http3_service_process(w->service, w->now);
}

/* The server's memory for clients that have read 100 kB each and are then silent for 6 s. */
static size_t held_for(size_t clients) {
    world *w = world_new(0);
    const h3_header range = {"range", "bytes=0-99999"};
    for (size_t i = 0; i < clients; i++)
        get(connect_client(w), "/video", &range);
    run(w, 6000000);
    look_at_all(w);
    for (size_t i = 0; i < clients; i++) {
        assert_int_equal(100000, w->client[i].received);
        h3_session_free(w->client[i].session);
        w->client[i].session = NULL;
    }
    xl_endpoint_free(w->clients);
    w->clients = NULL;
    size_t with = allocated();
    http3_service_free(w->service);
    xl_endpoint_free(w->server);
    size_t held = with - allocated();
    w->service = NULL;
    w->server = NULL;
    w->client_count = 0;
    world_free(w);
    return held;
}

/* ---- tests ---- */

TEST(an_idle_connection_holds_little) {
    size_t each = (held_for(33) - held_for(1)) / 32;
    print_message("%zu bytes for an idle connection\n", each);
    assert_in_range(each, 1, IDLE_BYTES_MOST);
}

WORLD_TEST(a_connection_that_rested_serves_again) {
    const h3_header range = {"range", "bytes=0-99999"};
    client *c = connect_client(w);
    for (uint64_t round = 1; round <= 3; round++) {
        get(c, "/video", &range);
        run(w, 4000000);
        look_at_all(w);
        const size_t awake = allocated();
        run(w, 2000000);
        look_at_all(w);
        assert_in_range(awake - allocated(), 50000, 80000);
        assert_int_equal(c->received, round * 100000);
    }
    /* Two requests at once, and one that is cancelled before its response. */
    h3_cancel(c->session, get(c, "/video", &range), H3_REQUEST_CANCELLED);
    get(c, "/video", &range);
    get(c, "/video", &range);
    run(w, 2000000);
    assert_int_equal(c->received, 500000);
    assert_false(c->closed);
}

/* Its state cannot be restored from the few stored bytes of its unidirectional streams. */
WORLD_TEST(a_session_with_more_streams_of_the_client_does_not_rest) {
    const h3_header range = {"range", "bytes=0-99999"};
    const uint8_t reserved[] = {0x21, 1, 2, 3};
    client *c = connect_client(w);
    for (int i = 0; i < 2; i++) {
        uint64_t id;
        assert_int_equal(0, xl_stream_open(c->connection, false, &id));
        assert_int_equal(sizeof reserved, xl_stream_send(c->connection, id, reserved, sizeof reserved, false, NULL));
    }
    get(c, "/video", &range);
    run(w, 4000000);
    const size_t before = allocated();
    run(w, 4000000);
    look_at_all(w);
    assert_in_range(allocated(), before - 10000, before + 10000);
    get(c, "/video", &range);
    run(w, 4000000);
    assert_int_equal(c->received, 200000);
}

/* Client and server have no cipher suite in common: TLS alert handshake_failure (RFC 9001 section 4.8). */
WORLD_TEST(handshakes_that_fail_leave_a_record_a_second_at_most) {
    assert_int_equal(0, xl_credentials_set_ciphers(w->server_credentials, "chacha20"));
    assert_int_equal(0, xl_credentials_set_ciphers(w->client_credentials, "aes128"));
    assert_false(start_client(w)->connected);
    run(w, 5000000);
    assert_int_equal(1, w->failure_records);
    assert_int_equal(0x100 + 40, w->failure_code);
    for (int i = 0; i < 40; i++)
        start_client(w);
    run(w, 5000000);
    start_client(w);
    run(w, 5000000);
    assert_in_range(w->failure_records, 3, 8);
    assert_int_equal(42, w->failures);
}

/* 400 requests for 100 MiB each, with 300 bytes of flow control credit per response. */
TEST(requests_without_flow_control_credit_hold_next_to_nothing) {
    world *w = world_new(300);
    for (int i = 0; i < 4; i++) {
        client *c = connect_client(w);
        c->reads_nothing = true;
        for (int k = 0; k < 100; k++)
            get(c, "/video", NULL);
    }
    run(w, 3000000);
    assert_int_equal(400, w->request_records);
    assert_true(w->file_bytes_read > 0);
    assert_true(w->file_bytes_read <= 400 * 300);
    assert_true(w->send_bytes_most <= 4 * (100 + CRITICAL_STREAMS) * STREAM_LEAST);
    world_free(w);
}

/* 4,096 open responses are shared by all; each client has 16 of its own. */
TEST(a_client_gets_its_share_of_responses_while_others_leave_theirs_open) {
    world *w = world_new(300);
    for (int i = 0; i < 42; i++) {
        client *c = connect_client(w);
        c->reads_nothing = true;
        for (int k = 0; k < 100; k++)
            get(c, "/video", NULL);
    }
    client *late = connect_client(w);
    for (int k = 0; k < 20; k++)
        get(late, "/video", NULL);
    run(w, 3000000);
    assert_int_equal(4220, w->request_records);
    assert_int_equal(16, late->served);
    assert_int_equal(4, late->put_off);
    /* A cancelled request makes room. */
    for (int i = 0; i < 2; i++)
        xl_connection_close(w->client[i].connection, H3_NO_ERROR, "", w->now);
    run(w, 3000000);
    for (int k = 0; k < 4; k++)
        get(late, "/video", NULL);
    run(w, 100000);
    assert_int_equal(20, late->served);
    world_free(w);
}

/* Sends HEADERS with a field that announces a value of 65,000 bytes, of which it sends `sent`. */
static void begin_request(client *c, size_t sent) {
    static const uint8_t begin[] = {0x01, 0x80, 0x00, 0xfd, 0xf0, 0x00, 0x00, 0x21, 'x', 0x7f, 0xe9, 0xfa, 0x03};
    static uint8_t value[60000];
    uint64_t stream;
    memset(value, 'v', sizeof value);
    assert_int_equal(0, xl_stream_open(c->connection, true, &stream));
    assert_int_equal(sizeof begin, xl_stream_send(c->connection, stream, begin, sizeof begin, false, NULL));
    assert_int_equal(sent, xl_stream_send(c->connection, stream, value, sent, false, NULL));
}

TEST(requests_that_are_never_complete_hold_little) {
    static const struct {
        size_t each;
        uint64_t refused;
    } table[] = {
        {30000, 12}, /* 8 of 20 fit into 256 KiB */
        {40000, 20}, /* each is too long */
        {300, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        world *w = world_new(0);
        client *c = connect_client(w), *honest = connect_client(w);
        for (int k = 0; k < 20; k++) {
            begin_request(c, table[i].each);
            run(w, 500000);
        }
        assert_int_equal(table[i].refused, c->overloads);
        get(honest, "/synthetic/100", NULL);
        run(w, 500000);
        assert_int_equal(1, honest->ended);
        assert_false(c->closed);
        world_free(w);
    }
}

/* Flow control has no limit, but all packets are lost: only the congestion windows limit the reads. */
TEST(what_waits_for_the_congestion_window_is_not_read_yet) {
    xl_limits limits;
    xl_limits_init(&limits);
    limits.max_stream_data = limits.max_data = UINT64_C(1) << 40;
    world *w = world_of(&limits, 0);
    client *c = connect_client(w);
    for (int k = 0; k < 100; k++)
        get(c, "/video", NULL);
    act(w);
    w->air.is_lost[0] = true;
    run(w, 1000000);
    assert_int_equal(100, w->request_records);
    assert_true(w->file_bytes_read <= 2 * INITIAL_WINDOW + LOOK_AHEAD);
    assert_true(w->send_bytes_most <= 2 * (2 * INITIAL_WINDOW + LOOK_AHEAD) + 100 * STREAM_LEAST);
    world_free(w);
}

WORLD_TEST(a_thousand_requests_that_are_reset_leave_nothing) {
    client *c = connect_client(w);
    unsigned sent = 0;
    for (int round = 0; round < 200 && sent < 1000; round++) {
        uint64_t stream[100];
        size_t n = 0;
        while (n < 100 && h3_submit(c->session, "GET", "server.test", "/video", NULL, 0, &stream[n]) == 0)
            n++;
        h3_pump(c->session, w->now);
        air_take(&w->air, w->clients, true,
                 w->now); /* the requests are sent first, so that the server starts to respond */
        for (size_t i = 0; i < n; i++)
            h3_cancel(c->session, stream[i], H3_REQUEST_CANCELLED);
        sent += (unsigned)n;
        run(w, 4 * ONE_WAY_US);
    }
    run(w, 1000000);
    assert_true(sent >= 1000);
    assert_false(c->closed);
    assert_true(send_bytes(w) <= CRITICAL_STREAMS * STREAM_LEAST);
    assert_true(w->send_bytes_most <= 4 * (INITIAL_WINDOW + LOOK_AHEAD));
}

/* A download at full speed that is then cancelled: STOP_SENDING frees the buffer. */
WORLD_TEST(a_download_that_is_cancelled_gives_its_memory_back) {
    client *c = connect_client(w);
    uint64_t stream = get(c, "/video", NULL);
    run(w, 16 * ONE_WAY_US);
    assert_true(send_bytes(w) > LOOK_AHEAD);
    h3_cancel(c->session, stream, H3_REQUEST_CANCELLED);
    run(w, 4 * ONE_WAY_US);
    assert_true(send_bytes(w) <= CRITICAL_STREAMS * STREAM_LEAST);
}

/* Each connection could use more than its share of the endpoint's memory. All make progress, within the limit. */
TEST(many_downloads_keep_within_the_memory_of_the_endpoint) {
    enum { MEMORY = 1 << 20, CLIENTS = 40 };
    xl_limits limits;
    xl_limits_init(&limits);
    world *w = world_of(&limits, MEMORY);
    for (int i = 0; i < CLIENTS; i++)
        connect_client(w);
    for (int i = 0; i < CLIENTS; i++)
        get(&w->client[i], "/video", &(h3_header){"range", "bytes=0-999999"});
    run(w, 60000000);
    assert_true(w->send_bytes_most <= MEMORY);
    assert_true(w->send_bytes_most > MEMORY / 3);
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(1, w->client[i].ended);
        assert_int_equal(1000000, w->client[i].received);
    }
    world_free(w);
}

/* Sends a request with 20 fields of this size; each counts 32 bytes more (RFC 9114 section 4.2.2). */
static void get_with_fields(client *c, size_t field_bytes) {
    enum { FIELDS = 20 };
    char *value = malloc(field_bytes + 1);
    h3_header header[FIELDS];
    uint64_t stream;
    memset(value, 'x', field_bytes);
    value[field_bytes] = '\0';
    for (int i = 0; i < FIELDS; i++)
        header[i] = (h3_header){"cookie", value};
    assert_int_equal(0, h3_submit(c->session, "GET", "server.test", "/synthetic/10", header, FIELDS, &stream));
    act(c->owner);
    free(value);
}

/* More than H3_MAX_FIELD_SECTION_BYTES, and more than the flow control window of a request stream. */
WORLD_TEST(a_request_with_too_large_a_head_ends_alone) {
    client *c = connect_client(w);
    get_with_fields(c, 700);
    run(w, 500000);
    assert_int_equal(1, c->ended);
    get_with_fields(c, 1000);
    run(w, 500000);
    assert_int_equal(1, c->aborted);
    assert_int_equal(H3_EXCESSIVE_LOAD, c->abort_code);
    c->abort_code = 0;
    get_with_fields(c, 20000);
    run(w, 1000000);
    assert_int_equal(2, c->aborted);
    assert_int_equal(H3_EXCESSIVE_LOAD, c->abort_code);
    get(c, "/synthetic/1000", NULL);
    run(w, 500000);
    assert_int_equal(2, c->ended);
    assert_false(c->closed);
    assert_int_equal(2, w->request_records);
}

/* A server of requests without content may have to hold all data that its flow control window allows. */
WORLD_TEST(a_client_may_have_tens_of_kilobytes_under_way_to_the_server) {
    client *c = connect_client(w);
    uint64_t stream;
    assert_int_equal(0, xl_stream_open(c->connection, true, &stream));
    assert_int_equal(65536, xl_stream_send_capacity(c->connection, stream));
    server_config options = {.max_connections = 9};
    xl_config config;
    quic_settings_init(&options.settings);
    http3_service_configure(&options, &config);
    assert_int_equal(4 * 65536, config.limits.max_data);
}

TEST(rooms_are_shared_out_as_the_options_say) {
    server_config options = {.max_per_address = SERVER_SHARE_PER_ADDRESS};
    xl_config config;
    quic_settings_init(&options.settings);
    http3_service_configure(&options, &config);
    assert_int_equal(1024, config.limits.max_connections);
    assert_int_equal(256, config.limits.max_per_client);
    options.max_connections = 3;
    http3_service_configure(&options, &config);
    assert_int_equal(3, config.limits.max_connections);
    assert_int_equal(1, config.limits.max_per_client);
    options.lb_file = "lb.yaml"; /* all clients have the balancer's address */
    http3_service_configure(&options, &config);
    assert_int_equal(0, config.limits.max_per_client);
    options.max_per_address = 2;
    http3_service_configure(&options, &config);
    assert_int_equal(2, config.limits.max_per_client);
}

TEST_MAIN(NULL, NULL)
