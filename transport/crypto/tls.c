/* The TLS 1.3 handshake of RFC 9001 section 4 on top of GnuTLS's QUIC interface.
 *
 * GnuTLS receives whole handshake messages only, one at a time, each checked against the encryption level at which it
 * arrived. So the memory that a peer can make the library use is bounded here, and no message can straddle a change of
 * keys (RFC 8446 section 5.1).
 *
 * Randomness: GnuTLS draws the TLS random and the key share from its own generator, by gnutls_rnd(). GnuTLS 3.7 exports
 * no function that registers another generator (gnutls_crypto_rnd_register is internal). But Debian's library calls
 * gnutls_rnd() through its procedure linkage table, so a program that defines a function of that name and signature
 * replaces the generator for the whole process. The simulator does so, to be reproducible. Nothing else in this room is
 * random. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>
#include <gnutls/x509.h>

#include "crypto/kdf.h"
#include "crypto/tls_internal.h"

#define EXT_KEY_SHARE                 51     /* RFC 8446 section 4.2 */
#define GROUP_P256                    0x0017 /* section 4.2.7 */
#define GROUP_X25519                  0x001d
#define EXT_QUIC_TRANSPORT_PARAMETERS 0x39                      /* RFC 9001 section 8.2 */
#define MAX_CLIENT_MESSAGE            (16 * 1024)               /* longest message of a client */
#define MAX_SERVER_MESSAGE            (64 * 1024)               /* certificate chains */
#define SESSION_ID_OFFSET             (MESSAGE_HEADER + 2 + 32) /* of the length of ClientHello.legacy_session_id */
#define MAX_SAVED_PARAMS              1024

_Thread_local xl_tls *xl_tls_driven;
_Thread_local bool xl_tls_takes_client_hello;

/* Records the first alert, which says what went wrong. */
int xl_tls_fail(xl_tls *tls, uint8_t alert) {
    if (!tls->alert_set) {
        tls->alert = alert;
        tls->alert_set = true;
    }
    tls->failed = true;
    return -1;
}

/* Fails the handshake. Returns the code, for GnuTLS. */
static int refuse(xl_tls *tls, uint8_t alert, int code) {
    xl_tls_fail(tls, alert);
    return code;
}

static int internal_error(xl_tls *tls) {
    return refuse(tls, GNUTLS_A_INTERNAL_ERROR, GNUTLS_E_INTERNAL_ERROR);
}

/* GnuTLS's name of each level. Its level of 0-RTT has no messages and no xl_level. */
static const gnutls_record_encryption_level_t gnutls_levels[XL_LEVEL_COUNT] = {
    [XL_LEVEL_INITIAL] = GNUTLS_ENCRYPTION_LEVEL_INITIAL,
    [XL_LEVEL_HANDSHAKE] = GNUTLS_ENCRYPTION_LEVEL_HANDSHAKE,
    [XL_LEVEL_APP] = GNUTLS_ENCRYPTION_LEVEL_APPLICATION,
};

static bool level_of(gnutls_record_encryption_level_t from, xl_level *to) {
    for (*to = XL_LEVEL_INITIAL; *to < XL_LEVEL_COUNT && gnutls_levels[*to] != from; ++*to)
        ;
    return *to < XL_LEVEL_COUNT;
}

/* ---- Callbacks from GnuTLS ---- */

int xl_tls_aead_of(gnutls_cipher_algorithm_t cipher, xl_aead *aead) {
    static const gnutls_cipher_algorithm_t ciphers[] = {
        [XL_AEAD_AES_128_GCM] = GNUTLS_CIPHER_AES_128_GCM,
        [XL_AEAD_AES_256_GCM] = GNUTLS_CIPHER_AES_256_GCM,
        [XL_AEAD_CHACHA20_POLY1305] = GNUTLS_CIPHER_CHACHA20_POLY1305,
    };
    for (*aead = XL_AEAD_AES_128_GCM; *aead <= XL_AEAD_CHACHA20_POLY1305; ++*aead)
        if (ciphers[*aead] == cipher)
            return 0;
    return -1;
}

