#include "tests/unit.h"
#include "crypto/session.h"

static const uint8_t text[] = "h3 and parameters, data, settings, a token";

static size_t write_one(uint8_t *buf, size_t cap) {
    const xl_session s = {.version = 1,
                          .allows_early = true,
                          .trust = {1, 2, 3},
                          .arrived_ns = UINT64_C(1700000000123456789),
                          .lifetime_s = 7200,
                          .alpn = {text, 2},
                          .params = {text + 7, 10},
                          .tls = {text + 19, 4},
                          .application = {text + 25, 8},
                          .token = {text + 37, 5}};
    return xl_session_write(&s, buf, cap);
}

TEST(a_session_is_read_as_it_was_written) {
    uint8_t buf[200];
    xl_session s;
    size_t len = write_one(buf, sizeof buf);
    assert_in_range(len, 60, sizeof buf);
    assert_true(xl_session_read(&s, buf, len));
    assert_true(s.version == 1 && s.allows_early && s.lifetime_s == 7200);
    assert_true(s.arrived_ns == UINT64_C(1700000000123456789));
    assert_memory_equal(s.trust, ((uint8_t[XL_TRUST_BYTES]){1, 2, 3}), XL_TRUST_BYTES);
    assert_int_equal(s.tls.len, 4);
    assert_memory_equal(s.tls.at, "data", 4);
    assert_memory_equal(s.token.at, "token", 5);
    assert_int_equal(write_one(buf, len - 1), 0);
}

TEST(a_damaged_session_is_none) {
    uint8_t buf[200];
    xl_session s;
    size_t len = write_one(buf, sizeof buf);
    for (size_t bit = 0; bit < 8 * len; bit++) {
        buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(xl_session_read(&s, buf, len));
        buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t cut = 0; cut < len; cut++)
        assert_false(xl_session_read(&s, buf, cut));
    assert_true(xl_session_read(&s, buf, len));
}

TEST_MAIN(NULL, NULL)
