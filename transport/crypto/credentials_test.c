/* Credentials: seeded self-signed certificates, and the certificates that a client with CA certificates accepts. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gnutls/x509.h>

#include "tests/unit.h"
#include "testing/session_store.h"
#include "crypto/credentials.h"
#include "crypto/crypto.h"

#define ALERT_BAD_CERTIFICATE     42
#define ALERT_CERTIFICATE_EXPIRED 45
#define ALERT_UNKNOWN_CA          48
#define NOW_S                     1700000000 /* the time of day of all these tests */
#define DAY_S                     86400
#define FLIGHT_MAX                8192

static time_t frozen_time(time_t *out) {
    if (out)
        *out = NOW_S;
    return NOW_S;
}

/* ---- A small certification authority. ---- */

typedef struct {
    gnutls_x509_crt_t crt;
    gnutls_x509_privkey_t key;
    gnutls_datum_t crt_pem, key_pem;
} identity;

/* purpose: of the certificate, or NULL. has_name: the name is an alternative name, too. */
static identity new_identity_for(const char *name, bool has_name, const char *purpose, const identity *issuer,
                                 time_t not_before, time_t not_after) {
    identity id;
    const bool is_ca = !issuer;
    assert_int_equal(gnutls_x509_privkey_init(&id.key), 0);
    assert_int_equal(gnutls_x509_privkey_generate(id.key, GNUTLS_PK_EDDSA_ED25519, 256, 0), 0);
    assert_int_equal(gnutls_x509_crt_init(&id.crt), 0);
    assert_int_equal(gnutls_x509_crt_set_version(id.crt, 3), 0);
    assert_int_equal(gnutls_x509_crt_set_serial(id.crt, is_ca ? "\x01" : "\x02", 1), 0);
    assert_int_equal(
        gnutls_x509_crt_set_dn_by_oid(id.crt, GNUTLS_OID_X520_COMMON_NAME, 0, name, (unsigned int)strlen(name)), 0);
    if (has_name)
        assert_int_equal(gnutls_x509_crt_set_subject_alt_name(id.crt, GNUTLS_SAN_DNSNAME, name,
                                                              (unsigned int)strlen(name), GNUTLS_FSAN_SET),
                         0);
    if (purpose)
        assert_int_equal(gnutls_x509_crt_set_key_purpose_oid(id.crt, purpose, 0), 0);
    assert_int_equal(gnutls_x509_crt_set_activation_time(id.crt, not_before), 0);
    assert_int_equal(gnutls_x509_crt_set_expiration_time(id.crt, not_after), 0);
    assert_int_equal(gnutls_x509_crt_set_basic_constraints(id.crt, is_ca, -1), 0);
    assert_int_equal(
        gnutls_x509_crt_set_key_usage(id.crt, is_ca ? GNUTLS_KEY_KEY_CERT_SIGN : GNUTLS_KEY_DIGITAL_SIGNATURE), 0);
    assert_int_equal(gnutls_x509_crt_set_key(id.crt, id.key), 0);
    assert_int_equal(
        gnutls_x509_crt_sign2(id.crt, is_ca ? id.crt : issuer->crt, is_ca ? id.key : issuer->key, GNUTLS_DIG_SHA512, 0),
        0);
    assert_int_equal(gnutls_x509_crt_export2(id.crt, GNUTLS_X509_FMT_PEM, &id.crt_pem), 0);
    assert_int_equal(
        gnutls_x509_privkey_export2_pkcs8(id.key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, &id.key_pem), 0);
    return id;
}

static identity new_identity(const char *name, const identity *issuer, time_t not_before, time_t not_after) {
    return new_identity_for(name, true, NULL, issuer, not_before, not_after);
}

static void free_identity(identity *id) {
    gnutls_free(id->crt_pem.data);
    gnutls_free(id->key_pem.data);
    gnutls_x509_crt_deinit(id->crt);
    gnutls_x509_privkey_deinit(id->key);
}

static const char *pem(const gnutls_datum_t *datum) {
    return (const char *)datum->data;
}

/* ---- A handshake of which only the outcome matters. ---- */

typedef struct {
    uint8_t out[XL_LEVEL_COUNT][FLIGHT_MAX];
    size_t out_len[XL_LEVEL_COUNT];
} flight;

