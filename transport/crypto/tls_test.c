/* The TLS handshake between two ends in one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "crypto/credentials.h"
#include "crypto/keys.h"

#define ALERT_UNEXPECTED_MESSAGE      10
#define ALERT_ILLEGAL_PARAMETER       47
#define ALERT_DECODE_ERROR            50
#define ALERT_INTERNAL_ERROR          80
#define ALERT_MISSING_EXTENSION       109
#define ALERT_NO_APPLICATION_PROTOCOL 120

#define FLIGHT_MAX    16384
#define KEYLOG_MAX    12
#define NOT_BEFORE_S  UINT64_C(1700000000)
#define WHOLE_FLIGHTS SIZE_MAX

/* One end: the handshake and everything that it handed out. */
typedef struct {
    xl_tls *tls;
    uint8_t out[XL_LEVEL_COUNT][FLIGHT_MAX]; /* bytes for the peer that were not delivered yet */
    size_t out_len[XL_LEVEL_COUNT];
    xl_keys *read[XL_LEVEL_COUNT], *write[XL_LEVEL_COUNT];
    uint8_t peer_params[64];
    size_t peer_params_len;
    int peer_params_calls;
    bool refuse_params, refuse_output;
    char keylog[KEYLOG_MAX][256];
    int keylog_lines;
} end;

typedef struct {
    xl_credentials *client_credentials, *server_credentials;
    end client, server;
} pair;

static int take_crypto_data(void *user, xl_level level, const uint8_t *data, size_t len) {
    end *e = user;
    if (e->refuse_output || len > FLIGHT_MAX - e->out_len[level])
        return -1;
    memcpy(e->out[level] + e->out_len[level], data, len);
    e->out_len[level] += len;
    return 0;
}

static int take_keys(void *user, xl_level level, xl_keys *read, xl_keys *write) {
    end *e = user;
    if (read) {
        xl_keys_free(e->read[level]);
        e->read[level] = read;
    }
    if (write) {
        xl_keys_free(e->write[level]);
        e->write[level] = write;
    }
    return 0;
}

static int take_peer_params(void *user, const uint8_t *data, size_t len) {
    end *e = user;
    e->peer_params_calls++;
    if (e->refuse_params || len > sizeof e->peer_params)
        return -1;
    memcpy(e->peer_params, data, len);
    e->peer_params_len = len;
    return 0;
}

static void take_keylog(void *user, const char *line) {
    end *e = user;
    assert_true(e->keylog_lines < KEYLOG_MAX);
    assert_true(strlen(line) < sizeof e->keylog[0]);
    strcpy(e->keylog[e->keylog_lines++], line);
}

static const uint8_t CLIENT_PARAMS[] = {0x04, 0x04, 0x80, 0x10, 0x00, 0x00, 0x0f, 0x00};
static const uint8_t SERVER_PARAMS[] = {0x01, 0x02, 0x67, 0x10, 0x80, 0x00, 0xba, 0xba, 0x01, 0x01};

static void open_end(end *e, bool is_server, xl_credentials *credentials, const char *alpn) {
    const xl_tls_callbacks callbacks = {e, take_crypto_data, take_keys, take_peer_params, NULL, take_keylog};
    const uint8_t *params = is_server ? SERVER_PARAMS : CLIENT_PARAMS;
    const size_t len = is_server ? sizeof SERVER_PARAMS : sizeof CLIENT_PARAMS;
    e->tls = xl_tls_new(XL_VERSION_1, is_server, credentials, is_server ? NULL : "railyard.test", alpn, params, len,
                        &callbacks);
    assert_non_null(e->tls);
}

static void close_end(end *e) {
    for (int level = 0; level < XL_LEVEL_COUNT; level++) {
        xl_keys_free(e->read[level]);
        xl_keys_free(e->write[level]);
    }
    xl_tls_free(e->tls);
}

static void open_pair_alpn(pair *p, const char *client_alpn, const char *server_alpn) {
    memset(p, 0, sizeof *p);
    p->client_credentials = xl_credentials_client(NULL);
    p->server_credentials =
        xl_credentials_self_signed("railyard.test", (uint8_t[XL_RANDOM_KEY_BYTES]){1}, NOT_BEFORE_S);
    assert_non_null(p->client_credentials);
    assert_non_null(p->server_credentials);
    open_end(&p->client, false, p->client_credentials, client_alpn);
    open_end(&p->server, true, p->server_credentials, server_alpn);
}

static void open_pair(pair *p) {
    open_pair_alpn(p, "h3", "h3");
}

static void close_pair(pair *p) {
    close_end(&p->client);
    close_end(&p->server);
    xl_credentials_free(p->client_credentials);
    xl_credentials_free(p->server_credentials);
}

