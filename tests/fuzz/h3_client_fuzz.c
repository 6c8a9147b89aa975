/* The player's HTTP/3 client against a server that writes any bytes. Properties: for each request that the client took,
 * the body comes in order and is not longer than the range, followed by either done or failed; nothing follows closed.
 */
#include "tests/fuzz/ends.h"
#include "tests/fuzz/h3_wire.h"
#include "tests/fuzz/live.h"
#include "tests/fuzz/repeatable.h"
#include "player/http3_client.h"

#define OPERATIONS   120
#define REQUESTS     32
#define MEMORY_BYTES (64u << 20)

typedef struct {
    ends e;
    http3_client *client;
    xl_connection *server; /* NULL: none, or closed */
    uint64_t stream[32];   /* streams that the server writes: those of requests, and its own */
    size_t streams, paths;
    struct {
        bool open;
        uint64_t wanted, received;
    } request[REQUESTS];
    size_t requests;
    xl_qoe qoe;
    bool connected, closed;
} bench;

static void on_connected(void *user, uint64_t now) {
    bench *b = user;
    FUZZ_CHECK(!b->connected && !b->closed && now <= b->e.now);
    b->connected = true;
}

static void on_data(void *user, uint64_t id, uint64_t offset, const uint8_t *data, size_t len, uint64_t now) {
    bench *b = user;
    (void)now;
    FUZZ_CHECK(id < b->requests && b->request[id].open && !b->closed);
    FUZZ_CHECK(offset == b->request[id].received && len > 0 && len <= b->request[id].wanted - offset);
    fuzz_note(data, len);
    b->request[id].received += len;
}

static void on_done(void *user, uint64_t id, uint64_t now) {
    bench *b = user;
    (void)now;
    FUZZ_CHECK(id < b->requests && b->request[id].open && !b->closed);
    FUZZ_CHECK(b->request[id].received == b->request[id].wanted);
    b->request[id].open = false;
}

static void on_failed(void *user, uint64_t id, const char *message, uint64_t now) {
    bench *b = user;
    (void)now;
    FUZZ_CHECK(id < b->requests && b->request[id].open && !b->closed && message[0] != 0);
    fuzz_note(message, strlen(message));
    b->request[id].open = false;
}

static void on_path(void *user, size_t path, const char *state, uint64_t now) {
    bench *b = user;
    (void)now;
    FUZZ_CHECK(path < b->paths && state[0] != 0 && !b->closed);
}

static bool on_qoe(void *user, uint64_t now, xl_qoe *qoe) {
    (void)now;
    *qoe = ((const bench *)user)->qoe;
    return qoe->fps > 0;
}

static void on_migrated(void *user, size_t from, size_t to, uint64_t now) {
    bench *b = user;
    (void)now;
    FUZZ_CHECK(from < b->paths && to < b->paths && !b->closed);
}

static void on_closed(void *user, const char *message, uint64_t now) {
    bench *b = user;
    (void)now;
    FUZZ_CHECK(!b->closed && message[0] != 0);
    for (const char *c = message; *c; c++)
        FUZZ_CHECK(*c >= ' ' && *c <= '~'); /* it is printed on terminals */
    fuzz_note(message, strlen(message));
    b->closed = true;
}

static void act_client(void *user, uint64_t now) {
    http3_client_process(((bench *)user)->client, now);
}

static void note_stream(bench *b, uint64_t id) {
    for (size_t i = 0; i < b->streams; i++)
        if (b->stream[i] == id)
            return;
    if (b->streams < 32)
        b->stream[b->streams++] = id;
}

static void act_server(void *user, uint64_t now) {
    bench *b = user;
    xl_event event;
    uint8_t waste[4096];
    bool fin = false;
    ssize_t n;
    xl_endpoint_handle_timeout(b->e.endpoint[1], now);
    while (xl_endpoint_poll_event(b->e.endpoint[1], &event)) {
        if (event.type == XL_EVENT_CONNECTED && !b->server)
            b->server = event.connection;
        if (event.type == XL_EVENT_STREAM_READABLE && event.connection == b->server) {
            while ((n = xl_stream_read(b->server, event.stream_id, waste, sizeof waste, &fin)) > 0)
                fuzz_note(waste, (size_t)n);
            if (event.stream_id % 4 == 0)
                note_stream(b, event.stream_id);
        }
        if (event.type == XL_EVENT_CLOSED) {
            b->server = event.connection == b->server ? NULL : b->server;
            xl_connection_free(event.connection);
        }
    }
}

/* Writes a complete valid response, or any frames. */
static void write_stream(bench *b, fuzz_input *in) {
    static uint8_t room[H3_WIRE_BYTES];
    uint8_t which = fuzz_u8(in), count = fuzz_u8(in);
    uint64_t id;
    if (!b->server)
        return;
    if (which >= 0xe0 && b->streams < 32 && xl_stream_open(b->server, false, &id) == 0)
        b->stream[b->streams++] = id;
    if (b->streams == 0)
        return;
    id = b->stream[which >= 0xe0 ? b->streams - 1 : which % b->streams];
    xl_writer w = xl_writer_of(room, sizeof room);
    for (unsigned n = 1 + count % 5; n > 0; n--)
        h3_wire_put(&w, in, h3_wire_response);
    if (count & 0x40) {
        xl_write_varint(&w, 0);
        xl_write_varint(&w, 100);
        for (int i = 0; i < 100; i++)
            xl_write_u8(&w, (uint8_t)i);
    }
    xl_stream_send(b->server, id, room, (size_t)(w.p - room), count & 0x80, NULL);
}

