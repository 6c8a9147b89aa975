/* What a server process has to know of the deployment that it is part of: how its connection IDs are made (QUIC-LB, see
 * xlink/quic_lb.h), and which worker process of the server a packet belongs to.
 *
 * The CIDs of a server with workers end in a process octet, the last one, outside of what QUIC-LB encrypts: the kernel
 * has to read it (driver/reuseport.c). It is
 *
 *     process octet = worker XOR low byte of H(first eight bytes of the CID)
 *
 * where H is a hash keyed by the server's secret, so that an observer cannot tell which CIDs share a worker. The worker
 * of any destination CID, whoever chose it, is a function of the CID alone:
 *
 *     the CID has a known rotation and that configuration's length, and its process octet names a worker: that one
 *     else: (H(first eight bytes) >> 8) mod number of workers
 *
 * So the first packets of a client, which carry CIDs of its own choice, all reach one worker, 0-RTT included; the
 * packets that follow carry that worker's CIDs. The kernel and the endpoint compute the same function. */
#ifndef XLINK_DEPLOYMENT_H
#define XLINK_DEPLOYMENT_H

#include "xlink/export.h"
#include "xlink/quic_lb.h"
#include "xlink/xlink.h"

XL_BEGIN_DECLS

#define XL_WORKERS_MAX         64
#define XL_HASHED_CID_BYTES    8 /* a server with workers issues no shorter CIDs; clients may not (RFC 9000 7.2) */
#define XL_STATIC_SECRET_BYTES 32

typedef struct {
    uint32_t word[2];
} xl_hash_key;

/* The keys of what is the same in all workers and after a restart. They follow from one secret, and tell nothing of it
 * or of each other. */
typedef struct {
    uint8_t reset[XL_STATIC_SECRET_BYTES]; /* of stateless reset tokens (RFC 9000 section 10.3.2) */
    uint8_t retry[XL_STATIC_SECRET_BYTES]; /* of the tokens of Retry packets (section 8.1.4) */
    xl_hash_key cid_hash;                  /* of H */
    uint64_t balancer[2];                  /* of a balancer's hashes: of connection IDs, of its flows */
} xl_static_keys;

/* 0 or XL_ERR_CRYPTO. */
int xl_static_keys_from(const uint8_t secret[XL_STATIC_SECRET_BYTES], xl_static_keys *);

typedef struct xl_deployment {
    const xl_lb *lb; /* with one own octet */
    uint8_t server_id[XL_LB_SERVER_ID_MAX];
    unsigned worker, workers; /* this process, 0 to workers - 1; their number, 1 to XL_WORKERS_MAX */
    xl_static_keys keys;      /* of the secret: xl_static_keys_from() */
    /* Takes a datagram that belongs to another worker: whoever drives the endpoint passes it on, and hands it in there
     * with xl_datagram.forwarded. May be NULL: such datagrams are dropped, never answered. */
    void (*forward)(void *user, unsigned worker, const xl_datagram *, const uint8_t *data);
    void *forward_user;
} xl_deployment;

/* What is wrong with it, NULL for nothing: a phrase for the one who configured it. */
const char *xl_deployment_check(const xl_deployment *);

/* A CID of this worker: returns its length. nonce: XL_LB_NONCE_MAX random bytes. Where encryption fails the CID is one
 * that balancers cannot route (rotation 0b111), as of a server without configuration. */
size_t xl_deployment_make_cid(const xl_deployment *, const uint8_t *nonce, uint8_t random,
                              uint8_t cid[XL_MAX_CID_BYTES]);
/* Length of the CID of a short header that begins with this octet. */
size_t xl_deployment_cid_bytes(const xl_deployment *, uint8_t first_octet);
/* The worker that a destination CID belongs to; of one shorter than XL_HASHED_CID_BYTES: this one. */
unsigned xl_deployment_worker_of(const xl_deployment *, const uint8_t *cid, size_t len);
/* Whether no other process than this one can have a connection with this CID: it has this server's ID, and belongs to
 * this worker. The servers of a deployment share the secret that stateless reset tokens follow from, so each could make
 * the token of another's CID, for anybody who saw the CID: it answers for its own only (RFC 9000 section 21.11). */
bool xl_deployment_is_own(const xl_deployment *, const uint8_t *cid, size_t len);

/* ---- For whoever computes the function elsewhere ---- */

/* H: one word of HalfSipHash-1-3 (Aumasson, Bernstein 2012) over two words in network byte order. */
uint32_t xl_cid_hash(xl_hash_key, const uint8_t cid[XL_HASHED_CID_BYTES]);

XL_END_DECLS

#endif
