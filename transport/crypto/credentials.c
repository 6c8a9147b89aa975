#include "crypto/credentials.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>

#include "crypto/crypto.h"
#include "crypto/random.h"

/* Cipher suites in our order. The server's order counts, so that a run's cipher does not depend on the peer's CPU. QUIC
 * needs no change_cipher_spec records for middleboxes (RFC 9001 section 8.4). A client sends a key share of X25519; a
 * server that has P-256 alone asks for that by a HelloRetryRequest. A server accepts a share of P-256 if the client
 * sends no other: P256_FIRST. */
#define PRIORITY_BEGIN "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:"
#define PRIORITY_END   ":%SERVER_PRECEDENCE:%DISABLE_TLS13_COMPAT_MODE"
#define X25519_FIRST   "-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1" PRIORITY_END
#define P256_FIRST     "-GROUP-ALL:+GROUP-SECP256R1:+GROUP-X25519" PRIORITY_END
#define ALL_CIPHERS    "aes128,aes256,chacha20"

#define ED25519_KEY_BYTES  32
#define TEN_YEARS_S        (UINT64_C(3652) * 24 * 3600)
#define KEY_ID_BYTES       32 /* SHA-256 of the public key */
#define SERIAL_BYTES       16
#define X509_V3            3
#define NOT_AFTER_NO_LIMIT 253402300799 /* 9999-12-31, RFC 5280 section 4.1.2.5 */

static const uint8_t TRUST_KEY[] = "CA certificates";

static gnutls_datum_t text_datum(const char *text) {
    return (gnutls_datum_t){(unsigned char *)text, (unsigned int)strlen(text)};
}

static xl_credentials *give_up(xl_credentials *c) {
    xl_credentials_free(c);
    return NULL;
}

static xl_credentials *credentials_new(bool is_server) {
    xl_credentials *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->is_server = is_server;
    if (gnutls_certificate_allocate_credentials(&c->certificates) != 0) {
        c->certificates = NULL;
        return give_up(c);
    }
    if (xl_credentials_set_ciphers(c, ALL_CIPHERS) != 0)
        return give_up(c);
    return c;
}

int xl_credentials_keep_sessions(xl_credentials *c, const xl_sessions *sessions) {
    if (c->is_server || !sessions->save || !sessions->load)
        return XL_ERR_ARGUMENT;
    c->sessions = *sessions;
    return 0;
}

bool xl_credentials_are_for(const xl_credentials *c, bool is_server) {
    return c->is_server == is_server;
}

bool xl_credentials_have_early(const xl_credentials *c) {
    return c->allows_early;
}

int xl_credentials_issue_tickets(xl_credentials *c, const uint8_t key[XL_TICKET_KEY_BYTES]) {
    if (!c->is_server)
        return XL_ERR_ARGUMENT;
    memcpy(c->ticket_key, key, sizeof c->ticket_key);
    c->issues_tickets = true;
    return 0;
}

/* Finds the suite that the first len bytes of text name; NULL: none. */
static const char *suite_named(const char *text, size_t len) {
    static const char *const suites[][2] = {
        {"aes128", "+AES-128-GCM:"}, {"aes256", "+AES-256-GCM:"}, {"chacha20", "+CHACHA20-POLY1305:"}};
    for (size_t i = 0; i < sizeof suites / sizeof suites[0]; i++)
        if (strlen(suites[i][0]) == len && memcmp(suites[i][0], text, len) == 0)
            return suites[i][1];
    return NULL;
}

static int replace_priority(gnutls_priority_t *into, const char *text) {
    gnutls_priority_t priority;
    if (gnutls_priority_init(&priority, text, NULL) != 0)
        return XL_ERR_CRYPTO;
    if (*into)
        gnutls_priority_deinit(*into);
    *into = priority;
    return 0;
}

int xl_credentials_set_ciphers(xl_credentials *c, const char *names) {
    char text[256] = PRIORITY_BEGIN;
    for (const char *at = names;; at++) {
        const size_t len = strcspn(at, ",");
        const char *suite = suite_named(at, len);
        if (!suite || strlen(text) + strlen(suite) + sizeof X25519_FIRST > sizeof text)
            return XL_ERR_ARGUMENT;
        strcat(text, suite);
        at += len;
        if (*at == '\0')
            break;
    }
    char *groups = text + strlen(text);
    strcpy(groups, P256_FIRST);
    if (replace_priority(&c->p256_first, text) != 0)
        return XL_ERR_CRYPTO;
    strcpy(groups, X25519_FIRST);
    return replace_priority(&c->priority, text);
}