/* The only secret of 0-RTT: a client writes with it, a server reads. */
static int on_early_secret(xl_tls *tls, const void *secret, size_t len) {
    if (tls->was_retried || !tls->callbacks.early_keys)
        return 0; /* a second ClientHello carries no 0-RTT data */
    xl_keys *keys = xl_tls_aead_of(gnutls_early_cipher_get(tls->session), &tls->early_aead) == 0
                        ? xl_keys_from_secret(tls->version, tls->early_aead, secret, len)
                        : NULL;
    if (!keys || tls->callbacks.early_keys(tls->callbacks.user, keys) != 0)
        return internal_error(tls);
    tls->offers_early = !tls->is_server;
    return 0;
}

static int on_secret(gnutls_session_t session, gnutls_record_encryption_level_t at, const void *read_secret,
                     const void *write_secret, size_t len) {
    xl_tls *tls = gnutls_session_get_ptr(session);
    xl_level level;
    xl_aead aead;
    if (at == GNUTLS_ENCRYPTION_LEVEL_EARLY)
        return on_early_secret(tls, read_secret ? read_secret : write_secret, len);
    if (!level_of(at, &level) || xl_tls_aead_of(gnutls_cipher_get(session), &aead) != 0)
        return internal_error(tls);
    xl_keys *read = read_secret ? xl_keys_from_secret(tls->version, aead, read_secret, len) : NULL;
    xl_keys *write = write_secret ? xl_keys_from_secret(tls->version, aead, write_secret, len) : NULL;
    if ((read_secret && !read) || (write_secret && !write)) {
        xl_keys_free(read);
        xl_keys_free(write);
        return internal_error(tls);
    }
    if (read)
        tls->read_level = level;
    if (tls->callbacks.keys(tls->callbacks.user, level, read, write) != 0)
        return internal_error(tls);
    return 0;
}

static int on_outgoing_message(gnutls_session_t session, gnutls_record_encryption_level_t at,
                               gnutls_handshake_description_t type, const void *data, size_t len) {
    xl_tls *tls = gnutls_session_get_ptr(session);
    xl_level level;
    if (type == GNUTLS_HANDSHAKE_CHANGE_CIPHER_SPEC)
        return 0;
    if (type == GNUTLS_HANDSHAKE_NEW_SESSION_TICKET)
        xl_tls_remember_issued(tls, data, len);
    if (!level_of(at, &level) || tls->callbacks.crypto_data(tls->callbacks.user, level, data, len) != 0)
        return internal_error(tls);
    return 0;
}

static int on_outgoing_alert(gnutls_session_t session, gnutls_record_encryption_level_t at,
                             gnutls_alert_level_t severity, gnutls_alert_description_t alert) {
    (void)at;
    if (severity == GNUTLS_AL_FATAL)
        xl_tls_fail(gnutls_session_get_ptr(session), (uint8_t)alert);
    return 0;
}

static int on_peer_params(gnutls_session_t session, const unsigned char *data, size_t len) {
    xl_tls *tls = gnutls_session_get_ptr(session);
    if (tls->peer_params_seen)
        return 0; /* the second ClientHello, after a HelloRetryRequest */
    tls->peer_params_seen = true;
    if (tls->sessions && len <= MAX_SAVED_PARAMS && (tls->peer_params = malloc(len ? len : 1))) {
        memcpy(tls->peer_params, data, len);
        tls->peer_params_len = len;
    }
    return tls->callbacks.peer_params(tls->callbacks.user, data, len) == 0
               ? 0
               : refuse(tls, GNUTLS_A_ILLEGAL_PARAMETER, GNUTLS_E_RECEIVED_ILLEGAL_PARAMETER);
}

static int on_own_params(gnutls_session_t session, gnutls_buffer_t extension) {
    const xl_tls *tls = gnutls_session_get_ptr(session);
    const int rc = gnutls_buffer_append_data(extension, tls->params, tls->params_len);
    /* An empty extension is still an extension. */
    return rc < 0 ? rc : tls->params_len == 0 ? GNUTLS_E_INT_RET_0 : 0;
}

/* A library must not write key material to a file because of an environment variable (SSLKEYLOGFILE). So this replaces
 * GnuTLS's own function even if there is no listener. */
