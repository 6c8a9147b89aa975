#include <string.h>

#include "tests/unit.h"
#include "schemes/quic_settings.h"

static quic_settings s;

static bool set(const char *name, const char *text) {
    const setting_tables tables = {.table = {{quic_setting_rows, &s, 0}}, .count = 1};
    char error[SETTINGS_ERROR_BYTES];
    void *into = NULL;
    const setting *row = settings_find(&tables, name, &into);
    assert_non_null(row);
    return setting_read(row, into, name, text, error);
}

TEST(every_scheme_is_something_that_the_transport_accepts) {
    xl_credentials *credentials = xl_credentials_client(NULL);
    assert_non_null(credentials);
    size_t count = 0;
    for (; quic_scheme_name(count); count++) {
        xl_config config;
        xl_config_init(&config);
        quic_settings_init(&s);
        assert_true(quic_settings_choose(&s, quic_scheme_name(count)));
        quic_settings_configure(&s, &config);
        config.random_key[0] = 1;
        config.credentials = credentials;
        int error = 0;
        xl_endpoint *endpoint = xl_endpoint_new(&config, 0, &error);
        assert_int_equal(error, 0);
        assert_non_null(endpoint);
        xl_endpoint_free(endpoint);
    }
    assert_int_equal(count, 7);
    xl_credentials_free(credentials);
}

TEST(schemes_differ_in_what_they_are_compared_for) {
    quic_settings_init(&s);
    assert_true(quic_settings_choose(&s, "xlink"));
    assert_true(s.scheme.enable_multipath && s.scheme.qoe_control);
    assert_true(s.scheme.reinjection_unconditional && !s.scheme.suspect && s.scheme.ack_path == XL_ACK_FASTEST);
    assert_string_equal(s.scheme.scheduler, "xlink");
    assert_string_equal(s.scheme.reinjection, "frame");
    assert_false(s.scheme.rescue || s.race_us > 0);
    assert_true(quic_settings_choose(&s, "xlink-lean")); /* nothing of xlink stays */
    assert_true(s.scheme.enable_multipath && s.scheme.qoe_control && s.scheme.ack_path == XL_ACK_ORIGINAL);
    assert_true(s.scheme.enable_migration); /* for peers without multipath */
    assert_string_equal(s.scheme.scheduler, "xlink");
    assert_string_equal(s.scheme.reinjection, "frame");
    assert_false(s.scheme.rescue || s.race_us > 0);
    assert_true(s.scheme.suspect && !s.scheme.reinjection_unconditional);
    assert_true(quic_settings_choose(&s, "xlink+"));
    assert_true(s.scheme.enable_multipath && s.scheme.qoe_control && s.scheme.rescue);
    assert_int_equal(s.scheme.rescue_gain_us, 50000);
    assert_int_equal(s.scheme.rescue_permille, 15);
    assert_string_equal(s.scheme.scheduler, "earliest");
    assert_int_equal(s.race_us, 20000);
    assert_true(quic_settings_choose(&s, "vanilla-mp")); /* nothing of xlink stays */
    assert_true(s.scheme.enable_multipath && !s.scheme.qoe_control && s.scheme.enable_migration && !s.scheme.rescue);
    assert_string_equal(s.scheme.scheduler, "minrtt");
    assert_string_equal(s.scheme.reinjection, "none");
    assert_true(quic_settings_use_all_paths(&s) && quic_settings_are_multipath(&s));
    assert_true(s.scheme.suspect);
    assert_true(quic_settings_choose(&s, "vanilla-mp-2021"));
    assert_true(s.scheme.enable_multipath && !s.scheme.qoe_control && !s.scheme.suspect);
    assert_true(quic_settings_choose(&s, "cm"));
    assert_true(s.scheme.enable_migration && !s.scheme.enable_multipath);
    assert_true(quic_settings_use_all_paths(&s) && !quic_settings_are_multipath(&s));
    assert_true(quic_settings_choose(&s, "sp"));
    assert_false(s.scheme.enable_migration || s.scheme.enable_multipath || quic_settings_use_all_paths(&s));
}

