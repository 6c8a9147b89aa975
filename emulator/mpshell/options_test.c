#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit.h"
#include "emulator/mpshell/command_line.h"

#define WIFI "--path wifi:up=a,down=b,delay=10 "

/* Of the last parse(): the line, cut into words, and its words. The options point to both. */
static char line[4096], *argv[2 * MP_MAX_PATHS + 16] = {"mpshell"};

/* Parses the words of a line; '' is an empty one. */
static bool parse(mp_options *options, const char *text, char error[512]) {
    int argc = 1;
    snprintf(line, sizeof line, "%s", text);
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
        argv[argc++] = strcmp(word, "''") == 0 ? "" : word;
    argv[argc] = NULL;
    return mp_options_parse(options, argc, argv, error, 512);
}

#define OPTIONS_TEST(name) TEST_OF(name, mp_options, o, mp_options_free)

static void assert_parsed(mp_options *options, const char *text) {
    char error[512] = "";
    if (!parse(options, text, error))
        fail_msg("%s", error);
}

static void refuses(const char *text, const char *sentence) {
    mp_options o;
    char error[512] = "";
    assert_false(parse(&o, text, error));
    if (!strstr(error, sentence))
        fail_msg("\"%s\" does not say \"%s\"", error, sentence);
    mp_options_free(&o);
}

/* Refuses each case's text in the place of the format's %s. */
static void refuses_each(const char *format, const char *const cases[][2], size_t count) {
    for (size_t i = 0; i < count; i++) {
        char text[512];
        snprintf(text, sizeof text, format, cases[i][0]);
        refuses(text, cases[i][1]);
    }
}

#define REFUSES_EACH(format, cases) refuses_each(format, cases, sizeof(cases) / sizeof((cases)[0]))

OPTIONS_TEST(reads_every_option) {
    assert_parsed(o, "--path wifi:up=u,down=d,delay=15.25,queue=droptail:packets=100:bytes=9000,loss=0.01,once "
                     "--path lte-2:delay=0,down=x,up=y --seed 42 --log-dir logs --start-offset 1500 "
                     "--mptcp --mptcp-subflows 3 -- sh -c --seed");
    assert_int_equal(o->path_count, 2);
    assert_string_equal(o->paths[0].name, "wifi");
    assert_string_equal(o->paths[0].settings[0].trace, "u");
    assert_string_equal(o->paths[0].settings[1].trace, "d");
    for (size_t way = 0; way < 2; way++) {
        const link_settings *settings = &o->paths[0].settings[way];
        assert_string_equal(settings->config.queue, "droptail:packets=100:bytes=9000");
        assert_int_equal(settings->config.delay_us, 15250);
        assert_true(settings->config.loss.good == 0.01);
        assert_true(settings->config.once);
    }
    assert_string_equal(o->paths[1].name, "lte-2");
    assert_null(o->paths[1].settings[0].config.queue);
    assert_int_equal(o->seed, 42);
    assert_int_equal(o->start_offset_ms, 1500);
    assert_true(o->mptcp);
    assert_int_equal(o->mptcp_subflows, 3);
    assert_int_equal(o->mptcp_addresses, 8);
    assert_string_equal(o->summary, "logs/mpshell.json");
    assert_string_equal(o->command[0], "sh");
    assert_string_equal(o->command[2], "--seed"); /* COMMAND's options are not read */
}

OPTIONS_TEST(the_command_needs_no_dashes_before_it) {
    assert_parsed(o, WIFI "--summary s.json ls -l");
    assert_string_equal(o->command[0], "ls");
    assert_string_equal(o->command[1], "-l");
    assert_string_equal(o->summary, "s.json");
    assert_null(o->log_dir);
}

OPTIONS_TEST(help_needs_nothing_else) {
    assert_parsed(o, "--help");
    assert_true(o->help);
}