static int take_crypto_data(void *user, xl_level level, const uint8_t *data, size_t len) {
    flight *f = user;
    assert_true(len <= FLIGHT_MAX - f->out_len[level]);
    memcpy(f->out[level] + f->out_len[level], data, len);
    f->out_len[level] += len;
    return 0;
}

static int drop_keys(void *user, xl_level level, xl_keys *read, xl_keys *write) {
    (void)user;
    (void)level;
    xl_keys_free(read);
    xl_keys_free(write);
    return 0;
}

static int accept_params(void *user, const uint8_t *data, size_t len) {
    (void)user;
    (void)data;
    (void)len;
    return 0;
}

static int deliver(flight *from, xl_tls *to) {
    for (xl_level level = XL_LEVEL_INITIAL; level < XL_LEVEL_COUNT; level++) {
        if (xl_tls_receive(to, level, from->out[level], from->out_len[level]) != 0)
            return -1;
        from->out_len[level] = 0;
    }
    return 0;
}

/* Returns the client's alert, or 0 if both ends completed. *is_resumed: no certificate was sent. */
static int handshake_outcome(xl_credentials *client_credentials, xl_credentials *server_credentials, const char *name,
                             bool *is_resumed) {
    static const uint8_t PARAMS[] = {0x01, 0x02, 0x67, 0x10};
    flight from_client = {0}, from_server = {0};
    const xl_tls_callbacks client_callbacks = {&from_client, take_crypto_data, drop_keys, accept_params, NULL, NULL};
    const xl_tls_callbacks server_callbacks = {&from_server, take_crypto_data, drop_keys, accept_params, NULL, NULL};
    xl_tls *client =
        xl_tls_new(XL_VERSION_1, false, client_credentials, name, "h3", PARAMS, sizeof PARAMS, &client_callbacks);
    xl_tls *server =
        xl_tls_new(XL_VERSION_1, true, server_credentials, NULL, "h3", PARAMS, sizeof PARAMS, &server_callbacks);
    assert_non_null(client);
    assert_non_null(server);
    assert_int_equal(xl_tls_start(client), 0);
    assert_int_equal(deliver(&from_client, server), 0);
    int alert = 0;
    if (deliver(&from_server, client) != 0) {
        alert = xl_tls_alert(client);
        assert_int_not_equal(alert, 0);
        assert_false(xl_tls_is_complete(client));
    } else {
        assert_int_equal(deliver(&from_client, server), 0);
        assert_true(xl_tls_is_complete(client));
        assert_true(xl_tls_is_complete(server));
        assert_int_equal(deliver(&from_server, client), 0); /* tickets */
    }
    *is_resumed = xl_tls_is_resumed(client);
    xl_tls_free(client);
    xl_tls_free(server);
    return alert;
}

static int handshake_alert(xl_credentials *client_credentials, xl_credentials *server_credentials, const char *name) {
    bool is_resumed;
    return handshake_outcome(client_credentials, server_credentials, name, &is_resumed);
}

/* ---- Self-signed certificates. ---- */

