/* TLS 1.3 for QUIC through GnuTLS 3.7 (RFC 9001), packet and header protection, key update, Retry integrity. AES-GCM of
 * packets is intel-ipsec-mb's if possible (gcm.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

#define XL_AEAD_TAG 16

typedef enum { XL_LEVEL_INITIAL, XL_LEVEL_HANDSHAKE, XL_LEVEL_APP, XL_LEVEL_COUNT } xl_level;

/* ---- Keys of one direction at one level: AEAD key and IV, header protection key (RFC 9001 section 5). ---- */
typedef struct xl_keys xl_keys;
typedef enum { XL_AEAD_AES_128_GCM, XL_AEAD_AES_256_GCM, XL_AEAD_CHACHA20_POLY1305 } xl_aead;

/* version: XL_VERSION_1 or XL_VERSION_2. Each has its own labels, salts and Retry keys (RFC 9369 section 3.3). */
xl_keys *xl_keys_from_secret(uint32_t version, xl_aead, const uint8_t *secret, size_t len);
/* Initial keys of client and server for the client's first destination CID (RFC 9001 section 5.2). */
int xl_keys_initial(uint32_t version, const xl_cid *odcid, xl_keys **client, xl_keys **server);
/* The next generation: secret "quic ku", same header protection key (RFC 9001 section 6). Its ciphers are open, so its
 * first packet takes no longer than others. */
xl_keys *xl_keys_next(const xl_keys *);
void xl_keys_free(xl_keys *); /* wipes; NULL is fine */
/* For simulation only: from now on these keys, and the generations derived from them, neither encrypt nor protect
 * headers, and seal with a tag that costs nothing (xl_config.null_crypto). NULL is fine. */
void xl_keys_make_null(xl_keys *);

/* The AEAD nonce: IV xor (path ID as 32 bits, two zero bits, packet number as 62 bits). With path_id 0 it is RFC
 * 9001's. */
void xl_keys_nonce(const xl_keys *, uint64_t path_id, uint64_t pn, uint8_t nonce[12]);

/* Encrypts the payload in place, appends the tag, then applies header protection. The packet is [header up to
 * pn_offset][pn, pn_len bytes][payload, payload_len][16 bytes of room]. Returns the protected length, or 0, also once
 * the confidentiality limit is reached. pn_len + payload_len must be >= 4 (the caller pads). */
size_t xl_keys_protect(const xl_keys *, uint64_t path_id, uint64_t pn, uint8_t *packet, size_t pn_offset, size_t pn_len,
                       size_t payload_len);
/* Removes header protection from byte 0 and the packet number, in place. Sets *truncated_pn and *pn_len. Returns 0, or
 * -1 if the packet is too short for a sample. */
int xl_keys_unmask(const xl_keys *, uint8_t *packet, size_t packet_len, size_t pn_offset, uint64_t *truncated_pn,
                   size_t *pn_len);
/* Decrypts in place after xl_keys_unmask(). Returns the payload length, or -1 if authentication fails: the ciphertext
 * is then UNTOUCHED, so that another key phase can be tried. *payload points to pn_offset + pn_len. The caller counts
 * failures and closes the connection with AEAD_LIMIT_REACHED at the integrity limit. */
ssize_t xl_keys_open(const xl_keys *, uint64_t path_id, uint64_t pn, uint8_t *packet, size_t packet_len,
                     size_t pn_offset, size_t pn_len, uint8_t **payload);
uint64_t xl_keys_sealed_count(const xl_keys *);          /* packets protected with these keys */
uint64_t xl_keys_confidentiality_limit(const xl_keys *); /* RFC 9001 section 6.6 */
uint64_t xl_keys_integrity_limit(const xl_keys *);       /* over all keys of a connection */

/* Retry integrity tag over the Retry pseudo-packet (RFC 9001 section 5.8). */
int xl_retry_tag(uint32_t version, const xl_cid *odcid, const uint8_t *retry, size_t len_without_tag, uint8_t tag[16]);
/* Takes a time that does not depend on the bytes, so that it does not show how much of a guess was right. */
bool xl_is_equal(const uint8_t *a, const uint8_t *b, size_t len);

/* AEAD_AES_256_GCM for data that the peer returns to us. `sealed` has XL_AEAD_TAG bytes more than `plain`; `bound` is
 * authenticated, but not part of it. len: bytes of the input, `plain` or `sealed`. Returns 0 or -1. */
int xl_seal(const uint8_t key[32], const uint8_t nonce[12], const uint8_t *bound, size_t bound_len,
            const uint8_t *plain, size_t len, uint8_t *sealed);
int xl_unseal(const uint8_t key[32], const uint8_t nonce[12], const uint8_t *bound, size_t bound_len,
              const uint8_t *sealed, size_t len, uint8_t *plain);

