/* For tests: the two ends of a TLS handshake in one process. Included by test programs; every function is static. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit.h"
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

/* One end: the handshake and everything that its callbacks received. */
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

static inline int take_crypto_data(void *user, xl_level level, const uint8_t *data, size_t len) {
    end *e = user;
    if (e->refuse_output || len > FLIGHT_MAX - e->out_len[level])
        return -1;
    memcpy(e->out[level] + e->out_len[level], data, len);
    e->out_len[level] += len;
    return 0;
}

static inline int take_keys(void *user, xl_level level, xl_keys *read, xl_keys *write) {
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

static inline int take_peer_params(void *user, const uint8_t *data, size_t len) {
    end *e = user;
    e->peer_params_calls++;
    if (e->refuse_params || len > sizeof e->peer_params)
        return -1;
    memcpy(e->peer_params, data, len);
    e->peer_params_len = len;
    return 0;
}

static inline void take_keylog(void *user, const char *line) {
    end *e = user;
    assert_true(e->keylog_lines < KEYLOG_MAX);
    assert_true(strlen(line) < sizeof e->keylog[0]);
    strcpy(e->keylog[e->keylog_lines++], line);
}

static const uint8_t CLIENT_PARAMS[] = {0x04, 0x04, 0x80, 0x10, 0x00, 0x00, 0x0f, 0x00};
static const uint8_t SERVER_PARAMS[] = {0x01, 0x02, 0x67, 0x10, 0x80, 0x00, 0xba, 0xba, 0x01, 0x01};

static inline void open_end(end *e, bool is_server, xl_credentials *credentials, const char *alpn) {
    const xl_tls_callbacks callbacks = {e, take_crypto_data, take_keys, take_peer_params, NULL, take_keylog};
    const uint8_t *params = is_server ? SERVER_PARAMS : CLIENT_PARAMS;
    const size_t len = is_server ? sizeof SERVER_PARAMS : sizeof CLIENT_PARAMS;
    e->tls = xl_tls_new(XL_VERSION_1, is_server, credentials, is_server ? NULL : "railyard.test", alpn, params, len,
                        &callbacks);
    assert_non_null(e->tls);
}

static inline void close_end(end *e) {
    for (int level = 0; level < XL_LEVEL_COUNT; level++) {
        xl_keys_free(e->read[level]);
        xl_keys_free(e->write[level]);
    }
    xl_tls_free(e->tls);
}

static inline void open_pair_alpn(pair *p, const char *client_alpn, const char *server_alpn) {
    memset(p, 0, sizeof *p);
    p->client_credentials = xl_credentials_client(NULL);
    p->server_credentials =
        xl_credentials_self_signed("railyard.test", (uint8_t[XL_RANDOM_KEY_BYTES]){1}, NOT_BEFORE_S);
    assert_non_null(p->client_credentials);
    assert_non_null(p->server_credentials);
    open_end(&p->client, false, p->client_credentials, client_alpn);
    open_end(&p->server, true, p->server_credentials, server_alpn);
}

static inline void open_pair(pair *p) {
    open_pair_alpn(p, "h3", "h3");
}

static inline void close_pair(pair *p) {
    close_end(&p->client);
    close_end(&p->server);
    xl_credentials_free(p->client_credentials);
    xl_credentials_free(p->server_credentials);
}

#define PAIR_TEST(name) TEST_OF(name, pair, p, close_pair)

/* Passes the output of `from` to `to`, lower levels first, `step` bytes at a time. Returns the receiver's result. */
static inline int deliver(end *from, end *to, size_t step) {
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
static inline void handshake(pair *p, size_t step) {
    assert_int_equal(xl_tls_start(p->client.tls), 0);
    assert_int_equal(deliver(&p->client, &p->server, step), 0);
    assert_int_equal(deliver(&p->server, &p->client, step), 0);
    assert_true(xl_tls_is_complete(p->client.tls));
    assert_false(xl_tls_is_complete(p->server.tls));
    assert_int_equal(deliver(&p->client, &p->server, step), 0);
    assert_true(xl_tls_is_complete(p->server.tls));
}

static inline void assert_same_keys(const xl_keys *a, const xl_keys *b, xl_aead aead) {
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(a->aead, aead);
    assert_int_equal(b->aead, aead);
    assert_memory_equal(a->secret, b->secret, a->secret_len);
}

static inline void assert_agreed(const pair *p, xl_aead aead) {
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
