/* QUIC-LB: connection IDs that a load balancer can route (draft-ietf-quic-load-balancers-21). Sans-IO.
 *
 *     first octet: config rotation (3 bits), length of the rest or random bits (5)
 *     server ID (1 to 15 bytes), nonce (4 to 18), together at most 19
 *     octets of the server's own use (here: the process octet of xlink/deployment.h), not for the balancer
 *
 * Without a key server ID and nonce are in the clear; with one they are encrypted, by one AES-128-ECB pass where they
 * are 16 bytes together, else by the four-pass Feistel network of section 5.4. */
#ifndef XLINK_QUIC_LB_H
#define XLINK_QUIC_LB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/export.h"
#include "xlink/xlink.h"

XL_BEGIN_DECLS

#define XL_LB_CONFIGS_MAX      7 /* rotation 0b111 is reserved: not routable */
#define XL_LB_SERVER_ID_MAX    15
#define XL_LB_NONCE_MIN        4
#define XL_LB_NONCE_MAX        18
#define XL_LB_PLAINTEXT_MAX    19 /* server ID and nonce together */
#define XL_LB_UNROUTABLE       7  /* the reserved rotation */
#define XL_LB_KEY_BYTES        16
#define XL_LB_UNROUTABLE_BYTES 8 /* of a CID that a server without a usable configuration issues */

typedef struct {
    uint8_t rotation; /* 0 to 6 */
    uint8_t server_id_bytes, nonce_bytes;
    bool encode_length; /* the first octet says how many follow; else its five bits are random */
    bool has_key;
    uint8_t key[XL_LB_KEY_BYTES];
} xl_lb_config;

/* Configurations that are in use side by side, told apart by their rotation bits. */
typedef struct xl_lb xl_lb;

/* Servers issue CIDs by configs[0]; the others are of CIDs that are still about. own_octets: bytes of the server's own
 * use at the end of each CID, 0 for a balancer, which does not look at them. NULL with *error = XL_ERR_ARGUMENT (a
 * length or rotation out of range, a rotation twice), XL_ERR_MEMORY or XL_ERR_CRYPTO. */
xl_lb *xl_lb_new(const xl_lb_config *configs, size_t count, size_t own_octets, int *error);
void xl_lb_free(xl_lb *); /* wipes the keys; NULL is fine */

size_t xl_lb_config_count(const xl_lb *);
const xl_lb_config *xl_lb_config_at(const xl_lb *, size_t index);

/* Length, own octets included, of the CIDs whose first octet this is; 0 when no configuration has its rotation. */
size_t xl_lb_cid_bytes(const xl_lb *, uint8_t first_octet);

/* Writes a CID by configs[0] but for the own octets, which follow. `random` gives the low five bits of the first octet
 * where they do not tell the length. A nonce must not come twice with one server ID and key. Returns the bytes written,
 * or XL_ERR_CRYPTO. */
int xl_lb_encode(const xl_lb *, const uint8_t *server_id, const uint8_t *nonce, uint8_t random,
                 uint8_t cid[XL_MAX_CID_BYTES]);

/* The server ID of a CID: returns its length, or XL_ERR_ARGUMENT when the CID is not routable: unknown rotation, or too
 * short. Any bytes decode to some server ID: whether there is such a server the caller knows. cid may have more bytes
 * than the CID, as with a short header, whose CID has no length. */
int xl_lb_decode(const xl_lb *, const uint8_t *cid, size_t len, uint8_t server_id[XL_LB_SERVER_ID_MAX]);

XL_END_DECLS

#endif