static int on_key_log(gnutls_session_t session, const char *label, const gnutls_datum_t *secret) {
    const xl_tls *tls = gnutls_session_get_ptr(session);
    char line[64 + 1 + 2 * CLIENT_RANDOM_BYTES + 1 + 2 * XL_SECRET_MAX + 1];
    gnutls_datum_t random = {NULL, 0}, server_random = {NULL, 0};
    if (!tls->callbacks.keylog)
        return 0;
    gnutls_session_get_random(session, &random, &server_random);
    const size_t label_len = strlen(label);
    if (label_len > 64 || random.size != CLIENT_RANDOM_BYTES || secret->size > XL_SECRET_MAX)
        return 0;
    char *p = line + snprintf(line, sizeof line, "%s ", label);
    for (unsigned int i = 0; i < random.size; i++)
        p += snprintf(p, 3, "%02x", random.data[i]);
    *p++ = ' ';
    for (unsigned int i = 0; i < secret->size; i++)
        p += snprintf(p, 3, "%02x", secret->data[i]);
    *p = '\0';
    tls->callbacks.keylog(tls->callbacks.user, line);
    gnutls_memset(line, 0, sizeof line);
    return 0;
}

/* ---- Negotiation ---- */

bool xl_tls_is_wanted(const xl_tls *tls, const gnutls_datum_t *alpn) {
    for (unsigned int i = 0; i < tls->alpn_count; i++)
        if (alpn->size == tls->alpns[i].size && memcmp(alpn->data, tls->alpns[i].data, alpn->size) == 0)
            return true;
    return false;
}

/* Checks that the client offered one of our protocols and its transport parameters, or the server answered with
 * them. */
static int check_negotiated(xl_tls *tls) {
    gnutls_datum_t alpn;
    if (gnutls_alpn_get_selected_protocol(tls->session, &alpn) != 0 || !xl_tls_is_wanted(tls, &alpn))
        return refuse(tls, GNUTLS_A_NO_APPLICATION_PROTOCOL, GNUTLS_E_NO_APPLICATION_PROTOCOL);
    snprintf(tls->alpn, sizeof tls->alpn, "%.*s", (int)alpn.size, (const char *)alpn.data);
    return tls->peer_params_seen ? 0 : refuse(tls, GNUTLS_A_MISSING_EXTENSION, GNUTLS_E_MISSING_EXTENSION);
}

typedef struct {
    bool p256, x25519;
} key_shares;

/* RFC 8446 section 4.2.8: the length of the list; for each share the group, the length of the key, and the key. */
static int on_extension(void *user, unsigned id, const unsigned char *data, unsigned len) {
    key_shares *shares = user;
    for (size_t at = 2; id == EXT_KEY_SHARE && at + 4 <= len; at += 4 + ((size_t)data[at + 2] << 8 | data[at + 3])) {
        const unsigned group = (unsigned)data[at] << 8 | data[at + 1];
        shares->p256 |= group == GROUP_P256;
        shares->x25519 |= group == GROUP_X25519;
    }
    return 0;
}

/* Prefers a group whose key share the client has sent: GnuTLS, by its order of groups, would send a
 * HelloRetryRequest. */
static int prefer_shared_group(const xl_tls *tls, const gnutls_datum_t *client_hello) {
    key_shares shares = {0};
    if (gnutls_ext_raw_parse(&shares, on_extension, client_hello, GNUTLS_EXT_RAW_FLAG_TLS_CLIENT_HELLO) != 0)
        return 0; /* the handshake itself reports the error */
    return shares.p256 && !shares.x25519 ? gnutls_priority_set(tls->session, tls->credentials->p256_first) : 0;
}

/* GnuTLS calls this before and after it parses a message. The call after a ClientHello finds it parsed, but that after
 * EncryptedExtensions comes before they are: a client checks at the message that follows. */
static int on_message(gnutls_session_t session, unsigned int type, unsigned int when, unsigned int incoming,
                      const gnutls_datum_t *message) {
    xl_tls *tls = gnutls_session_get_ptr(session);
    if (when == GNUTLS_HOOK_PRE)
        return tls->is_server && incoming && type == GNUTLS_HANDSHAKE_CLIENT_HELLO ? prefer_shared_group(tls, message)
                                                                                   : 0;
    tls->was_retried |= type == GNUTLS_HANDSHAKE_HELLO_RETRY_REQUEST;
    const unsigned int trigger = tls->is_server ? GNUTLS_HANDSHAKE_CLIENT_HELLO : GNUTLS_HANDSHAKE_CERTIFICATE_PKT;
    return incoming && type == trigger ? check_negotiated(tls) : 0;
}

