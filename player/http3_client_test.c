/* The player's HTTP/3 client and a server in one process, on a virtual clock. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/air.h"
#include "http/http3.h"
#include "player/http3_client.h"

#define ONE_WAY_US    10000
#define REQUESTS      2
#define REQUEST_BYTES 100000
#define SESSIONS      4
#define IDLE_US       5000000

typedef struct {
    uint64_t now;
    xl_credentials *credentials[2];
    xl_endpoint *server;
    http3_client *client;
    h3_session *session[SESSIONS]; /* of the server, one per connection */
    xl_connection *connection[SESSIONS];
    size_t sessions;
    unsigned asked[SESSIONS];
    air air;
    uint64_t received[REQUESTS];
    bool done[REQUESTS], is_closed;
} world;

/* ---- The server ---- */

static bool read_body(void *user, uint64_t offset, uint8_t *buf, size_t len) {
    (void)user, (void)offset;
    memset(buf, 'x', len);
    return true;
}

static void on_request(void *user, uint64_t stream, const h3_request *request) {
    world *w = user;
    uint64_t first, last;
    char length[24], range[64];
    size_t newest = w->sessions - 1;
    assert_int_equal(2, sscanf(request->range, "bytes=%" SCNu64 "-%" SCNu64, &first, &last));
    snprintf(length, sizeof length, "%" PRIu64, last - first + 1);
    snprintf(range, sizeof range, "bytes %" PRIu64 "-%" PRIu64 "/1000000", first, last);
    const h3_header headers[] = {{"content-length", length}, {"content-range", range}};
    const h3_body body = {.length = last - first + 1, .read = read_body};
    w->asked[newest]++;
    assert_int_equal(0, h3_respond(w->session[newest], stream, 206, headers, 2, &body, NULL));
}

static void serve(world *w) {
    const h3_callbacks callbacks = {.user = w, .request = on_request};
    xl_event e;
    while (xl_endpoint_poll_event(w->server, &e)) {
        if (e.type == XL_EVENT_CONNECTED) {
            assert_true(w->sessions < SESSIONS);
            w->connection[w->sessions] = e.connection;
            w->session[w->sessions++] = h3_session_server(e.connection, &callbacks);
        }
        for (size_t i = 0; i < w->sessions; i++)
            if (w->connection[i] == e.connection && e.type != XL_EVENT_CLOSED)
                h3_on_event(w->session[i], &e, w->now);
    }
    for (size_t i = 0; i < w->sessions; i++)
        h3_pump(w->session[i], w->now);
}

/* ---- The player ---- */

static void on_connected(void *user, uint64_t now) {
    (void)user, (void)now;
}

static void on_data(void *user, uint64_t id, uint64_t offset, const uint8_t *data, size_t len, uint64_t now) {
    world *w = user;
    (void)data, (void)now;
    assert_int_equal(w->received[id], offset);
    w->received[id] += len;
}

static void on_done(void *user, uint64_t id, uint64_t now) {
    (void)now;
    ((world *)user)->done[id] = true;
}

static void on_failed(void *user, uint64_t id, const char *message, uint64_t now) {
    (void)user, (void)id, (void)now;
    fail_msg("%s", message);
}

static void on_path(void *user, size_t path, const char *state, uint64_t now) {
    (void)user, (void)now;
    assert_true(path == 0 || strcmp(state, "tried") != 0); /* the path has no fault, so no other is tried */
}

static bool no_qoe(void *user, uint64_t now, xl_qoe *qoe) {
    (void)user, (void)now, (void)qoe;
    return false;
}

static void on_closed(void *user, const char *message, uint64_t now) {
    (void)message, (void)now;
    ((world *)user)->is_closed = true;
}

/* ---- Both ---- */

static void step(world *w) {
    xl_endpoint *client = http3_client_endpoint(w->client);
    air_deliver(&w->air, client, w->server, w->now);
    if (xl_endpoint_next_timeout(w->server) <= w->now)
        xl_endpoint_handle_timeout(w->server, w->now);
    http3_client_process(w->client, w->now);
    serve(w);
    air_take(&w->air, client, true, w->now);
    air_take(&w->air, w->server, false, w->now);
    w->now += 1000;
}

static void run(world *w, uint64_t us) {
    for (uint64_t until = w->now + us; w->now < until;)
        step(w);
}

