/* Writes inputs for harnesses from the packets of real endpoints: handshakes with and without Retry, a request over two
 * paths with losses, HTTP/3 between the player's client and the server's service, saturatr's datagrams.
 *
 *     seeds DIR       writes inputs to DIR/NAME/found */
#include <errno.h>
#include <sys/stat.h>

#include "emulator/saturatr/wire.h"
#include "tests/fuzz/ends.h"
#include "tests/fuzz/live.h"
#include "tests/fuzz/repeatable.h"
#include "player/http3_client.h"
#include "server/http3_service.h"

#define STREAMS      16
#define STREAM_BYTES 600
#define PACKETS_MOST 60

static const char *directory;

static void make_directory(const char *path) {
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "seeds: cannot make %s: %s.\n", path, strerror(errno));
        exit(2);
    }
}

static void write_seed(const char *harness, const char *name, unsigned number, const uint8_t *data, size_t len) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, harness);
    make_directory(path);
    snprintf(path, sizeof path, "%s/%s/found", directory, harness);
    make_directory(path);
    snprintf(path, sizeof path, "%s/%s/found/seed-%s-%u", directory, harness, name, number);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, len, file) != len || fclose(file) != 0) {
        fprintf(stderr, "seeds: cannot write %s: %s.\n", path, strerror(errno));
        exit(2);
    }
}

/* ---- packets and frames ---- */

typedef struct {
    pair p;
    const char *name;
    unsigned packets, payloads;
    bool is_open; /* packets are not encrypted */
} exchange;

/* Returns the payload of an unencrypted packet. */
static const uint8_t *open_packet(const uint8_t *packet, const xl_packet_header *h, size_t *len) {
    size_t pn_len = (packet[0] & 3u) + 1u;
    if (h->type > XL_PACKET_1RTT || h->type == XL_PACKET_RETRY || h->type == XL_PACKET_VERSION_NEGOTIATION ||
        h->total_len < h->pn_offset + pn_len + XL_AEAD_TAG)
        return NULL;
    *len = h->total_len - h->pn_offset - pn_len - XL_AEAD_TAG;
    return packet + h->pn_offset + pn_len;
}

/* Returns the length without padding at the end. */
static size_t without_padding(const uint8_t *data, size_t len) {
    while (len > 1 && data[len - 1] == 0 && data[len - 2] == 0)
        len--;
    return len;
}

static void see_datagram(void *user, bool to_server, uint8_t *data, size_t len) {
    exchange *e = user;
    uint8_t seed[PAIR_MTU + 72] = {0, 0x15, 0xb3, XL_LOCAL_CID_BYTES};
    (void)to_server;
    if (e->packets < PACKETS_MOST) {
        memcpy(seed + 4, data, len);
        write_seed("packet", e->name, e->packets++, seed, 4 + len);
    }
    xl_packet_header h;
    for (size_t at = 0; e->is_open && at < len && xl_packet_parse(data + at, len - at, XL_LOCAL_CID_BYTES, &h) == 0;
         at += h.total_len) {
        size_t n;
        const uint8_t *payload = open_packet(data + at, &h, &n);
        if (!payload || e->payloads >= 4 * PACKETS_MOST)
            continue;
        n = without_padding(payload, n);
        n = n < 400 ? n : 400;
        seed[0] = (uint8_t)(1 | h.type << 1);
        memcpy(seed + 1, payload, n);
        write_seed("frame", e->name, e->payloads++, seed, 1 + n);
    }
}

static void write_params(const exchange *e, const xl_connection *c, unsigned number) {
    uint8_t seed[1024] = {c->is_server};
    size_t n = xl_transport_params_encode(&c->local_params, seed + 1, sizeof seed - 1);
    write_seed("params", e->name, number, seed, 1 + n);
}

static const uint8_t seed_text[] = "a datagram";

