/* Handshakes that TLS refuses: parameters without agreement, messages that are wrong, damaged or in the wrong place. */
#include "testing/tls_pair.h"

PAIR_TEST(an_unknown_alpn_is_answered_with_an_alert) {
    open_pair_alpn(p, "hq-interop", "h3");
    assert_int_equal(xl_tls_start(p->client.tls), 0);
    assert_true(deliver(&p->client, &p->server, WHOLE_FLIGHTS) < 0);
    assert_int_equal(xl_tls_alert(p->server.tls), ALERT_NO_APPLICATION_PROTOCOL);
    assert_int_equal(p->server.out_len[XL_LEVEL_HANDSHAKE], 0);
    assert_false(xl_tls_is_complete(p->server.tls));
    /* A handshake that failed stays failed. */
    const uint8_t byte = GNUTLS_HANDSHAKE_CLIENT_HELLO;
    assert_true(xl_tls_receive(p->server.tls, XL_LEVEL_INITIAL, &byte, 1) < 0);
    assert_int_equal(xl_tls_alert(p->server.tls), ALERT_NO_APPLICATION_PROTOCOL);
}

/* Replaces extension `type` of the ClientHello by an unassigned type, so that the extension is missing. */
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

TEST(a_client_hello_without_a_required_extension_is_refused) {
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

PAIR_TEST(a_client_hello_in_compatibility_mode_is_refused) {
    open_pair(p);
    assert_int_equal(xl_tls_start(p->client.tls), 0);
    assert_int_equal(p->client.out[XL_LEVEL_INITIAL][38], 0); /* our own client sends no session ID */
    p->client.out[XL_LEVEL_INITIAL][38] = 32;
    assert_true(deliver(&p->client, &p->server, WHOLE_FLIGHTS) < 0);
    assert_int_equal(xl_tls_alert(p->server.tls), ALERT_ILLEGAL_PARAMETER);
}

TEST(refused_transport_parameters_end_the_handshake) {
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

PAIR_TEST(an_output_callback_that_fails_ends_the_handshake) {
    open_pair(p);
    p->client.refuse_output = true;
    assert_true(xl_tls_start(p->client.tls) < 0);
    assert_int_equal(xl_tls_alert(p->client.tls), ALERT_INTERNAL_ERROR);
}

TEST(garbage_is_answered_with_an_alert) {
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

TEST(messages_at_the_wrong_level_are_refused) {
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

PAIR_TEST(a_truncated_flight_neither_completes_nor_fails) {
    open_pair(p);
    assert_int_equal(xl_tls_start(p->client.tls), 0);
    p->client.out_len[XL_LEVEL_INITIAL] -= 1;
    assert_int_equal(deliver(&p->client, &p->server, 7), 0);
    assert_int_equal(p->server.out_len[XL_LEVEL_INITIAL], 0);
    assert_false(xl_tls_is_complete(p->server.tls));
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

TEST(damaged_flights_never_complete_and_never_crash) {
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
    assert_true(alerts > 300); /* the others wait for the bytes of a damaged length */
}

PAIR_TEST(a_tls_key_update_is_a_connection_error) {
    const uint8_t key_update[] = {24, 0, 0, 1, 0};
    open_pair(p);
    handshake(p, WHOLE_FLIGHTS);
    end *ends[] = {&p->client, &p->server};
    for (int i = 0; i < 2; i++) {
        assert_true(xl_tls_receive(ends[i]->tls, XL_LEVEL_APP, key_update, sizeof key_update) < 0);
        assert_int_equal(xl_tls_alert(ends[i]->tls), ALERT_UNEXPECTED_MESSAGE);
    }
}

TEST_MAIN(NULL, NULL)
