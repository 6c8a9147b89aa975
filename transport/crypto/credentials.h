/* Private to this room: the part of xl_credentials that TLS sessions need. */
#pragma once

#include <stdbool.h>

#include <gnutls/gnutls.h>

#include "crypto/outstanding.h"
#include "crypto/session.h"
#include "xlink/xlink.h"

struct xl_credentials {
    bool is_server;
    bool verify_peer;              /* client: check the server's chain and name against the CA certificates */
    uint8_t trust[XL_TRUST_BYTES]; /* client that verifies: hash of the CA certificates' text; others: zeros */
    gnutls_certificate_credentials_t certificates;
    gnutls_priority_t priority;   /* TLS 1.3 with the cipher suites and groups of this library, X25519 first */
    gnutls_priority_t p256_first; /* the same with P-256 first */
    bool issues_tickets;          /* server */
    uint8_t ticket_key[XL_TICKET_KEY_BYTES];
    bool allows_early;                /* 0-RTT: a client offers it, a server accepts it */
    gnutls_anti_replay_t anti_replay; /* server; NULL: no 0-RTT */
    xl_outstanding *outstanding;
    xl_sessions sessions; /* client: load is NULL if nothing is resumed */
};
