#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "balancer/lb_file.h"

#define KEY "8f95f09245765f80256934e50c66207f"

static bool parse(const char *text, lb_file *f, char *error) {
    char copy[2048];
    snprintf(copy, sizeof copy, "%s", text);
    return lb_file_parse(copy, "lb.conf", f, error);
}

static void a_file_says_it_all(void **state) {
    (void)state;
    lb_file f;
    char error[LB_ERROR_BYTES] = "";
    assert_true(parse("# two generations\n"
                      "secret = 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1F\n"
                      "[config]\n rotation = 2 # now\nserver-id-bytes=2\r\nnonce-bytes = 6\nkey = " KEY "\n"
                      "encode-length = yes\n"
                      "[config]\nserver-id-bytes = 2\nnonce-bytes = 14\n\n"
                      "[servers]\na001 = 192.0.2.1:4433\nA002 = [2001:db8::2]:443 drain\n",
                      &f, error));
    assert_string_equal("", error);
    assert_true(f.has_secret);
    assert_int_equal(0x1f, f.secret[31]);
    assert_int_equal(2, f.config_count);
    assert_int_equal(2, f.config[0].rotation);
    assert_true(f.config[0].has_key && f.config[0].encode_length);
    assert_int_equal(0x7f, f.config[0].key[15]);
    assert_false(f.config[1].has_key);
    assert_int_equal(14, f.config[1].nonce_bytes);
    assert_int_equal(2, f.server_count);
    assert_int_equal(4433, f.server[0].address.port);
    assert_false(f.server[0].drain);
    assert_int_equal(0xa0, f.server[1].id[0]);
    assert_int_equal(6, f.server[1].address.family);
    assert_true(f.server[1].drain);
    xl_lb *lb = lb_file_codec(&f);
    assert_int_equal(10, xl_lb_cid_bytes(lb, 2 << 5));
    assert_int_equal(18, xl_lb_cid_bytes(lb, 0));
    xl_lb_free(lb);
}

static void errors_name_the_line(void **state) {
    (void)state;
#define CONFIG "[config]\nserver-id-bytes = 1\nnonce-bytes = 6\n"
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "no [config]"},
        {"[config]\nserver-id-bytes = 1\n", "line 2: a [config] needs"},
        {"[config]\nserver-id-bytes = 16\n", "line 2: server-id-bytes is a number from 1 to 15"},
        {"[config]\nserver-id-bytes = 9\nnonce-bytes = 10\n", "from 7 to 18 together, not 19"},
        {"[config]\nserver-id-bytes = 1\nnonce-bytes = 5\n", "from 7 to 18 together, not 6"},
        {"[config]\nrotation = 7\n", "line 2: rotation is a number from 0 to 6"},
        {"[config]\nkey = 12\n", "line 2: a key has 32"},
        {CONFIG "colour = red\n", "line 4: 'colour' is not known"},
        {CONFIG "col\033[2Jour\xee = red\n", "line 4: 'col?[2Jour?' is not known"},
        {CONFIG CONFIG, "rotation 0 comes twice"},
        {CONFIG "[config]\nrotation = 1\nserver-id-bytes = 2\nnonce-bytes = 6\n", "line 5: all configurations have"},
        {CONFIG "[servers]\na001 = 192.0.2.1:1\n", "line 5: a server ID has 2 hexadecimal digits"},
        {CONFIG "[servers]\na0 = 192.0.2.1\n", "line 5: a server is ID = ADDR:PORT"},
        {CONFIG "[servers]\na0 = 192.0.2.1:1 away\n", "line 5: a server is ID = ADDR:PORT"},
        {CONFIG "[servers]\na0 = 192.0.2.1:1\na0 = 192.0.2.2:1\n", "line 6: server ID a0 comes twice"},
        {"[servers]\na0 = 192.0.2.1:1\n", "come after a [config]"},
        {CONFIG "[clients]\na = b\n", "line 5: there is no section [clients]"},
        {CONFIG "what is this\n", "line 4: this is neither"},
        {"secret = 00\n", "line 1: the secret has 64"},
        {"x = 1\n", "line 1: 'x' is not known outside"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lb_file f;
        char error[LB_ERROR_BYTES] = "";
        assert_false(parse(cases[i].text, &f, error));
        if (strstr(error, cases[i].error) == NULL || strstr(error, "lb.conf") != error) {
            fail_msg("case %zu: %s", i, error);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_says_it_all),
        cmocka_unit_test(errors_name_the_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