/* Hands what `from` wrote to `to`, lower levels first, `step` bytes at a time. Returns what the receiver said. */
static int deliver(end *from, end *to, size_t step) {
    int rc = 0;
    for (xl_level level = XL_LEVEL_INITIAL; level < XL_LEVEL_COUNT && rc == 0; level++) {
        for (size_t at = 0; at < from->out_len[level] && rc == 0;) {
            const size_t left = from->out_len[level] - at;
            const size_t n = left < step ? left : step;
            rc = xl_tls_receive(to->tls, level, from->out[level] + at, n);
            at += n;
        }
        from->out_len[level] = 0;
    }
    return rc;
}

/* Client's flight, server's flight, client's Finished. */
static void handshake(pair *p, size_t step) {
    assert_int_equal(xl_tls_start(p->client.tls), 0);
    assert_int_equal(deliver(&p->client, &p->server, step), 0);
    assert_int_equal(deliver(&p->server, &p->client, step), 0);
    assert_true(xl_tls_is_complete(p->client.tls));
    assert_false(xl_tls_is_complete(p->server.tls));
    assert_int_equal(deliver(&p->client, &p->server, step), 0);
    assert_true(xl_tls_is_complete(p->server.tls));
}

static void assert_same_keys(const xl_keys *a, const xl_keys *b, xl_aead aead) {
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(a->aead, aead);
    assert_int_equal(b->aead, aead);
    assert_memory_equal(a->secret, b->secret, a->secret_len);
}

static void assert_agreed(const pair *p, xl_aead aead) {
    for (xl_level level = XL_LEVEL_HANDSHAKE; level <= XL_LEVEL_APP; level++) {
        assert_same_keys(p->client.write[level], p->server.read[level], aead);
        assert_same_keys(p->client.read[level], p->server.write[level], aead);
        assert_memory_not_equal(p->client.read[level]->secret, p->client.write[level]->secret, 32);
    }
    assert_string_equal(xl_tls_alpn(p->client.tls), "h3");
    assert_string_equal(xl_tls_alpn(p->server.tls), "h3");
    assert_int_equal(p->server.peer_params_calls, 1);
    assert_int_equal(p->server.peer_params_len, sizeof CLIENT_PARAMS);
    assert_memory_equal(p->server.peer_params, CLIENT_PARAMS, sizeof CLIENT_PARAMS);
    assert_int_equal(p->client.peer_params_calls, 1);
    assert_int_equal(p->client.peer_params_len, sizeof SERVER_PARAMS);
    assert_memory_equal(p->client.peer_params, SERVER_PARAMS, sizeof SERVER_PARAMS);
}

static void handshake_agrees_on_keys_alpn_and_transport_parameters(void **state) {
    (void)state;
    const size_t steps[] = {WHOLE_FLIGHTS, 1, 3, 100};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        pair p;
        open_pair(&p);
        assert_string_equal(xl_tls_alpn(p.client.tls), "");
        handshake(&p, steps[i]);
        assert_agreed(&p, XL_AEAD_AES_128_GCM);
        assert_int_equal(p.server.out_len[XL_LEVEL_APP], 0); /* no session tickets */
        close_pair(&p);
    }
}

static void application_data_passes_both_ways_after_the_handshake(void **state) {
    (void)state;
    pair p;
    open_pair(&p);
    handshake(&p, WHOLE_FLIGHTS);
    const end *ends[] = {&p.client, &p.server};
    for (int i = 0; i < 2; i++) {
        uint8_t packet[64] = {0x40, 0xc1, 0x00, 'h', 'e', 'l', 'l', 'o', '!'}, *payload = NULL;
        uint64_t pn;
        size_t len;
        const size_t total = xl_keys_protect(ends[i]->write[XL_LEVEL_APP], 1, 0, packet, 2, 1, 6);
        assert_int_equal(total, 2 + 1 + 6 + XL_AEAD_TAG);
        const xl_keys *read = ends[1 - i]->read[XL_LEVEL_APP];
        assert_int_equal(xl_keys_unmask(read, packet, total, 2, &pn, &len), 0);
        assert_int_equal(xl_keys_open(read, 1, pn, packet, total, 2, len, &payload), 6);
        assert_memory_equal(payload, "hello!", 6);
    }
    close_pair(&p);
}

static void replace_priority(xl_credentials *credentials, const char *priority) {
    gnutls_priority_deinit(credentials->priority);
    assert_int_equal(gnutls_priority_init(&credentials->priority, priority, NULL), 0);
}

