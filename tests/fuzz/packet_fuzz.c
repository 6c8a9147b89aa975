/* Packet headers, coalesced or not. Properties: a parsed packet is within the datagram; a header that is written again
 * is parsed as the same; packet numbers are decoded correctly; forged Retry tokens are refused. */
#include "tests/fuzz/input.h"
#include "crypto/crypto.h"
#include "endpoint/retry.h"
#include "wire/frame.h"
#include "wire/packet.h"

#define OWN_CID_BYTES 8

static void check_numbered(const xl_packet_header *h, fuzz_input *numbers) {
    uint8_t room[4096];
    size_t length_at, pn_len = 1 + fuzz_u8(numbers) % 4;
    uint64_t pn = fuzz_number(numbers) & XL_VARINT_MAX;
    xl_packet_header again;
    if (h->token_len > 2048)
        return;
    xl_writer w = xl_writer_of(room, sizeof room);
    xl_packet_put_long(&w, h->version, h->type, &h->dcid, &h->scid, h->token, h->token_len, pn, pn_len, room,
                       &length_at);
    FUZZ_CHECK(!w.failed);
    xl_packet_set_length(room, length_at, pn_len + XL_AEAD_TAG);
    FUZZ_CHECK(xl_packet_parse(room, (size_t)(w.p - room) + XL_AEAD_TAG, OWN_CID_BYTES, &again) == 0);
    FUZZ_CHECK(again.type == h->type && xl_cid_equal(&again.dcid, &h->dcid) && xl_cid_equal(&again.scid, &h->scid));
    FUZZ_CHECK(
        h->type != XL_PACKET_INITIAL ||
        (again.token_len == h->token_len && (h->token_len == 0 || memcmp(again.token, h->token, h->token_len) == 0)));
    FUZZ_CHECK(again.pn_offset == (size_t)(w.p - room) - pn_len && again.total_len == again.pn_offset + pn_len + 16);
}

static void check_token(const xl_packet_header *h, const xl_addr *from) {
    const uint8_t key[XL_RETRY_KEY_BYTES] = {1, 2, 3};
    uint8_t room[XL_RETRY_MAX_BYTES];
    xl_cid odcid;
    FUZZ_CHECK(xl_retry_check(key, h, from, 1000, &odcid) !=
               XL_TOKEN_VALID); /* an input cannot contain a valid token */
    xl_packet_header retry, initial = *h;
    size_t n = xl_retry_put(key, h, from, &(xl_cid){.len = 8}, 0x5a, 1000, room, sizeof room);
    if (n == 0)
        return;
    FUZZ_CHECK(xl_packet_parse(room, n, OWN_CID_BYTES, &retry) == 0 && retry.type == XL_PACKET_RETRY);
    initial.token = retry.token;
    initial.token_len = retry.token_len;
    initial.dcid = (xl_cid){.len = 8};
    FUZZ_CHECK(xl_retry_check(key, &initial, from, 2000, &odcid) == XL_TOKEN_VALID && xl_cid_equal(&odcid, &h->dcid));
    FUZZ_CHECK(xl_retry_check(key, &initial, from, 2000 + XL_RETRY_LIFETIME_US, &odcid) == XL_TOKEN_INVALID);
    uint8_t *bent = fuzz_copy(retry.token, retry.token_len);
    bent[h->dcid.len % retry.token_len] ^= 0x10;
    initial.token = bent;
    FUZZ_CHECK(xl_retry_check(key, &initial, from, 2000, &odcid) != XL_TOKEN_VALID);
    free(bent);
    FUZZ_CHECK(xl_retry_put_refusal(h, XL_QERR_INVALID_TOKEN, room, sizeof room) > 0);
}

