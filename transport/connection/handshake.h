/* The handshake: TLS, the keys of each level, transport parameters, Retry. */
#pragma once

#include "crypto/crypto.h"
#include "path/path.h"
#include "stream/receive.h"
#include "stream/send.h"
#include "wire/packet.h"
#include "xlink/xlink.h"

#define XL_CRYPTO_BUFFER 65536
/* The longest PTO before the handshake is confirmed. An RTT sample of a path that was dark for seconds would make the
 * PTO many times longer than the outage, and no second sample would correct it. */
#define XL_HANDSHAKE_PTO_CAP_US 2000000

typedef struct {
    xl_keys *read, *write;
    xl_send send; /* CRYPTO */
    xl_recv recv;
    uint64_t resent_to; /* a probe sends what follows, then starts again at the first unacknowledged byte */
} xl_level_state;

typedef struct {
    xl_tls *tls;
    bool is_complete, is_confirmed, done_pending, token_pending, peer_params_seen;
    bool address_validated_by_peer;     /* client: the server has validated our address (RFC 9002 6.2.2.1) */
    uint32_t version, original_version; /* in use; of the client's first packet */
    xl_keys *original_read;             /* server: for Initial packets of the original version, if another is in use */
    xl_keys *candidate_read;            /* client: for Initial packets of a version that the server may choose */
    uint32_t candidate_version;
    xl_addr server;      /* client: the server's address during the handshake */
    xl_cid initial_dcid; /* source of the Initial keys */
    xl_cid odcid, initial_scid_peer, retry_scid;
    bool has_scid_peer; /* initial_scid_peer is known; it may have no bytes */
    bool has_retry;
    uint8_t *token; /* of a Retry, or of NEW_TOKEN in the previous session */
    size_t token_len;
    xl_addr token_for; /* server: client address of the latest NEW_TOKEN token; family 0: none yet */
    uint64_t deadline; /* a handshake that is not confirmed by then fails; XL_NEVER: it is confirmed */
} xl_handshake;

int xl_conn_make_tls(xl_connection *, const char *server_name);
int xl_conn_install_initial_keys(xl_connection *, const xl_cid *dcid);
/* Client: a NEW_TOKEN token of an earlier connection is sent with the first packets. */
void xl_conn_use_remembered_token(xl_connection *);
/* Server: the client has proven the path's address. If the address is new, NEW_TOKEN is due (RFC 9000 sections 8.1.3
 * and 9.3). With multipath only for the first path, on which the next connection will begin, because a client keeps
 * only the latest token. */
void xl_conn_offer_token(xl_connection *, const xl_path *);
void xl_conn_crypto_received(xl_connection *, xl_level);
void xl_conn_discard_level(xl_connection *, xl_level);
/* Frees what discarded levels still hold. Not while a packet is being processed or built. */
void xl_conn_release_levels(xl_connection *);
void xl_conn_confirm_handshake(xl_connection *);
void xl_conn_retry(xl_connection *, const xl_packet_header *, const uint8_t *packet, size_t len);
