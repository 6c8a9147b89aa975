/* Reset tokens if GnuTLS cannot compute them: there are none then, rather than some that others could know. */
#include "testing/pair.h"

#include <gnutls/crypto.h>

/* The linker's --wrap=gnutls_hmac_fast redirects the library's calls here. */
int __real_gnutls_hmac_fast(gnutls_mac_algorithm_t mac, const void *key, size_t key_len, const void *text, size_t len,
                            void *digest);
int __wrap_gnutls_hmac_fast(gnutls_mac_algorithm_t mac, const void *key, size_t key_len, const void *text, size_t len,
                            void *digest);

static bool is_broken;

int __wrap_gnutls_hmac_fast(gnutls_mac_algorithm_t mac, const void *key, size_t key_len, const void *text, size_t len,
                            void *digest) {
    return is_broken ? GNUTLS_E_HASH_FAILED : __real_gnutls_hmac_fast(mac, key, key_len, text, len, digest);
}

static size_t answer_to_a_stray_packet(pair *p) {
    uint8_t data[100] = {0x40, 1, 2, 3, 4, 5, 6, 7, 8}, out[PAIR_MTU];
    xl_datagram d = {.local = p->link[0].server, .remote = p->link[0].client, .len = sizeof data};
    xl_endpoint_receive(p->server, &d, data, p->now);
    return xl_endpoint_transmit(p->server, out, sizeof out, &d, p->now);
}

PAIR_TEST(without_a_token_there_is_no_stateless_reset) {
    xl_endpoint_stats stats;
    pair_init(p, 1, 1, 10000);
    pair_connect(p);
    is_broken = true;
    assert_int_equal(0, answer_to_a_stray_packet(p));
    xl_endpoint_get_stats(p->server, &stats);
    assert_int_equal(0, stats.stateless_resets);
    is_broken = false;
    assert_true(answer_to_a_stray_packet(p) > 0);
}

PAIR_TEST(without_a_token_there_is_no_connection_and_the_client_tries_again) {
    xl_endpoint_stats stats;
    pair_init(p, 1, 1, 10000);
    pair_connect(p);
    is_broken = true;
    pair_run(p, 100000);
    xl_endpoint_get_stats(p->server, &stats);
    assert_int_equal(0, stats.connections);
    is_broken = false;
    pair_handshake(p);
    xl_endpoint_get_stats(p->server, &stats);
    assert_int_equal(1, stats.connections);
}

PAIR_TEST(without_a_token_no_connection_id_is_issued) {
    pair_init(p, 1, 1, 10000);
    pair_connect(p);
    pair_run(p, 15000); /* the server has the client's first flight, and so its first connection ID */
    is_broken = true;
    pair_run(p, 1000000);
    is_broken = false;
    assert_non_null(p->sc);
    assert_int_equal(XL_CONN_OPEN, p->sc->state);
    assert_int_equal(1, p->sc->local_cids.count);
}

TEST_MAIN(NULL, NULL)
