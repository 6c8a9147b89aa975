/* Packet headers: RFC 9000 section 17 (QUIC v1), RFC 9369 (v2), RFC 8999 (invariants). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/xlink.h"
#include "wire/cursor.h"

#define XL_VERSION_1 0x00000001u
#define XL_VERSION_2 0x6b3343cfu /* RFC 9369 */

typedef struct {
    uint8_t len;
    uint8_t id[XL_MAX_CID_BYTES];
} xl_cid;

bool xl_versions_has(xl_versions, uint32_t version);
bool xl_cid_equal(const xl_cid *, const xl_cid *);

typedef enum {
    XL_PACKET_INITIAL,
    XL_PACKET_0RTT,
    XL_PACKET_HANDSHAKE,
    XL_PACKET_RETRY,
    XL_PACKET_VERSION_NEGOTIATION,
    XL_PACKET_1RTT,
    XL_PACKET_OTHER_VERSION, /* a long header of another version; dcid, scid and version are set */
} xl_packet_type;

typedef struct {
    xl_packet_type type;
    uint32_t version;
    xl_cid dcid, scid;
    const uint8_t *token; /* Initial, Retry: points into the datagram; Version Negotiation: the versions, 4 bytes
                           * each */
    size_t token_len;
    size_t pn_offset;  /* offset of the (protected) packet number in the packet; Retry: of the integrity tag */
    bool has_quic_bit; /* may be false only if the receiver announced grease_quic_bit (RFC 9287) */
    size_t total_len;  /* length of this packet in the datagram; the next coalesced packet begins there */
} xl_packet_header;

/* Parses the unprotected part of the packet at data. short_dcid_len: the length of our own CIDs. Returns 0, or -1 on
 * anything malformed (CID over 20 bytes, length beyond the datagram, Retry without a token). The packet
 * may still be too short for header protection's sample. */
int xl_packet_parse(const uint8_t *data, size_t len, size_t short_dcid_len, xl_packet_header *out);

/* Initial, 0-RTT and Handshake: writes a long header up to and including the packet number. The Length field is two
 * bytes and is left for xl_packet_set_length. Returns the offset of the Length field within the packet through
 * *length_offset. */
void xl_packet_put_long(xl_writer *, uint32_t version, xl_packet_type, const xl_cid *dcid, const xl_cid *scid,
                        const uint8_t *token, size_t token_len, uint64_t pn, size_t pn_len, uint8_t *packet_start,
                        size_t *length_offset);
/* Length = packet number + payload + AEAD tag, RFC 9000 section 17.2. */
void xl_packet_set_length(uint8_t *packet, size_t length_offset, size_t length);
void xl_packet_put_short(xl_writer *, const xl_cid *dcid, bool spin, bool key_phase, uint64_t pn, size_t pn_len);
void xl_packet_put_cid(xl_writer *, const xl_cid *); /* length byte, then the CID */
/* Writes a Retry up to and including the token (RFC 9000 section 17.2.5); the integrity tag follows. `random` fills the
 * unused bits. */
void xl_packet_put_retry(xl_writer *, uint32_t version, const xl_cid *dcid, const xl_cid *scid, const uint8_t *token,
                         size_t token_len, uint8_t random);
/* Writes Version Negotiation (RFC 9000 section 17.2.1) with our versions and one reserved for greasing. dcid, scid: as
 * on the wire, i.e. the received packet's scid and dcid. Returns the length, 0 if cap is too small. */
size_t xl_packet_put_version_negotiation(uint8_t *buf, size_t cap, const xl_cid *dcid, const xl_cid *scid, xl_versions,
                                         uint8_t random);

/* Number of bytes that encode pn so that the peer can decode it (RFC 9000 appendix A.2). largest_acked UINT64_MAX =
 * none. */
size_t xl_packet_number_len(uint64_t pn, uint64_t largest_acked);
/* RFC 9000 appendix A.3. largest: highest packet number received in the space, UINT64_MAX = none. */
uint64_t xl_packet_number_decode(uint64_t largest, uint64_t truncated, size_t pn_len);
