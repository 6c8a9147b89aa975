/* The TLS 1.3 handshake of RFC 9001 section 4 on top of GnuTLS's QUIC interface.
 *
 * GnuTLS is given whole handshake messages only, one at a time and each checked against the encryption level that it
 * came at: what a peer can make the library hold is bounded here, and no message can straddle a change of keys (RFC
 * 8446 section 5.1).
 *
 * Randomness: the TLS random and the key share are drawn by GnuTLS from its own generator, by gnutls_rnd(). GnuTLS 3.7
 * exports no function that registers another one (gnutls_crypto_rnd_register is internal). Debian's library does call
 * gnutls_rnd() through its procedure linkage table, so a program that defines a function of that name and signature
 * replaces the generator for the whole process: that is where a simulator that wants reproducible handshakes hooks in.
 * Nothing else in this room is random. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "crypto/credentials.h"
#include "crypto/crypto.h"
#include "crypto/kdf.h"
#include "crypto/session.h"
#include "wire/cursor.h"

#define EXT_QUIC_TRANSPORT_PARAMETERS 0x39 /* RFC 9001 section 8.2 */
#define MESSAGE_HEADER                4
#define MAX_CLIENT_MESSAGE            (16 * 1024)               /* the longest that a client may send to a server */
#define MAX_SERVER_MESSAGE            (64 * 1024)               /* certificate chains */
#define SESSION_ID_OFFSET             (MESSAGE_HEADER + 2 + 32) /* of the length of ClientHello.legacy_session_id */
#define ALPN_MAX                      255                       /* bytes of a whole list */
#define ALPNS_MAX                     8
#define CLIENT_RANDOM_BYTES           32
#define MAX_TICKET_MESSAGE            8192 /* a longer NewSessionTicket is skipped */
#define MAX_TICKETS                   4    /* those after them are skipped */
#define MAX_SAVED_PARAMS              1024
#define EXT_EARLY_DATA                42
#define EXT_PRE_SHARED_KEY            41
#define QUIC_EARLY_DATA               UINT32_MAX /* the one value of max_early_data_size, RFC 9001 section 4.6.1 */
#define AGE_TOLERANCE_S               1
#define TICKET_MARGIN_S               10
#define REMEMBERED_MOST               8
#define MAX_REMEMBERED                1024       /* bytes of a token, and of what an application keeps */
#define REPLAY_WINDOW_MS              UINT32_MAX /* of the library; what keeps replays out is xl_outstanding */

struct xl_tls {
    bool is_server, verify_peer, issues_tickets;
    bool complete, failed;
    bool peer_params_seen;
    bool alert_set;
    uint8_t alert;
    xl_level read_level; /* level of the newest read keys: the only one at which messages are expected */
    gnutls_session_t session;
    xl_tls_callbacks callbacks;
    char *server_name;               /* NULL on a server */
    gnutls_datum_t alpns[ALPNS_MAX]; /* what is offered, or taken: into alpn_list */
    unsigned int alpn_count;
    char alpn_list[ALPN_MAX + 1], alpn[ALPN_MAX + 1];
    uint8_t *params; /* our transport parameters */
    size_t params_len;
    uint8_t *message; /* the handshake message that is arriving */
    size_t message_len, message_cap;
    uint8_t header[MESSAGE_HEADER]; /* of the post-handshake message that is being skipped */
    size_t header_len, skip_left;
    uint32_t version; /* of QUIC: its labels, and what a session is for */
    xl_credentials *credentials;
    const xl_sessions *sessions; /* the credentials'; NULL: nothing is resumed */
    unsigned tickets;            /* taken */
    uint8_t *peer_params;        /* as they came, to be saved with a session */
    size_t peer_params_len;

    uint8_t *loaded; /* the session that is resumed: its bytes, and what they say */
    xl_session session_in;
    bool offers_early; /* client: 0-RTT keys were made */
    bool was_retried;  /* HelloRetryRequest: 0-RTT would be refused, and is not tried with this server */
    xl_aead early_aead;
    const uint8_t *identity; /* server: the first ticket of the ClientHello that is being handled */
    size_t identity_len;
    /* Client: of the session that is saved. */
    uint64_t arrived_ns;
    uint32_t lifetime_s;
    bool allows_early;
    uint8_t *application, *token;
    size_t application_len, token_len;
    unsigned remembered; /* how often: each time the session is saved again */
    bool is_violation;
};

/* Of the session whose handshake is being driven: the library's check of replays names none. */
static _Thread_local xl_tls *driven;
static _Thread_local bool takes_client_hello;

