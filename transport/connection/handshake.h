/* The handshake: TLS, the keys of each level, transport parameters, Retry. */
#ifndef XL_CONNECTION_HANDSHAKE_H
#define XL_CONNECTION_HANDSHAKE_H

#include "crypto/crypto.h"
#include "path/path.h"
#include "stream/receive.h"
#include "stream/send.h"
#include "wire/packet.h"
#include "xlink/xlink.h"

#define XL_CRYPTO_BUFFER 65536
/* The longest PTO before the handshake is confirmed. An RTT sample of a path that was dark for seconds would make it
 * many times longer than the outage, and no second sample corrects it. */
#define XL_HANDSHAKE_PTO_CAP_US 2000000

typedef struct {
    xl_keys *read, *write;
    xl_send send; /* CRYPTO */
    xl_recv recv;
    uint64_t resent_to; /* a probe sends again what follows, then from the first byte that is not acknowledged */
} xl_level_state;

typedef struct {
    xl_tls *tls;
    bool is_complete, is_confirmed, done_pending, token_pending, peer_params_seen;
    bool is_reported;                   /* XL_EVENT_CONNECTED was emitted */
    bool address_validated_by_peer;     /* client: the server surely has our address (RFC 9002 6.2.2.1) */
    uint32_t version, original_version; /* in use; of the client's first packet */
    xl_keys *original_read;             /* server: of Initial packets of the original version, when another is in use */
    xl_keys *candidate_read;            /* client: of Initial packets of a version that the server may choose */
    uint32_t candidate_version;
    xl_addr server;      /* client: the server's address during the handshake */
    xl_cid initial_dcid; /* what the Initial keys are made from */
    xl_cid odcid, initial_scid_peer, retry_scid;
    bool has_scid_peer; /* initial_scid_peer is known; it may have no bytes */
    bool has_retry;
    uint8_t *token; /* of a Retry, or of NEW_TOKEN of the session before */
    size_t token_len;
    xl_addr token_for; /* server: the client's address that its newest token of NEW_TOKEN is for; family 0: none yet */
    uint64_t deadline; /* a handshake that is not confirmed by then is given up; XL_NEVER once it is */
} xl_handshake;

int xl_conn_make_tls(xl_connection *, const char *server_name);
int xl_conn_install_initial_keys(xl_connection *, const xl_cid *dcid);
/* Client: what NEW_TOKEN of an earlier connection brought goes with the first packets. */
void xl_conn_use_remembered_token(xl_connection *);
/* Server: the client has proven the path's address. Where it is a new one, NEW_TOKEN follows (RFC 9000 sections 8.1.3
 * and 9.3). With multipath for the first path alone, on which the next connection begins: a client keeps the newest. */
void xl_conn_offer_token(xl_connection *, const xl_path *);
void xl_conn_crypto_received(xl_connection *, xl_level);
void xl_conn_discard_level(xl_connection *, xl_level);
/* Frees what discarded levels still hold. Not while a packet is being taken or made. */
void xl_conn_release_levels(xl_connection *);
void xl_conn_confirm_handshake(xl_connection *);
void xl_conn_retry(xl_connection *, const xl_packet_header *, const uint8_t *packet, size_t len);

#endif
