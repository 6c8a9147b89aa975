/* A client's stored sessions, damaged or invented. Properties: a session that is read and written again is read as the
 * same, and a connection that starts with one connects or closes. The server issues tickets and accepts 0-RTT data, so
 * the genuine session, which inputs damage, is resumed and has early keys. */
#include "crypto/session.h"
#include "tests/fuzz/ends.h"
#include "tests/fuzz/repeatable.h"

#include <time.h>

#define EDITS_MOST 16

typedef struct {
    ends e;
    bool is_over; /* the client's connection connected, or closed */
} bench;

static uint8_t genuine[XL_SESSION_MAX_BYTES], offered[XL_SESSION_MAX_BYTES];
static size_t genuine_len, offered_len;
static xl_credentials *credentials[2]; /* kept for all inputs */

static void save(void *user, const char *server_name, const uint8_t *session, size_t len) {
    (void)user;
    FUZZ_CHECK(strcmp(server_name, "localhost") == 0 && len <= XL_SESSION_MAX_BYTES);
    if (genuine_len > 0)
        return;
    memcpy(genuine, session, len);
    genuine_len = len;
}

static size_t load(void *user, const char *server_name, uint8_t *session, size_t cap) {
    (void)user;
    (void)server_name;
    FUZZ_CHECK(cap == XL_SESSION_MAX_BYTES);
    memcpy(session, offered, offered_len);
    return offered_len;
}

static void act(bench *b, xl_endpoint *endpoint, uint64_t now) {
    xl_event event;
    xl_endpoint_handle_timeout(endpoint, now);
    while (xl_endpoint_poll_event(endpoint, &event)) {
        b->is_over |= event.type == XL_EVENT_CONNECTED || event.type == XL_EVENT_CLOSED;
        if (event.type == XL_EVENT_CLOSED)
            xl_connection_free(event.connection);
    }
}

static void act_client(void *user, uint64_t now) {
    bench *b = user;
    act(b, b->e.endpoint[0], now);
}

static void act_server(void *user, uint64_t now) {
    bench *b = user;
    act(b, b->e.endpoint[1], now);
}

static void connect_once(void) {
    static const xl_addr local = {.family = 4, .ip = {10, 0, 0, 1}, .port = 50000};
    static const xl_addr remote = {.family = 4, .ip = {10, 0, 0, 2}, .port = 443};
    bench *b = calloc(1, sizeof *b);
    FUZZ_CHECK(b != NULL);
    ends_init(&b->e, b);
    for (int side = 0; side < 2; side++) {
        int rv;
        xl_config c;
        xl_config_init(&c);
        c.is_server = side == 1;
        c.random_key[0] = (uint8_t)(1 + side);
        c.credentials = credentials[side];
        b->e.endpoint[side] = xl_endpoint_new(&c, b->e.now, &rv);
        FUZZ_CHECK(b->e.endpoint[side] != NULL);
    }
    b->e.act[0] = act_client;
    b->e.act[1] = act_server;
    xl_connection *c = xl_endpoint_connect(b->e.endpoint[0], "localhost", &local, &remote, XL_TECH_UNKNOWN, b->e.now);
    if (c) { /* NULL: the TLS library refuses the session's data */
        ends_run(&b->e, 40000000);
        FUZZ_CHECK(b->is_over);
    }
    xl_endpoint_free(b->e.endpoint[0]);
    xl_endpoint_free(b->e.endpoint[1]);
    free(b->e.air);
    free(b);
}

static uint64_t time_of_day_ns(void) {
    return (uint64_t)time(NULL) * UINT64_C(1000000000);
}

static void make_credentials(void) {
    static const uint8_t key[XL_TICKET_KEY_BYTES] = {5};
    static const xl_sessions sessions = {.save = save, .load = load};
    xl_set_time_of_day(time_of_day_ns);
    credentials[0] = xl_credentials_client(NULL);
    credentials[1] = xl_credentials_self_signed("localhost", (const uint8_t[XL_RANDOM_KEY_BYTES]){7}, 1699990000);
    FUZZ_CHECK(credentials[0] && credentials[1]);
    FUZZ_CHECK(xl_credentials_keep_sessions(credentials[0], &sessions) == 0);
    FUZZ_CHECK(xl_credentials_issue_tickets(credentials[1], key) == 0);
    FUZZ_CHECK(xl_credentials_allow_early_data(credentials[0]) == 0);
    FUZZ_CHECK(xl_credentials_allow_early_data(credentials[1]) == 0);
    connect_once();
    FUZZ_CHECK(genuine_len > 0);
}

static void choose_session(fuzz_input *in) {
    uint8_t mode = fuzz_u8(in);
    if (mode & 1) {
        offered_len = fuzz_left(in);
        memcpy(offered, in->p, offered_len);
        return;
    }
    offered_len = mode & 2 ? fuzz_u16(in) % (genuine_len + 1) : genuine_len;
    memcpy(offered, genuine, genuine_len);
    for (int i = 0; i < EDITS_MOST && fuzz_left(in) > 0; i++) {
        size_t at = fuzz_u16(in) % genuine_len;
        offered[at] ^= fuzz_u8(in);
    }
}

static bool is_same(xl_session_part a, xl_session_part b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static void read_and_write(bool is_sealed) {
    static uint8_t room[XL_SESSION_MAX_BYTES];
    uint8_t *exact = fuzz_copy(offered, offered_len);
    xl_session a, b;
    if (is_sealed)
        (void)xl_session_seal(exact, offered_len);
    if (xl_session_read(&a, exact, offered_len)) {
        size_t n = xl_session_write(&a, room, sizeof room);
        FUZZ_CHECK(n > 0 && xl_session_read(&b, room, n));
        FUZZ_CHECK(a.version == b.version && a.allows_early == b.allows_early && a.lifetime_s == b.lifetime_s);
        FUZZ_CHECK(memcmp(a.trust, b.trust, sizeof a.trust) == 0 && a.arrived_ns == b.arrived_ns);
        FUZZ_CHECK(is_same(a.alpn, b.alpn) && is_same(a.params, b.params) && is_same(a.tls, b.tls));
        FUZZ_CHECK(is_same(a.application, b.application) && is_same(a.token, b.token));
        fuzz_note(room, n);
    }
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = fuzz_input_of(data, size < XL_SESSION_MAX_BYTES ? size : XL_SESSION_MAX_BYTES);
    fuzz_repeat_tls();
    if (!credentials[0])
        make_credentials();
    choose_session(&in);
    read_and_write(false);
    read_and_write(true); /* as if it were undamaged */
    connect_once();
    return 0;
}