static void every_cipher_suite_can_be_negotiated(void **state) {
    (void)state;
    const char *ciphers[] = {"aes128", "aes256", "chacha20"};
    for (xl_aead aead = XL_AEAD_AES_128_GCM; aead <= XL_AEAD_CHACHA20_POLY1305; aead++) {
        pair p;
        open_pair(&p);
        close_end(&p.client);
        memset(&p.client, 0, sizeof p.client);
        assert_int_equal(xl_credentials_set_ciphers(p.client_credentials, ciphers[aead]), 0);
        open_end(&p.client, false, p.client_credentials, "h3");
        handshake(&p, WHOLE_FLIGHTS);
        assert_agreed(&p, aead);
        close_pair(&p);
    }
}

static void the_servers_order_of_cipher_suites_counts(void **state) {
    (void)state;
    pair p;
    open_pair(&p);
    assert_int_equal(xl_credentials_set_ciphers(p.server_credentials, "chacha20,aes128"), 0);
    assert_int_equal(xl_credentials_set_ciphers(p.server_credentials, "chacha20,rc4"), XL_ERR_ARGUMENT);
    assert_int_equal(xl_credentials_set_ciphers(p.server_credentials, ""), XL_ERR_ARGUMENT);
    close_end(&p.server);
    memset(&p.server, 0, sizeof p.server);
    open_end(&p.server, true, p.server_credentials, "h3");
    handshake(&p, WHOLE_FLIGHTS);
    assert_agreed(&p, XL_AEAD_CHACHA20_POLY1305); /* a refused list has changed nothing */
    close_pair(&p);
}

static void hello_retry_request_leads_to_a_handshake(void **state) {
    (void)state;
    pair p;
    open_pair(&p);
    close_end(&p.client);
    memset(&p.client, 0, sizeof p.client);
    /* The client guesses a group that the server does not have. */
    replace_priority(p.client_credentials, "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:-GROUP-ALL:"
                                           "+GROUP-SECP521R1:+GROUP-X25519:%DISABLE_TLS13_COMPAT_MODE");
    open_end(&p.client, false, p.client_credentials, "h3");
    assert_int_equal(xl_tls_start(p.client.tls), 0);
    assert_int_equal(deliver(&p.client, &p.server, 50), 0);
    assert_true(p.server.out_len[XL_LEVEL_INITIAL] > 0);
    assert_int_equal(p.server.out_len[XL_LEVEL_HANDSHAKE], 0);
    assert_int_equal(deliver(&p.server, &p.client, 50), 0);
    assert_true(p.client.out_len[XL_LEVEL_INITIAL] > 0);
    assert_int_equal(deliver(&p.client, &p.server, 50), 0);
    assert_int_equal(deliver(&p.server, &p.client, 50), 0);
    assert_int_equal(deliver(&p.client, &p.server, 50), 0);
    assert_true(xl_tls_is_complete(p.client.tls));
    assert_true(xl_tls_is_complete(p.server.tls));
    assert_agreed(&p, XL_AEAD_AES_128_GCM);
    close_pair(&p);
}

static void handshake_sizes_do_not_vary(void **state) {
    (void)state;
    size_t client_len = 0, server_initial_len = 0, server_handshake_len = 0;
    for (uint64_t round = 0; round < 20; round++) {
        pair p;
        open_pair(&p);
        close_end(&p.server);
        memset(&p.server, 0, sizeof p.server);
        xl_credentials_free(p.server_credentials);
        uint8_t key[XL_RANDOM_KEY_BYTES];
        assert_int_equal(xl_random_key_from_seed(round, "server", key), 0);
        p.server_credentials = xl_credentials_self_signed("railyard.test", key, NOT_BEFORE_S);
        open_end(&p.server, true, p.server_credentials, "h3");
        assert_int_equal(xl_tls_start(p.client.tls), 0);
        const size_t client_now = p.client.out_len[XL_LEVEL_INITIAL];
        assert_int_equal(deliver(&p.client, &p.server, WHOLE_FLIGHTS), 0);
        if (round > 0) {
            assert_int_equal(client_now, client_len);
            assert_int_equal(p.server.out_len[XL_LEVEL_INITIAL], server_initial_len);
            assert_int_equal(p.server.out_len[XL_LEVEL_HANDSHAKE], server_handshake_len);
        }
        client_len = client_now;
        server_initial_len = p.server.out_len[XL_LEVEL_INITIAL];
        server_handshake_len = p.server.out_len[XL_LEVEL_HANDSHAKE];
        assert_true(client_len < 1100); /* fits the first datagram */
        close_pair(&p);
    }
}

