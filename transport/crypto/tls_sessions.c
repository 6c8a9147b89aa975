/* What a client stores of a connection to resume it, and the tickets that make that possible (RFC 9001 section 4.6). */
#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>

#include "crypto/tls_internal.h"

#define MAX_TICKET_MESSAGE 8192 /* a longer NewSessionTicket is skipped */
#define MAX_TICKETS        4    /* further ones are skipped */
#define EXT_EARLY_DATA     42
#define TICKET_MARGIN_S    10
#define TICKET_MOST_S      UINT64_C(604800) /* a week, whatever the server says (RFC 8446 section 4.6.1) */
#define REMEMBERED_MOST    8
#define MAX_REMEMBERED     1024 /* bytes of a token, and of an application's data */

/* ---- Tickets in messages ---- */

size_t xl_tls_read_u16(xl_reader *r) {
    const size_t high = xl_read_u8(r);
    return high << 8 | xl_read_u8(r);
}

bool xl_tls_next_extension(xl_reader *r, size_t *type, xl_reader *body) {
    if (r->failed || xl_reader_left(r) == 0)
        return false;
    *type = xl_tls_read_u16(r);
    const size_t len = xl_tls_read_u16(r);
    *body = xl_reader_of(xl_read_bytes(r, len), len);
    return !r->failed;
}

bool xl_tls_read_ticket(const uint8_t *message, size_t len, xl_tls_ticket *out) {
    xl_reader r = xl_reader_of(message, len);
    xl_read_bytes(&r, MESSAGE_HEADER);
    *out = (xl_tls_ticket){.lifetime_s = xl_read_u32(&r)};
    xl_read_bytes(&r, 4);
    xl_read_bytes(&r, xl_read_u8(&r));
    out->ticket_len = xl_tls_read_u16(&r);
    out->ticket = xl_read_bytes(&r, out->ticket_len);
    xl_tls_read_u16(&r);
    size_t type;
    xl_reader ext;
    while (xl_tls_next_extension(&r, &type, &ext)) {
        if (type != EXT_EARLY_DATA)
            continue;
        out->has_early_data = true;
        out->max_early_data = xl_read_u32(&ext);
    }
    return !r.failed;
}

/* ---- Saved sessions ---- */

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
    xl_session s = {.version = tls->version,
                    .allows_early = tls->allows_early && !tls->was_retried,
                    .arrived_ns = tls->arrived_ns,
                    .lifetime_s = tls->lifetime_s,
                    .alpn = {(const uint8_t *)tls->alpn, strlen(tls->alpn)},
                    .params = {tls->peer_params, tls->peer_params_len},
                    .tls = {data.data, data.size},
                    .application = {tls->application, tls->application_len},
                    .token = {tls->token, tls->token_len}};
    memcpy(s.trust, tls->credentials->trust, sizeof s.trust);
    hand_over(tls, &s);
    gnutls_memset(data.data, 0, data.size);
    gnutls_free(data.data);
}

/* A ticket carries 0-RTT data once, and a token is used once (RFC 9000 section 8.1.3). So both are removed from the
 * stored session, whatever becomes of this connection. */
static void spend(const xl_tls *tls) {
    xl_session rest = tls->session_in;
    if (!rest.allows_early && rest.token.len == 0)
        return;
    rest.allows_early = false;
    rest.token.len = 0;
    hand_over(tls, &rest);
}

/* A resumed handshake has no certificate, so a client that verifies resumes only what it verified with the same CAs. */
static bool is_trusted(const xl_credentials *c, const xl_session *s) {
    return !c->verify_peer || xl_is_equal(s->trust, c->trust, sizeof s->trust);
}

/* If the time of day is unknown or was set back, the TLS library alone decides. */
static bool is_fresh(const xl_session *s) {
    const uint64_t now = xl_tls_time_of_day_ns(), most = s->lifetime_s < TICKET_MOST_S ? s->lifetime_s : TICKET_MOST_S;
    return now == 0 || now < s->arrived_ns || (now - s->arrived_ns) / UINT64_C(1000000000) < most;
}

/* A session that cannot be read, is of another protocol or version, is not trusted or too old, is ignored: the
 * handshake is a full one. */
