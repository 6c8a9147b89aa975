#include "crypto/session.h"

#include <string.h>

#include "crypto/crypto.h"
#include "wire/cursor.h"

#define FORM      4 /* first byte; sessions of another form are ignored */
#define SUM_BYTES 16

/* Detects damage, not forgery: whoever can write the application's secrets has the session itself. GnuTLS crashes on
 * some damaged data. */
static bool checksum(const uint8_t *bytes, size_t len, uint8_t sum[SUM_BYTES]) {
    static const uint8_t key[] = "session";
    return xl_hmac(key, sizeof key, bytes, len, sum, SUM_BYTES) == 0;
}

bool xl_session_seal(uint8_t *bytes, size_t len) {
    return len >= SUM_BYTES && checksum(bytes, len - SUM_BYTES, bytes + len - SUM_BYTES);
}

static bool is_whole(const uint8_t *bytes, size_t len) {
    uint8_t sum[SUM_BYTES];
    return len >= SUM_BYTES && checksum(bytes, len - SUM_BYTES, sum) &&
           xl_is_equal(sum, bytes + len - SUM_BYTES, SUM_BYTES);
}

static void put_u64(xl_writer *w, uint64_t v) {
    xl_write_u32(w, (uint32_t)(v >> 32));
    xl_write_u32(w, (uint32_t)v);
}

static uint64_t get_u64(xl_reader *r) {
    uint64_t high = xl_read_u32(r);
    return high << 32 | xl_read_u32(r);
}

static void put_part(xl_writer *w, const xl_session_part *part) {
    w->failed |= part->len > UINT16_MAX;
    xl_write_u16(w, (uint16_t)part->len);
    xl_write_bytes(w, part->at, part->len);
}

static xl_session_part get_part(xl_reader *r) {
    size_t len = (size_t)xl_read_u8(r) << 8;
    len |= xl_read_u8(r);
    return (xl_session_part){.at = xl_read_bytes(r, len), .len = len};
}

size_t xl_session_write(const xl_session *s, uint8_t *buf, size_t cap) {
    xl_writer w = xl_writer_of(buf, cap);
    xl_write_u8(&w, FORM);
    xl_write_u8(&w, s->allows_early);
    xl_write_u32(&w, s->version);
    xl_write_bytes(&w, s->trust, sizeof s->trust);
    put_u64(&w, s->arrived_ns);
    xl_write_u32(&w, s->lifetime_s);
    put_part(&w, &s->alpn);
    put_part(&w, &s->params);
    put_part(&w, &s->tls);
    put_part(&w, &s->application);
    put_part(&w, &s->token);
    static const uint8_t room_for_sum[SUM_BYTES];
    xl_write_bytes(&w, room_for_sum, SUM_BYTES);
    const size_t len = (size_t)(w.p - buf);
    return !w.failed && xl_session_seal(buf, len) ? len : 0;
}

bool xl_session_read(xl_session *s, const uint8_t *bytes, size_t len) {
    if (!is_whole(bytes, len))
        return false;
    xl_reader r = xl_reader_of(bytes, len - SUM_BYTES);
    const uint8_t form = xl_read_u8(&r);
    s->allows_early = xl_read_u8(&r) != 0;
    s->version = xl_read_u32(&r);
    const uint8_t *trust = xl_read_bytes(&r, sizeof s->trust);
    memcpy(s->trust, trust ? trust : (const uint8_t[XL_TRUST_BYTES]){0}, sizeof s->trust);
    s->arrived_ns = get_u64(&r);
    s->lifetime_s = xl_read_u32(&r);
    s->alpn = get_part(&r);
    s->params = get_part(&r);
    s->tls = get_part(&r);
    s->application = get_part(&r);
    s->token = get_part(&r);
    return !r.failed && form == FORM && xl_reader_left(&r) == 0;
}