static void exchange_packets(const char *name, bool is_open, bool multipath, bool retry, xl_dialect dialect) {
    exchange *e = calloc(1, sizeof *e);
    FUZZ_CHECK(e != NULL);
    e->name = name;
    e->is_open = is_open;
    pair *p = &e->p;
    pair_init(p, 1, 2, 10000);
    if (multipath)
        pair_multipath(p, "xlink", "stream");
    p->client_config.null_crypto = p->server_config.null_crypto = is_open;
    p->server_config.scheme.dialect = dialect;
    p->client_config.limits.max_datagram_frame_bytes = p->server_config.limits.max_datagram_frame_bytes = 1200;
    p->client_config.limits.enable_ack_frequency = p->server_config.limits.enable_ack_frequency = is_open;
    p->client_config.scheme.qoe_carrier = XL_QOE_IN_BOTH;
    p->server_config.limits.retry_always = retry;
    p->server_config.limits.max_data = 20000;
    p->link[0].loss = is_open ? 0.05 : 0;
    p->tamper = see_datagram;
    p->tamper_user = e;
    pair_connect(p);
    pair_handshake(p);
    FUZZ_CHECK(p->sc != NULL);
    write_params(e, p->cc, 0);
    write_params(e, p->sc, 1);
    pair_ask(p, 100000);
    pair_run(p, 100000);
    xl_connection_send_datagram(p->cc, seed_text, sizeof seed_text, 1, p->now);
    xl_connection_set_qoe(p->cc, &(xl_qoe){100000, 30, 4000000, 30}, p->now);
    if (multipath) {
        xl_connection_set_path_status(p->cc, 1, XL_STATUS_STANDBY, p->now);
        pair_run(p, 100000);
        xl_connection_close_path(p->cc, 1, p->now);
    }
    pair_run(p, 500000);
    xl_connection_close(p->cc, 3, "done", p->now);
    pair_run(p, 100000);
    pair_free(p);
    free(e);
}

/* ---- a live pair ---- */

#define SHAPE_IETF 0x25 /* two paths; both ends support multipath; the server chooses `ietf` */

/* Writes inputs with one frame of each kind of the dialect `ietf`, for some path IDs, to both ends; with datagrams, and
 * with the frames of draft-ietf-quic-ack-frequency. */
static void write_live(void) {
    static const uint8_t extensions[] = {119, 143, 167, 191, 215, 239};
    for (unsigned kind = 0; kind < 8 + sizeof extensions; kind++) {
        uint8_t seed[512] = {SHAPE_IETF};
        size_t at = 1 + 2 * 4 + 2; /* default schemes and limits */
        for (unsigned i = 0; i < 6; i++) {
            uint8_t frame = kind < 8 ? 22 : extensions[kind - 8];
            const uint8_t forged[] = {
                5, (uint8_t)(i % 2), 0, 0, 0, 0, 0, 0, frame, (uint8_t)kind, (uint8_t)(i / 2), 1, 2, 3, 4, 5, 6, 7, 8,
                9};
            const uint8_t time_passes[] = {0, 20};
            memcpy(seed + at, forged, sizeof forged);
            at += sizeof forged;
            memcpy(seed + at, time_passes, sizeof time_passes);
            at += sizeof time_passes;
        }
        write_seed("live", "ietf", kind, seed, at);
    }
}

/* ---- HTTP/3 ---- */

typedef struct {
    ends e;
    http3_service *service;
    http3_client *client;
    struct {
        uint64_t id;
        size_t len;
        bool fin;
        uint8_t data[STREAM_BYTES];
    } stream[2][STREAMS];
    size_t streams[2]; /* 0: written by the server, 1: by the client */
} http;

static void note_stream(http *b, bool to_server, const xl_frame *f) {
    size_t i = 0;
    while (i < b->streams[to_server] && b->stream[to_server][i].id != f->stream.stream_id)
        i++;
    if (i == STREAMS)
        return;
    b->streams[to_server] += i == b->streams[to_server];
    b->stream[to_server][i].id = f->stream.stream_id;
    b->stream[to_server][i].fin |= f->stream.fin;
    for (size_t k = 0; k < f->stream.len && f->stream.offset + k < STREAM_BYTES; k++) {
        b->stream[to_server][i].data[f->stream.offset + k] = f->stream.data[k];
        if (f->stream.offset + k + 1 > b->stream[to_server][i].len)
            b->stream[to_server][i].len = (size_t)f->stream.offset + k + 1;
    }
}