static void ask(bench *b, fuzz_input *in) {
    uint8_t v = fuzz_u8(in);
    uint64_t first = v & 0x80 ? fuzz_number(in) : 0, wanted = v & 0x40 ? 50 : 1 + (v & 0x3f) * 100u;
    wanted = v < 0x20 ? 100 : wanted;
    if (b->requests == REQUESTS || first > UINT64_MAX / 2)
        return;
    b->request[b->requests].wanted = wanted;
    if (http3_client_request(b->client, b->requests, first, first + wanted - 1, b->e.now))
        b->request[b->requests++].open = true;
}

static void call(bench *b, fuzz_input *in) {
    uint8_t what = fuzz_u8(in), v = fuzz_u8(in);
    if (b->closed)
        return;
    switch (what % 6) {
    case 0: /* nothing; keeps the meaning of other values in the corpus */
        break;
    case 1:
        b->qoe = (xl_qoe){v, v, v * 1000u, 30};
        break;
    case 2:
        http3_client_remove_path(b->client, v % b->paths, b->e.now);
        break;
    case 3:
        http3_client_add_path(b->client, v % b->paths, b->e.now);
        break;
    case 4:
        if (v >= 0xf0)
            http3_client_close(b->client, b->e.now);
        break;
    default:
        if (b->server && v >= 0xe0)
            xl_connection_close(b->server, v, "\x1b[31m\xff no", b->e.now);
    }
}

static void operate(bench *b, fuzz_input *in) {
    uint8_t op = fuzz_u8(in), v;
    switch (op % 10) {
    case 0:
    case 1:
    case 2:
    case 3:
        write_stream(b, in);
        break;
    case 4:
    case 5:
        ends_run(&b->e, 1000 * (uint64_t)fuzz_u8(in));
        break;
    case 6:
        ask(b, in);
        break;
    case 7:
        v = fuzz_u8(in);
        if (b->server && b->streams > 0)
            xl_stream_reset(b->server, b->stream[v % b->streams], v);
        break;
    case 8:
        v = fuzz_u8(in);
        if (b->server && b->streams > 0)
            xl_stream_stop(b->server, b->stream[v % b->streams], v);
        break;
    default:
        call(b, in);
    }
}

static void open_bench(bench *b, xl_credentials **credentials, uint8_t shape) {
    static const char *const schemes[] = {"sp", "cm", "vanilla-mp", "xlink", "xlink+"};
    static const player_path paths[2] = {
        {.name = "wifi", .local = {.family = 4, .ip = {10, 0, 0, 1}, .port = 5000}, .technology = XL_TECH_WIFI},
        {.name = "lte", .local = {.family = 4, .ip = {10, 0, 1, 1}, .port = 5001}, .technology = XL_TECH_LTE}};
    static quic_settings settings;
    quic_settings_init(&settings);
    FUZZ_CHECK(quic_settings_choose(&settings, schemes[shape % 5]));
    static const player_transport_config config = {.server = {.family = 4, .ip = {10, 0, 0, 2}, .port = 443},
                                                   .paths = paths,
                                                   .path_count = 2,
                                                   .target = "/synthetic/5000",
                                                   .authority = "xlink-server:443",
                                                   .concurrency = 4,
                                                   .settings = &settings,
                                                   .random_key = {1},
                                                   .null_crypto = true};
    const player_transport_callbacks callbacks = {.user = b,
                                                  .connected = on_connected,
                                                  .data = on_data,
                                                  .done = on_done,
                                                  .failed = on_failed,
                                                  .path = on_path,
                                                  .migrated = on_migrated,
                                                  .qoe = on_qoe,
                                                  .closed = on_closed};
    char error[PLAYER_ERROR_BYTES];
    const xl_log log = {0};
    xl_config c;
    int rv;
    b->paths = 2;
    b->client = http3_client_new(&config, &callbacks, credentials[0], &log, b->e.now, error);
    FUZZ_CHECK(b->client != NULL);
    for (size_t i = 0; i < config.path_count; i++)
        FUZZ_CHECK(!http3_client_opens_at_start(&config, i) ||
                   http3_client_open_path(b->client, i, &paths[i].local, b->e.now, error));
    b->e.endpoint[0] = http3_client_endpoint(b->client);
    xl_config_init(&c);
    c.random_key[0] = 3;
    c.is_server = true;
    c.alpn = "h3";
    c.null_crypto = true;
    c.scheme.enable_multipath = shape & 0x80;
    c.limits.max_udp_payload_bytes = ENDS_MTU;
    c.credentials = credentials[1];
    b->e.endpoint[1] = xl_endpoint_new(&c, b->e.now, &rv);
    FUZZ_CHECK(b->e.endpoint[1] != NULL);
    b->e.act[0] = act_client;
    b->e.act[1] = act_server;
}

static void close_bench(bench *b) {
    player_path_stats stats[2];
    http3_client_path_stats(b->client, stats);
    json_t *summary = http3_client_summary(b->client);
    FUZZ_CHECK(json_is_object(summary));
    json_decref(summary);
    http3_client_free(b->client);
    xl_endpoint_free(b->e.endpoint[1]);
    free(b->e.air);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = fuzz_input_of(data, size);
    bench *b = calloc(1, sizeof *b);
    fuzz_repeat_tls();
    FUZZ_CHECK(b != NULL);
    size_t before = live_memory();
    ends_init(&b->e, b);
    open_bench(b, h3_credentials(), fuzz_u8(&in));
    ends_run(&b->e, 100000);
    for (int i = 0; i < OPERATIONS && fuzz_left(&in) > 0 && b->e.steps < ENDS_STEPS; i++) {
        operate(b, &in);
        FUZZ_CHECK(live_memory() <= before + MEMORY_BYTES);
    }
    ends_run(&b->e, 300000);
    close_bench(b);
    free(b);
    return 0;
}