/* The first alert is the one that tells what went wrong. */
static int fail(xl_tls *tls, uint8_t alert) {
    if (!tls->alert_set) {
        tls->alert = alert;
        tls->alert_set = true;
    }
    tls->failed = true;
    return -1;
}

static bool level_of(gnutls_record_encryption_level_t from, xl_level *to) {
    switch (from) {
    case GNUTLS_ENCRYPTION_LEVEL_INITIAL:
        *to = XL_LEVEL_INITIAL;
        return true;
    case GNUTLS_ENCRYPTION_LEVEL_HANDSHAKE:
        *to = XL_LEVEL_HANDSHAKE;
        return true;
    case GNUTLS_ENCRYPTION_LEVEL_APPLICATION:
        *to = XL_LEVEL_APP;
        return true;
    case GNUTLS_ENCRYPTION_LEVEL_EARLY: /* has neither messages nor a level of its own */
        break;
    }
    return false;
}

static gnutls_record_encryption_level_t gnutls_level_of(xl_level level) {
    return level == XL_LEVEL_INITIAL     ? GNUTLS_ENCRYPTION_LEVEL_INITIAL
           : level == XL_LEVEL_HANDSHAKE ? GNUTLS_ENCRYPTION_LEVEL_HANDSHAKE
                                         : GNUTLS_ENCRYPTION_LEVEL_APPLICATION;
}

/* ---- What GnuTLS calls. ---- */

static int aead_of(gnutls_cipher_algorithm_t cipher, xl_aead *aead) {
    switch (cipher) {
    case GNUTLS_CIPHER_AES_128_GCM:
        *aead = XL_AEAD_AES_128_GCM;
        return 0;
    case GNUTLS_CIPHER_AES_256_GCM:
        *aead = XL_AEAD_AES_256_GCM;
        return 0;
    case GNUTLS_CIPHER_CHACHA20_POLY1305:
        *aead = XL_AEAD_CHACHA20_POLY1305;
        return 0;
    default:
        return -1;
    }
}

/* The one secret of 0-RTT: a client writes under it, a server reads. */
static int on_early_secret(xl_tls *tls, const void *secret, size_t len) {
    if (tls->was_retried || !tls->callbacks.early_keys)
        return 0; /* a second ClientHello carries no 0-RTT data */
    xl_keys *keys = aead_of(gnutls_early_cipher_get(tls->session), &tls->early_aead) == 0
                        ? xl_keys_from_secret(tls->version, tls->early_aead, secret, len)
                        : NULL;
    if (!keys || tls->callbacks.early_keys(tls->callbacks.user, keys) != 0) {
        fail(tls, GNUTLS_A_INTERNAL_ERROR);
        return GNUTLS_E_INTERNAL_ERROR;
    }
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
    if (!level_of(at, &level) || aead_of(gnutls_cipher_get(session), &aead) != 0) {
        fail(tls, GNUTLS_A_INTERNAL_ERROR);
        return GNUTLS_E_INTERNAL_ERROR;
    }
    xl_keys *read = read_secret ? xl_keys_from_secret(tls->version, aead, read_secret, len) : NULL;
    xl_keys *write = write_secret ? xl_keys_from_secret(tls->version, aead, write_secret, len) : NULL;
    if ((read_secret && !read) || (write_secret && !write)) {
        xl_keys_free(read);
        xl_keys_free(write);
        fail(tls, GNUTLS_A_INTERNAL_ERROR);
        return GNUTLS_E_INTERNAL_ERROR;
    }
    if (read)
        tls->read_level = level;
    if (tls->callbacks.keys(tls->callbacks.user, level, read, write) != 0) {
        fail(tls, GNUTLS_A_INTERNAL_ERROR);
        return GNUTLS_E_INTERNAL_ERROR;
    }
    return 0;
}

/* Of a NewSessionTicket: lifetime, age_add, nonce, ticket, extensions (RFC 8446 section 4.6.1). */
typedef struct {
    uint32_t lifetime_s;
    const uint8_t *ticket;
    size_t ticket_len;
    bool has_early_data;
    uint32_t max_early_data;
} new_ticket;

static size_t read_u16(xl_reader *r) {
    const size_t high = xl_read_u8(r);
    return high << 8 | xl_read_u8(r);
}