static void see_streams(void *user, bool to_server, const uint8_t *data, size_t len) {
    xl_packet_header h;
    for (size_t at = 0; at < len && xl_packet_parse(data + at, len - at, XL_LOCAL_CID_BYTES, &h) == 0;
         at += h.total_len) {
        size_t n;
        const uint8_t *payload = open_packet(data + at, &h, &n);
        xl_frame f;
        xl_reader r = xl_reader_of(payload, payload ? n : 0);
        while (xl_reader_left(&r) > 0 && xl_frame_parse(&r, true, &f) == 0)
            if (f.type == XL_FRAME_STREAM)
                note_stream(user, to_server, &f);
    }
}

static void act_client(void *user, uint64_t now) {
    http3_client_process(((http *)user)->client, now);
}

static void act_server(void *user, uint64_t now) {
    http3_service_process(((http *)user)->service, now);
}

static void on_connected(void *user, uint64_t now) {
    (void)user;
    (void)now;
}

static void on_data(void *user, uint64_t id, uint64_t offset, const uint8_t *data, size_t len, uint64_t now) {
    (void)user;
    (void)id;
    (void)offset;
    (void)data;
    (void)len;
    (void)now;
}

static void on_done(void *user, uint64_t id, uint64_t now) {
    (void)user;
    (void)id;
    (void)now;
}

static void on_failed(void *user, uint64_t id, const char *message, uint64_t now) {
    (void)message;
    on_done(user, id, now);
}

static void on_path(void *user, size_t path, const char *state, uint64_t now) {
    (void)state;
    on_done(user, path, now);
}

static void on_closed(void *user, const char *message, uint64_t now) {
    (void)user;
    (void)message;
    (void)now;
}

static bool on_qoe(void *user, uint64_t now, xl_qoe *qoe) {
    (void)user;
    (void)now;
    (void)qoe;
    return false;
}

static void drop_record(void *user, const char *event, json_t *fields, uint64_t now) {
    (void)user;
    (void)event;
    (void)now;
    json_decref(fields);
}

static uint64_t next_connection(void *user) {
    (void)user;
    return 0;
}

/* Writes the operations for these streams, in pieces of at most 64 bytes. */
static void write_streams(const http *b, bool by_client, const char *harness) {
    uint8_t seed[8192] = {by_client ? 3 : 0x83};
    size_t at = 1;
    if (!by_client) { /* first the requests, and time for them to arrive */
        const uint8_t ask[] = {6, 0, 6, 0, 4, 50};
        memcpy(seed + at, ask, sizeof ask);
        at += sizeof ask;
    }
    for (size_t i = 0; i < b->streams[by_client]; i++) {
        bool bidi = b->stream[by_client][i].id % 4 < 2;
        size_t len = b->stream[by_client][i].len, sent = 0;
        while (sent < len && at + 80 < sizeof seed) {
            size_t n = len - sent < 64 ? len - sent : 64;
            bool last = sent + n == len;
            seed[at++] = 0; /* write_stream */
            seed[at++] = sent > 0    ? (uint8_t)(by_client ? i
                                                 : bidi    ? i
                                                           : 0xe0)
                         : by_client ? (bidi ? 0x80 : 0x40)
                         : bidi      ? (uint8_t)i
                                     : 0xe0;
            seed[at++] = last && b->stream[by_client][i].fin ? 0x80 : 0;
            seed[at++] = 10; /* bytes as they are */
            seed[at++] = (uint8_t)n;
            memcpy(seed + at, b->stream[by_client][i].data + sent, n);
            at += n;
            sent += n;
        }
    }
    write_seed(harness, "streams", 0, seed, at);
}