static uint8_t alert_of_verification(unsigned int status) {
    if (status & (GNUTLS_CERT_EXPIRED | GNUTLS_CERT_NOT_ACTIVATED))
        return GNUTLS_A_CERTIFICATE_EXPIRED;
    if (status & GNUTLS_CERT_REVOKED)
        return GNUTLS_A_CERTIFICATE_REVOKED;
    return status & (GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNER_NOT_CA) ? GNUTLS_A_UNKNOWN_CA
                                                                               : GNUTLS_A_BAD_CERTIFICATE;
}

/* A name in the subject does not count (RFC 9110 section 4.3.4), but GnuTLS takes it if there is no other. */
static bool has_alternative_name(gnutls_session_t session) {
    unsigned int count = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &count);
    gnutls_x509_crt_t crt;
    bool has_one = false;
    if (count == 0 || gnutls_x509_crt_init(&crt) != 0)
        return false;
    int rc = gnutls_x509_crt_import(crt, &chain[0], GNUTLS_X509_FMT_DER);
    for (unsigned int i = 0; rc >= 0 && !has_one; i++) {
        char name[256];
        size_t len = sizeof name;
        unsigned int kind = 0;
        rc = gnutls_x509_crt_get_subject_alt_name2(crt, i, name, &len, &kind, NULL);
        if (rc == GNUTLS_E_SHORT_MEMORY_BUFFER)
            rc = 0; /* a name longer than any host's */
        has_one = rc >= 0 && (kind == GNUTLS_SAN_DNSNAME || kind == GNUTLS_SAN_IPADDRESS);
    }
    gnutls_x509_crt_deinit(crt);
    return has_one;
}

/* GnuTLS judges the certificates' validity by time(), or by the function that the process gave to
 * gnutls_global_set_time_function(). Not called without CA certificates. */
static int on_verify(gnutls_session_t session) {
    xl_tls *tls = gnutls_session_get_ptr(session);
    unsigned int status = GNUTLS_CERT_INVALID;
    gnutls_typed_vdata_st wanted[] = {
        {.type = GNUTLS_DT_DNS_HOSTNAME, .data = (unsigned char *)tls->server_name},
        {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)GNUTLS_KP_TLS_WWW_SERVER},
    };
    if (gnutls_certificate_verify_peers(session, wanted, 2, &status) != 0 || !has_alternative_name(session))
        return refuse(tls, GNUTLS_A_BAD_CERTIFICATE, GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR);
    return status == 0 ? 0 : refuse(tls, alert_of_verification(status), GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR);
}

/* ---- Set-up. ---- */

static int set_server_name(xl_tls *tls) {
    uint8_t ip[16];
    /* RFC 6066 section 3: no IP literals in server_name. */
    if (inet_pton(AF_INET, tls->server_name, ip) == 1 || inet_pton(AF_INET6, tls->server_name, ip) == 1)
        return 0;
    return gnutls_server_name_set(tls->session, GNUTLS_NAME_DNS, tls->server_name, strlen(tls->server_name));
}

static int enable_tickets(const xl_tls *tls, xl_credentials *credentials) {
    const gnutls_datum_t key = {credentials->ticket_key, sizeof credentials->ticket_key};
    return gnutls_session_ticket_enable_server(tls->session, &key);
}

