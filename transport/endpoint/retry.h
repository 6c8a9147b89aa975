/* Retry: a client shows that it receives what is sent to its address, before the server keeps anything of it (RFC 9000
 * sections 8.1.2 to 8.1.4 and 17.2.5). The server remembers nothing either: all is in the token. */
#ifndef XL_ENDPOINT_RETRY_H
#define XL_ENDPOINT_RETRY_H

#include "wire/packet.h"

#define XL_RETRY_KEY_BYTES   32
#define XL_RETRY_LIFETIME_US 10000000 /* of a token: a client answers within a round trip */
#define XL_RETRY_MAX_BYTES   128      /* of any packet that is made here */

typedef enum {
    XL_TOKEN_NONE,    /* no token, or not one of ours: the client is new */
    XL_TOKEN_VALID,   /* it came from this address with the CID of our Retry, and in time */
    XL_TOKEN_INVALID, /* one of ours, but forged, of another address, or too old: section 8.1.3 */
} xl_token_verdict;

/* The Retry that answers `initial` from `remote`; scid: the CID that the client is to send to from now on. `random`
 * fills bits without meaning; date: xl_endpoint_date(). Returns its length, 0 when cap is short or the cryptography
 * fails. */
size_t xl_retry_put(const uint8_t key[XL_RETRY_KEY_BYTES], const xl_packet_header *initial, const xl_addr *remote,
                    const xl_cid *scid, uint8_t random, uint64_t date, uint8_t *buf, size_t cap);
/* The verdict on an Initial's token. When valid, *odcid is the CID that the client's very first packet went to. */
xl_token_verdict xl_retry_check(const uint8_t key[XL_RETRY_KEY_BYTES], const xl_packet_header *initial,
                                const xl_addr *remote, uint64_t date, xl_cid *odcid);
/* The Initial with CONNECTION_CLOSE that answers an Initial without a connection: INVALID_TOKEN (section 8.1.3) or
 * CONNECTION_REFUSED (section 5.2.2). Returns its length, 0 as above. */
size_t xl_retry_put_refusal(const xl_packet_header *initial, uint64_t error_code, uint8_t *buf, size_t cap);

#endif
