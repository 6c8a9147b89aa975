/* Retry: a client proves that it receives packets at its address before the server keeps state for it (RFC 9000
 * sections 8.1.2 to 8.1.4 and 17.2.5). All state is in the token. */
#pragma once

#include "wire/packet.h"

#define XL_RETRY_KEY_BYTES   32
#define XL_RETRY_LIFETIME_US 10000000 /* lifetime of a token: a client answers within a round trip */
#define XL_RETRY_MAX_BYTES   128      /* size of the largest packet made here */

typedef enum {
    XL_TOKEN_NONE,    /* no token, or not one of ours: the client is new */
    XL_TOKEN_VALID,   /* one of ours, from this address, with the CID of our Retry, and in time */
    XL_TOKEN_INVALID, /* one of ours, but forged, from another address, or too old: section 8.1.3 */
} xl_token_verdict;

/* Writes the Retry that answers `initial` from `remote`. scid: the CID that the client must use from now on. `random`
 * fills unused bits; date: xl_endpoint_date(). Returns the length, 0 if cap is too small or the cryptography fails. */
size_t xl_retry_put(const uint8_t key[XL_RETRY_KEY_BYTES], const xl_packet_header *initial, const xl_addr *remote,
                    const xl_cid *scid, uint8_t random, uint64_t date, uint8_t *buf, size_t cap);
/* Checks the token of an Initial. If it is valid, *odcid is the destination CID of the client's very first packet. */
xl_token_verdict xl_retry_check(const uint8_t key[XL_RETRY_KEY_BYTES], const xl_packet_header *initial,
                                const xl_addr *remote, uint64_t date, xl_cid *odcid);
/* Writes the Initial with CONNECTION_CLOSE that answers an Initial without a connection: INVALID_TOKEN (section 8.1.3)
 * or CONNECTION_REFUSED (section 5.2.2). Returns the length, 0 as above. */
size_t xl_retry_put_refusal(const xl_packet_header *initial, uint64_t error_code, uint8_t *buf, size_t cap);
