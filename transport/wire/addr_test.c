#include <string.h>
#include "tests/unit.h"
#include "xlink/xlink.h"

TEST(addresses_format_as_ip_and_port) {
    char buf[64];
    xl_addr v4 = {.family = 4, .ip = {192, 0, 2, 1}, .port = 443};
    xl_addr v6 = {.family = 6, .ip = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}, .port = 65535};
    xl_addr longest = {.family = 6, .port = 65535};
    memset(longest.ip, 0xff, sizeof longest.ip);
    assert_string_equal(xl_addr_format(&v4, buf, sizeof buf), "192.0.2.1:443");
    assert_string_equal(xl_addr_format(&v6, buf, sizeof buf), "[2001:db8::1]:65535");
    assert_string_equal(xl_addr_format(&longest, buf, sizeof buf), "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
    assert_string_equal(xl_addr_format(&(xl_addr){0}, buf, sizeof buf), "unset");
}

TEST(equality_looks_at_family_ip_and_port_only) {
    xl_addr a = {.family = 4, .ip = {10, 0, 0, 1}, .port = 1};
    xl_addr b = a;
    b.ip[7] = 99; /* unused in IPv4 */
    assert_true(xl_addr_equal(&a, &b));
    b.ip[3] = 2;
    assert_false(xl_addr_equal(&a, &b));
    b = a;
    b.port = 2;
    assert_false(xl_addr_equal(&a, &b));
    b = a;
    b.family = 6;
    assert_false(xl_addr_equal(&a, &b));
    a.family = 6;
    b.ip[15] = 1;
    assert_false(xl_addr_equal(&a, &b));
}

TEST_MAIN(NULL, NULL)
