/* A server process's part in a deployment: how it makes connection IDs (QUIC-LB, xlink/quic_lb.h), and which worker
 * process of the server a packet belongs to.
 *
 * The CIDs of a server with workers end in a process octet. QUIC-LB does not encrypt it, because the kernel has to read
 * it (lib/driver/reuseport.c):
 *
 *     process octet = worker XOR low byte of H(first eight bytes of the CID)
 *
 * H is a hash keyed by the server's secret, so that an observer cannot tell which CIDs share a worker. The worker of a
 * destination CID is a function of the CID alone, whoever chose it:
 *
 *     process octet's worker                     if the CID has a known rotation and that configuration's length, and
 *                                                its process octet names a worker
 *     (H(first eight bytes) >> 8) mod workers    else
 *
 * Example: 4 workers, and first eight bytes for which H = 0x00001203. If worker 2 issues the CID, it ends in
 * 2 XOR 0x03 = 0x01. If a client chose it, it belongs to worker 0x12 mod 4 = 2.
 *
 * So all first packets of a client, 0-RTT included, reach the same worker although the client chose their CID. Later
 * packets carry CIDs of that worker. The kernel and the endpoint compute the same function. */
#ifndef XLINK_DEPLOYMENT_H
#define XLINK_DEPLOYMENT_H

#include "xlink/export.h"
#include "xlink/quic_lb.h"
#include "xlink/xlink.h"

XL_BEGIN_DECLS

#define XL_WORKERS_MAX         64
#define XL_HASHED_CID_BYTES    8 /* minimum CID length, for servers with workers and for clients (RFC 9000 7.2) */
#define XL_STATIC_SECRET_BYTES 32

typedef struct {
    uint32_t word[2];
} xl_hash_key;

/* Keys that all workers share and that survive a restart. They are derived from one secret. None of them reveals the
 * secret or another key. */
typedef struct {
    uint8_t reset[XL_STATIC_SECRET_BYTES]; /* stateless reset tokens (RFC 9000 section 10.3.2) */
    uint8_t retry[XL_STATIC_SECRET_BYTES]; /* tokens of Retry packets (section 8.1.4) */
    uint8_t ticket[XL_TICKET_KEY_BYTES];   /* session tickets: xl_credentials_issue_tickets() */
    xl_hash_key cid_hash;                  /* H */
    uint64_t balancer[2];                  /* a balancer's hashes: [0] connection IDs, [1] flows */
} xl_static_keys;

/* 0 or XL_ERR_CRYPTO. */
int xl_static_keys_from(const uint8_t secret[XL_STATIC_SECRET_BYTES], xl_static_keys *);

typedef struct xl_deployment {
    const xl_lb *lb; /* made with own_octets = 1 */
    uint8_t server_id[XL_LB_SERVER_ID_MAX];
    unsigned worker, workers; /* number of this process, 0 to workers - 1; how many there are, 1 to XL_WORKERS_MAX */
    xl_static_keys keys;      /* xl_static_keys_from() */
    /* Called with a datagram that belongs to another worker. The driver passes it to that worker's endpoint with
     * xl_datagram.forwarded set. NULL: such datagrams are dropped and never answered. */
    void (*forward)(void *user, unsigned worker, const xl_datagram *, const uint8_t *data);
    void *forward_user;
} xl_deployment;

/* Checks the configuration. Returns a phrase that describes its first error, or NULL. */
const char *xl_deployment_check(const xl_deployment *);

/* Makes a CID of this worker and returns its length. nonce: XL_LB_NONCE_MAX random bytes. If encryption fails, the CID
 * is unroutable (rotation 0b111), as that of a server without a configuration. */
size_t xl_deployment_make_cid(const xl_deployment *, const uint8_t *nonce, uint8_t random,
                              uint8_t cid[XL_MAX_CID_BYTES]);
/* Length of the CID in a short header, from the CID's first octet. */
size_t xl_deployment_cid_bytes(const xl_deployment *, uint8_t first_octet);
/* The worker that a destination CID belongs to. CIDs shorter than XL_HASHED_CID_BYTES belong to this worker. */
unsigned xl_deployment_worker_of(const xl_deployment *, const uint8_t *cid, size_t len);
/* Whether the CID has this server's ID and belongs to this worker, so that no other process can own a connection with
 * it. The endpoint sends stateless resets for such CIDs only (RFC 9000 section 21.11). The servers of a deployment
 * share the key of the reset tokens: a server that answered for the CIDs of others would reveal their tokens to anybody
 * who saw the CID. */
bool xl_deployment_is_own(const xl_deployment *, const uint8_t *cid, size_t len);

/* ---- For code that computes the worker elsewhere ---- */

/* H: one word of HalfSipHash-1-3 (Aumasson, Bernstein 2012) over two words in network byte order. */
uint32_t xl_cid_hash(xl_hash_key, const uint8_t cid[XL_HASHED_CID_BYTES]);

XL_END_DECLS

#endif