static bool read_new_ticket(const uint8_t *message, size_t len, new_ticket *out) {
    xl_reader r = xl_reader_of(message, len);
    xl_read_bytes(&r, MESSAGE_HEADER);
    *out = (new_ticket){.lifetime_s = xl_read_u32(&r)};
    xl_read_bytes(&r, 4);
    xl_read_bytes(&r, xl_read_u8(&r));
    out->ticket_len = read_u16(&r);
    out->ticket = xl_read_bytes(&r, out->ticket_len);
    read_u16(&r);
    while (!r.failed && xl_reader_left(&r) > 0) {
        const size_t type = read_u16(&r), ext_len = read_u16(&r);
        xl_reader ext = xl_reader_of(xl_read_bytes(&r, ext_len), ext_len);
        if (type != EXT_EARLY_DATA || r.failed)
            continue;
        out->has_early_data = true;
        out->max_early_data = xl_read_u32(&ext);
    }
    return !r.failed;
}

static void remember_issued(const xl_tls *tls, const uint8_t *message, size_t len) {
    new_ticket t;
    if (tls->credentials->outstanding && !tls->was_retried && read_new_ticket(message, len, &t))
        xl_outstanding_add(tls->credentials->outstanding, t.ticket, t.ticket_len, tls->alpn);
}

static int on_outgoing_message(gnutls_session_t session, gnutls_record_encryption_level_t at,
                               gnutls_handshake_description_t type, const void *data, size_t len) {
    xl_tls *tls = gnutls_session_get_ptr(session);
    xl_level level;
    if (type == GNUTLS_HANDSHAKE_CHANGE_CIPHER_SPEC)
        return 0;
    if (type == GNUTLS_HANDSHAKE_NEW_SESSION_TICKET)
        remember_issued(tls, data, len);
    if (!level_of(at, &level) || tls->callbacks.crypto_data(tls->callbacks.user, level, data, len) != 0) {
        fail(tls, GNUTLS_A_INTERNAL_ERROR);
        return GNUTLS_E_INTERNAL_ERROR;
    }
    return 0;
}

static int on_outgoing_alert(gnutls_session_t session, gnutls_record_encryption_level_t at,
                             gnutls_alert_level_t severity, gnutls_alert_description_t alert) {
    (void)at;
    if (severity == GNUTLS_AL_FATAL)
        fail(gnutls_session_get_ptr(session), (uint8_t)alert);
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
    if (tls->callbacks.peer_params(tls->callbacks.user, data, len) != 0) {
        fail(tls, GNUTLS_A_ILLEGAL_PARAMETER);
        return GNUTLS_E_RECEIVED_ILLEGAL_PARAMETER;
    }
    return 0;
}

static int on_own_params(gnutls_session_t session, gnutls_buffer_t extension) {
    const xl_tls *tls = gnutls_session_get_ptr(session);
    const int rc = gnutls_buffer_append_data(extension, tls->params, tls->params_len);
    /* An empty extension is still an extension. */
    return rc < 0 ? rc : tls->params_len == 0 ? GNUTLS_E_INT_RET_0 : 0;
}

/* A library must not write key material to a file because of an environment variable (SSLKEYLOGFILE), so this takes the
 * place of GnuTLS's own function even when nobody listens. */
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

/* ---- What both sides must agree on. ---- */

static bool is_wanted(const xl_tls *tls, const gnutls_datum_t *alpn) {
    for (unsigned int i = 0; i < tls->alpn_count; i++)
        if (alpn->size == tls->alpns[i].size && memcmp(alpn->data, tls->alpns[i].data, alpn->size) == 0)
            return true;
    return false;
}

/* The client offered one of our protocols and its transport parameters, or the server answered with them. */
static int check_negotiated(xl_tls *tls) {
    gnutls_datum_t alpn;
    if (gnutls_alpn_get_selected_protocol(tls->session, &alpn) != 0 || !is_wanted(tls, &alpn)) {
        fail(tls, GNUTLS_A_NO_APPLICATION_PROTOCOL);
        return GNUTLS_E_NO_APPLICATION_PROTOCOL;
    }
    snprintf(tls->alpn, sizeof tls->alpn, "%.*s", (int)alpn.size, (const char *)alpn.data);
    if (!tls->peer_params_seen) {
        fail(tls, GNUTLS_A_MISSING_EXTENSION);
        return GNUTLS_E_MISSING_EXTENSION;
    }
    return 0;
}

/* GnuTLS calls this after it has parsed a ClientHello, but before it parses EncryptedExtensions: a client looks when
 * the message after those arrives. */