static void check_version_negotiation(const xl_packet_header *h, uint8_t random) {
    uint8_t room[128];
    xl_packet_header again;
    size_t n = xl_packet_put_version_negotiation(room, sizeof room, &h->scid, &h->dcid, XL_VERSIONS_BOTH, random);
    FUZZ_CHECK(n > 0 && xl_packet_parse(room, n, OWN_CID_BYTES, &again) == 0);
    FUZZ_CHECK(again.type == XL_PACKET_VERSION_NEGOTIATION && again.token_len % 4 == 0);
    FUZZ_CHECK(xl_cid_equal(&again.dcid, &h->scid) && xl_cid_equal(&again.scid, &h->dcid));
}

static void check_packet_number(fuzz_input *in) {
    uint64_t acked = fuzz_number(in) & XL_VARINT_MAX, ahead = fuzz_number(in) & 0x3fffffff;
    uint64_t pn = acked + 1 + ahead;
    if (pn > XL_VARINT_MAX)
        return;
    size_t len = xl_packet_number_len(pn, acked);
    FUZZ_CHECK(len >= 1 && len <= 4);
    uint64_t truncated = pn & ((UINT64_C(1) << (8 * len)) - 1);
    FUZZ_CHECK(xl_packet_number_decode(acked, truncated, len) ==
               pn); /* the peer has received at least what it acknowledged */
    FUZZ_CHECK(xl_packet_number_decode(pn - 1, truncated, len) == pn);
}

/* Checks that a packet of the input is never decrypted, and that a protected packet is decrypted once. */
static void check_protection(const xl_packet_header *h, const uint8_t *packet) {
    xl_keys *client, *server;
    uint64_t truncated;
    size_t pn_len;
    uint8_t *payload;
    if (h->type != XL_PACKET_INITIAL || xl_keys_initial(XL_VERSION_1, &h->dcid, &client, &server) != 0)
        return;
    uint8_t *copy = fuzz_copy(packet, h->total_len);
    if (xl_keys_unmask(server, copy, h->total_len, h->pn_offset, &truncated, &pn_len) == 0) {
        FUZZ_CHECK(pn_len >= 1 && pn_len <= 4);
        ssize_t n = xl_keys_open(server, 0, truncated, copy, h->total_len, h->pn_offset, pn_len, &payload);
        FUZZ_CHECK(n < 0 || payload + n + XL_AEAD_TAG == copy + h->total_len);
        fuzz_note_number((uint64_t)n);
    }
    free(copy);
    xl_keys_free(client);
    xl_keys_free(server);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = fuzz_input_of(data, size);
    xl_addr from = {.family = fuzz_bool(&in) ? 6 : 4};
    from.port = fuzz_u16(&in);
    size_t own = fuzz_u8(&in) % (XL_MAX_CID_BYTES + 1);
    const uint8_t *p = in.p;
    size_t left = fuzz_left(&in);
    xl_packet_header h;
    check_packet_number(&in);
    for (int packets = 0; left > 0 && packets < 16 && xl_packet_parse(p, left, own, &h) == 0; packets++) {
        FUZZ_CHECK(h.total_len > 0 && h.total_len <= left && h.pn_offset <= h.total_len);
        FUZZ_CHECK(h.dcid.len <= XL_MAX_CID_BYTES && h.scid.len <= XL_MAX_CID_BYTES);
        FUZZ_CHECK(h.token_len == 0 || (h.token >= p && h.token + h.token_len <= p + h.total_len));
        fuzz_note_number(h.type);
        if (h.type == XL_PACKET_INITIAL || h.type == XL_PACKET_HANDSHAKE)
            check_numbered(&h, &in);
        if (h.type == XL_PACKET_INITIAL)
            check_token(&h, &from);
        if (h.type == XL_PACKET_RETRY) {
            uint8_t tag[16];
            FUZZ_CHECK(xl_retry_tag(XL_VERSION_1, &h.dcid, p, h.total_len - 16, tag) == 0 || h.total_len > 2048);
            fuzz_note(tag, sizeof tag);
        }
        if (h.type != XL_PACKET_1RTT)
            check_version_negotiation(&h, p[0]);
        check_protection(&h, p);
        p += h.total_len;
        left -= h.total_len;
    }
    return 0;
}
