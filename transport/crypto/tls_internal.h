/* Shared by the files of the TLS handshake: tls.c drives it, tls_sessions.c stores sessions for resumption,
 * tls_replay.c accepts 0-RTT data once. */
#pragma once

#include <gnutls/gnutls.h>

#include "crypto/credentials.h"
#include "crypto/crypto.h"
#include "crypto/session.h"
#include "wire/cursor.h"

#define MESSAGE_HEADER      4
#define ALPN_MAX            255 /* bytes of a whole list */
#define ALPNS_MAX           8
#define CLIENT_RANDOM_BYTES 32
#define QUIC_EARLY_DATA     UINT32_MAX /* the only value of max_early_data_size, RFC 9001 section 4.6.1 */

struct xl_tls {
    bool is_server, verify_peer, issues_tickets;
    bool complete, failed;
    bool peer_params_seen;
    bool alert_set;
    uint8_t alert;
    xl_level read_level;         /* level of the newest read keys: the only one at which messages are expected */
    gnutls_session_t session;    /* NULL on a server whose handshake is complete */
    bool is_resumed, took_early; /* properties of the session, once it is freed */
    xl_tls_callbacks callbacks;
    char *server_name;               /* NULL on a server */
    gnutls_datum_t alpns[ALPNS_MAX]; /* protocols that are offered or accepted; they point into alpn_list */
    unsigned int alpn_count;
    char alpn_list[ALPN_MAX + 1], alpn[ALPN_MAX + 1];
    uint8_t *params; /* our transport parameters */
    size_t params_len;
    uint8_t *message; /* the handshake message that is arriving */
    size_t message_len, message_cap;
    uint8_t header[MESSAGE_HEADER]; /* of the post-handshake message that is being skipped */
    size_t header_len, skip_left;
    uint32_t version; /* QUIC version, of labels and of saved sessions */
    xl_credentials *credentials;
    const xl_sessions *sessions; /* the credentials'; NULL: nothing is resumed */
    unsigned tickets;            /* number that was taken */
    uint8_t *peer_params;        /* as received, to be saved with a session */
    size_t peer_params_len;

    uint8_t *loaded; /* the session that is resumed: its bytes, and their parsed form */
    xl_session session_in;
    bool offers_early; /* client: 0-RTT keys were made */
    bool was_retried;  /* by a HelloRetryRequest: 0-RTT is refused, and later sessions with this server do not try it */
    xl_aead early_aead;
    const uint8_t *identity; /* server: the first ticket of the ClientHello that is being processed */
    size_t identity_len;
    /* Client: for the session that is saved. */
    uint64_t arrived_ns;
    uint32_t lifetime_s;
    bool allows_early;
    uint8_t *application, *token;
    size_t application_len, token_len;
    unsigned remembered; /* number of calls of xl_tls_remember(), which each save the session again */
    bool is_violation;
};

/* ---- tls.c ---- */

/* The session whose handshake is running, and whether it processes a ClientHello. GnuTLS's check of replays and its
 * clock do not name the session. */
extern _Thread_local xl_tls *xl_tls_driven;
extern _Thread_local bool xl_tls_takes_client_hello;

int xl_tls_fail(xl_tls *, uint8_t alert); /* returns -1; keeps the first alert */
int xl_tls_aead_of(gnutls_cipher_algorithm_t, xl_aead *);
bool xl_tls_is_wanted(const xl_tls *, const gnutls_datum_t *alpn);
int xl_tls_reserve(xl_tls *, size_t more); /* room for more bytes of the current message; 0 or -1 */
size_t xl_tls_body_len(const uint8_t header[MESSAGE_HEADER]);

/* ---- tls_sessions.c ---- */

/* The members of a NewSessionTicket: lifetime, age_add, nonce, ticket, extensions (RFC 8446 section 4.6.1). */
typedef struct {
    uint32_t lifetime_s;
    const uint8_t *ticket;
    size_t ticket_len;
    bool has_early_data;
    uint32_t max_early_data;
} xl_tls_ticket;

size_t xl_tls_read_u16(xl_reader *);
/* Reads the next of the extensions that fill the rest of a message (RFC 8446 section 4.2). False after the last one,
 * and at a truncated one, at which the reader fails. */
bool xl_tls_next_extension(xl_reader *, size_t *type, xl_reader *body);
bool xl_tls_read_ticket(const uint8_t *message, size_t len, xl_tls_ticket *);
/* Client: loads the session of an earlier connection, if one fits. */
void xl_tls_load_session(xl_tls *);
bool xl_tls_may_offer_early(const xl_tls *);
/* Whether the handshake has chosen what 0-RTT data assumed, if any was sent. */
bool xl_tls_early_data_fits(const xl_tls *);
/* Takes bytes of post-handshake messages. Returns 0 or -1. */
int xl_tls_take_tickets(xl_tls *, const uint8_t *data, size_t len);

/* ---- tls_replay.c ---- */

uint64_t xl_tls_time_of_day_ns(void); /* the clock by which GnuTLS judges the age of a ticket */
/* Server: remembers the ticket in this outgoing message. */
void xl_tls_remember_issued(const xl_tls *, const uint8_t *message, size_t len);
/* Server: finds the ticket that this ClientHello offers, if it is the only one. */
void xl_tls_find_identity(xl_tls *, const uint8_t *message, size_t len);
int xl_tls_accept_early_data(const xl_tls *);
