#include <string.h>

#include "tests/unit.h"
#include "emulator/link/queue.h"
#include "emulator/link/settings.h"

static link_settings settings[2];
static char error[256];

static bool set(const char *key, const char *value) {
    return link_settings_set(settings, key, value, error, sizeof error);
}

static bool set_json(const char *member, const char *json) {
    json_t *value = json_loads(json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_non_null(value);
    bool good = link_settings_set_json(settings, member, value, error, sizeof error);
    json_decref(value);
    return good;
}

static int done(void **state) {
    (void)state;
    link_settings_free(settings);
    return 0;
}

TEST_WITH(a_key_holds_for_both_directions_unless_one_has_its_own, NULL, done) {
    assert_true(set("down-queue", "codel"));
    assert_true(set("queue", "pie"));
    assert_true(set("delay", "12.5"));
    assert_true(set("up-delay", "3"));
    assert_string_equal(settings[0].config.queue, "pie");
    assert_string_equal(settings[1].config.queue, "codel");
    assert_int_equal(settings[0].config.delay_us, 3000);
    assert_int_equal(settings[1].config.delay_us, 12500);
    assert_false(set("delay", "1"));
    assert_string_equal(error, "delay is given twice");
    assert_false(set("up-delay", "1"));
}

TEST_WITH(a_rate_that_serves_no_direction_is_refused, NULL, done) {
    static const char *const orders[][3] = {{"rate", "up", "down"}, {"down", "rate", "up"}, {"up", "down", "rate"}};
    for (size_t i = 0; i < 3; i++) {
        assert_true(set(orders[i][0], "1mbps"));
        assert_true(set(orders[i][1], "2mbps"));
        assert_false(set(orders[i][2], "x"));
        assert_memory_equal(error, orders[i][2], strlen(orders[i][2]));
        assert_non_null(strstr(error, ": beside up and down, rate has no effect"));
        link_settings_free(settings);
    }
    assert_true(set_json("rate", "\"1mbps\"") && set_json("up", "\"f\""));
    assert_false(set_json("down", "\"g\""));
}

TEST_WITH(every_key_is_read, NULL, done) {
    static const char *const keys[][2] = {{"up", "u"},
                                          {"down", "12mbps"},
                                          {"delay-trace", "f"},
                                          {"delay-trace-end", "hold"},
                                          {"opportunity-bytes", "1400"},
                                          {"jitter", "1"},
                                          {"reorder", "0.5"},
                                          {"reorder-delay", "2"},
                                          {"loss", "ge:p=0.1:r=0.2:bad=0.9"},
                                          {"onoff", "exp:on=5:off=1.5"},
                                          {"radio", "promotion=260:tail=11576:inactive=100:cycle=40"},
                                          {"grants", "sr=10:grant=8.5:first=200"},
                                          {"leo", "starlink:burst=60:loss=0.5"},
                                          {"duplicate", "1e-3"},
                                          {"mtu", "1280"},
                                          {"nat", "mapping=address:timeout=30000"},
                                          {"queue", "droptail:packets=3"},
                                          {"once", "yes"},
                                          {"offset", "7"}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!set(keys[i][0], keys[i][1]))
            fail_msg("%s", error);
    assert_true(link_settings_check(settings, true, error, sizeof error));
    for (size_t way = 0; way < 2; way++) {
        link_config c = link_settings_config(&settings[way], 100);
        assert_true(c.once && c.hold_delay && c.onoff.is_random);
        assert_int_equal(c.start_offset_ms, 107);
        assert_int_equal(c.opportunity_bytes, 1400);
        assert_int_equal(c.jitter_us, 1000);
        assert_int_equal(c.reorder_us, 2000);
        assert_true(c.reorder == 0.5 && c.duplicate == 0.001);
        assert_true(c.loss.p == 0.1 && c.loss.r == 0.2 && c.loss.bad == 0.9 && c.loss.good == 0.0);
        assert_int_equal(c.onoff.us[0], 5000);
        assert_int_equal(c.onoff.us[1], 1500);
        assert_int_equal(c.radio.promotion_us, 260000);
        assert_int_equal(c.radio.tail_us, 11576000);
        assert_int_equal(c.radio.inactive_us, 100000);
        assert_int_equal(c.radio.cycle_us, 40000);
        assert_int_equal(c.grants.report_us, 8500);
        assert_int_equal(c.grants.first_bytes, 200);
        assert_int_equal(c.leo.burst_us, 60000);
        assert_int_equal(c.mtu_bytes, 1280);
        assert_int_equal(settings[way].nat.timeout_us, 30000000);
        assert_int_equal(settings[way].nat.mapping, LINK_NAT_ADDRESS);
        assert_string_equal(c.queue, "droptail:packets=3");
    }
    assert_string_equal(settings[1].trace, "12mbps");
}

TEST_WITH(a_light_trace_stands_in_the_place_of_a_delay, NULL, done) {
    link_settings top[2];
    memset(top, 0, sizeof top);
    assert_true(set("up", "u"));
    assert_true(set("down", "d"));
    assert_true(set("light-gap", "20"));
    assert_true(set("delay", "5"));
    assert_false(link_settings_check(settings, true, error, sizeof error));
    assert_string_equal(error, "uplink: light-gap goes with a light-trace");
    assert_true(set("light-trace", "l"));
    assert_false(link_settings_check(settings, true, error, sizeof error));
    assert_string_equal(error, "uplink: delay and light-trace exclude each other");
    assert_true(link_settings_set(top, "light-trace", "m", error, sizeof error));
    assert_true(link_settings_override(settings, top));
    assert_true(link_settings_check(settings, true, error, sizeof error));
    assert_string_equal(settings[1].light_trace, "m");
    assert_int_equal(settings[1].config.light.gap_us, 20000);
    assert_true(link_settings_set(top, "delay", "6", error, sizeof error));
    assert_true(link_settings_override(settings, top));
    assert_true(link_settings_check(settings, true, error, sizeof error));
    assert_true(!settings[1].light_trace && settings[1].config.light.gap_us == 0);
    assert_true(link_settings_names_file("up_light_trace") && link_settings_names_file("size_latency"));
    assert_false(link_settings_names_file("light_gap_ms"));
}

TEST_WITH(a_radio_that_was_set_can_be_switched_off, NULL, done) {
    assert_true(set("radio", "promotion=260:tail=11576"));
    assert_true(set("up-radio", "off"));
    assert_int_equal(link_settings_config(&settings[0], 0).radio.promotion_us, 0);
    assert_int_equal(link_settings_config(&settings[0], 0).radio.tail_us, 0);
    assert_int_equal(link_settings_config(&settings[1], 0).radio.promotion_us, 260000);
}

TEST_WITH(members_of_json_name_their_unit, NULL, done) {
    assert_true(set_json("delay_ms", "12.345"));
    assert_int_equal(settings[1].config.delay_us, 12345);
    assert_true(set_json("down_loss", "0.1"));
    assert_true(settings[0].config.loss.good == 0.0 && settings[1].config.loss.good == 0.1);
    assert_true(set_json("up_loss", "\"ge:p=0.5:r=1\""));
    assert_true(settings[0].config.loss.p == 0.5);
    assert_true(set_json("once", "true"));
    assert_true(set_json("delay_trace_end", "\"loop\""));
    assert_true(set_json("onoff", "\"10/2.5/3/4\""));
    assert_int_equal(settings[0].config.onoff.count, 4);
    assert_int_equal(settings[0].config.onoff.us[1], 2500);
    assert_true(set_json("reorder", "1e-05"));
    assert_true(settings[0].config.reorder == 1e-5);
}

TEST_WITH(errors_name_the_key, NULL, done) {
    static const struct {
        const char *key, *value, *sentence;
    } texts[] = {
        {"dely", "1", "\"dely\" is not one of up=TRACE, "},
        {"trace", "x", "\"trace\" is not one of"},
        {"up-up", "x", "\"up-up\" is not one of"},
        {"", "x", "\"\" is not one of"},
        {"up", "", "up= is empty"},
        {"up-loss", "1.5", "up-loss takes a probability (0 to 1) or ge:"},
        {"loss", "ge:p=0.5", "loss takes a probability"},
        {"loss", "ge:p=0.5:r=2", "loss takes "},
        {"loss", "ge:p=0.5:r=1:p=1", "loss takes "},
        {"loss", "0x1p-3", "loss takes "},
        {"loss", "nan", "loss takes "},
        {"delay", "-1", "delay takes ms"},
        {"delay", "3600001", "delay takes ms"},
        {"delay-trace-end", "stop", "delay-trace-end takes loop or hold"},
        {"once", "maybe", "once takes no or yes, not 'maybe'"},
        {"onoff", "10", "onoff takes exp:on=MS:off=MS, or times"},
        {"onoff", "10/0.5", "onoff takes "},
        {"onoff", "exp:on=5", "onoff takes "},
        {"radio", "promotion=260", "radio takes promotion=MS:tail=MS, inactive="},
        {"radio", "inactive=100:cycle=0", "radio takes "},
        {"radio", "cycle=40:inactive=100:cycle=40", "radio takes "},
        {"radio", "tail=1:promotion", "radio takes "},
        {"radio", "off:tail=1", "radio takes "},
        {"grants", "sr=10", "grants takes sr=MS:grant=MS, and further"},
        {"leo", "oneweb", "leo takes starlink, period=MS:"},
        {"nat", "on", "nat takes mapping=KIND:filtering=KIND:timeout=MS"},
        {"mtu", "67", "mtu takes a whole number from 68 to 1500"},
        {"radio", "lte-2013",
         "radio takes promotion=MS:tail=MS, inactive=MS:cycle=MS, both, above 0, a preset such as"},
        {"onoff", "1/2/", "onoff takes "},
        {"offset", "1.5", "offset takes a whole number from 0 to 4294967295, not '1.5'"},
    };
    static const struct {
        const char *member, *value, *sentence;
    } members[] = {
        {"delay", "1", "delay is not a known member"},
        {"delay-ms", "1", "delay-ms is not a known member"},
        {"queue_ms", "1", "queue_ms is not a known member"},
        {"delay_ms", "\"1\"", "delay_ms takes ms (0 to 3600000), not \"1\""},
        {"delay_ms", "-0.5", "delay_ms takes ms (0 to 3600000), not '-0.5'"},
        {"queue", "3", "queue takes a text, not 3"},
        {"loss", "[1]", "loss takes P|ge:p=P:r=P[:good=P][:bad=P], not [1]"},
        {"loss", "\"0\\u0000\"", "loss takes P|ge:"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_false(set(texts[i].key, texts[i].value));
        assert_memory_equal(error, texts[i].sentence, strlen(texts[i].sentence));
    }
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        assert_false(set_json(members[i].member, members[i].value));
        assert_memory_equal(error, members[i].sentence, strlen(members[i].sentence));
    }
    for (size_t i = 0; i < LINK_SETTINGS_MAX; i++) {
        assert_null(settings[0].text[i]);
        assert_null(settings[1].text[i]);
    }
}

TEST_WITH(keys_are_checked_together, NULL, done) {
    static const struct {
        const char *keys[4][2];
        const char *sentence;
    } cases[] = {
        {{{"down", "d"}}, "up is missing"},
        {{{"up", "u"}, {"delay", "1"}}, "down is missing"},
        {{{"up", "u"}, {"down", "d"}, {"up-delay", "1"}}, "delay is missing"},
        {{{"up", "u"}, {"down", "d"}, {"delay", "1"}, {"down-delay-trace", "f"}}, "downlink: delay and delay-trace"},
        {{{"up", "u"}, {"down", "d"}, {"delay", "1"}, {"delay-trace-end", "hold"}}, "uplink: delay-trace-end goes"},
        {{{"up", "u"}, {"down", "d"}, {"delay", "1"}, {"reorder", "0.1"}}, "uplink: reorder needs a reorder-delay"},
        {{{"up", "u"}, {"down", "d"}, {"delay", "1"}, {"down-nat", "off"}}, "downlink: nat is of both directions"},
        {{{"up", "u"}, {"down", "d"}, {"delay", "1"}, {"down-paging", "0"}}, "downlink: paging is of both directions"},
        {{{"wifi", "good"}, {"light-trace", "f"}}, "uplink: wifi and light-trace exclude each other"},
        {{{"delay", "1"}, {"wifi", "good"}, {"up-wifi", "off"}}, "up is missing"},
        {{{"rate", "1bps"}, {"delay", "1"}, {"up-wifi", "off"}}, "uplink: wifi is of both directions"},
        {{{"wifi", "good"}, {"down-wifi", "congested"}, {"delay", "1"}}, "downlink: wifi is of both directions"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t k = 0; k < 4 && cases[i].keys[k][0]; k++)
            assert_true(set(cases[i].keys[k][0], cases[i].keys[k][1]));
        assert_false(link_settings_check(settings, true, error, sizeof error));
        assert_memory_equal(error, cases[i].sentence, strlen(cases[i].sentence));
        link_settings_free(settings);
    }
}

TEST_WITH(wifi_stands_in_the_place_of_traces, NULL, done) {
    set("delay", "1");
    set("wifi", "congested");
    assert_true(link_settings_check(settings, true, error, sizeof error));
    assert_string_equal(link_settings_trace(&settings[0]), "65000000bps");
    set("up", "u");
    assert_string_equal(link_settings_trace(&settings[0]), "65000000bps");
    assert_false(link_settings_check(settings, false, error, sizeof error));
}

TEST_WITH(reports_say_what_differs, NULL, done) {
    json_t *path = json_object(), *up = json_object(), *down = json_object();
    set("up", "u");
    set("down", "d");
    set("delay", "12.5");
    set("loss", "0.25");
    set("down-queue", "codel");
    link_settings_report_path(settings, path);
    link_settings_report(&settings[0], up);
    link_settings_report(&settings[1], down);
    char *texts[3] = {json_dumps(path, JSON_COMPACT), json_dumps(up, JSON_COMPACT), json_dumps(down, JSON_COMPACT)};
    assert_string_equal(texts[0], "{\"delay_ms\":12.5,\"loss\":0.25,\"queue\":null}");
    assert_string_equal(texts[1], "{}");
    assert_string_equal(texts[2], "{\"settings\":{\"delay\":\"12.5\",\"loss\":\"0.25\",\"queue\":\"codel\"}}");
    for (size_t i = 0; i < 3; i++)
        free(texts[i]);
    json_decref(path);
    json_decref(up);
    json_decref(down);
}

/* A link without settings is all zero. */
TEST(defaults_in_texts_are_those_of_a_link_without_settings) {
    static const link_settings none;
    char sentence[SETTINGS_ERROR_BYTES];
    size_t compared = 0;
    for (const setting *row = link_setting_rows; row->name; row++) {
        link_settings said = {.trace = NULL};
        if (!row->fallback)
            continue;
        assert_true(setting_read(row, &said, row->name, row->fallback, sentence));
        if (row->kind == SETTING_TEXT)
            assert_string_equal(row->fallback, LINK_QUEUE_DEFAULT);
        else
            assert_memory_equal(&said.config, &none.config, sizeof said.config);
        assert_int_equal(said.wifi.rate_bps, 0);
        compared++;
    }
    assert_int_equal(compared, 16);
}

TEST_MAIN(NULL, NULL)