TEST(tells_what_is_wrong) {
    static const char *const cases[][2] = {
        {"wifi", "up is missing"},
        {"wifi:", "up is missing"},
        {"wifi:,up=a", "is not one of"},
        {"wifi:up=a,down=b", "delay is missing"},
        {"wifi:up=a,delay=1", "down is missing"},
        {"wifi:up=a,down=b,delay=1,rate=x", "rate: beside up and down, rate has no effect"},
        {"wifi:up=a,down=b,delay=1,cross=1mbps", "path wifi: uplink: others' traffic needs a queue"},
        {"wifi:up=,down=b,delay=1", "up= is empty"},
        {"wifi:up=a,up=c,down=b,delay=1", "given twice"},
        {"wifi:up=a,down=b,delay=-1", "delay takes ms (0 to 3600000), not '-1'"},
        {"wifi:up=a,down=b,delay=1ms", "delay takes ms (0 to 3600000), not '1ms'"},
        {"wifi:up=a,down=b,delay=", "delay="},
        {"wifi:up=a,down=b,delay=1e99", "not '1e99'"},
        {"wifi:up=a,down=b,delay=1,loss=1.1", "loss takes a probability"},
        {"wifi:up=a,down=b,delay=1,los=1", "\"los\" is not one of"},
        {"WiFi:up=a,down=b,delay=1", "\"WiFi\""},
        {"lo:up=a,down=b,delay=1", "\"lo\""},
        {"-a:up=a,down=b,delay=1", "\"-a\""},
        {":up=a,down=b,delay=1", "\"\""},
        {"abcdefghijklmnop:up=a,down=b,delay=1", "at most 15"},
        {"lte:up=a,down=b,delay=1", "two paths are named lte"},
    };
    REFUSES_EACH("--path lte:up=a,down=b,delay=1 --path %s -- sh", cases);
}

OPTIONS_TEST(some_options_may_be_repeated) {
    assert_parsed(o, WIFI "--sysctl net.a=1 --sysctl net.b=2 --control s sh");
    assert_int_equal(o->sysctl_count, 2);
    assert_string_equal(o->sysctls[1], "net.b=2");
    assert_int_equal(o->control[0], '/'); /* absolute, so that COMMAND finds it from any directory */
    assert_string_equal(strrchr(o->control, '/'), "/s");
}

static char config[] = "/tmp/options_test.XXXXXX"; /* file of the test program */

static int make_config(void **state) {
    (void)state;
    int fd = mkstemp(config);
    return fd < 0 || close(fd) != 0;
}

static int remove_config(void **state) {
    (void)state;
    return remove(config);
}

/* Writes the file. Returns a command line with it, after these options. */
static const char *with_config(const char *options, const char *text) {
    static char words[512];
    FILE *file = fopen(config, "w");
    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
    snprintf(words, sizeof words, "%s --config %s -- sh", options, config);
    return words;
}

static const char yaml[] = "seed: 9\n"
                           "log-dir: logs\n"
                           "mptcp: true\n"
                           "paths:\n"
                           "  - name: wifi\n"
                           "    up: a\n"
                           "    down: b\n"
                           "    up-delay: 5\n"
                           "    down-delay: 6\n"
                           "    once: true\n"
                           "  - {name: lte, up: 12mbps, down: 24mbps, delay: 40, queue: 'codel:packets=10'}\n";
static const char json[] = "{\n\t\"seed\": 9, \"log-dir\": \"logs\", \"mptcp\": true, \"paths\": [\n"
                           "\t{\"name\": \"wifi\", \"up\": \"a\", \"down\": \"b\", \"up-delay\": 5, "
                           "\"down-delay\": 6, \"once\": true},\n"
                           "\t{\"name\": \"lte\", \"up\": \"12mbps\", \"down\": \"24mbps\", \"delay\": 40, "
                           "\"queue\": \"codel:packets=10\"}]}\n";

TEST(a_configuration_file_says_what_options_say) {
    static const char *const files[] = {yaml, json};
    for (size_t i = 0; i < 2; i++) {
        mp_options o;
        assert_parsed(&o, with_config("", files[i]));
        assert_int_equal(o.path_count, 2);
        assert_int_equal(o.seed, 9);
        assert_true(o.mptcp);
        assert_string_equal(o.summary, "logs/mpshell.json");
        assert_string_equal(o.paths[0].settings[1].trace, "b");
        assert_int_equal(o.paths[0].settings[0].config.delay_us, 5000);
        assert_int_equal(o.paths[0].settings[1].config.delay_us, 6000);
        assert_true(o.paths[0].settings[0].config.once);
        assert_string_equal(o.paths[1].name, "lte");
        assert_string_equal(o.paths[1].settings[0].config.queue, "codel:packets=10");
        mp_options_free(&o);
    }
}

OPTIONS_TEST(options_go_before_the_configuration_file) {
    assert_parsed(o, with_config("--path wifi:delay=7,down=c --seed 3 --path sat:up=x,down=y,delay=300", yaml));
    assert_int_equal(o->path_count, 3);
    assert_int_equal(o->seed, 3);
    assert_string_equal(o->paths[0].settings[0].trace, "a");
    assert_string_equal(o->paths[0].settings[1].trace, "c");
    assert_int_equal(o->paths[0].settings[0].config.delay_us, 7000);
    assert_int_equal(o->paths[0].settings[1].config.delay_us, 7000);
    assert_true(o->paths[0].settings[0].config.once);
    assert_string_equal(o->paths[2].name, "sat");
}