/* First `len` <= 32 bytes of HMAC-SHA256(key, data): stateless reset tokens, address tokens. */
int xl_hmac(const uint8_t *key, size_t key_len, const uint8_t *data, size_t data_len, uint8_t *out, size_t len);

/* ---- The TLS handshake: CRYPTO bytes in and out. The caller puts them in order. ---- */
typedef struct xl_tls xl_tls;

typedef struct {
    void *user;
    /* Handshake bytes to be sent in CRYPTO frames at `level`. Return 0, or negative to fail the handshake. */
    int (*crypto_data)(void *user, xl_level level, const uint8_t *data, size_t len);
    /* New keys; ownership passes to the callee, whatever it returns. One is NULL if only the other became available. */
    int (*keys)(void *user, xl_level level, xl_keys *read, xl_keys *write);
    /* The peer's transport parameters (extension 0x39), raw; called once. Negative fails the handshake: a caller that
     * closes with TRANSPORT_PARAMETER_ERROR must remember that. */
    int (*peer_params)(void *user, const uint8_t *data, size_t len);
    /* The keys of 0-RTT packets: a client protects with them, a server opens. Ownership as above. NULL: 0-RTT is
     * neither offered nor accepted. A client gets them from xl_tls_start(), a server once it has accepted 0-RTT data.
     * */
    int (*early_keys)(void *user, xl_keys *);
    void (*keylog)(void *user, const char *line); /* may be NULL */
} xl_tls_callbacks;

/* version: QUIC version of the first packet. server_name: for a client only, a DNS name, or an IP address as text,
 * which is not sent as SNI; a client that verifies must have one. alpn: names separated by commas, the server's
 * preferred one first. params: our transport parameters, copied. Returns NULL on failure. The credentials must outlive
 * the session. No callback may call into the session, except xl_tls_set_params(). */
xl_tls *xl_tls_new(uint32_t version, bool is_server, xl_credentials *, const char *server_name, const char *alpn,
                   const uint8_t *params, size_t params_len, const xl_tls_callbacks *);
void xl_tls_free(xl_tls *);
bool xl_credentials_have_early(const xl_credentials *); /* 0-RTT is allowed */
bool xl_credentials_are_for(const xl_credentials *, bool is_server);
/* Whether it is a list of up to 8 names separated by commas, none empty, of at most 255 bytes in total. */
bool xl_tls_is_alpn_list(const char *);
/* QUIC version of the session that would be resumed with this server; 0: none. */
uint32_t xl_credentials_session_version(const xl_credentials *, const char *server_name);
/* Server, within peer_params(): replaces its transport parameters, now that the client's are known. 0 or negative. */
int xl_tls_set_params(xl_tls *, const uint8_t *params, size_t len);
/* Another version was negotiated: keys derived from now on, and saved sessions, are of it. */
void xl_tls_set_version(xl_tls *, uint32_t version);
/* Data that a client stores with a session: the server's transport parameters, a token of NEW_TOKEN, and data of the
 * application (at most 1024 bytes each of the latter two). Returns what is stored with the session that this connection
 * resumes; NULL: nothing. */
typedef enum { XL_TLS_PARAMS, XL_TLS_TOKEN, XL_TLS_APPLICATION } xl_tls_memory;
const uint8_t *xl_tls_remembered(const xl_tls *, xl_tls_memory, size_t *len);
/* Stores data with the session of this connection. Not for XL_TLS_PARAMS, which are stored without a call. */
void xl_tls_remember(xl_tls *, xl_tls_memory, const uint8_t *, size_t len);
bool xl_tls_early_is_accepted(const xl_tls *); /* server: valid once it has keys to answer; client: once complete */
/* Client: produces the ClientHello. Returns 0 or negative. */
int xl_tls_start(xl_tls *);
/* Feeds in-order CRYPTO bytes received at `level` and drives the handshake as far as it goes. Returns 0, or negative:
 * then xl_tls_alert() is the TLS alert to close with (CRYPTO_ERROR 0x100 + alert). A NewSessionTicket after the
 * handshake is accepted, and saved if the credentials keep sessions; a KeyUpdate message is an error (RFC 9001 section
 * 6). Bytes at another level than that of the newest read keys are an error too (unexpected_message), so the caller
 * must drop duplicates before. */
int xl_tls_receive(xl_tls *, xl_level level, const uint8_t *data, size_t len);
bool xl_tls_is_resumed(const xl_tls *);   /* once complete */
bool xl_tls_is_complete(const xl_tls *);  /* handshake complete in the sense of RFC 9001 section 4.1.1 */
bool xl_tls_is_violation(const xl_tls *); /* the failure is not one of TLS: close with PROTOCOL_VIOLATION */
uint8_t xl_tls_alert(const xl_tls *);
const char *xl_tls_alert_name(uint8_t alert); /* "Handshake failed"; "unknown" for a number without a name */
const char *xl_tls_alpn(const xl_tls *);      /* selected protocol, "" before */