static void exchange_http(void) {
    static const xl_log no_log;
    http *b = calloc(1, sizeof *b);
    FUZZ_CHECK(b != NULL);
    const player_path path = {.name = "wifi", .local = {.family = 4, .ip = {10, 0, 0, 1}, .port = 5000}};
    quic_settings settings;
    quic_settings_init(&settings);
    FUZZ_CHECK(quic_settings_choose(&settings, "sp"));
    const player_transport_config config = {.server = {.family = 4, .ip = {10, 0, 0, 2}, .port = 443},
                                            .paths = &path,
                                            .path_count = 1,
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
                                                  .qoe = on_qoe,
                                                  .closed = on_closed};
    const server_config serving = {.settings = settings, .random_key = {2}, .null_crypto = true};
    const catalogue_video model = {.bitrate_bps = 4000000, .fps_milli = 30000};
    const http3_service_hooks hooks = {.user = b, .log = drop_record, .next_connection = next_connection};
    xl_credentials *own = xl_credentials_client(NULL),
                   *its = xl_credentials_self_signed("s", (const uint8_t[XL_RANDOM_KEY_BYTES]){7}, 1700000000);
    catalogue *videos = catalogue_new(&model, NULL);
    char error[512];
    xl_config c;
    int rv;
    ends_init(&b->e, b);
    b->client = http3_client_new(&config, &callbacks, own, &no_log, b->e.now, error);
    FUZZ_CHECK(b->client && http3_client_open_path(b->client, 0, &path.local, b->e.now, error));
    http3_service_configure(&serving, &c);
    c.credentials = its;
    b->e.endpoint[0] = http3_client_endpoint(b->client);
    b->e.endpoint[1] = xl_endpoint_new(&c, b->e.now, &rv);
    b->service = http3_service_new(b->e.endpoint[1], videos, &hooks);
    b->e.act[0] = act_client;
    b->e.act[1] = act_server;
    b->e.see = see_streams;
    ends_run(&b->e, 200000);
    FUZZ_CHECK(http3_client_request(b->client, 0, 0, 99, b->e.now));
    FUZZ_CHECK(http3_client_request(b->client, 1, 100, 399, b->e.now));
    ends_run(&b->e, 200000);
    FUZZ_CHECK(b->streams[0] >= 5 && b->streams[1] >= 5); /* control, QPACK twice, two requests */
    write_streams(b, true, "h3_server");
    write_streams(b, false, "h3_client");
    http3_service_free(b->service);
    http3_client_free(b->client);
    xl_endpoint_free(b->e.endpoint[1]);
    catalogue_free(videos);
    xl_credentials_free(own);
    xl_credentials_free(its);
    free(b->e.air);
    free(b);
}

/* ---- HTTP/0.9, sessions ---- */

static void write_lines(void) {
    static const uint8_t requests[] = {0x13, 0,    0x80, 0x80, 2, 0,    4,    50, 0, 0x80, 0x80, 0,   4,   '5', '0',
                                       '\r', '\n', 4,    50,   0, 0x80, 0x80, 3,  4, 'P',  'O',  'S', 'T', 4,   50};
    static const uint8_t sessions[][8] = {{0}, {0, 0, 0, 1}, {2, 0, 200}, {1, 1, 2, 3}, {0, 0, 60, 1, 1, 0, 1}};
    write_seed("h3_server", "hq", 0, requests, sizeof requests);
    for (unsigned i = 0; i < sizeof sessions / sizeof sessions[0]; i++)
        write_seed("session", "edited", i, sessions[i], sizeof sessions[i]);
}

/* ---- saturatr ---- */

static void write_datagrams(void) {
    for (unsigned type = SAT_HELLO; type <= SAT_ACK; type++) {
        uint8_t seed[3 + SAT_CONTROL_BYTES] = {0, type == SAT_DATA ? 5 : 0, 0};
        const sat_packet packet = {
            .type = (uint8_t)type, .channel = 1, .path = 1, .tag = 77, .seq = 9, .sent_us = 1000};
        size_t n = sat_wire_write(&packet, seed + 3);
        write_seed("saturatr", "wire", type, seed, 3 + n);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: seeds DIR\n");
        return 2;
    }
    directory = argv[1];
    fuzz_repeat_tls();
    make_directory(directory);
    exchange_packets("plain", true, false, false, XL_DIALECT_XLINK);
    exchange_packets("paths", true, true, false, XL_DIALECT_XLINK);
    exchange_packets("ietf", true, true, false, XL_DIALECT_IETF);
    exchange_packets("sealed", false, true, false, XL_DIALECT_XLINK);
    exchange_packets("retry", false, false, true, XL_DIALECT_XLINK);
    write_live();
    exchange_http();
    write_lines();
    write_datagrams();
    return 0;
}
