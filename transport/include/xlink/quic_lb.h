/* QUIC-LB: connection IDs that a load balancer can route (draft-ietf-quic-load-balancers-21). Sans-IO.
 *
 *     first octet: config rotation (3 bits), length of the rest or random bits (5)
 *     server ID (1 to 15 bytes), nonce (4 to 18), together at most 19
 *     octets of the server's own use (here: the process octet of xlink/deployment.h), not for the balancer
 *
 * Without a key, server ID and nonce are in the clear. With a key they are encrypted: by one AES-128-ECB pass if they
 * have 16 bytes together, else by the four-pass Feistel network of section 5.4. */
#ifndef XLINK_QUIC_LB_H
#define XLINK_QUIC_LB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/export.h"
#include "xlink/xlink.h"

XL_BEGIN_DECLS

#define XL_LB_CONFIGS_MAX      7 /* rotation 0b111 is reserved for unroutable CIDs */
#define XL_LB_SERVER_ID_MAX    15
#define XL_LB_NONCE_MIN        4
#define XL_LB_NONCE_MAX        18
#define XL_LB_PLAINTEXT_MAX    19 /* server ID and nonce together */
#define XL_LB_UNROUTABLE       7  /* the reserved rotation */
#define XL_LB_KEY_BYTES        16
#define XL_LB_UNROUTABLE_BYTES 8 /* length of a CID from a server without a usable configuration */

typedef struct {
    uint8_t rotation; /* 0 to 6 */
    uint8_t server_id_bytes, nonce_bytes;
    bool encode_length; /* true: the first octet holds the number of octets after it; false: random bits */
    bool has_key;
    uint8_t key[XL_LB_KEY_BYTES];
} xl_lb_config;

/* Configurations in use at the same time, distinguished by their rotation bits. */
typedef struct xl_lb xl_lb;

/* Servers make CIDs with configs[0]. The other configurations decode older CIDs. own_octets: octets for the server's
 * own use at the end of each CID; 0 for a balancer, which does not read them. On failure returns NULL with *error =
 * XL_ERR_ARGUMENT (a length or rotation out of range, a rotation twice), XL_ERR_MEMORY or XL_ERR_CRYPTO. */
xl_lb *xl_lb_new(const xl_lb_config *configs, size_t count, size_t own_octets, int *error);
void xl_lb_free(xl_lb *); /* wipes the keys; accepts NULL */

size_t xl_lb_config_count(const xl_lb *);
const xl_lb_config *xl_lb_config_at(const xl_lb *, size_t index);

/* Length of a CID with this first octet, own octets included. 0 if no configuration has its rotation. */
size_t xl_lb_cid_bytes(const xl_lb *, uint8_t first_octet);

/* Writes a CID of configs[0], without the own octets, which come after it. `random` supplies the low five bits of the
 * first octet if they do not encode the length. A nonce must not be used twice with the same server ID and key. Returns
 * the number of bytes written, or XL_ERR_CRYPTO. */
int xl_lb_encode(const xl_lb *, const uint8_t *server_id, const uint8_t *nonce, uint8_t random,
                 uint8_t cid[XL_MAX_CID_BYTES]);

/* Decodes the server ID of a CID. Returns its length, or XL_ERR_ARGUMENT if the CID is unroutable (unknown rotation, or
 * too short). Any other bytes decode to some server ID; the caller must check that the server exists. len may exceed
 * the length of the CID, as in a short header, which does not carry it. */
int xl_lb_decode(const xl_lb *, const uint8_t *cid, size_t len, uint8_t server_id[XL_LB_SERVER_ID_MAX]);

XL_END_DECLS

#endif