void xl_credentials_free(xl_credentials *c) {
    if (!c)
        return;
    if (c->priority)
        gnutls_priority_deinit(c->priority);
    if (c->p256_first)
        gnutls_priority_deinit(c->p256_first);
    if (c->certificates)
        gnutls_certificate_free_credentials(c->certificates);
    if (c->anti_replay)
        gnutls_anti_replay_deinit(c->anti_replay);
    free(c->outstanding);
    gnutls_memset(c->ticket_key, 0, sizeof c->ticket_key);
    free(c);
}

/* GnuTLS 3.7 accepts an Ed25519 key that belongs to another certificate without an error. */
static bool key_matches_certificate(const xl_credentials *c) {
    gnutls_x509_crt_t *chain = NULL;
    gnutls_x509_privkey_t key = NULL;
    unsigned int chain_len = 0;
    uint8_t of_certificate[KEY_ID_BYTES], of_key[KEY_ID_BYTES];
    size_t certificate_id_len = sizeof of_certificate, key_id_len = sizeof of_key;
    if (gnutls_certificate_get_x509_crt(c->certificates, 0, &chain, &chain_len) != 0)
        return false;
    const bool matches =
        chain_len > 0 && gnutls_certificate_get_x509_key(c->certificates, 0, &key) == 0 &&
        gnutls_x509_crt_get_key_id(chain[0], GNUTLS_KEYID_USE_SHA256, of_certificate, &certificate_id_len) == 0 &&
        gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, of_key, &key_id_len) == 0 &&
        certificate_id_len == key_id_len && memcmp(of_certificate, of_key, key_id_len) == 0;
    if (key)
        gnutls_x509_privkey_deinit(key);
    for (unsigned int i = 0; i < chain_len; i++)
        gnutls_x509_crt_deinit(chain[i]);
    gnutls_free(chain);
    return matches;
}

xl_credentials *xl_credentials_server(const char *cert_pem, const char *key_pem) {
    if (!cert_pem || !key_pem)
        return NULL;
    xl_credentials *c = credentials_new(true);
    if (!c)
        return NULL;
    const gnutls_datum_t cert = text_datum(cert_pem), key = text_datum(key_pem);
    if (gnutls_certificate_set_x509_key_mem(c->certificates, &cert, &key, GNUTLS_X509_FMT_PEM) < 0 ||
        !key_matches_certificate(c))
        return give_up(c);
    return c;
}

xl_credentials *xl_credentials_client(const char *ca_pem) {
    xl_credentials *c = credentials_new(false);
    if (!c || !ca_pem)
        return c;
    const gnutls_datum_t ca = text_datum(ca_pem);
    /* The call returns the number of certificates. A text without any would verify nothing, so it is refused. */
    if (gnutls_certificate_set_x509_trust_mem(c->certificates, &ca, GNUTLS_X509_FMT_PEM) <= 0 ||
        xl_hmac(TRUST_KEY, sizeof TRUST_KEY, ca.data, ca.size, c->trust, sizeof c->trust) != 0)
        return give_up(c);
    c->verify_peer = true;
    return c;
}

/* An Ed25519 private key is any 32 bytes. It enters as PKCS #8 (RFC 8410 section 7) because GnuTLS then computes the
 * public key, which a raw import requires as an argument. */
static int import_derived_key(gnutls_x509_privkey_t key, const uint8_t *random_key) {
    static const uint8_t PKCS8_PREFIX[] = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
                                           0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20};
    uint8_t der[sizeof PKCS8_PREFIX + ED25519_KEY_BYTES];
    memcpy(der, PKCS8_PREFIX, sizeof PKCS8_PREFIX);
    if (xl_random_subkey(random_key, "self-signed key", der + sizeof PKCS8_PREFIX, ED25519_KEY_BYTES) != 0)
        return -1;
    const gnutls_datum_t datum = {der, sizeof der};
    const int rc = gnutls_x509_privkey_import_pkcs8(key, &datum, GNUTLS_X509_FMT_DER, NULL, GNUTLS_PKCS_PLAIN);
    gnutls_memset(der, 0, sizeof der);
    return rc == 0 ? 0 : -1;
}