void xl_tls_load_session(xl_tls *tls) {
    tls->loaded = malloc(XL_SESSION_MAX_BYTES);
    if (!tls->loaded)
        return;
    const size_t len = tls->sessions->load(tls->sessions->user, tls->server_name, tls->loaded, XL_SESSION_MAX_BYTES);
    xl_session *s = &tls->session_in;
    const bool is_fit =
        len > 0 && len <= XL_SESSION_MAX_BYTES && xl_session_read(s, tls->loaded, len) && s->version == tls->version &&
        is_trusted(tls->credentials, s) && is_fresh(s) &&
        xl_tls_is_wanted(tls, &(gnutls_datum_t){(unsigned char *)s->alpn.at, (unsigned int)s->alpn.len});
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

/* GnuTLS leaves out a ticket that has expired, and must then not be asked for 0-RTT. */
bool xl_tls_may_offer_early(const xl_tls *tls) {
    const xl_session *s = &tls->session_in;
    const uint64_t now = xl_tls_time_of_day_ns();
    return tls->credentials->allows_early && tls->callbacks.early_keys && s->allows_early && now >= s->arrived_ns &&
           (now - s->arrived_ns) / UINT64_C(1000000000) + TICKET_MARGIN_S < s->lifetime_s;
}

/* ---- Data for the next connection ---- */

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
    return tls->session ? (gnutls_session_get_flags(tls->session) & GNUTLS_SFLAGS_EARLY_DATA) != 0 : tls->took_early;
}

/* 0-RTT data was sent under the protocol and the cipher of the session, so the handshake must have chosen the same (RFC
 * 8446 section 4.2.10). If the data was refused, only the protocol counts, because what was sent in one protocol means
 * nothing in another. */
bool xl_tls_early_data_fits(const xl_tls *tls) {
    xl_aead aead;
    if (!tls->offers_early)
        return true;
    const xl_session_part *alpn = &tls->session_in.alpn;
    const bool is_same = alpn->len == strlen(tls->alpn) && memcmp(alpn->at, tls->alpn, alpn->len) == 0;
    return is_same && (!xl_tls_early_is_accepted(tls) ||
                       (xl_tls_aead_of(gnutls_cipher_get(tls->session), &aead) == 0 && aead == tls->early_aead));
}

/* ---- Incoming tickets ---- */

/* Stores bytes of a NewSessionTicket. */
static int collect_ticket(xl_tls *tls, const uint8_t *data, size_t len) {
    if (xl_tls_reserve(tls, len) != 0)
        return -1;
    memcpy(tls->message + tls->message_len, data, len);
    tls->message_len += len;
    return 0;
}

/* A ticket that GnuTLS does not accept costs the session, not the connection. */
static int take_ticket(xl_tls *tls) {
    const size_t len = tls->message_len;
    xl_tls_ticket t;
    tls->message_len = 0;
    tls->tickets++;
    if (!xl_tls_read_ticket(tls->message, len, &t))
        return 0;
    if (t.has_early_data && t.max_early_data != QUIC_EARLY_DATA) { /* RFC 9001 section 4.6.1 */
        tls->is_violation = true;
        return xl_tls_fail(tls, GNUTLS_A_ILLEGAL_PARAMETER);
    }
    tls->allows_early = t.has_early_data;
    tls->lifetime_s = t.lifetime_s;
    if (gnutls_handshake_write(tls->session, GNUTLS_ENCRYPTION_LEVEL_APPLICATION, tls->message, len) < 0)
        return 0;
    tls->arrived_ns = xl_tls_time_of_day_ns(); /* not before the library's own timestamp */
    save_session(tls);
    return 0;
}

/* Processes the body of the message whose header was received, up to its end. */
static int take_ticket_body(xl_tls *tls, const uint8_t *data, size_t len) {
    tls->skip_left -= len;
    if (tls->message_len == 0)
        return 0;
    if (collect_ticket(tls, data, len) != 0)
        return -1;
    return tls->skip_left == 0 ? take_ticket(tls) : 0;
}

/* After the handshake only a server may send messages, and only NewSessionTicket. It is saved if sessions are kept,
 * else skipped. A KeyUpdate is a connection error (RFC 9001 section 6). */
int xl_tls_take_tickets(xl_tls *tls, const uint8_t *data, size_t len) {
    while (len > 0) {
        if (tls->skip_left > 0) {
            const size_t taken = len < tls->skip_left ? len : tls->skip_left;
            if (take_ticket_body(tls, data, taken) != 0)
                return -1;
            data += taken;
            len -= taken;
            continue;
        }
        /* A client is authenticated during the handshake or not at all (RFC 9001 section 4.4). */
        tls->is_violation |= tls->header_len == 0 && !tls->is_server && data[0] == GNUTLS_HANDSHAKE_CERTIFICATE_REQUEST;
        if (tls->header_len == 0 && (tls->is_server || data[0] != GNUTLS_HANDSHAKE_NEW_SESSION_TICKET))
            return xl_tls_fail(tls, GNUTLS_A_UNEXPECTED_MESSAGE);
        tls->header[tls->header_len++] = *data++;
        len--;
        if (tls->header_len < MESSAGE_HEADER)
            continue;
        tls->skip_left = xl_tls_body_len(tls->header);
        tls->header_len = 0;
        const bool is_kept =
            tls->sessions && tls->tickets < MAX_TICKETS && tls->skip_left > 0 && tls->skip_left <= MAX_TICKET_MESSAGE;
        if (is_kept && collect_ticket(tls, tls->header, MESSAGE_HEADER) != 0)
            return -1;
    }
    return 0;
}