TEST(tells_what_is_wrong_in_a_configuration_file) {
    static const char *const cases[][2] = {
        {"", ", line 1: the file is empty"},
        {"paths: [\n", "line 2: this is not YAML"},
        {"- a\n", ", line 1: a list of OPTION: VALUE"},
        {"seed: 3\nsed: 3\n", ", line 2: \"sed\" is not an option"},
        {"seed: x\n", ", line 1: seed takes a whole number from 0 to 9223372036854775807, not 'x'."},
        {"keep-awake: often\n", ", line 1: keep-awake takes auto, on or off, not 'often'."},
        {"path: lte\n", ", line 1: \"path\" is not an option"},
        {"config: x\n", ", line 1: \"config\" is not an option"},
        {"mptcp: maybe\n", ", line 1: mptcp takes true or false, not 'maybe'."},
        {"seed: [1]\n", ", line 1: one text or number"},
        {"paths:\n  wifi: 3\n", ", line 2: paths is a list"},
        {"paths:\n  - up: a\n", ", line 2: this path has no name"},
        {"paths:\n  - name: wifi\n    delay: fast\n", ", line 3: path wifi: delay takes ms (0 to 3600000), not 'fast'"},
        {"paths:\n  - name: wifi\n    colour: red\n", ", line 3: path wifi: \"colour\""},
        {"paths:\n  - name: lo\n", ", line 2: \"lo\" cannot name a path"},
        {"paths:\n  - {name: a}\n  - {name: a}\n", ", line 3: two paths are named a"},
        {"paths:\n  - {name: a, up: x, down: y}\n", "delay is missing"},
        {"seed: \"1\\0\"\n", ", line 1: one text or number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refuses(with_config("", cases[i][0]), cases[i][1]);
}

TEST(tells_what_is_missing_or_unknown) {
    static const char *const cases[][2] = {
        {"-- sh", "no path"},
        {WIFI, "no command"},
        {WIFI "--", "no command"},
        {WIFI "--sed 3 -- sh", "unknown option '--sed'"},
        {WIFI "--seed", "--seed needs a value"},
        {WIFI "--seed -3 -- sh", "--seed takes a whole number from 0 to 9223372036854775807, not '-3'."},
        {WIFI "--log-dir '' x", "--log-dir takes a text, not ''."},
        {WIFI "-x -- sh", "unknown option '-x'"},
        {"--seed 3 --seed 3 sh", "--seed is given twice."},
        {"--live " WIFI "--live sh", "--live is given twice."},
        {"--config a --config b sh", "--config is given twice."},
        {WIFI "--sysctl kernel.x=1 sh", "--sysctl takes net.NAME=VALUE, not 'kernel.x=1'."},
        {WIFI "--control '' sh", "--control takes a text, not ''."},
    };
    REFUSES_EACH("%s", cases);
}

TEST(more_paths_than_the_limit_are_refused) {
    char text[40 * (MP_MAX_PATHS + 1)] = "";
    for (size_t k = 0; k <= MP_MAX_PATHS; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "--path p%02zu:up=a,down=b,delay=1 ", k);
    refuses(strcat(text, "sh"), "more than 32 paths");
}

TEST(the_side_that_lends_takes_no_path_and_no_command) {
    mp_options options;
    assert_parsed(&options, "--lend-outside /join/outside");
    assert_string_equal(options.lend_outside, "/join/outside");
    mp_options_free(&options);
    assert_parsed(&options, "--outside /join/outside " WIFI "-- sh");
    assert_string_equal(options.outside, "/join/outside");
    mp_options_free(&options);
    refuses("--lend-outside /join/outside -- sh", "takes no --path and no COMMAND");
    refuses("--lend-outside /join/outside " WIFI, "takes no --path and no COMMAND");
    refuses("--outside /join/outside " WIFI "--nat -- sh", "--nat and --outside");
}

OPTIONS_TEST(reads_bottlenecks) {
    assert_parsed(o, "--bottleneck edge:up-rate=3mbps,down-rate=9mbps "
                     "--path wifi:up=a,down=b,delay=10,via=core:edge,down-via=edge "
                     "--bottleneck core:rate=20mbps,delay=5,queue=droptail:packets=9 -- x");
    assert_int_equal(o->bottleneck_count, 2);
    assert_string_equal(o->bottlenecks[0].settings[1].trace, "9mbps");
    assert_int_equal(o->bottlenecks[1].settings[0].config.delay_us, 5000);
    const link_via *via = o->paths[0].via;
    assert_true(via[0].count == 2 && via[0].bottlenecks[0] == 1 && via[0].bottlenecks[1] == 0);
    assert_int_equal(via[1].count, 1);
}

TEST(wrong_bottlenecks_are_refused) {
    static const char *const cases[][2] = {
        {"core:delay=5", "bottleneck core: rate is missing"},
        {"core:rate=5mbps,nat=timeout=9", "bottleneck core: uplink: a bottleneck has no nat"},
        {"wifi:rate=5mbps", "a bottleneck has the name wifi of another link"},
        {"-x:rate=5mbps", "cannot name a bottleneck"},
        {"edge:rate=5mbps", "path wifi: via: \"core\" is not the name of a bottleneck"},
    };
    REFUSES_EACH("--path wifi:up=a,down=b,delay=10,via=core --bottleneck %s -- x", cases);
}

OPTIONS_TEST(reads_flows) {
    assert_parsed(o, "--flow bulk:cc=newreno,via=core,count=3,delay=15,from=1.5,to=60 " WIFI
                     "--flow web:path=wifi,direction=up,size=50000,pause=300 "
                     "--bottleneck core:rate=20mbps,delay=5 -- x");
    assert_int_equal(o->flow_count, 2);
    const mp_flow_options *bulk = &o->flows[0], *web = &o->flows[1];
    assert_string_equal(bulk->cc, "reno");
    assert_true(bulk->count == 3 && bulk->is_down && bulk->from_us == 1500000 && bulk->to_us == 60000000);
    assert_true(bulk->size_bytes == 0 && bulk->pause_us == MP_NO_PAUSE);
    assert_string_equal(web->cc, "cubic");
    assert_true(!web->is_down && web->size_bytes == 50000 && web->pause_us == 300000 && web->at == 0);
    /* The flow's link is a path that COMMAND is not told about. */
    assert_int_equal(o->told_count, 1);
    assert_int_equal(o->path_count, 2);
    assert_int_equal(bulk->at, 1);
    assert_string_equal(o->paths[1].name, "bulk");
    assert_string_equal(o->paths[1].settings[0].trace, "100mbps");
    assert_int_equal(o->paths[1].settings[1].config.delay_us, 15000);
    assert_int_equal(o->paths[1].via[1].count, 1);
}

TEST(wrong_flows_are_refused) {
    static const char *const cases[][2] = {
        {"x", "flow x needs path=NAME or via=NAMES, one of the two"},
        {"x:path=wifi,via=core", "flow x needs path=NAME or via=NAMES, one of the two"},
        {"x:path=lte", "flow x: there is no path lte"},
        {"x:via=edge", "via: \"edge\" is not the name of a bottleneck"},
        {"x:path=wifi,delay=5", "flow x: rate and delay are of a link of its own"},
        {"x:path=wifi,from=5,to=5", "flow x: to is not after from"},
        {"x:path=wifi,pause=5", "flow x: pause needs size"},
        {"x:path=wifi,cc=Cubic", "--flow x: cc takes a congestion controller of the kernel"},
        {"x:path=wifi,cc=a_name_that_is_16", "--flow x: cc takes a congestion controller of the kernel"},
        {"x:path=wifi,count=65", "--flow x: count takes "},
        {"x:path=wifi,speed=5", "--flow x: \"speed\" is not a key of a flow"},
        {"x:path=wifi,", "--flow x: \"\" is not a key of a flow"},
        {"-x:path=wifi", "cannot name a flow"},
        {"core:via=core", "core"},
        {"wifi:via=core", "wifi"},
    };
    REFUSES_EACH(WIFI "--bottleneck core:rate=5mbps --flow %s -- x", cases);
}

TEST(flows_go_with_no_borrowed_outside) {
    refuses(WIFI "--flow x:path=wifi --outside s -- x", "--flow and --outside cannot be combined");
    refuses(WIFI "--flow-log f -- x", "--flow-log needs --flow");
    refuses(WIFI "--flow x:path=wifi --flow x:path=wifi -- x", "two flows are named x");
}

OPTIONS_TEST(a_configuration_file_has_flows) {
    static const char *const text = "paths:\n"
                                    "  - {name: wifi, up: a, down: b, delay: 5}\n"
                                    "flows:\n"
                                    "  - {path: wifi, name: bulk, cc: bbr, count: 2}\n";
    static const char *const wrong[][2] = {
        {"flows: x\n", "flows is a list"},
        {"flows: [{path: wifi}]\n", "this flow has no name"},
        {"flows: [{name: x, cc: B}]\n", "flow x: cc takes a congestion controller"},
    };
    assert_parsed(o, with_config("", text));
    assert_int_equal(o->flow_count, 1);
    assert_string_equal(o->flows[0].cc, "bbr");
    assert_int_equal(o->flows[0].count, 2);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refuses(with_config("", wrong[i][0]), wrong[i][1]);
}

TEST_MAIN(make_config, remove_config)