static int open_session(xl_tls *tls, xl_credentials *credentials) {
    const bool resumes = credentials->issues_tickets || credentials->sessions.load;
    const bool has_early = tls->is_server ? credentials->allows_early : tls->loaded && xl_tls_may_offer_early(tls);
    const unsigned int flags = (has_early ? GNUTLS_ENABLE_EARLY_DATA | GNUTLS_NO_END_OF_EARLY_DATA : 0) |
                               (resumes ? 0 : GNUTLS_NO_TICKETS) | GNUTLS_NO_AUTO_SEND_TICKET | GNUTLS_NO_AUTO_REKEY |
                               (tls->is_server ? GNUTLS_SERVER : GNUTLS_CLIENT | GNUTLS_KEY_SHARE_TOP);
    if (gnutls_init(&tls->session, flags) != 0) {
        tls->session = NULL;
        return -1;
    }
    gnutls_session_set_ptr(tls->session, tls);
    gnutls_session_set_keylog_function(tls->session, on_key_log);
    gnutls_handshake_set_secret_function(tls->session, on_secret);
    gnutls_handshake_set_read_function(tls->session, on_outgoing_message);
    gnutls_alert_set_read_function(tls->session, on_outgoing_alert);
    gnutls_handshake_set_hook_function(tls->session, GNUTLS_HANDSHAKE_ANY, GNUTLS_HOOK_BOTH, on_message);
    if (tls->verify_peer)
        gnutls_session_set_verify_function(tls->session, on_verify);
    const bool ok =
        gnutls_priority_set(tls->session, credentials->priority) == 0 &&
        gnutls_credentials_set(tls->session, GNUTLS_CRD_CERTIFICATE, credentials->certificates) == 0 &&
        gnutls_alpn_set_protocols(tls->session, tls->alpns, tls->alpn_count,
                                  GNUTLS_ALPN_MANDATORY | GNUTLS_ALPN_SERVER_PRECEDENCE) == 0 &&
        gnutls_session_ext_register(tls->session, "quic_transport_parameters", EXT_QUIC_TRANSPORT_PARAMETERS,
                                    GNUTLS_EXT_TLS, on_peer_params, on_own_params, NULL, NULL, NULL,
                                    GNUTLS_EXT_FLAG_TLS | GNUTLS_EXT_FLAG_CLIENT_HELLO | GNUTLS_EXT_FLAG_EE) == 0 &&
        (!tls->server_name || set_server_name(tls) == 0) &&
        (!credentials->issues_tickets || enable_tickets(tls, credentials) == 0) &&
        (!tls->is_server || !has_early || xl_tls_accept_early_data(tls) == 0);
    if (ok && tls->session_in.tls.len > 0)
        (void)gnutls_session_set_data(tls->session, tls->session_in.tls.at, tls->session_in.tls.len);
    return ok ? 0 : -1;
}

bool xl_tls_is_alpn_list(const char *list) {
    size_t names = 0;
    for (const char *at = list;; at++) {
        const size_t len = strcspn(at, ",");
        if (len == 0 || ++names > ALPNS_MAX)
            return false;
        at += len;
        if (*at == '\0')
            return at - list <= ALPN_MAX;
    }
}

/* Splits a list such as "h3,hq-interop" at its commas. */
static void take_alpns(xl_tls *tls, const char *list) {
    snprintf(tls->alpn_list, sizeof tls->alpn_list, "%s", list);
    for (char *at = tls->alpn_list; *at != '\0'; at += *at == ',') {
        const size_t len = strcspn(at, ",");
        tls->alpns[tls->alpn_count++] = (gnutls_datum_t){(unsigned char *)at, (unsigned int)len};
        at += len;
    }
}

/* RFC 6066 section 3: server_name has no trailing dot, and certificates name hosts without one. */
static char *without_trailing_dot(const char *name) {
    const size_t len = strlen(name);
    return strndup(name, len - (len > 1 && name[len - 1] == '.'));
}

xl_tls *xl_tls_new(uint32_t version, bool is_server, xl_credentials *credentials, const char *server_name,
                   const char *alpn, const uint8_t *params, size_t params_len, const xl_tls_callbacks *callbacks) {
    if (!credentials || credentials->is_server != is_server || !alpn || !xl_tls_is_alpn_list(alpn) ||
        (credentials->verify_peer && !server_name))
        return NULL;
    xl_tls *tls = calloc(1, sizeof *tls);
    if (!tls)
        return NULL;
    tls->version = version;
    tls->credentials = credentials;
    tls->is_server = is_server;
    tls->verify_peer = credentials->verify_peer;
    tls->issues_tickets = credentials->issues_tickets;
    tls->callbacks = *callbacks;
    tls->read_level = XL_LEVEL_INITIAL;
    tls->server_name = !is_server && server_name ? without_trailing_dot(server_name) : NULL;
    tls->sessions = credentials->sessions.load && tls->server_name ? &credentials->sessions : NULL;
    const bool copied =
        xl_tls_set_params(tls, params, params_len) == 0 && (is_server || !server_name || tls->server_name);
    take_alpns(tls, alpn);
    if (copied && tls->sessions)
        xl_tls_load_session(tls);
    if (!copied || open_session(tls, credentials) != 0) {
        xl_tls_free(tls);
        return NULL;
    }
    return tls;
}

