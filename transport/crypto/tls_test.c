/* The TLS handshake: the parameters that both ends agree on, and the log of its keys. */
#include "testing/tls_pair.h"

TEST(handshake_agrees_on_keys_alpn_and_transport_parameters) {
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

PAIR_TEST(the_server_name_is_sent_without_its_trailing_dot) {
    open_pair(p);
    const end *client = &p->client;
    const xl_tls_callbacks callbacks = {&p->client, take_crypto_data, take_keys, take_peer_params, NULL, take_keylog};
    xl_tls_free(client->tls);
    p->client.tls = xl_tls_new(XL_VERSION_1, false, p->client_credentials, "railyard.test.", "h3", CLIENT_PARAMS,
                               sizeof CLIENT_PARAMS, &callbacks);
    assert_int_equal(xl_tls_start(client->tls), 0);
    const uint8_t *hello = client->out[XL_LEVEL_INITIAL];
    assert_non_null(memmem(hello, client->out_len[XL_LEVEL_INITIAL], "railyard.test", 13));
    assert_null(memmem(hello, client->out_len[XL_LEVEL_INITIAL], "railyard.test.", 14));
}

PAIR_TEST(application_data_passes_both_ways_after_the_handshake) {
    open_pair(p);
    handshake(p, WHOLE_FLIGHTS);
    const end *ends[] = {&p->client, &p->server};
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
}

static void replace_priority(xl_credentials *credentials, const char *priority) {
    gnutls_priority_deinit(credentials->priority);
    assert_int_equal(gnutls_priority_init(&credentials->priority, priority, NULL), 0);
}

TEST(every_cipher_suite_can_be_negotiated) {
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

PAIR_TEST(the_servers_order_of_cipher_suites_counts) {
    open_pair(p);
    assert_int_equal(xl_credentials_set_ciphers(p->server_credentials, "chacha20,aes128"), 0);
    assert_int_equal(xl_credentials_set_ciphers(p->server_credentials, "chacha20,rc4"), XL_ERR_ARGUMENT);
    assert_int_equal(xl_credentials_set_ciphers(p->server_credentials, ""), XL_ERR_ARGUMENT);
    close_end(&p->server);
    memset(&p->server, 0, sizeof p->server);
    open_end(&p->server, true, p->server_credentials, "h3");
    handshake(p, WHOLE_FLIGHTS);
    assert_agreed(p, XL_AEAD_CHACHA20_POLY1305); /* a refused list has changed nothing */
}

PAIR_TEST(hello_retry_request_leads_to_a_handshake) {
    open_pair(p);
    close_end(&p->client);
    memset(&p->client, 0, sizeof p->client);
    /* The client guesses a group that the server does not have. */
    replace_priority(p->client_credentials, "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:-GROUP-ALL:"
                                            "+GROUP-SECP521R1:+GROUP-X25519:%DISABLE_TLS13_COMPAT_MODE");
    open_end(&p->client, false, p->client_credentials, "h3");
    assert_int_equal(xl_tls_start(p->client.tls), 0);
    assert_int_equal(deliver(&p->client, &p->server, 50), 0);
    assert_true(p->server.out_len[XL_LEVEL_INITIAL] > 0);
    assert_int_equal(p->server.out_len[XL_LEVEL_HANDSHAKE], 0);
    assert_int_equal(deliver(&p->server, &p->client, 50), 0);
    assert_true(p->client.out_len[XL_LEVEL_INITIAL] > 0);
    assert_int_equal(deliver(&p->client, &p->server, 50), 0);
    assert_int_equal(deliver(&p->server, &p->client, 50), 0);
    assert_int_equal(deliver(&p->client, &p->server, 50), 0);
    assert_true(xl_tls_is_complete(p->client.tls));
    assert_true(xl_tls_is_complete(p->server.tls));
    assert_agreed(p, XL_AEAD_AES_128_GCM);
}

/* Even if the client also supports X25519, which the server prefers. */
TEST(a_server_takes_the_key_of_p256_that_a_client_shares) {
    static const char *const groups[] = {"+GROUP-SECP256R1", "+GROUP-SECP256R1:+GROUP-X25519",
                                         "+GROUP-SECP256R1:+GROUP-SECP384R1:+GROUP-X25519"};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        char text[256];
        pair p;
        open_pair(&p);
        close_end(&p.client);
        memset(&p.client, 0, sizeof p.client);
        snprintf(text, sizeof text, "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:-GROUP-ALL:%s%s", groups[i],
                 ":%DISABLE_TLS13_COMPAT_MODE");
        replace_priority(p.client_credentials, text);
        open_end(&p.client, false, p.client_credentials, "h3");
        assert_int_equal(xl_tls_start(p.client.tls), 0);
        assert_int_equal(deliver(&p.client, &p.server, 50), 0);
        assert_true(p.server.out_len[XL_LEVEL_HANDSHAKE] > 0); /* no HelloRetryRequest */
        assert_int_equal(deliver(&p.server, &p.client, 50), 0);
        assert_int_equal(deliver(&p.client, &p.server, 50), 0);
        assert_agreed(&p, XL_AEAD_AES_128_GCM);
        close_pair(&p);
    }
}

TEST(handshake_sizes_do_not_vary) {
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

TEST(the_server_takes_the_first_of_its_protocols_that_the_client_offers) {
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

static size_t hex_digits(const char *s) {
    return strspn(s, "0123456789abcdef");
}

PAIR_TEST(key_log_lines_are_well_formed_and_the_same_at_both_ends) {
    const char *labels[] = {"CLIENT_HANDSHAKE_TRAFFIC_SECRET ", "SERVER_HANDSHAKE_TRAFFIC_SECRET ",
                            "CLIENT_TRAFFIC_SECRET_0 ", "SERVER_TRAFFIC_SECRET_0 "};
    open_pair(p);
    handshake(p, WHOLE_FLIGHTS);
    assert_true(p->client.keylog_lines >= 4);
    for (size_t i = 0; i < 4; i++) {
        const char *found[2] = {NULL, NULL};
        const end *ends[] = {&p->client, &p->server};
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
}

TEST(the_library_writes_no_key_log_file_of_its_own) {
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

PAIR_TEST(arguments_that_make_no_sense_give_no_session) {
    open_pair(p);
    const xl_tls_callbacks callbacks = {&p->client, take_crypto_data, take_keys, take_peer_params, NULL, NULL};
    char long_alpn[257];
    memset(long_alpn, 'a', 256);
    long_alpn[256] = '\0';
    assert_null(xl_tls_new(XL_VERSION_1, true, p->client_credentials, NULL, "h3", NULL, 0, &callbacks));
    assert_null(xl_tls_new(XL_VERSION_1, false, p->server_credentials, "a.test", "h3", NULL, 0, &callbacks));
    assert_null(xl_tls_new(XL_VERSION_1, false, p->client_credentials, "a.test", "", NULL, 0, &callbacks));
    assert_null(xl_tls_new(XL_VERSION_1, false, p->client_credentials, "a.test", long_alpn, NULL, 0, &callbacks));
    assert_null(xl_tls_new(XL_VERSION_1, false, NULL, "a.test", "h3", NULL, 0, &callbacks));
    assert_true(xl_tls_start(p->server.tls) < 0);
    xl_tls_free(NULL);
}

static int name_a_key_log_file(void **state) {
    (void)state;
    char log_name[] = "/tmp/xlink_tls_test_keylog_XXXXXX";
    const int fd = mkstemp(log_name);
    if (fd < 0)
        return 1;
    close(fd);
    remove(log_name);
    return setenv("SSLKEYLOGFILE", log_name, 1);
}

TEST_MAIN(name_a_key_log_file, NULL)
