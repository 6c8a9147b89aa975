#include <stdlib.h>

#include "tests/unit.h"
#include "base/net.h"

TEST(endpoints_are_an_ip_address_and_a_port) {
    xl_addr a;
    assert_true(net_parse_endpoint("192.0.2.1:443", &a));
    assert_true(a.family == 4 && a.ip[0] == 192 && a.ip[3] == 1 && a.port == 443);
    assert_true(net_parse_endpoint("[2001:db8::1]:0", &a));
    assert_true(a.family == 6 && a.ip[0] == 0x20 && a.ip[15] == 1 && a.port == 0);
    const char *const bad[] = {
        "",
        ":80",
        "192.0.2.1",
        "192.0.2.1:",
        "192.0.2.1:65536",
        "192.0.2.1:-1",
        "192.0.2.1:+1",
        "192.0.2.1:000080",
        "[192.0.2.1]:80",
        "2001:db8::1:80",
        "[2001:db8::1]",
        "[]:80",
        "localhost:80",
        "256.0.0.1:80",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:80"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(net_parse_endpoint(bad[i], &a));
}

TEST(the_kernels_form_and_back_is_the_same_address) {
    const char *const texts[] = {"192.0.2.1:443", "[2001:db8::1]:65535"};
    for (size_t i = 0; i < 2; i++) {
        xl_addr a, b;
        struct sockaddr_storage sa;
        assert_true(net_parse_endpoint(texts[i], &a));
        assert_true(net_to_sockaddr(&a, &sa) <= sizeof sa);
        assert_true(net_from_sockaddr((struct sockaddr *)&sa, &b));
        assert_true(net_same_ip(&a, &b) && a.port == b.port);
        b.ip[3] ^= 1;
        assert_false(net_same_ip(&a, &b));
    }
    struct sockaddr_storage other = {.ss_family = AF_UNIX};
    xl_addr a;
    assert_false(net_from_sockaddr((struct sockaddr *)&other, &a));
}

TEST(paths_of_mpshell_are_those_of_the_environment) {
    char reason[160];
    xl_addr a, paths[3];
    assert_int_equal(net_mpshell_paths(4, paths, 3), 0);
    assert_false(net_parse_local("@1", &a, reason, sizeof reason));
    assert_string_equal(reason,
                        "'@1' needs $MPSHELL_PATH_1_ADDR, which mpshell sets; give an IP address outside of mpshell");
    setenv("MPSHELL_PATH_0_ADDR", "192.0.2.1", 1);
    setenv("MPSHELL_PATH_1_ADDR", "192.0.2.2", 1);
    setenv("MPSHELL_PATH_0_ADDR6", "2001:db8::1", 1);
    assert_true(net_parse_local("@1", &a, reason, sizeof reason));
    assert_true(a.family == 4 && a.ip[3] == 2);
    assert_int_equal(net_mpshell_paths(4, paths, 3), 2);
    assert_true(paths[0].ip[3] == 1 && paths[1].ip[3] == 2);
    assert_int_equal(net_mpshell_paths(4, paths, 1), 1);
    assert_int_equal(net_mpshell_paths(6, paths, 3), 1);
    assert_true(paths[0].family == 6 && paths[0].ip[15] == 1);
    const char *const bad[] = {"", "@", "@-1", "@x", "@1000", "localhost", "192.0.2.1:80"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(net_parse_local(bad[i], &a, reason, sizeof reason));
}

TEST_MAIN(NULL, NULL)
