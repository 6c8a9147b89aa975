/* Private to this room: what a client stores of a connection to resume it, as bytes that the application keeps. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const uint8_t *at;
    size_t len;
} xl_session_part;

#define XL_TRUST_BYTES 16

typedef struct {
    uint32_t version;              /* QUIC version: a session is valid for the same one only (RFC 9369 section 5) */
    bool allows_early;             /* its ticket may carry 0-RTT data, once */
    uint8_t trust[XL_TRUST_BYTES]; /* what the server's certificate was verified against: xl_credentials.trust */
    uint64_t arrived_ns;           /* time of day at which the ticket came */
    uint32_t lifetime_s;           /* of the ticket */
    xl_session_part alpn;          /* selected protocol */
    xl_session_part params, tls;   /* the server's transport parameters; the TLS library's data */
    xl_session_part application;   /* data of the application: the server's HTTP/3 settings */
    xl_session_part token;         /* of NEW_TOKEN, for the next connection */
} xl_session;

/* Returns the length, 0 if it does not fit into cap. */
size_t xl_session_write(const xl_session *, uint8_t *buf, size_t cap);
/* Writes a checksum into the last 16 of these bytes. False: they are too few, or the cryptography fails. */
bool xl_session_seal(uint8_t *bytes, size_t len);
/* Parses a session. Its parts point into bytes. False: damaged, or of another form. */
bool xl_session_read(xl_session *, const uint8_t *bytes, size_t len);
