#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "http/quic_scheme.h"

static void every_scheme_is_something_that_the_transport_accepts(void **state) {
    (void)state;
    xl_credentials *credentials = xl_credentials_client(NULL);
    assert_non_null(credentials);
    size_t count = 0;
    for (; quic_scheme_names[count]; count++) {
        xl_config config;
        xl_config_init(&config);
        config.random_key[0] = 1;
        config.credentials = credentials;
        config.limits.max_udp_payload_bytes = QUIC_UDP_PAYLOAD_BYTES;
        assert_true(quic_scheme_apply(quic_scheme_names[count], &config));
        int error = 0;
        xl_endpoint *endpoint = xl_endpoint_new(&config, 0, &error);
        assert_int_equal(error, 0);
        assert_non_null(endpoint);
        xl_endpoint_free(endpoint);
    }
    assert_int_equal(count, 5);
    xl_credentials_free(credentials);
}

static void schemes_differ_in_what_they_are_compared_for(void **state) {
    (void)state;
    xl_config c;
    xl_config_init(&c);
    assert_true(quic_scheme_apply("xlink", &c));
    assert_true(c.scheme.enable_multipath && c.scheme.qoe_control && !c.scheme.enable_migration);
    assert_string_equal(c.scheme.scheduler, "xlink");
    assert_string_equal(c.scheme.reinjection, "frame");
    assert_true(c.scheme.rescue_gain_us == 0 && quic_scheme_race_us("xlink") == 0);
    assert_true(quic_scheme_apply("xlink+", &c));
    assert_true(c.scheme.enable_multipath && c.scheme.qoe_control && c.scheme.rescue_gain_us > 0 &&
                c.scheme.rescue_permille > 0);
    assert_string_equal(c.scheme.scheduler, "earliest");
    assert_true(quic_scheme_race_us("xlink+") > 0);
    assert_true(quic_scheme_apply("vanilla-mp", &c)); /* nothing of xlink stays */
    assert_true(c.scheme.enable_multipath && !c.scheme.qoe_control && !c.scheme.enable_migration &&
                c.scheme.rescue_gain_us == 0);
    assert_string_equal(c.scheme.scheduler, "minrtt");
    assert_string_equal(c.scheme.reinjection, "none");
    assert_true(quic_scheme_apply("cm", &c));
    assert_true(c.scheme.enable_migration && !c.scheme.enable_multipath);
    assert_true(quic_scheme_apply("sp", &c));
    assert_false(c.scheme.enable_migration || c.scheme.enable_multipath);
    assert_true(quic_scheme_uses_all_paths("xlink") && quic_scheme_uses_all_paths("vanilla-mp"));
    assert_true(quic_scheme_uses_all_paths("cm") && !quic_scheme_uses_all_paths("sp"));
}

static void an_unknown_scheme_changes_nothing(void **state) {
    (void)state;
    xl_config c;
    xl_config_init(&c);
    c.scheme.enable_multipath = true;
    assert_false(quic_scheme_apply("xlinkk", &c));
    assert_false(quic_scheme_apply("", &c));
    assert_true(c.scheme.enable_multipath);
    assert_false(quic_scheme_uses_all_paths("mptcp"));
}

static void scheduler_and_controller_can_be_chosen_apart_from_the_scheme(void **state) {
    (void)state;
    char error[256] = "";
    xl_config c;
    xl_config_init(&c);
    assert_true(quic_scheme_apply("vanilla-mp", &c));
    assert_true(quic_scheme_override(NULL, NULL, &c.scheme, error, sizeof error));
    assert_string_equal(c.scheme.scheduler, "minrtt");
    assert_string_equal(c.scheme.congestion, "cubic");
    assert_true(quic_scheme_override("ecf", NULL, &c.scheme, error, sizeof error));
    assert_true(quic_scheme_override(NULL, "newreno", &c.scheme, error, sizeof error));
    assert_string_equal(c.scheme.scheduler, "ecf");
    assert_string_equal(c.scheme.congestion, "newreno");
    assert_string_equal(error, "");
    assert_false(quic_scheme_override("fastest", NULL, &c.scheme, error, sizeof error));
    assert_string_equal(error,
                        "'fastest' is not a scheduler; known are minrtt, xlink, roundrobin, redundant, blest, ecf, "
                        "earliest");
    assert_false(quic_scheme_override("ecf", "vegas", &c.scheme, error, sizeof error));
    assert_non_null(strstr(error, "'vegas' is not a congestion controller; known are cubic, newreno"));
    assert_string_equal(c.scheme.congestion, "newreno");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scheme_is_something_that_the_transport_accepts),
        cmocka_unit_test(schemes_differ_in_what_they_are_compared_for),
        cmocka_unit_test(an_unknown_scheme_changes_nothing),
        cmocka_unit_test(scheduler_and_controller_can_be_chosen_apart_from_the_scheme),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
