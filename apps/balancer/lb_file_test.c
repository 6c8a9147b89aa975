#include <string.h>

#include "tests/unit.h"
#include "balancer/lb_file.h"

#define KEY "8f95f09245765f80256934e50c66207f"

TEST(a_file_says_it_all) {
    lb_file f;
    char error[LB_ERROR_BYTES] = "";
    assert_true(lb_file_parse("# two generations\n"
                              "servers: # may come first\n"
                              "  a001: {address: 192.0.2.1:4433}\n"
                              "  A002:\r\n    drain: true\n    address: '[2001:db8::2]:443'\n"
                              "secret: 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1F\n"
                              "configs:\n"
                              "- rotation: 2 # now\n  server_id_bytes: 2\r\n  nonce_bytes: 6\n  key: " KEY "\n"
                              "  encode_length: true\n"
                              "- {server_id_bytes: 2, nonce_bytes: 14}\n",
                              "lb.yaml", &f, error));
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

TEST(errors_name_the_line) {
#define CONFIG  "configs:\n- server_id_bytes: 1\n  nonce_bytes: 6\n"
#define SERVERS CONFIG "servers:\n"
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "configs is a list with one"},
        {"configs: []\n", "line 1: configs is a list with one"},
        {"configs: 2\n", "line 1: configs is a list with one"},
        {"configs:\n- 2\n", "line 2: this is not YAML of the form 'name: value'"},
        {"configs:\n- server_id_bytes: 1\n", "line 2: a member of configs needs server_id_bytes and nonce_bytes."},
        {"configs:\n- server_id_bytes: 16\n", "line 2: server_id_bytes takes a whole number from 1 to 15, not '16'."},
        {"configs:\n- server_id_bytes: 9\n  nonce_bytes: 10\n", "from 7 to 18 together, not 19"},
        {"configs:\n- server_id_bytes: 1\n  nonce_bytes: 5\n", "from 7 to 18 together, not 6"},
        {"configs:\n- rotation: 7\n", "line 2: rotation takes a whole number from 0 to 6, not '7'."},
        {"configs:\n- rotation: [1]\n", "line 2: rotation takes one text or number."},
        {"configs:\n- key: 12\n", "line 2: key takes 32 hexadecimal digits."},
        {"configs:\n- encode_length: yes\n", "line 2: encode_length takes on or off, not 'yes'."},
        {CONFIG "  colour: red\n", "line 4: 'colour' is not a parameter; known are rotation, server_id_bytes,"},
        {CONFIG "\"col\\e[2Jour\xc3\xae\": red\n", "line 4: 'col?[2Jour?"
                                                   "?' is not known; the file has secret,"},
        {CONFIG "- server_id_bytes: 1\n  nonce_bytes: 6\n", "line 4: rotation 0 comes twice"},
        {CONFIG "- {rotation: 1, server_id_bytes: 2, nonce_bytes: 6}\n", "line 4: all configurations have the same"},
        {CONFIG CONFIG, "line 4: configs comes twice"},
        {SERVERS "- a0\n", "line 5: servers has members ID: {address:"},
        {SERVERS "  a001: {address: 192.0.2.1:1}\n", "line 5: a server ID has 2 hexadecimal digits here, not 'a001'."},
        {SERVERS "  a0: 192.0.2.1:1\n", "line 5: a server is a0: {address: \"ADDR:PORT\"}"},
        {SERVERS "  a0: {drain: true}\n", "line 5: server a0 needs an address."},
        {SERVERS "  a0:\n    address: 192.0.2.1\n", "line 6: address takes ADDR:PORT with an IP address and a port"},
        {SERVERS "  a0: {address: 192.0.2.1:0}\n", "line 5: address takes ADDR:PORT with an IP address and a port"},
        {SERVERS "  a0: {address: 192.0.2.1:1, drain: away}\n", "line 5: drain takes on or off, not 'away'."},
        {SERVERS "  a0: {address: 192.0.2.1:1}\n  A0: {address: 192.0.2.2:1}\n", "line 6: server ID A0 comes twice"},
        {"servers: {a0: {address: 192.0.2.1:1}}\n", "configs is a list with one"},
        {CONFIG "clients:\n  a: b\n", "line 4: 'clients' is not known"},
        {CONFIG "what is this\n", "line 5: this is not YAML: could not find expected ':'"},
        {"what is this\n", "line 1: the file has the members secret, configs and servers."},
        {"secret: 00\n", "line 1: secret takes 64 hexadecimal digits."},
        {"secret: {}\n", "line 1: secret takes 64 hexadecimal digits."},
        {"secret = 00\n\n[config] # of version 0.1\nrotation = 1\n",
         "line 3: this file is YAML now: write [config] as 'configs: [{server_id_bytes: 2, nonce_bytes: 6, ...}]' and "
         "[servers] as 'servers: {ID: {address: ADDR:PORT}}'."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lb_file f;
        char error[LB_ERROR_BYTES] = "";
        assert_false(lb_file_parse(cases[i].text, "lb.yaml", &f, error));
        if (!strstr(error, cases[i].error) || strstr(error, "lb.yaml") != error)
            fail_msg("case %zu: %s", i, error);
    }
}

TEST(a_list_of_servers_may_be_empty) {
    lb_file f;
    char error[LB_ERROR_BYTES] = "";
    assert_true(lb_file_parse(SERVERS, "lb.yaml", &f, error));
    assert_int_equal(0, f.server_count);
    assert_false(f.has_secret);
    assert_false(f.config[0].has_key);
}

TEST_MAIN(NULL, NULL)