static int set_names(gnutls_x509_crt_t crt, const char *name) {
    uint8_t ip[16];
    const unsigned int ip_len = inet_pton(AF_INET, name, ip) == 1 ? 4 : inet_pton(AF_INET6, name, ip) == 1 ? 16 : 0;
    if (gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, name, (unsigned int)strlen(name)) != 0)
        return -1;
    return ip_len ? gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, ip, ip_len, GNUTLS_FSAN_SET)
                  : gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, name, (unsigned int)strlen(name),
                                                         GNUTLS_FSAN_SET);
}

static int set_validity(gnutls_x509_crt_t crt, uint64_t not_before_s) {
    if (not_before_s > NOT_AFTER_NO_LIMIT - TEN_YEARS_S)
        return -1;
    return gnutls_x509_crt_set_activation_time(crt, (time_t)not_before_s) == 0 &&
                   gnutls_x509_crt_set_expiration_time(crt, (time_t)(not_before_s + TEN_YEARS_S)) == 0
               ? 0
               : -1;
}

static int set_serial(gnutls_x509_crt_t crt, const uint8_t *random_key) {
    uint8_t serial[SERIAL_BYTES];
    if (xl_random_subkey(random_key, "self-signed serial", serial, sizeof serial) != 0)
        return -1;
    serial[0] = (uint8_t)((serial[0] & 0x3f) | 0x40); /* positive, and of the same length for every key */
    return gnutls_x509_crt_set_serial(crt, serial, sizeof serial);
}

static int fill_and_sign(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key, gnutls_digest_algorithm_t digest,
                         const char *name, const uint8_t *random_key, uint64_t not_before_s) {
    const bool filled = gnutls_x509_crt_set_version(crt, X509_V3) == 0 && set_serial(crt, random_key) == 0 &&
                        set_names(crt, name) == 0 && set_validity(crt, not_before_s) == 0 &&
                        gnutls_x509_crt_set_basic_constraints(crt, 0, -1) == 0 &&
                        gnutls_x509_crt_set_key_usage(crt, GNUTLS_KEY_DIGITAL_SIGNATURE) == 0 &&
                        gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_SERVER, 0) == 0 &&
                        gnutls_x509_crt_set_key(crt, key) == 0;
    /* Ed25519 signatures are deterministic (RFC 8032): the same random key gives the same certificate, byte by byte. */
    return filled && gnutls_x509_crt_sign2(crt, crt, key, digest, 0) == 0 ? 0 : -1;
}

typedef int (*key_maker)(gnutls_x509_privkey_t, const uint8_t *random_key);

static int generate_p256_key(gnutls_x509_privkey_t key, const uint8_t *random_key) {
    (void)random_key;
    return gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
}

static xl_credentials *self_signed(key_maker make_key, gnutls_digest_algorithm_t digest, const char *name,
                                   const uint8_t *random_key, uint64_t not_before_s) {
    if (!name || !*name)
        return NULL;
    xl_credentials *c = credentials_new(true);
    gnutls_x509_crt_t crt = NULL;
    gnutls_x509_privkey_t key = NULL;
    const bool ok = c && gnutls_x509_crt_init(&crt) == 0 && gnutls_x509_privkey_init(&key) == 0 &&
                    make_key(key, random_key) == 0 &&
                    fill_and_sign(crt, key, digest, name, random_key, not_before_s) == 0 &&
                    gnutls_certificate_set_x509_key(c->certificates, &crt, 1, key) >= 0;
    if (key)
        gnutls_x509_privkey_deinit(key);
    if (crt)
        gnutls_x509_crt_deinit(crt);
    return ok ? c : give_up(c);
}

xl_credentials *xl_credentials_self_signed_p256(const char *name, const uint8_t random_key[XL_RANDOM_KEY_BYTES],
                                                uint64_t not_before_s) {
    return self_signed(generate_p256_key, GNUTLS_DIG_SHA256, name, random_key, not_before_s);
}

xl_credentials *xl_credentials_self_signed(const char *name, const uint8_t random_key[XL_RANDOM_KEY_BYTES],
                                           uint64_t not_before_s) {
    return self_signed(import_derived_key, GNUTLS_DIG_SHA512, name, random_key, not_before_s);
}
