#include "endpoint/retry.h"

#include <string.h>

#include "crypto/crypto.h"
#include "wire/frame.h"

/* A token is: kind, time of issue, odcid with its length, MAC. The MAC also covers the client's address and the CID of
 * the Retry, which the client's next packets show again. */
#define TOKEN_KIND  0x52 /* first byte; another server's token has it only by chance */
#define MAC_BYTES   16
#define TOKEN_LEAST (1 + 8 + 1 + MAC_BYTES)
#define TOKEN_MOST  (TOKEN_LEAST + XL_MAX_CID_BYTES)
#define ADDR_BYTES  (1 + 16 + 2)

static void put_u64(xl_writer *w, uint64_t v) {
    xl_write_u32(w, (uint32_t)(v >> 32));
    xl_write_u32(w, (uint32_t)v);
}

static int token_mac(const uint8_t *key, const uint8_t *token, size_t len, const xl_addr *remote, const xl_cid *scid,
                     uint8_t mac[MAC_BYTES]) {
    uint8_t covered[TOKEN_MOST + ADDR_BYTES + 1 + XL_MAX_CID_BYTES];
    xl_writer w = xl_writer_of(covered, sizeof covered);
    xl_write_bytes(&w, token, len);
    xl_write_u8(&w, remote->family);
    xl_write_bytes(&w, remote->ip, remote->family == 4 ? 4 : 16);
    xl_write_u16(&w, remote->port);
    xl_packet_put_cid(&w, scid);
    return w.failed ? -1 : xl_hmac(key, XL_RETRY_KEY_BYTES, covered, (size_t)(w.p - covered), mac, MAC_BYTES);
}

size_t xl_retry_put(const uint8_t key[XL_RETRY_KEY_BYTES], const xl_packet_header *initial, const xl_addr *remote,
                    const xl_cid *scid, uint8_t random, uint64_t date, uint8_t *buf, size_t cap) {
    uint8_t token[TOKEN_MOST], mac[MAC_BYTES], tag[XL_AEAD_TAG];
    xl_writer t = xl_writer_of(token, sizeof token);
    xl_write_u8(&t, TOKEN_KIND);
    put_u64(&t, date);
    xl_packet_put_cid(&t, &initial->dcid);
    if (t.failed || token_mac(key, token, (size_t)(t.p - token), remote, scid, mac) != 0)
        return 0;
    xl_write_bytes(&t, mac, MAC_BYTES);
    xl_writer w = xl_writer_of(buf, cap);
    xl_packet_put_retry(&w, initial->version, &initial->scid, scid, token, (size_t)(t.p - token), random);
    if (t.failed || w.failed || xl_retry_tag(initial->version, &initial->dcid, buf, (size_t)(w.p - buf), tag) != 0)
        return 0;
    xl_write_bytes(&w, tag, sizeof tag);
    return w.failed ? 0 : (size_t)(w.p - buf);
}

xl_token_verdict xl_retry_check(const uint8_t key[XL_RETRY_KEY_BYTES], const xl_packet_header *initial,
                                const xl_addr *remote, uint64_t date, xl_cid *odcid) {
    const uint8_t *token = initial->token;
    if (initial->token_len < TOKEN_LEAST || initial->token_len > TOKEN_MOST || token[0] != TOKEN_KIND)
        return XL_TOKEN_NONE;
    size_t len = initial->token_len - MAC_BYTES;
    xl_reader r = xl_reader_of(token + 1, len - 1);
    uint64_t issued = (uint64_t)xl_read_u32(&r) << 32;
    issued |= xl_read_u32(&r);
    odcid->len = xl_read_u8(&r);
    if (odcid->len != xl_reader_left(&r))
        return XL_TOKEN_INVALID;
    memcpy(odcid->id, xl_read_bytes(&r, odcid->len), odcid->len);
    uint8_t mac[MAC_BYTES];
    if (token_mac(key, token, len, remote, &initial->dcid, mac) != 0 || !xl_is_equal(mac, token + len, MAC_BYTES))
        return XL_TOKEN_INVALID;
    return issued <= date && date - issued <= XL_RETRY_LIFETIME_US ? XL_TOKEN_VALID : XL_TOKEN_INVALID;
}

size_t xl_retry_put_refusal(const xl_packet_header *initial, uint64_t error_code, uint8_t *buf, size_t cap) {
    xl_keys *client = NULL, *server = NULL;
    xl_writer w = xl_writer_of(buf, cap);
    size_t length_offset, sealed = 0;
    xl_packet_put_long(&w, initial->version, XL_PACKET_INITIAL, &initial->scid, &initial->dcid, NULL, 0, 0, 1, buf,
                       &length_offset);
    size_t payload_at = (size_t)(w.p - buf);
    xl_frame_put_close(&w, false, error_code, 0, NULL);
    size_t payload = (size_t)(w.p - buf) - payload_at;
    if (!w.failed && xl_writer_left(&w) >= XL_AEAD_TAG &&
        xl_keys_initial(initial->version, &initial->dcid, &client, &server) == 0) {
        xl_packet_set_length(buf, length_offset, 1 + payload + XL_AEAD_TAG);
        sealed = xl_keys_protect(server, 0, 0, buf, payload_at - 1, 1, payload);
    }
    xl_keys_free(client);
    xl_keys_free(server);
    return sealed;
}