static int on_message(gnutls_session_t session, unsigned int type, unsigned int when, unsigned int incoming,
                      const gnutls_datum_t *message) {
    (void)when;
    (void)message;
    xl_tls *tls = gnutls_session_get_ptr(session);
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

/* The one place that depends on the time of day: GnuTLS judges the certificates' validity by time(), or by what the
 * process gave gnutls_global_set_time_function(). Without CA certificates it is never reached. */
static int on_verify(gnutls_session_t session) {
    xl_tls *tls = gnutls_session_get_ptr(session);
    unsigned int status = GNUTLS_CERT_INVALID;
    if (gnutls_certificate_verify_peers3(session, tls->server_name, &status) != 0) {
        fail(tls, GNUTLS_A_BAD_CERTIFICATE);
        return GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR;
    }
    if (status != 0) {
        fail(tls, alert_of_verification(status));
        return GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR;
    }
    return 0;
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

/* ---- Saved sessions ---- */

/* The clock by which GnuTLS judges the age of a ticket. */
static uint64_t (*time_of_day)(void);

void xl_set_time_of_day(uint64_t (*ns)(void)) {
    time_of_day = ns;
}

static uint64_t time_of_day_ns(void) {
    return time_of_day ? time_of_day() : 0;
}

static void hand_over(const xl_tls *tls, const xl_session *s) {
    uint8_t *bytes = malloc(XL_SESSION_MAX_BYTES);
    const size_t len = bytes ? xl_session_write(s, bytes, XL_SESSION_MAX_BYTES) : 0;
    if (len > 0)
        tls->sessions->save(tls->sessions->user, tls->server_name, bytes, len);
    if (bytes)
        gnutls_memset(bytes, 0, XL_SESSION_MAX_BYTES);
    free(bytes);
}

static void save_session(const xl_tls *tls) {
    gnutls_datum_t data = {NULL, 0};
    if (!tls->peer_params || gnutls_session_get_data2(tls->session, &data) != 0)
        return;
    hand_over(tls, &(xl_session){.version = tls->version,
                                 .allows_early = tls->allows_early && !tls->was_retried,
                                 .arrived_ns = tls->arrived_ns,
                                 .lifetime_s = tls->lifetime_s,
                                 .alpn = {(const uint8_t *)tls->alpn, strlen(tls->alpn)},
                                 .params = {tls->peer_params, tls->peer_params_len},
                                 .tls = {data.data, data.size},
                                 .application = {tls->application, tls->application_len},
                                 .token = {tls->token, tls->token_len}});
    gnutls_memset(data.data, 0, data.size);
    gnutls_free(data.data);
}

/* A ticket carries 0-RTT data once, and a token is used once (RFC 9000 section 8.1.3): neither is left for the next
 * connection, whatever becomes of this one. */
static void spend(const xl_tls *tls) {
    xl_session rest = tls->session_in;
    if (!rest.allows_early && rest.token.len == 0)
        return;
    rest.allows_early = false;
    rest.token.len = 0;
    hand_over(tls, &rest);
}

/* A session that cannot be read, or is of another protocol or version, is as none: the handshake is a full one. */
static void load_session(xl_tls *tls) {
    tls->loaded = malloc(XL_SESSION_MAX_BYTES);
    if (!tls->loaded)
        return;
    const size_t len = tls->sessions->load(tls->sessions->user, tls->server_name, tls->loaded, XL_SESSION_MAX_BYTES);
    xl_session *s = &tls->session_in;
    const bool is_fit = len > 0 && len <= XL_SESSION_MAX_BYTES && xl_session_read(s, tls->loaded, len) &&
                        s->version == tls->version &&
                        is_wanted(tls, &(gnutls_datum_t){(unsigned char *)s->alpn.at, (unsigned int)s->alpn.len});
    if (!is_fit)
        *s = (xl_session){0};
    else
        spend(tls);
}

uint32_t xl_credentials_session_version(const xl_credentials *c, const char *server_name) {
    xl_session s = {0};
    uint8_t *bytes = c->sessions.load ? malloc(XL_SESSION_MAX_BYTES) : NULL;
    const size_t len = bytes ? c->sessions.load(c->sessions.user, server_name, bytes, XL_SESSION_MAX_BYTES) : 0;
    const bool is_fit = len > 0 && len <= XL_SESSION_MAX_BYTES && xl_session_read(&s, bytes, len);
    if (bytes)
        gnutls_memset(bytes, 0, XL_SESSION_MAX_BYTES);
    free(bytes);
    return is_fit ? s.version : 0;
}

/* GnuTLS leaves a ticket out whose time is over, and must not be asked for 0-RTT then. */
static bool may_offer_early(const xl_tls *tls) {
    const xl_session *s = &tls->session_in;
    const uint64_t now = time_of_day_ns();
    return tls->credentials->allows_early && tls->callbacks.early_keys && s->allows_early && now >= s->arrived_ns &&
           (now - s->arrived_ns) / UINT64_C(1000000000) + TICKET_MARGIN_S < s->lifetime_s;
}

/* The ticket of a ClientHello: the identity of pre_shared_key, if it is the only one. Which of several GnuTLS takes it
 * does not say, and the one that is taken here would be another one than its. 0-RTT data belongs
 * to that one (RFC 8446 section 4.2.10). */
static void find_identity(xl_tls *tls, const uint8_t *message, size_t len) {
    xl_reader r = xl_reader_of(message, len);
    tls->identity_len = 0;
    xl_read_bytes(&r, MESSAGE_HEADER + 2 + CLIENT_RANDOM_BYTES);
    xl_read_bytes(&r, xl_read_u8(&r));
    xl_read_bytes(&r, read_u16(&r));
    xl_read_bytes(&r, xl_read_u8(&r));
    read_u16(&r);
    while (!r.failed && xl_reader_left(&r) > 0) {
        const size_t type = read_u16(&r), ext_len = read_u16(&r);
        xl_reader ext = xl_reader_of(xl_read_bytes(&r, ext_len), ext_len);
        if (type != EXT_PRE_SHARED_KEY || r.failed)
            continue;
        const size_t all = read_u16(&ext), identity_len = read_u16(&ext);
        tls->identity = xl_read_bytes(&ext, identity_len);
        tls->identity_len = ext.failed || all != 2 + identity_len + 4 ? 0 : identity_len;
    }
}

/* GnuTLS asks this of 0-RTT data of a ticket that is genuine. Negative: the data is refused, the session is resumed. */
static int on_early_ticket(void *user, time_t expires, const gnutls_datum_t *key, const gnutls_datum_t *data) {
    (void)expires, (void)key, (void)data;
    xl_outstanding *issued = user;
    gnutls_datum_t alpn;
    char name[ALPN_MAX + 1];
    if (!driven || !driven->callbacks.early_keys || driven->identity_len == 0 ||
        gnutls_alpn_get_selected_protocol(driven->session, &alpn) != 0)
        return GNUTLS_E_DB_ENTRY_EXISTS;
    snprintf(name, sizeof name, "%.*s", (int)alpn.size, (const char *)alpn.data);
    return xl_outstanding_take(issued, driven->identity, driven->identity_len, name) ? 0 : GNUTLS_E_DB_ENTRY_EXISTS;
}

/* Clients that count the age of a ticket in whole seconds (Go, rustls) are up to a second ahead, and GnuTLS 3.7 refuses
 * 0-RTT data of a ticket that is older to its client than to itself. So for a ClientHello the library's clock is a
 * second late. It lets one be set by a function that is not in its headers; where that is missing, such data is
 * refused. What keeps replays out does not depend on the clock. */
extern void _gnutls_global_set_gettime_function(void (*)(struct timespec *)) __attribute__((weak));

static void time_for_gnutls(struct timespec *t) {
    const uint64_t ns = time_of_day_ns();
    t->tv_sec = (time_t)(ns / UINT64_C(1000000000)) + (takes_client_hello ? AGE_TOLERANCE_S : 0);
    t->tv_nsec = (long)(ns % UINT64_C(1000000000));
}

int xl_credentials_allow_early_data(xl_credentials *c) {
    if (c->is_server ? !c->issues_tickets : !c->sessions.load)
        return XL_ERR_ARGUMENT;
    if (c->is_server && !c->anti_replay) {
        /* First: the library refuses tickets of a time before it began to look for replays. */
        if (_gnutls_global_set_gettime_function && time_of_day)
            _gnutls_global_set_gettime_function(time_for_gnutls);
        c->outstanding = calloc(1, sizeof *c->outstanding);
        if (!c->outstanding || gnutls_anti_replay_init(&c->anti_replay) != 0)
            return XL_ERR_MEMORY;
        gnutls_anti_replay_set_window(c->anti_replay, REPLAY_WINDOW_MS);
        gnutls_anti_replay_set_ptr(c->anti_replay, c->outstanding);
        gnutls_anti_replay_set_add_function(c->anti_replay, on_early_ticket);
    }
    c->allows_early = true;
    return 0;
}

static int accept_early_data(const xl_tls *tls) {
    gnutls_anti_replay_enable(tls->session, tls->credentials->anti_replay);
    return gnutls_record_set_max_early_data_size(tls->session, QUIC_EARLY_DATA);
}

static int open_session(xl_tls *tls, xl_credentials *credentials) {
    const bool resumes = credentials->issues_tickets || credentials->sessions.load;
    const bool has_early = tls->is_server ? credentials->allows_early : tls->loaded && may_offer_early(tls);
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
    gnutls_handshake_set_hook_function(tls->session, GNUTLS_HANDSHAKE_ANY, GNUTLS_HOOK_POST, on_message);
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
        (!tls->is_server || !has_early || accept_early_data(tls) == 0);
    if (ok && tls->session_in.tls.len > 0)
        (void)gnutls_session_set_data(tls->session, tls->session_in.tls.at, tls->session_in.tls.len);
    return ok ? 0 : -1;
}

/* "h3,hq-interop": the names between the commas. False: an empty one, or too many. */
static bool take_alpns(xl_tls *tls, const char *list) {
    snprintf(tls->alpn_list, sizeof tls->alpn_list, "%s", list);
    for (char *at = tls->alpn_list;; at++) {
        const size_t len = strcspn(at, ",");
        if (len == 0 || tls->alpn_count == ALPNS_MAX)
            return false;
        tls->alpns[tls->alpn_count++] = (gnutls_datum_t){(unsigned char *)at, (unsigned int)len};
        at += len;
        if (*at == '\0')
            return true;
    }
}

xl_tls *xl_tls_new(uint32_t version, bool is_server, xl_credentials *credentials, const char *server_name,
                   const char *alpn, const uint8_t *params, size_t params_len, const xl_tls_callbacks *callbacks) {
    const size_t alpn_len = alpn ? strlen(alpn) : 0;
    if (!credentials || credentials->is_server != is_server || alpn_len == 0 || alpn_len > ALPN_MAX ||
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
    tls->params_len = params_len;
    tls->params = malloc(params_len ? params_len : 1);
    if (tls->params && params_len)
        memcpy(tls->params, params, params_len);
    tls->server_name = !is_server && server_name ? strdup(server_name) : NULL;
    tls->sessions = credentials->sessions.load && tls->server_name ? &credentials->sessions : NULL;
    const bool copied = tls->params && (is_server || !server_name || tls->server_name);
    const bool has_alpns = copied && take_alpns(tls, alpn);
    if (has_alpns && tls->sessions)
        load_session(tls);
    if (!has_alpns || open_session(tls, credentials) != 0) {
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

/* ---- What is kept for the next connection ---- */

bool xl_tls_offers_early(const xl_tls *tls) {
    return tls->offers_early;
}

const uint8_t *xl_tls_remembered(const xl_tls *tls, xl_tls_memory what, size_t *len) {
    const xl_session *s = &tls->session_in;
    const xl_session_part *part = what == XL_TLS_PARAMS  ? &s->params
                                  : what == XL_TLS_TOKEN ? &s->token
                                                         : &s->application;
    *len = part->len;
    return part->at;
}

void xl_tls_remember(xl_tls *tls, xl_tls_memory what, const uint8_t *data, size_t len) {
    uint8_t **slot = what == XL_TLS_TOKEN ? &tls->token : &tls->application;
    bool is_kept = tls->sessions && len <= MAX_REMEMBERED && tls->remembered++ < REMEMBERED_MOST;
    uint8_t *copy = is_kept ? malloc(len ? len : 1) : NULL;
    if (!copy)
        return;
    memcpy(copy, data, len);
    free(*slot);
    *slot = copy;
    *(what == XL_TLS_TOKEN ? &tls->token_len : &tls->application_len) = len;
    if (tls->tickets > 0)
        save_session(tls);
}

bool xl_tls_early_is_accepted(const xl_tls *tls) {
    return (gnutls_session_get_flags(tls->session) & GNUTLS_SFLAGS_EARLY_DATA) != 0;
}

/* 0-RTT data was taken under the protocol and the cipher of the session: the handshake must have chosen the same (RFC
 * 8446 section 4.2.10). Where it was not taken the protocol counts alone: what was said in the one is nothing in the
 * other. */
static bool early_data_fits(const xl_tls *tls) {
    xl_aead aead;
    if (!tls->offers_early)
        return true;
    const xl_session_part *alpn = &tls->session_in.alpn;
    const bool is_same = alpn->len == strlen(tls->alpn) && memcmp(alpn->at, tls->alpn, alpn->len) == 0;
    return is_same && (!xl_tls_early_is_accepted(tls) ||
                       (aead_of(gnutls_cipher_get(tls->session), &aead) == 0 && aead == tls->early_aead));
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

/* ---- Driving it. ---- */

static int advance(xl_tls *tls) {
    int rc;
    driven = tls;
    do {
        rc = gnutls_handshake(tls->session);
    } while (rc == GNUTLS_E_INTERRUPTED && !tls->failed);
    driven = NULL;
    if (tls->failed)
        return -1; /* a callback refused */
    if (rc < 0 && gnutls_error_is_fatal(rc)) {
        int severity;
        return fail(tls, (uint8_t)gnutls_error_to_alert(rc, &severity));
    }
    if (rc == 0 && check_negotiated(tls) != 0)
        return -1;
    if (rc == 0 && !early_data_fits(tls))
        return fail(tls, GNUTLS_A_ILLEGAL_PARAMETER);
    tls->complete = rc == 0;
    if (tls->complete && tls->issues_tickets)
        (void)gnutls_session_ticket_send(tls->session, 1, 0); /* without one the next handshake is a full one */
    return 0;
}

int xl_tls_start(xl_tls *tls) {
    if (tls->is_server || tls->failed)
        return -1;
    return advance(tls);
}

static bool is_expected(const xl_tls *tls, uint8_t type) {
    if (tls->is_server) {
        return type ==
               (tls->read_level == XL_LEVEL_INITIAL ? GNUTLS_HANDSHAKE_CLIENT_HELLO : GNUTLS_HANDSHAKE_FINISHED);
    }
    if (tls->read_level == XL_LEVEL_INITIAL)
        return type == GNUTLS_HANDSHAKE_SERVER_HELLO;
    return type == GNUTLS_HANDSHAKE_ENCRYPTED_EXTENSIONS || type == GNUTLS_HANDSHAKE_CERTIFICATE_REQUEST ||
           type == GNUTLS_HANDSHAKE_CERTIFICATE_PKT || type == GNUTLS_HANDSHAKE_CERTIFICATE_VERIFY ||
           type == GNUTLS_HANDSHAKE_FINISHED;
}

static size_t body_len(const uint8_t header[MESSAGE_HEADER]) {
    return (size_t)header[1] << 16 | (size_t)header[2] << 8 | header[3];
}

static int deliver(xl_tls *tls, const uint8_t *message, size_t len) {
    /* RFC 9001 section 8.4: no compatibility mode, hence no session ID, in QUIC. */
    if (message[0] == GNUTLS_HANDSHAKE_CLIENT_HELLO && len > SESSION_ID_OFFSET && message[SESSION_ID_OFFSET] != 0)
        return fail(tls, GNUTLS_A_ILLEGAL_PARAMETER);
    if (message[0] == GNUTLS_HANDSHAKE_CLIENT_HELLO)
        find_identity(tls, message, len);
    driven = tls;
    const int rc = gnutls_handshake_write(tls->session, gnutls_level_of(tls->read_level), message, len);
    driven = NULL;
    if (rc < 0) {
        int severity;
        return fail(tls, (uint8_t)gnutls_error_to_alert(rc, &severity));
    }
    takes_client_hello = message[0] == GNUTLS_HANDSHAKE_CLIENT_HELLO;
    const int error = advance(tls);
    takes_client_hello = false;
    tls->identity_len = 0; /* it lies in the message */
    return error;
}

/* Makes room for `more` bytes. Room follows what has arrived, not what a header announces. */
static int reserve(xl_tls *tls, size_t more) {
    const size_t need = tls->message_len + more;
    if (need <= tls->message_cap)
        return 0;
    const size_t cap = need > 2 * tls->message_cap ? need : 2 * tls->message_cap;
    uint8_t *grown = realloc(tls->message, cap);
    if (!grown)
        return fail(tls, GNUTLS_A_INTERNAL_ERROR);
    tls->message = grown;
    tls->message_cap = cap;
    return 0;
}

/* Takes bytes up to the end of the message that they belong to. Returns how many, or -1. */
static ssize_t take_message_bytes(xl_tls *tls, const uint8_t *data, size_t len) {
    size_t wanted = MESSAGE_HEADER;
    if (tls->message_len == 0 && !is_expected(tls, data[0]))
        return fail(tls, GNUTLS_A_UNEXPECTED_MESSAGE);
    if (tls->message_len >= MESSAGE_HEADER)
        wanted += body_len(tls->message);
    const size_t taken = len < wanted - tls->message_len ? len : wanted - tls->message_len;
    if (reserve(tls, taken) != 0)
        return -1;
    memcpy(tls->message + tls->message_len, data, taken);
    tls->message_len += taken;
    if (tls->message_len < MESSAGE_HEADER)
        return (ssize_t)taken;
    const size_t body = body_len(tls->message);
    if (body > (tls->is_server ? MAX_CLIENT_MESSAGE : MAX_SERVER_MESSAGE))
        return fail(tls, GNUTLS_A_DECODE_ERROR);
    if (tls->message_len == MESSAGE_HEADER + body) {
        const size_t whole = tls->message_len;
        tls->message_len = 0;
        if (deliver(tls, tls->message, whole) != 0)
            return -1;
    }
    return (ssize_t)taken;
}

/* The bytes of a NewSessionTicket that is kept. */
static int collect_ticket(xl_tls *tls, const uint8_t *data, size_t len) {
    if (reserve(tls, len) != 0)
        return -1;
    memcpy(tls->message + tls->message_len, data, len);
    tls->message_len += len;
    return 0;
}

/* One that GnuTLS does not take costs the session, not the connection. */
static int take_ticket(xl_tls *tls) {
    const size_t len = tls->message_len;
    new_ticket t;
    tls->message_len = 0;
    tls->tickets++;
    if (!read_new_ticket(tls->message, len, &t))
        return 0;
    if (t.has_early_data && t.max_early_data != QUIC_EARLY_DATA) { /* RFC 9001 section 4.6.1 */
        tls->is_violation = true;
        return fail(tls, GNUTLS_A_ILLEGAL_PARAMETER);
    }
    tls->allows_early = t.has_early_data;
    tls->lifetime_s = t.lifetime_s;
    if (gnutls_handshake_write(tls->session, GNUTLS_ENCRYPTION_LEVEL_APPLICATION, tls->message, len) < 0)
        return 0;
    tls->arrived_ns = time_of_day_ns(); /* not before the library's own note of it */
    save_session(tls);
    return 0;
}

/* Of the message whose header has come: up to its end. */
static int take_ticket_body(xl_tls *tls, const uint8_t *data, size_t len) {
    tls->skip_left -= len;
    if (tls->message_len == 0)
        return 0;
    if (collect_ticket(tls, data, len) != 0)
        return -1;
    return tls->skip_left == 0 ? take_ticket(tls) : 0;
}

/* After the handshake only a server speaks, and only NewSessionTicket: saved where sessions are kept, else skipped. A
 * KeyUpdate is a connection error (RFC 9001 section 6). */
static int take_tickets(xl_tls *tls, const uint8_t *data, size_t len) {
    while (len > 0) {
        if (tls->skip_left > 0) {
            const size_t taken = len < tls->skip_left ? len : tls->skip_left;
            if (take_ticket_body(tls, data, taken) != 0)
                return -1;
            data += taken;
            len -= taken;
            continue;
        }
        if (tls->header_len == 0 && (tls->is_server || data[0] != GNUTLS_HANDSHAKE_NEW_SESSION_TICKET))
            return fail(tls, GNUTLS_A_UNEXPECTED_MESSAGE);
        tls->header[tls->header_len++] = *data++;
        len--;
        if (tls->header_len < MESSAGE_HEADER)
            continue;
        tls->skip_left = body_len(tls->header);
        tls->header_len = 0;
        const bool is_kept =
            tls->sessions && tls->tickets < MAX_TICKETS && tls->skip_left > 0 && tls->skip_left <= MAX_TICKET_MESSAGE;
        if (is_kept && collect_ticket(tls, tls->header, MESSAGE_HEADER) != 0)
            return -1;
    }
    return 0;
}

int xl_tls_receive(xl_tls *tls, xl_level level, const uint8_t *data, size_t len) {
    while (len > 0) {
        if (tls->failed)
            return -1;
        /* Bytes left over from before a change of keys, or ahead of one. */
        if (level != tls->read_level)
            return fail(tls, GNUTLS_A_UNEXPECTED_MESSAGE);
        if (tls->complete)
            return take_tickets(tls, data, len);
        const ssize_t taken = take_message_bytes(tls, data, len);
        if (taken < 0)
            return -1;
        data += taken;
        len -= (size_t)taken;
    }
    return tls->failed ? -1 : 0;
}

bool xl_tls_is_resumed(const xl_tls *tls) {
    return gnutls_session_is_resumed(tls->session) != 0;
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

const char *xl_tls_alpn(const xl_tls *tls) {
    return tls->alpn;
}