static void the_server_takes_the_first_of_its_protocols_that_the_client_offers(void **state) {
    (void)state;
    static const struct {
        const char *client, *server, *chosen;
    } cases[] = {
        {"hq-interop", "h3,hq-interop", "hq-interop"},
        {"h3", "h3,hq-interop", "h3"},
        {"hq-interop,h3", "h3,hq-interop", "h3"},
        {"h4,hq-interop", "h3,hq-interop", "hq-interop"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pair p;
        open_pair_alpn(&p, cases[i].client, cases[i].server);
        handshake(&p, WHOLE_FLIGHTS);
        assert_string_equal(xl_tls_alpn(p.client.tls), cases[i].chosen);
        assert_string_equal(xl_tls_alpn(p.server.tls), cases[i].chosen);
        close_pair(&p);
    }
}

/* ---- Resumption ---- */

typedef struct {
    uint8_t session[XL_SESSION_MAX_BYTES];
    size_t len;
    unsigned saved, loaded;
    char name[32];
} session_store;

static void save(void *user, const char *server_name, const uint8_t *session, size_t len) {
    session_store *s = user;
    assert_true(len <= sizeof s->session);
    memcpy(s->session, session, len);
    s->len = len;
    s->saved++;
    snprintf(s->name, sizeof s->name, "%s", server_name);
}

static size_t load(void *user, const char *server_name, uint8_t *session, size_t cap) {
    session_store *s = user;
    assert_true(s->len <= cap);
    assert_string_equal(server_name, "railyard.test");
    memcpy(session, s->session, s->len);
    s->loaded++;
    return s->len;
}

#define MESSAGE_BYTES 1000
static const uint8_t TICKET_KEY[XL_TICKET_KEY_BYTES] = {7, 1};

static void open_resuming_pair(pair *p, session_store *store, const uint8_t *ticket_key, const char *alpn) {
    const xl_sessions sessions = {.user = store, .save = save, .load = load};
    open_pair(p);
    assert_int_equal(xl_credentials_keep_sessions(p->client_credentials, &sessions), 0);
    assert_int_equal(xl_credentials_keep_sessions(p->server_credentials, &sessions), XL_ERR_ARGUMENT);
    assert_int_equal(xl_credentials_issue_tickets(p->server_credentials, ticket_key), 0);
    assert_int_equal(xl_credentials_issue_tickets(p->client_credentials, ticket_key), XL_ERR_ARGUMENT);
    close_end(&p->client);
    close_end(&p->server);
    memset(&p->client, 0, sizeof p->client);
    memset(&p->server, 0, sizeof p->server);
    open_end(&p->client, false, p->client_credentials, alpn);
    open_end(&p->server, true, p->server_credentials, "h3,hq-interop");
}

/* A handshake, and the server's tickets; gives the size of the server's flight under the handshake's keys. */
static size_t run_with_tickets(pair *p, size_t step) {
    assert_int_equal(xl_tls_start(p->client.tls), 0);
    assert_int_equal(deliver(&p->client, &p->server, step), 0);
    const size_t flight = p->server.out_len[XL_LEVEL_HANDSHAKE];
    assert_int_equal(deliver(&p->server, &p->client, step), 0);
    assert_int_equal(deliver(&p->client, &p->server, step), 0);
    assert_true(xl_tls_is_complete(p->client.tls) && xl_tls_is_complete(p->server.tls));
    assert_true(p->server.out_len[XL_LEVEL_APP] > 0);
    assert_int_equal(deliver(&p->server, &p->client, step), 0);
    return flight;
}

static void a_session_is_saved_and_resumed_without_a_certificate(void **state) {
    (void)state;
    const size_t steps[] = {WHOLE_FLIGHTS, 1, 100};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        session_store store = {0};
        pair p;
        open_resuming_pair(&p, &store, TICKET_KEY, "h3");
        const size_t whole = run_with_tickets(&p, steps[i]);
        assert_false(xl_tls_is_resumed(p.client.tls) || xl_tls_is_resumed(p.server.tls));
        assert_int_equal(store.saved, 1);
        assert_string_equal(store.name, "railyard.test");
        close_pair(&p);

        open_resuming_pair(&p, &store, TICKET_KEY, "h3");
        const size_t resumed = run_with_tickets(&p, steps[i]);
        assert_true(xl_tls_is_resumed(p.client.tls) && xl_tls_is_resumed(p.server.tls));
        assert_true(resumed + 200 < whole); /* no certificate, no signature */
        assert_agreed(&p, XL_AEAD_AES_128_GCM);
        assert_int_equal(store.saved, 2);
        close_pair(&p);
    }
}

static void a_session_of_another_key_or_protocol_or_form_gives_a_full_handshake(void **state) {
    (void)state;
    static const uint8_t other_key[XL_TICKET_KEY_BYTES] = {8};
    session_store good = {0};
    pair p;
    open_resuming_pair(&p, &good, TICKET_KEY, "h3");
    run_with_tickets(&p, WHOLE_FLIGHTS);
    close_pair(&p);
    for (size_t i = 0; i < 2 + good.len; i += i < 12 ? 1 : 37) {
        session_store store = good;
        if (i >= 2)
            store.len = i - 2; /* cut off */
        open_resuming_pair(&p, &store, i == 0 ? other_key : TICKET_KEY, i == 1 ? "hq-interop" : "h3");
        run_with_tickets(&p, WHOLE_FLIGHTS);
        assert_false(xl_tls_is_resumed(p.client.tls) || xl_tls_is_resumed(p.server.tls));
        close_pair(&p);
    }
}