void xl_tls_free(xl_tls *tls) {
    if (!tls)
        return;
    if (tls->session)
        gnutls_deinit(tls->session);
    free(tls->params);
    free(tls->server_name);
    free(tls->message);
    free(tls->peer_params);
    if (tls->loaded)
        gnutls_memset(tls->loaded, 0, XL_SESSION_MAX_BYTES);
    free(tls->loaded);
    free(tls->application);
    free(tls->token);
    free(tls);
}

void xl_tls_set_version(xl_tls *tls, uint32_t version) {
    tls->version = version;
}

int xl_tls_set_params(xl_tls *tls, const uint8_t *params, size_t len) {
    uint8_t *copy = malloc(len ? len : 1);
    if (!copy)
        return -1;
    if (len)
        memcpy(copy, params, len);
    free(tls->params);
    tls->params = copy;
    tls->params_len = len;
    return 0;
}

/* ---- Driving the handshake ---- */

/* A server sends and accepts no further messages, so GnuTLS's session is freed: 7 kB and what it points to. */
static void release_session(xl_tls *tls) {
    tls->is_resumed = xl_tls_is_resumed(tls);
    tls->took_early = xl_tls_early_is_accepted(tls);
    gnutls_deinit(tls->session);
    free(tls->params);
    free(tls->message);
    tls->session = NULL;
    tls->params = tls->message = NULL;
    tls->message_cap = 0;
}

static int advance(xl_tls *tls) {
    int rc;
    xl_tls_driven = tls;
    do {
        rc = gnutls_handshake(tls->session);
    } while (rc == GNUTLS_E_INTERRUPTED && !tls->failed);
    xl_tls_driven = NULL;
    if (tls->failed)
        return -1; /* a callback refused */
    if (rc < 0 && gnutls_error_is_fatal(rc)) {
        int severity;
        return xl_tls_fail(tls, (uint8_t)gnutls_error_to_alert(rc, &severity));
    }
    if (rc == 0 && check_negotiated(tls) != 0)
        return -1;
    if (rc == 0 && !xl_tls_early_data_fits(tls))
        return xl_tls_fail(tls, GNUTLS_A_ILLEGAL_PARAMETER);
    tls->complete = rc == 0;
    if (tls->complete && tls->issues_tickets)
        (void)gnutls_session_ticket_send(tls->session, 1, 0); /* if it fails, the next handshake is a full one */
    if (tls->complete && tls->is_server)
        release_session(tls);
    return 0;
}

int xl_tls_start(xl_tls *tls) {
    if (tls->is_server || tls->failed)
        return -1;
    return advance(tls);
}

static bool is_expected(const xl_tls *tls, uint8_t type) {
    if (tls->is_server)
        return type ==
               (tls->read_level == XL_LEVEL_INITIAL ? GNUTLS_HANDSHAKE_CLIENT_HELLO : GNUTLS_HANDSHAKE_FINISHED);
    if (tls->read_level == XL_LEVEL_INITIAL)
        return type == GNUTLS_HANDSHAKE_SERVER_HELLO;
    return type == GNUTLS_HANDSHAKE_ENCRYPTED_EXTENSIONS || type == GNUTLS_HANDSHAKE_CERTIFICATE_REQUEST ||
           type == GNUTLS_HANDSHAKE_CERTIFICATE_PKT || type == GNUTLS_HANDSHAKE_CERTIFICATE_VERIFY ||
           type == GNUTLS_HANDSHAKE_FINISHED;
}

size_t xl_tls_body_len(const uint8_t header[MESSAGE_HEADER]) {
    return (size_t)header[1] << 16 | (size_t)header[2] << 8 | header[3];
}