TEST(an_unknown_scheme_changes_nothing) {
    quic_settings_init(&s);
    s.scheme.enable_multipath = true;
    assert_false(quic_settings_choose(&s, "xlinkk"));
    assert_false(quic_settings_choose(&s, ""));
    assert_true(s.scheme.enable_multipath && !s.name);
}

TEST(every_word_has_its_meaning) {
    static const char *const carriers[] = {"off", "ack", "signals", "both"};
    static const xl_qoe_carrier values[] = {XL_QOE_OFF, XL_QOE_IN_ACK, XL_QOE_IN_SIGNALS, XL_QOE_IN_BOTH};
    quic_settings_init(&s);
    assert_int_equal(s.scheme.qoe_carrier, XL_QOE_IN_ACK);
    for (size_t i = 0; i < 4; i++) {
        assert_true(set("qoe", carriers[i]));
        assert_int_equal(s.scheme.qoe_carrier, values[i]);
    }
    assert_true(set("copy_rule", "always") && set("qoe_control", "on") && set("qoe_extrapolation", "off"));
    assert_true(s.scheme.reinjection_unconditional && s.scheme.qoe_control && !s.scheme.qoe_extrapolation);
    assert_true(set("copy_rule", "pays") && set("qoe_control", "off") && set("qoe_extrapolation", "on"));
    assert_true(!s.scheme.reinjection_unconditional && !s.scheme.qoe_control && s.scheme.qoe_extrapolation);
    assert_true(set("ack_path", "fastest"));
    assert_int_equal(s.scheme.ack_path, XL_ACK_FASTEST);
    assert_true(set("migrate_after", "ptos:3") && set("path_management", "on,rtt=3") && set("cc", "bbr"));
    assert_int_equal(s.limits.migrate_ptos, 3);
    assert_int_equal(s.limits.path_management.rtt_percent, 300);
    assert_string_equal(s.scheme.cc, "bbr");
}

TEST(thresholds_are_in_order) {
    quic_settings_init(&s);
    assert_null(quic_settings_problem(&s, false));
    assert_true(set("t_th1_ms", "2000.5"));
    assert_int_equal(s.scheme.t_th1_us, 2000500);
    assert_string_equal(quic_settings_problem(&s, false), "t_th1_ms must not be greater than t_th2_ms");
    assert_true(set("t_th2_ms", "3000"));
    assert_null(quic_settings_problem(&s, false));
}

TEST(a_scheduler_that_needs_foresight_is_for_simulations) {
    quic_settings_init(&s);
    assert_true(set("scheduler", "clairvoyant"));
    assert_null(quic_settings_problem(&s, true));
    assert_non_null(strstr(quic_settings_problem(&s, false), "only the simulator"));
    assert_true(set("scheduler", "earliest"));
    assert_null(quic_settings_problem(&s, false));
}

TEST(the_description_names_every_scheme_and_what_it_sets) {
    json_t *all = quic_settings_describe(), *schemes = json_object_get(all, "schemes");
    assert_int_equal(json_array_size(schemes), 7);
    const json_t *plus = json_object_get(json_array_get(schemes, 6), "settings");
    assert_string_equal(json_string_value(json_object_get(plus, "race_ms")), "20");
    json_decref(all);
}

/* Compares only defaults that are values; others, such as "the scheme's", describe where the value comes from. */
TEST(defaults_in_texts_are_those_of_the_transport) {
    char error[SETTINGS_ERROR_BYTES];
    size_t compared = 0;
    for (const setting *row = quic_setting_rows; row->name; row++) {
        quic_settings said;
        quic_settings_init(&s);
        quic_settings_init(&said);
        if (!row->fallback || !setting_read(row, &said, row->name, row->fallback, error))
            continue;
        json_t *are = settings_values(quic_setting_rows, &s, 0), *texts = settings_values(quic_setting_rows, &said, 0);
        const json_t *is = json_object_get(are, row->name);
        if (!json_is_null(is) && !json_equal(are, texts))
            fail_msg("%s: the text says %s", row->name, row->fallback);
        compared += !json_is_null(is);
        json_decref(are);
        json_decref(texts);
    }
    assert_true(compared >= 15);
}

TEST_MAIN(NULL, NULL)