static void tickets_are_bounded_and_what_is_no_ticket_is_refused(void **state) {
    (void)state;
    session_store store = {0};
    pair p;
    open_resuming_pair(&p, &store, TICKET_KEY, "h3");
    run_with_tickets(&p, WHOLE_FLIGHTS);
    uint8_t ticket[MESSAGE_BYTES] = {GNUTLS_HANDSHAKE_NEW_SESSION_TICKET, 0, 0, 60};
    for (int i = 0; i < 20; i++) /* nonsense inside: no session, and no harm */
        assert_int_equal(xl_tls_receive(p.client.tls, XL_LEVEL_APP, ticket, 64), 0);
    ticket[1] = 0xff; /* 16 MB, announced */
    for (int i = 0; i < 100; i++)
        assert_int_equal(xl_tls_receive(p.client.tls, XL_LEVEL_APP, ticket, i == 0 ? 4 : sizeof ticket), 0);
    assert_int_equal(store.saved, 1);
    close_pair(&p);
    open_resuming_pair(&p, &store, TICKET_KEY, "h3");
    run_with_tickets(&p, WHOLE_FLIGHTS);
    ticket[0] = GNUTLS_HANDSHAKE_KEY_UPDATE;
    assert_true(xl_tls_receive(p.client.tls, XL_LEVEL_APP, ticket, 4) < 0);
    close_pair(&p);
}

/* RFC 9001 section 4.4. */
static void a_request_for_a_certificate_after_the_handshake_is_a_violation(void **state) {
    (void)state;
    session_store store = {0};
    pair p;
    open_resuming_pair(&p, &store, TICKET_KEY, "h3");
    run_with_tickets(&p, WHOLE_FLIGHTS);
    const uint8_t request[] = {GNUTLS_HANDSHAKE_CERTIFICATE_REQUEST, 0, 0, 3, 0, 0, 0};
    assert_true(xl_tls_receive(p.client.tls, XL_LEVEL_APP, request, sizeof request) < 0);
    assert_true(xl_tls_is_violation(p.client.tls));
    close_pair(&p);
}

static void an_unknown_alpn_is_answered_with_an_alert(void **state) {
    (void)state;
    pair p;
    open_pair_alpn(&p, "hq-interop", "h3");
    assert_int_equal(xl_tls_start(p.client.tls), 0);
    assert_true(deliver(&p.client, &p.server, WHOLE_FLIGHTS) < 0);
    assert_int_equal(xl_tls_alert(p.server.tls), ALERT_NO_APPLICATION_PROTOCOL);
    assert_int_equal(p.server.out_len[XL_LEVEL_HANDSHAKE], 0);
    assert_false(xl_tls_is_complete(p.server.tls));
    /* A handshake that failed stays failed. */
    const uint8_t byte = GNUTLS_HANDSHAKE_CLIENT_HELLO;
    assert_true(xl_tls_receive(p.server.tls, XL_LEVEL_INITIAL, &byte, 1) < 0);
    assert_int_equal(xl_tls_alert(p.server.tls), ALERT_NO_APPLICATION_PROTOCOL);
    close_pair(&p);
}

/* Gives extension `type` of the ClientHello another, unassigned type: the extension is then missing. */
static void hide_extension(uint8_t *hello, size_t len, uint16_t type) {
    size_t at = 4 + 2 + 32;
    at += 1 + (size_t)hello[at];
    at += 2 + ((size_t)hello[at] << 8 | hello[at + 1]);
    at += 1 + (size_t)hello[at];
    at += 2;
    while (at + 4 <= len) {
        if ((hello[at] << 8 | hello[at + 1]) == type) {
            hello[at] = 0xfa;
            return;
        }
        at += 4 + ((size_t)hello[at + 2] << 8 | hello[at + 3]);
    }
    fail_msg("extension %d is not in the ClientHello", type);
}

