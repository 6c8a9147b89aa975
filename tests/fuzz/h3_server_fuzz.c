/* The server's HTTP/3 or HTTP/0.9 service against a client that writes any bytes on any streams. Properties: the
 * service responds, resets or closes, uses a bounded amount of memory, and logs valid records. */
#include "tests/fuzz/ends.h"
#include "tests/fuzz/h3_wire.h"
#include "tests/fuzz/live.h"
#include "tests/fuzz/repeatable.h"
#include "server/http3_service.h"

#define OPERATIONS   120
#define MEMORY_BYTES (64u << 20)

typedef struct {
    ends e;
    xl_connection *client; /* NULL: closed */
    http3_service *service;
    catalogue *videos;
    bool is_hq;
    uint64_t stream[32];
    size_t streams;
    uint64_t connections, records;
} bench;

static void take_record(void *user, const char *event, json_t *fields, uint64_t now) {
    bench *b = user;
    FUZZ_CHECK(json_is_object(fields) && now <= b->e.now);
    char *text = json_dumps(fields, JSON_COMPACT | JSON_SORT_KEYS);
    FUZZ_CHECK(text != NULL);
    fuzz_note(event, strlen(event));
    fuzz_note(text, strlen(text));
    free(text);
    json_decref(fields);
    b->records++;
}

static uint64_t next_connection(void *user) {
    return ((bench *)user)->connections++;
}

static void act_client(void *user, uint64_t now) {
    bench *b = user;
    xl_event event;
    uint8_t waste[4096];
    bool fin = false;
    ssize_t n;
    xl_endpoint_handle_timeout(b->e.endpoint[0], now);
    while (xl_endpoint_poll_event(b->e.endpoint[0], &event)) {
        fuzz_note_number(event.type);
        if (event.type == XL_EVENT_CLOSED) {
            fuzz_note_number(event.error_code);
            b->client = NULL;
            xl_connection_free(event.connection);
        }
        while (event.type == XL_EVENT_STREAM_READABLE && b->client && event.stream_id % 8 < 4 &&
               (n = xl_stream_read(b->client, event.stream_id, waste, sizeof waste, &fin)) > 0)
            fuzz_note(waste, (size_t)n);
    }
}

static void act_server(void *user, uint64_t now) {
    http3_service_process(((bench *)user)->service, now);
}

/* Writes a request of HTTP/0.9, or something similar. */
static void put_line(xl_writer *w, fuzz_input *in) {
    static const char *const begins[] = {"GET /synthetic/", "GET /", "GET /synthetic/5000\r\n", ""};
    const char *begin = begins[fuzz_u8(in) % 4];
    size_t len;
    const uint8_t *rest = fuzz_bytes(in, 200, &len);
    xl_write_bytes(w, (const uint8_t *)begin, strlen(begin));
    xl_write_bytes(w, rest, len);
}

static void write_stream(bench *b, fuzz_input *in) {
    static uint8_t room[H3_WIRE_BYTES];
    uint8_t which = fuzz_u8(in), count = fuzz_u8(in);
    uint64_t id;
    if ((which & 0xc0 || b->streams == 0) && b->streams < 32 && xl_stream_open(b->client, which & 0x80, &id) == 0)
        b->stream[b->streams++] = id;
    if (b->streams == 0)
        return;
    id = b->stream[which & 0xc0 ? b->streams - 1 : which % b->streams];
    xl_writer w = xl_writer_of(room, sizeof room);
    for (unsigned n = 1 + count % 5; n > 0; n--)
        if (b->is_hq)
            put_line(&w, in);
        else
            h3_wire_put(&w, in, h3_wire_request);
    size_t len = (size_t)(w.p - room), half = count & 0x10 ? len / 2 : len; /* in one packet or in two */
    xl_stream_send(b->client, id, room, half, half == len && count & 0x80, NULL);
    if (half < len) {
        ends_run(&b->e, 1000);
        if (b->client)
            xl_stream_send(b->client, id, room + half, len - half, count & 0x80, NULL);
    }
}

static void operate(bench *b, fuzz_input *in) {
    uint8_t op = fuzz_u8(in), v;
    switch (op % 8) {
    case 0:
    case 1:
    case 2:
    case 3:
        write_stream(b, in);
        break;
    case 4:
        ends_run(&b->e, 1000 * (uint64_t)fuzz_u8(in));
        break;
    case 5:
        v = fuzz_u8(in);
        if (b->streams > 0)
            xl_stream_reset(b->client, b->stream[v % b->streams], v);
        break;
    case 6:
        v = fuzz_u8(in);
        if (b->streams > 0)
            xl_stream_stop(b->client, b->stream[v % b->streams], v);
        break;
    default:
        if (op >= 0xf0)
            xl_connection_close(b->client, op, "bye", b->e.now);
        else
            ends_run(&b->e, 6000000); /* the session rests */
    }
}

static void open_bench(bench *b, xl_credentials **own, uint8_t shape) {
    static const char *const schemes[] = {"sp", "cm", "vanilla-mp", "xlink"};
    server_config config = {.random_key = {2}, .null_crypto = true};
    const catalogue_video video = {.bitrate_bps = 4000000, .fps_milli = 30000};
    const http3_service_hooks hooks = {.user = b, .log = take_record, .next_connection = next_connection};
    const xl_addr local = {.family = 4, .ip = {10, 0, 0, 1}, .port = 50000};
    const xl_addr remote = {.family = 4, .ip = {10, 0, 0, 2}, .port = 443};
    int rv;
    xl_config c;
    quic_settings_init(&config.settings);
    FUZZ_CHECK(quic_settings_choose(&config.settings, schemes[shape & 3]));
    config.settings.limits.send_buffer_bytes = shape & 4 ? 20000 : 0;
    http3_service_configure(&config, &c);
    c.credentials = own[1];
    b->e.endpoint[1] = xl_endpoint_new(&c, b->e.now, &rv);
    b->videos = catalogue_new(&video, NULL);
    b->service = http3_service_new(b->e.endpoint[1], b->videos, &hooks);
    xl_config_init(&c);
    c.random_key[0] = 3;
    b->is_hq = shape & 0x10;
    c.alpn = b->is_hq ? "hq-interop" : "h3";
    c.null_crypto = true;
    c.credentials = own[0];
    c.limits.max_data = shape & 8 ? 5000 : 1 << 20;
    b->e.endpoint[0] = xl_endpoint_new(&c, b->e.now, &rv);
    FUZZ_CHECK(b->service && b->e.endpoint[0]);
    b->e.act[0] = act_client;
    b->e.act[1] = act_server;
    b->client = xl_endpoint_connect(b->e.endpoint[0], "xlink-server", &local, &remote, XL_TECH_WIFI, b->e.now);
}

static void close_bench(bench *b) {
    server_totals totals = {.paths = json_array()};
    http3_service_close(b->service, b->e.now);
    ends_transmit(&b->e);
    http3_service_finish(b->service, b->e.now);
    http3_service_add_totals(b->service, &totals);
    FUZZ_CHECK(totals.connections == b->connections);
    json_decref(totals.paths);
    http3_service_free(b->service);
    xl_endpoint_free(b->e.endpoint[0]);
    xl_endpoint_free(b->e.endpoint[1]);
    catalogue_free(b->videos);
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
    for (int i = 0; i < OPERATIONS && fuzz_left(&in) > 0 && b->client && b->e.steps < ENDS_STEPS; i++) {
        operate(b, &in);
        FUZZ_CHECK(live_memory() <= before + MEMORY_BYTES);
    }
    ends_run(&b->e, 300000);
    close_bench(b);
    free(b);
    return 0;
}