static int deliver(xl_tls *tls, const uint8_t *message, size_t len) {
    /* RFC 9001 section 8.4: no compatibility mode, hence no session ID, in QUIC. */
    if (message[0] == GNUTLS_HANDSHAKE_CLIENT_HELLO && len > SESSION_ID_OFFSET && message[SESSION_ID_OFFSET] != 0)
        return xl_tls_fail(tls, GNUTLS_A_ILLEGAL_PARAMETER);
    if (message[0] == GNUTLS_HANDSHAKE_CLIENT_HELLO)
        xl_tls_find_identity(tls, message, len);
    xl_tls_driven = tls;
    const int rc = gnutls_handshake_write(tls->session, gnutls_levels[tls->read_level], message, len);
    xl_tls_driven = NULL;
    if (rc < 0) {
        int severity;
        return xl_tls_fail(tls, (uint8_t)gnutls_error_to_alert(rc, &severity));
    }
    xl_tls_takes_client_hello = message[0] == GNUTLS_HANDSHAKE_CLIENT_HELLO;
    const int error = advance(tls);
    xl_tls_takes_client_hello = false;
    tls->identity_len = 0; /* it points into the message */
    return error;
}

/* Makes room for `more` bytes. The room follows what has arrived, not what a header announces. */
int xl_tls_reserve(xl_tls *tls, size_t more) {
    const size_t need = tls->message_len + more;
    if (need <= tls->message_cap)
        return 0;
    const size_t cap = need > 2 * tls->message_cap ? need : 2 * tls->message_cap;
    uint8_t *grown = realloc(tls->message, cap);
    if (!grown)
        return xl_tls_fail(tls, GNUTLS_A_INTERNAL_ERROR);
    tls->message = grown;
    tls->message_cap = cap;
    return 0;
}

/* Takes bytes up to the end of the current message. Returns how many, or -1. */
static ssize_t take_message_bytes(xl_tls *tls, const uint8_t *data, size_t len) {
    size_t wanted = MESSAGE_HEADER;
    if (tls->message_len == 0 && !is_expected(tls, data[0]))
        return xl_tls_fail(tls, GNUTLS_A_UNEXPECTED_MESSAGE);
    if (tls->message_len >= MESSAGE_HEADER)
        wanted += xl_tls_body_len(tls->message);
    const size_t taken = len < wanted - tls->message_len ? len : wanted - tls->message_len;
    if (xl_tls_reserve(tls, taken) != 0)
        return -1;
    memcpy(tls->message + tls->message_len, data, taken);
    tls->message_len += taken;
    if (tls->message_len < MESSAGE_HEADER)
        return (ssize_t)taken;
    const size_t body = xl_tls_body_len(tls->message);
    if (body > (tls->is_server ? MAX_CLIENT_MESSAGE : MAX_SERVER_MESSAGE))
        return xl_tls_fail(tls, GNUTLS_A_DECODE_ERROR);
    if (tls->message_len == MESSAGE_HEADER + body) {
        const size_t whole = tls->message_len;
        tls->message_len = 0;
        if (deliver(tls, tls->message, whole) != 0)
            return -1;
    }
    return (ssize_t)taken;
}

int xl_tls_receive(xl_tls *tls, xl_level level, const uint8_t *data, size_t len) {
    while (len > 0) {
        if (tls->failed)
            return -1;
        /* Bytes from before a change of keys, or ahead of one. */
        if (level != tls->read_level)
            return xl_tls_fail(tls, GNUTLS_A_UNEXPECTED_MESSAGE);
        if (tls->complete)
            return xl_tls_take_tickets(tls, data, len);
        const ssize_t taken = take_message_bytes(tls, data, len);
        if (taken < 0)
            return -1;
        data += taken;
        len -= (size_t)taken;
    }
    return tls->failed ? -1 : 0;
}

bool xl_tls_is_resumed(const xl_tls *tls) {
    return tls->session ? gnutls_session_is_resumed(tls->session) != 0 : tls->is_resumed;
}

bool xl_tls_is_complete(const xl_tls *tls) {
    return tls->complete && !tls->failed;
}

bool xl_tls_is_violation(const xl_tls *tls) {
    return tls->is_violation;
}

uint8_t xl_tls_alert(const xl_tls *tls) {
    return tls->alert;
}

const char *xl_tls_alert_name(uint8_t alert) {
    const char *name = gnutls_alert_get_name((gnutls_alert_description_t)alert);
    return name ? name : "unknown";
}

const char *xl_tls_alpn(const xl_tls *tls) {
    return tls->alpn;
}