static void start(world *w) {
    const player_transport_callbacks callbacks = {.user = w,
                                                  .connected = on_connected,
                                                  .data = on_data,
                                                  .done = on_done,
                                                  .failed = on_failed,
                                                  .path = on_path,
                                                  .qoe = no_qoe,
                                                  .closed = on_closed};
    static const player_path paths[] = {{.name = "wifi", .local = {.family = 4, .ip = {10, 0, 0, 1}, .port = 50000}},
                                        {.name = "lte", .local = {.family = 4, .ip = {10, 0, 1, 1}, .port = 50000}}};
    const xl_log no_log = {.user = NULL};
    static quic_settings settings;
    static player_transport_config config = {.server = {.family = 4, .ip = {10, 0, 0, 2}, .port = 443},
                                             .paths = paths,
                                             .path_count = 2,
                                             .target = "/video",
                                             .authority = "server.test",
                                             .concurrency = REQUESTS,
                                             .settings = &settings};
    char error[PLAYER_ERROR_BYTES];
    xl_config c;
    int rv;
    memset(w, 0, sizeof *w);
    w->now = 1000000;
    w->air.one_way_us = ONE_WAY_US;
    w->credentials[0] = xl_credentials_client(NULL);
    w->credentials[1] = xl_credentials_self_signed("server.test", (uint8_t[XL_RANDOM_KEY_BYTES]){1}, 1700000000);
    quic_settings_init(&settings);
    assert_true(quic_settings_choose(&settings, "sp"));
    assert_int_equal(0, xl_random_key_from_seed(1, "client", config.random_key));
    w->client = http3_client_new(&config, &callbacks, w->credentials[0], &no_log, w->now, error);
    assert_non_null(w->client);
    assert_true(http3_client_open_path(w->client, 0, &paths[0].local, w->now, error));
    xl_config_init(&c);
    c.is_server = true;
    c.limits.idle_timeout_us = IDLE_US;
    c.alpn = "h3";
    c.credentials = w->credentials[1];
    assert_int_equal(0, xl_random_key_from_seed(1, "server", c.random_key));
    w->server = xl_endpoint_new(&c, w->now, &rv);
    assert_non_null(w->server);
    run(w, 100000);
    assert_true(http3_client_is_connected(w->client));
}

static void world_free(world *w) {
    for (size_t i = 0; i < w->sessions; i++)
        h3_session_free(w->session[i]);
    http3_client_free(w->client);
    xl_endpoint_free(w->server);
    air_clear(&w->air);
    xl_credentials_free(w->credentials[0]);
    xl_credentials_free(w->credentials[1]);
}

#define WORLD_TEST(name) TEST_OF(name, world, w, world_free)

static void ask(world *w, uint64_t id) {
    assert_true(http3_client_request(w->client, id, id * REQUEST_BYTES, (id + 1) * REQUEST_BYTES - 1, w->now));
}

/* Writes GOAWAY on the control stream, because the server never sends one. */
static void go_away(world *w, uint8_t from) {
    const uint8_t goaway[] = {0x07, 0x01, from};
    assert_int_equal(sizeof goaway, xl_stream_send(w->connection[0], 3, goaway, sizeof goaway, false, NULL));
}

/* RFC 9114 section 5.2. */
WORLD_TEST(what_a_server_that_goes_away_does_not_process_is_asked_for_again) {
    start(w);
    ask(w, 0);
    ask(w, 1);
    go_away(w, 4);
    run(w, 1000000);
    assert_int_equal(2, w->sessions);
    assert_true(w->done[0] && w->done[1] && !w->is_closed);
    assert_int_equal(REQUEST_BYTES, w->received[1]);
    assert_int_equal(1, w->asked[1]);
}

WORLD_TEST(after_goaway_the_next_request_has_a_new_connection) {
    start(w);
    ask(w, 0);
    go_away(w, 4);
    run(w, 1000000);
    assert_true(w->done[0]);
    ask(w, 1);
    run(w, 1000000);
    assert_true(w->done[1] && !w->is_closed);
    assert_int_equal(1, w->asked[1]);
}

WORLD_TEST(a_server_that_closes_after_goaway_is_connected_to_again) {
    start(w);
    ask(w, 0);
    ask(w, 1);
    go_away(w, 4);
    run(w, 30000);
    xl_connection_close(w->connection[0], H3_NO_ERROR, "", w->now);
    run(w, 1000000);
    assert_true(w->done[0] && w->done[1] && !w->is_closed);
}

WORLD_TEST(a_player_that_asks_for_nothing_stays_closed_until_its_next_request) {
    start(w);
    ask(w, 0);
    run(w, 3 * IDLE_US);
    assert_true(w->done[0] && !w->is_closed);
    assert_int_equal(1, w->sessions);
    assert_int_equal(XL_NEVER, http3_client_next_timeout(w->client));
    ask(w, 1);
    assert_int_equal(w->now, http3_client_next_timeout(w->client));
    run(w, 1000000);
    assert_true(w->done[1] && !w->is_closed);
    assert_int_equal(2, w->sessions);
}

TEST_MAIN(NULL, NULL)