static gnutls_datum_t certificate_of(const xl_credentials *c) {
    gnutls_x509_crt_t *list;
    unsigned int n;
    gnutls_datum_t der = {NULL, 0};
    assert_int_equal(gnutls_certificate_get_x509_crt(c->certificates, 0, &list, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(gnutls_x509_crt_export2(list[0], GNUTLS_X509_FMT_DER, &der), 0);
    gnutls_x509_crt_deinit(list[0]);
    gnutls_free(list);
    return der;
}

static xl_credentials *self_signed_by_seed(const char *name, uint64_t seed, uint64_t not_before_s) {
    uint8_t key[XL_RANDOM_KEY_BYTES];
    assert_int_equal(xl_random_key_from_seed(seed, "server", key), 0);
    return xl_credentials_self_signed(name, key, not_before_s);
}

static gnutls_datum_t self_signed(const char *name, uint64_t seed, uint64_t not_before_s) {
    xl_credentials *c = self_signed_by_seed(name, seed, not_before_s);
    assert_non_null(c);
    const gnutls_datum_t der = certificate_of(c);
    xl_credentials_free(c);
    return der;
}

TEST(a_self_signed_certificate_follows_from_its_key) {
    gnutls_datum_t first = self_signed("railyard.test", 42, NOW_S), same = self_signed("railyard.test", 42, NOW_S),
                   other = self_signed("railyard.test", 43, NOW_S);
    assert_int_equal(first.size, same.size);
    assert_memory_equal(first.data, same.data, first.size);
    assert_int_equal(first.size, other.size); /* another key, another serial number */
    assert_memory_not_equal(first.data, other.data, first.size);
    gnutls_free(first.data);
    gnutls_free(same.data);
    gnutls_free(other.data);
}

TEST(self_signed_certificates_are_of_one_length_and_have_positive_serials) {
    unsigned int size = 0;
    for (uint64_t seed = 0; seed < 64; seed++) { /* for any first bits of key and serial number */
        gnutls_datum_t der = self_signed("railyard.test", seed, NOW_S);
        gnutls_x509_crt_t crt;
        uint8_t serial[32];
        size_t serial_len = sizeof serial;
        assert_int_equal(gnutls_x509_crt_init(&crt), 0);
        assert_int_equal(gnutls_x509_crt_import(crt, &der, GNUTLS_X509_FMT_DER), 0);
        assert_int_equal(gnutls_x509_crt_get_serial(crt, serial, &serial_len), 0);
        assert_true(serial[0] > 0 && serial[0] < 0x80); /* RFC 5280 section 4.1.2.2 */
        if (seed > 0)
            assert_int_equal(der.size, size);
        size = der.size;
        gnutls_x509_crt_deinit(crt);
        gnutls_free(der.data);
    }
}

TEST(a_self_signed_certificate_says_what_it_was_asked_to) {
    gnutls_datum_t der = self_signed("railyard.test", 7, NOW_S), der_ip = self_signed("2001:db8::1", 7, NOW_S);
    gnutls_x509_crt_t crt, crt_ip;
    unsigned int bits;
    gnutls_x509_crt_init(&crt);
    gnutls_x509_crt_init(&crt_ip);
    assert_int_equal(gnutls_x509_crt_import(crt, &der, GNUTLS_X509_FMT_DER), 0);
    assert_int_equal(gnutls_x509_crt_import(crt_ip, &der_ip, GNUTLS_X509_FMT_DER), 0);
    assert_int_equal(gnutls_x509_crt_get_pk_algorithm(crt, &bits), GNUTLS_PK_EDDSA_ED25519);
    assert_int_equal(gnutls_x509_crt_get_activation_time(crt), NOW_S);
    const time_t validity = gnutls_x509_crt_get_expiration_time(crt) - NOW_S;
    assert_true(validity >= (time_t)3650 * DAY_S && validity <= (time_t)3653 * DAY_S);
    assert_int_not_equal(gnutls_x509_crt_check_hostname(crt, "railyard.test"), 0);
    assert_int_equal(gnutls_x509_crt_check_hostname(crt, "elsewhere.test"), 0);
    assert_int_not_equal(gnutls_x509_crt_check_hostname(crt_ip, "2001:db8::1"), 0);
    gnutls_x509_crt_deinit(crt);
    gnutls_x509_crt_deinit(crt_ip);
    gnutls_free(der.data);
    gnutls_free(der_ip.data);
}

TEST(a_self_signed_certificate_for_every_peer_is_of_p256) {
    uint8_t random_key[XL_RANDOM_KEY_BYTES] = {1};
    xl_credentials *c = xl_credentials_self_signed_p256("railyard.test", random_key, NOW_S);
    assert_non_null(c);
    gnutls_datum_t der = certificate_of(c);
    gnutls_x509_crt_t crt;
    gnutls_x509_crt_init(&crt);
    unsigned int bits, usage = 0;
    assert_int_equal(gnutls_x509_crt_import(crt, &der, GNUTLS_X509_FMT_DER), 0);
    assert_int_equal(gnutls_x509_crt_get_pk_algorithm(crt, &bits), GNUTLS_PK_ECDSA);
    assert_int_equal(bits, 256);
    assert_int_equal(gnutls_x509_crt_get_signature_algorithm(crt), GNUTLS_SIGN_ECDSA_SHA256);
    assert_int_equal(gnutls_x509_crt_get_key_usage(crt, &usage, NULL), 0);
    assert_int_equal(usage, GNUTLS_KEY_DIGITAL_SIGNATURE);
    assert_int_not_equal(gnutls_x509_crt_check_hostname(crt, "railyard.test"), 0);
    gnutls_x509_crt_deinit(crt);
    gnutls_free(der.data);
    xl_credentials_free(c);
}

TEST(a_self_signed_certificate_needs_a_name_and_a_date) {
    assert_null(self_signed_by_seed(NULL, 1, NOW_S));
    assert_null(self_signed_by_seed("", 1, NOW_S));
    assert_null(self_signed_by_seed("railyard.test", 1, UINT64_MAX));
    xl_credentials *epoch = self_signed_by_seed("railyard.test", 0, 0);
    assert_non_null(epoch);
    xl_credentials_free(epoch);
    xl_credentials_free(NULL);
}

/* ---- Verification. ---- */

typedef struct {
    identity ca, leaf, expired, future;
    xl_credentials *client; /* trusts the CA */
} authority;

static int set_up_authority(void **state) {
    gnutls_global_set_time_function(frozen_time);
    authority *a = calloc(1, sizeof *a);
    assert_non_null(a);
    a->ca = new_identity("Railyard test CA", NULL, NOW_S - DAY_S, NOW_S + 100 * DAY_S);
    a->leaf = new_identity("railyard.test", &a->ca, NOW_S - DAY_S, NOW_S + DAY_S);
    a->expired = new_identity("railyard.test", &a->ca, NOW_S - 2 * DAY_S, NOW_S - DAY_S);
    a->future = new_identity("railyard.test", &a->ca, NOW_S + DAY_S, NOW_S + 2 * DAY_S);
    a->client = xl_credentials_client(pem(&a->ca.crt_pem));
    assert_non_null(a->client);
    *state = a;
    return 0;
}

static int tear_down_authority(void **state) {
    authority *a = *state;
    xl_credentials_free(a->client);
    free_identity(&a->ca);
    free_identity(&a->leaf);
    free_identity(&a->expired);
    free_identity(&a->future);
    free(a);
    return 0;
}

static int alert_for(xl_credentials *client, const identity *server, const char *name) {
    xl_credentials *credentials = xl_credentials_server(pem(&server->crt_pem), pem(&server->key_pem));
    assert_non_null(credentials);
    const int alert = handshake_alert(client, credentials, name);
    xl_credentials_free(credentials);
    return alert;
}

TEST(a_client_with_a_ca_accepts_what_the_ca_signed) {
    const authority *a = *state;
    assert_int_equal(alert_for(a->client, &a->leaf, "railyard.test"), 0);
}

TEST(a_name_is_verified_without_its_trailing_dot) {
    const authority *a = *state;
    assert_int_equal(alert_for(a->client, &a->leaf, "railyard.test."), 0);
}

TEST(a_client_with_a_ca_refuses_another_name) {
    const authority *a = *state;
    assert_int_equal(alert_for(a->client, &a->leaf, "elsewhere.test"), ALERT_BAD_CERTIFICATE);
    assert_int_equal(alert_for(a->client, &a->leaf, "192.0.2.1"), ALERT_BAD_CERTIFICATE);
}

TEST(a_client_with_a_ca_refuses_certificates_out_of_their_time) {
    const authority *a = *state;
    assert_int_equal(alert_for(a->client, &a->expired, "railyard.test"), ALERT_CERTIFICATE_EXPIRED);
    assert_int_equal(alert_for(a->client, &a->future, "railyard.test"), ALERT_CERTIFICATE_EXPIRED);
}

TEST(a_client_with_a_ca_refuses_a_self_signed_server) {
    const authority *a = *state;
    xl_credentials *server = self_signed_by_seed("railyard.test", 1, NOW_S - DAY_S);
    assert_int_equal(handshake_alert(a->client, server, "railyard.test"), ALERT_UNKNOWN_CA);
    xl_credentials_free(server);
}

TEST(a_client_without_a_ca_accepts_everybody) {
    const authority *a = *state;
    xl_credentials *client = xl_credentials_client(NULL);
    assert_int_equal(alert_for(client, &a->expired, "elsewhere.test"), 0);
    xl_credentials_free(client);
}

/* RFC 5280 section 4.2.1.12: the holder of a client's certificate of the same CA is no server. */
TEST(a_client_with_a_ca_refuses_a_certificate_that_is_not_for_servers) {
    static const char *const purposes[] = {GNUTLS_KP_TLS_WWW_CLIENT, GNUTLS_KP_EMAIL_PROTECTION};
    const authority *a = *state;
    for (size_t i = 0; i < 2; i++) {
        identity id = new_identity_for("railyard.test", true, purposes[i], &a->ca, NOW_S - DAY_S, NOW_S + DAY_S);
        assert_int_equal(alert_for(a->client, &id, "railyard.test"), ALERT_BAD_CERTIFICATE);
        free_identity(&id);
    }
    identity id =
        new_identity_for("railyard.test", true, GNUTLS_KP_TLS_WWW_SERVER, &a->ca, NOW_S - DAY_S, NOW_S + DAY_S);
    assert_int_equal(alert_for(a->client, &id, "railyard.test"), 0);
    free_identity(&id);
}

/* RFC 9110 section 4.3.4. */
TEST(a_name_in_the_subject_is_no_name_of_a_server) {
    const authority *a = *state;
    identity id = new_identity_for("railyard.test", false, NULL, &a->ca, NOW_S - DAY_S, NOW_S + DAY_S);
    assert_int_equal(alert_for(a->client, &id, "railyard.test"), ALERT_BAD_CERTIFICATE);
    free_identity(&id);
}

/* A resumed handshake has no certificate to verify. */
TEST(a_verifying_client_resumes_only_what_its_own_cas_verified) {
    const authority *a = *state;
    static store kept;
    const xl_sessions sessions = {.user = &kept, .save = save, .load = load};
    const uint8_t key[XL_TICKET_KEY_BYTES] = {7};
    identity other_ca = new_identity("another CA", NULL, NOW_S - DAY_S, NOW_S + 100 * DAY_S);
    const char *const cas[] = {NULL, pem(&a->ca.crt_pem), pem(&other_ca.crt_pem)};
    xl_credentials *server = xl_credentials_server(pem(&a->leaf.crt_pem), pem(&a->leaf.key_pem));
    assert_int_equal(xl_credentials_issue_tickets(server, key), 0);
    for (int before = 0; before < 2; before++) {
        for (int after = 0; after < 3; after++) {
            bool is_resumed;
            kept.len = 0;
            for (int i = 0; i < 2; i++) {
                xl_credentials *client = xl_credentials_client(cas[i == 0 ? before : after]);
                assert_int_equal(xl_credentials_keep_sessions(client, &sessions), 0);
                const int alert = handshake_outcome(client, server, "railyard.test", &is_resumed);
                assert_int_equal(alert, i == 1 && after == 2 ? ALERT_UNKNOWN_CA : 0);
                assert_true(kept.len > 0);
                xl_credentials_free(client);
            }
            assert_int_equal(is_resumed, after == 0 || (after == 1 && before == 1));
        }
    }
    xl_credentials_free(server);
    free_identity(&other_ca);
}

TEST(a_self_signed_certificate_can_be_trusted_by_itself) {
    const char *names[] = {"railyard.test", "192.0.2.1"};
    for (int i = 0; i < 2; i++) {
        xl_credentials *server = self_signed_by_seed(names[i], 5, NOW_S);
        gnutls_datum_t der = certificate_of(server), text = {NULL, 0};
        assert_int_equal(gnutls_pem_base64_encode2("CERTIFICATE", &der, &text), 0);
        xl_credentials *client = xl_credentials_client(pem(&text));
        assert_non_null(client);
        assert_int_equal(handshake_alert(client, server, names[i]), 0);
        assert_int_equal(handshake_alert(client, server, "elsewhere.test"), ALERT_BAD_CERTIFICATE);
        xl_credentials_free(client);
        xl_credentials_free(server);
        gnutls_free(der.data);
        gnutls_free(text.data);
    }
}

TEST(a_verifying_client_needs_a_server_name) {
    const authority *a = *state;
    const xl_tls_callbacks callbacks = {NULL, take_crypto_data, drop_keys, accept_params, NULL, NULL};
    assert_null(xl_tls_new(XL_VERSION_1, false, a->client, NULL, "h3", NULL, 0, &callbacks));
}

TEST(text_that_is_not_pem_gives_no_credentials) {
    const authority *a = *state;
    assert_null(xl_credentials_client(""));
    assert_null(xl_credentials_client("no certificate here"));
    assert_null(xl_credentials_server("", ""));
    assert_null(xl_credentials_server(NULL, NULL));
    assert_null(xl_credentials_server(pem(&a->leaf.crt_pem), "no key here"));
    assert_null(xl_credentials_server(pem(&a->leaf.crt_pem), pem(&a->ca.key_pem))); /* another's key */
}

TEST_MAIN(set_up_authority, tear_down_authority)