static void a_client_hello_without_a_required_extension_is_refused(void **state) {
    (void)state;
    const struct {
        uint16_t extension;
        uint8_t alert;
    } cases[] = {{0x39, ALERT_MISSING_EXTENSION}, {16, ALERT_NO_APPLICATION_PROTOCOL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pair p;
        open_pair(&p);
        assert_int_equal(xl_tls_start(p.client.tls), 0);
        hide_extension(p.client.out[XL_LEVEL_INITIAL], p.client.out_len[XL_LEVEL_INITIAL], cases[i].extension);
        assert_true(deliver(&p.client, &p.server, WHOLE_FLIGHTS) < 0);
        assert_int_equal(xl_tls_alert(p.server.tls), cases[i].alert);
        close_pair(&p);
    }
}

static void a_client_hello_in_compatibility_mode_is_refused(void **state) {
    (void)state;
    pair p;
    open_pair(&p);
    assert_int_equal(xl_tls_start(p.client.tls), 0);
    assert_int_equal(p.client.out[XL_LEVEL_INITIAL][38], 0); /* our own client sends no session ID */
    p.client.out[XL_LEVEL_INITIAL][38] = 32;
    assert_true(deliver(&p.client, &p.server, WHOLE_FLIGHTS) < 0);
    assert_int_equal(xl_tls_alert(p.server.tls), ALERT_ILLEGAL_PARAMETER);
    close_pair(&p);
}

static void refused_transport_parameters_end_the_handshake(void **state) {
    (void)state;
    for (int server_refuses = 0; server_refuses < 2; server_refuses++) {
        pair p;
        open_pair(&p);
        p.server.refuse_params = server_refuses;
        p.client.refuse_params = !server_refuses;
        assert_int_equal(xl_tls_start(p.client.tls), 0);
        const int rc = deliver(&p.client, &p.server, WHOLE_FLIGHTS);
        assert_int_equal(rc < 0, server_refuses);
        if (!server_refuses)
            assert_true(deliver(&p.server, &p.client, WHOLE_FLIGHTS) < 0);
        assert_int_equal(xl_tls_alert(server_refuses ? p.server.tls : p.client.tls), ALERT_ILLEGAL_PARAMETER);
        assert_null(p.client.read[XL_LEVEL_APP]);
        close_pair(&p);
    }
}

static void an_output_callback_that_fails_ends_the_handshake(void **state) {
    (void)state;
    pair p;
    open_pair(&p);
    p.client.refuse_output = true;
    assert_true(xl_tls_start(p.client.tls) < 0);
    assert_int_equal(xl_tls_alert(p.client.tls), ALERT_INTERNAL_ERROR);
    close_pair(&p);
}

static void garbage_is_answered_with_an_alert(void **state) {
    (void)state;
    const struct {
        uint8_t bytes[48];
        size_t len;
        uint8_t alert;
    } cases[] = {
        {{0xff, 0xff, 0xff, 0xff}, 4, ALERT_UNEXPECTED_MESSAGE},
        {{0x14, 0x00, 0x00, 0x00}, 4, ALERT_UNEXPECTED_MESSAGE}, /* Finished before ClientHello */
        {{0x01, 0xff, 0xff, 0xff}, 4, ALERT_DECODE_ERROR},       /* 16 MiB announced */
        {{0x01, 0x00, 0x00, 0x00}, 4, ALERT_DECODE_ERROR},
        {{0x01, 0x00, 0x00, 0x05, 0x03, 0x03, 0x01, 0x02, 0x03}, 9, ALERT_DECODE_ERROR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pair p;
        open_pair(&p);
        assert_true(xl_tls_receive(p.server.tls, XL_LEVEL_INITIAL, cases[i].bytes, cases[i].len) < 0);
        assert_int_equal(xl_tls_alert(p.server.tls), cases[i].alert);
        close_pair(&p);
    }
}

static void messages_at_the_wrong_level_are_refused(void **state) {
    (void)state;
    pair p;
    open_pair(&p);
    assert_int_equal(xl_tls_start(p.client.tls), 0);
    assert_true(xl_tls_receive(p.server.tls, XL_LEVEL_HANDSHAKE, p.client.out[XL_LEVEL_INITIAL], 10) < 0);
    assert_int_equal(xl_tls_alert(p.server.tls), ALERT_UNEXPECTED_MESSAGE);
    close_pair(&p);

    /* EncryptedExtensions that follow ServerHello in Initial packets. */
    open_pair(&p);
    assert_int_equal(xl_tls_start(p.client.tls), 0);
    assert_int_equal(deliver(&p.client, &p.server, WHOLE_FLIGHTS), 0);
    const size_t hello = p.server.out_len[XL_LEVEL_INITIAL];
    memcpy(p.server.out[XL_LEVEL_INITIAL] + hello, p.server.out[XL_LEVEL_HANDSHAKE], 40);
    assert_true(xl_tls_receive(p.client.tls, XL_LEVEL_INITIAL, p.server.out[XL_LEVEL_INITIAL], hello + 40) < 0);
    assert_int_equal(xl_tls_alert(p.client.tls), ALERT_UNEXPECTED_MESSAGE);
    close_pair(&p);
}

static void a_truncated_flight_neither_completes_nor_fails(void **state) {
    (void)state;
    pair p;
    open_pair(&p);
    assert_int_equal(xl_tls_start(p.client.tls), 0);
    p.client.out_len[XL_LEVEL_INITIAL] -= 1;
    assert_int_equal(deliver(&p.client, &p.server, 7), 0);
    assert_int_equal(p.server.out_len[XL_LEVEL_INITIAL], 0);
    assert_false(xl_tls_is_complete(p.server.tls));
    close_pair(&p);
}

static uint64_t next_random(uint64_t *state) { /* xorshift64 */
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void damage(end *from, xl_level level, uint64_t *random) {
    const size_t len = from->out_len[level];
    if (len == 0)
        return;
    for (uint64_t n = 1 + next_random(random) % 4; n > 0; n--)
        from->out[level][next_random(random) % len] ^= (uint8_t)(1 + next_random(random) % 255);
}

static void damaged_flights_never_complete_and_never_crash(void **state) {
    (void)state;
    uint64_t random = 20211;
    int alerts = 0;
    for (int round = 0; round < 400; round++) {
        pair p;
        open_pair(&p);
        const xl_level level = round % 3 == 0 ? XL_LEVEL_INITIAL : XL_LEVEL_HANDSHAKE;
        const bool damage_client = round % 2 == 0;
        assert_int_equal(xl_tls_start(p.client.tls), 0);
        if (damage_client && level == XL_LEVEL_INITIAL)
            damage(&p.client, level, &random);
        int rc = deliver(&p.client, &p.server, 1 + next_random(&random) % 400);
        end *failing = &p.server;
        if (rc == 0) {
            if (!damage_client)
                damage(&p.server, level, &random);
            failing = &p.client;
            rc = deliver(&p.server, &p.client, 1 + next_random(&random) % 400);
        }
        if (rc == 0) {
            if (damage_client && level == XL_LEVEL_HANDSHAKE)
                damage(&p.client, level, &random);
            failing = &p.server;
            rc = deliver(&p.client, &p.server, WHOLE_FLIGHTS);
        }
        assert_false(xl_tls_is_complete(p.client.tls) && xl_tls_is_complete(p.server.tls));
        if (rc < 0) {
            alerts++;
            assert_int_not_equal(xl_tls_alert(failing->tls), 0);
            assert_false(xl_tls_is_complete(failing->tls));
        }
        close_pair(&p);
    }
    assert_true(alerts > 300); /* the others wait for bytes that a damaged length announces */
}

static void session_tickets_are_taken_and_ignored(void **state) {
    (void)state;
    pair p;
    open_pair(&p);
    handshake(&p, WHOLE_FLIGHTS);
    const uint8_t tickets[] = {4, 0, 0, 3, 'a', 'b', 'c', 4, 0, 0, 0, 4, 0, 0, 1, 'd'};
    assert_int_equal(xl_tls_receive(p.client.tls, XL_LEVEL_APP, tickets, sizeof tickets), 0);
    for (size_t i = 0; i < sizeof tickets; i++)
        assert_int_equal(xl_tls_receive(p.client.tls, XL_LEVEL_APP, tickets + i, 1), 0);
    assert_true(xl_tls_is_complete(p.client.tls));
    /* A client has no tickets to give. */
    assert_true(xl_tls_receive(p.server.tls, XL_LEVEL_APP, tickets, sizeof tickets) < 0);
    assert_int_equal(xl_tls_alert(p.server.tls), ALERT_UNEXPECTED_MESSAGE);
    close_pair(&p);
}

static void a_tls_key_update_is_a_connection_error(void **state) {
    (void)state;
    const uint8_t key_update[] = {24, 0, 0, 1, 0};
    pair p;
    open_pair(&p);
    handshake(&p, WHOLE_FLIGHTS);
    end *ends[] = {&p.client, &p.server};
    for (int i = 0; i < 2; i++) {
        assert_true(xl_tls_receive(ends[i]->tls, XL_LEVEL_APP, key_update, sizeof key_update) < 0);
        assert_int_equal(xl_tls_alert(ends[i]->tls), ALERT_UNEXPECTED_MESSAGE);
    }
    close_pair(&p);
}

static size_t hex_digits(const char *s) {
    return strspn(s, "0123456789abcdef");
}

static void key_log_lines_are_well_formed_and_the_same_at_both_ends(void **state) {
    (void)state;
    const char *labels[] = {"CLIENT_HANDSHAKE_TRAFFIC_SECRET ", "SERVER_HANDSHAKE_TRAFFIC_SECRET ",
                            "CLIENT_TRAFFIC_SECRET_0 ", "SERVER_TRAFFIC_SECRET_0 "};
    pair p;
    open_pair(&p);
    handshake(&p, WHOLE_FLIGHTS);
    assert_true(p.client.keylog_lines >= 4);
    for (size_t i = 0; i < 4; i++) {
        const char *found[2] = {NULL, NULL};
        const end *ends[] = {&p.client, &p.server};
        for (int e = 0; e < 2; e++) {
            for (int line = 0; line < ends[e]->keylog_lines; line++)
                if (strncmp(ends[e]->keylog[line], labels[i], strlen(labels[i])) == 0)
                    found[e] = ends[e]->keylog[line];
            assert_non_null(found[e]);
        }
        assert_string_equal(found[0], found[1]);
        const char *random = found[0] + strlen(labels[i]);
        assert_int_equal(hex_digits(random), 64);
        assert_int_equal(random[64], ' ');
        assert_int_equal(hex_digits(random + 65), 64);
        assert_int_equal(random[65 + 64], '\0');
    }
    close_pair(&p);
}

static void the_library_writes_no_key_log_file_of_its_own(void **state) {
    (void)state;
    const char *log_name = getenv("SSLKEYLOGFILE");
    assert_non_null(log_name); /* set by main, before GnuTLS first looked at it */
    pair p;
    open_pair(&p);
    handshake(&p, WHOLE_FLIGHTS);
    close_pair(&p);
    FILE *log = fopen(log_name, "r");
    if (log) {
        fclose(log);
        remove(log_name);
        fail_msg("%s was written", log_name);
    }
}

static void arguments_that_make_no_sense_give_no_session(void **state) {
    (void)state;
    pair p;
    open_pair(&p);
    const xl_tls_callbacks callbacks = {&p.client, take_crypto_data, take_keys, take_peer_params, NULL, NULL};
    char long_alpn[257];
    memset(long_alpn, 'a', 256);
    long_alpn[256] = '\0';
    assert_null(xl_tls_new(XL_VERSION_1, true, p.client_credentials, NULL, "h3", NULL, 0, &callbacks));
    assert_null(xl_tls_new(XL_VERSION_1, false, p.server_credentials, "a.test", "h3", NULL, 0, &callbacks));
    assert_null(xl_tls_new(XL_VERSION_1, false, p.client_credentials, "a.test", "", NULL, 0, &callbacks));
    assert_null(xl_tls_new(XL_VERSION_1, false, p.client_credentials, "a.test", long_alpn, NULL, 0, &callbacks));
    assert_null(xl_tls_new(XL_VERSION_1, false, NULL, "a.test", "h3", NULL, 0, &callbacks));
    assert_true(xl_tls_start(p.server.tls) < 0);
    xl_tls_free(NULL);
    close_pair(&p);
}

int main(void) {
    char log_name[] = "/tmp/xlink_tls_test_keylog_XXXXXX";
    const int fd = mkstemp(log_name);
    if (fd < 0)
        return 1;
    close(fd);
    remove(log_name);
    setenv("SSLKEYLOGFILE", log_name, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handshake_agrees_on_keys_alpn_and_transport_parameters),
        cmocka_unit_test(application_data_passes_both_ways_after_the_handshake),
        cmocka_unit_test(every_cipher_suite_can_be_negotiated),
        cmocka_unit_test(the_servers_order_of_cipher_suites_counts),
        cmocka_unit_test(hello_retry_request_leads_to_a_handshake),
        cmocka_unit_test(handshake_sizes_do_not_vary),
        cmocka_unit_test(the_server_takes_the_first_of_its_protocols_that_the_client_offers),
        cmocka_unit_test(a_session_is_saved_and_resumed_without_a_certificate),
        cmocka_unit_test(a_session_of_another_key_or_protocol_or_form_gives_a_full_handshake),
        cmocka_unit_test(tickets_are_bounded_and_what_is_no_ticket_is_refused),
        cmocka_unit_test(a_request_for_a_certificate_after_the_handshake_is_a_violation),
        cmocka_unit_test(an_unknown_alpn_is_answered_with_an_alert),
        cmocka_unit_test(a_client_hello_without_a_required_extension_is_refused),
        cmocka_unit_test(a_client_hello_in_compatibility_mode_is_refused),
        cmocka_unit_test(refused_transport_parameters_end_the_handshake),
        cmocka_unit_test(an_output_callback_that_fails_ends_the_handshake),
        cmocka_unit_test(garbage_is_answered_with_an_alert),
        cmocka_unit_test(messages_at_the_wrong_level_are_refused),
        cmocka_unit_test(a_truncated_flight_neither_completes_nor_fails),
        cmocka_unit_test(damaged_flights_never_complete_and_never_crash),
        cmocka_unit_test(session_tickets_are_taken_and_ignored),
        cmocka_unit_test(a_tls_key_update_is_a_connection_error),
        cmocka_unit_test(key_log_lines_are_well_formed_and_the_same_at_both_ends),
        cmocka_unit_test(the_library_writes_no_key_log_file_of_its_own),
        cmocka_unit_test(arguments_that_make_no_sense_give_no_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
