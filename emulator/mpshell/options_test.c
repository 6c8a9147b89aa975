#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit.h"
#include "emulator/mpshell/command_line.h"

#define WIFI_SPEC "wifi:up=a,down=b,delay=10"
#define WIFI      "--path", WIFI_SPEC

static bool parse(mp_options *options, char **argv, char error[512]) {
    int argc = 0;
    while (argv[argc])
        argc++;
    return mp_options_parse(options, argc, argv, error, 512);
}

#define OPTIONS_TEST(name) TEST_OF(name, mp_options, o, mp_options_free)

static void assert_parsed(mp_options *options, char **argv) {
    char error[512] = "";
    if (!parse(options, argv, error))
        fail_msg("%s", error);
}

static void refuses(char **argv, const char *text) {
    mp_options o;
    char error[512] = "";
    assert_false(parse(&o, argv, error));
    if (!strstr(error, text))
        fail_msg("\"%s\" does not say \"%s\"", error, text);
    mp_options_free(&o);
}

OPTIONS_TEST(reads_every_option) {
    char *argv[] = {"mpshell",
                    "--path",
                    "wifi:up=u,down=d,delay=15.25,queue=droptail:packets=100:bytes=9000,loss=0.01,once",
                    "--path",
                    "lte-2:delay=0,down=x,up=y",
                    "--seed",
                    "42",
                    "--log-dir",
                    "logs",
                    "--start-offset",
                    "1500",
                    "--mptcp",
                    "--mptcp-subflows",
                    "3",
                    "--",
                    "sh",
                    "-c",
                    "--seed",
                    NULL};
    assert_parsed(o, argv);
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
    char *argv[] = {"mpshell", WIFI, "--summary", "s.json", "ls", "-l", NULL};
    assert_parsed(o, argv);
    assert_string_equal(o->command[0], "ls");
    assert_string_equal(o->command[1], "-l");
    assert_string_equal(o->summary, "s.json");
    assert_null(o->log_dir);
}

OPTIONS_TEST(help_needs_nothing_else) {
    char *argv[] = {"mpshell", "--help", NULL};
    assert_parsed(o, argv);
    assert_true(o->help);
}

TEST(tells_what_is_wrong) {
    static const struct {
        char *path;
        const char *what;
    } cases[] = {
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
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *argv[] = {"mpshell", "--path", "lte:up=a,down=b,delay=1", "--path", cases[i].path, "--", "sh", NULL};
        refuses(argv, cases[i].what);
    }
}

OPTIONS_TEST(some_options_may_be_repeated) {
    char *argv[] = {"mpshell", WIFI, "--sysctl", "net.a=1", "--sysctl", "net.b=2", "--control", "s", "sh", NULL};
    assert_parsed(o, argv);
    assert_int_equal(o->sysctl_count, 2);
    assert_string_equal(o->sysctls[1], "net.b=2");
    assert_int_equal(o->control[0], '/'); /* absolute, so that COMMAND finds it from any directory */
    assert_string_equal(strrchr(o->control, '/'), "/s");
}

static void write_config(const char *text, char name[32]) {
    strcpy(name, "/tmp/options_test.XXXXXX");
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
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
        char name[32];
        char error[512] = "";
        mp_options o;
        write_config(files[i], name);
        char *argv[] = {"mpshell", "--config", name, "--", "sh", NULL};
        assert_true(parse(&o, argv, error));
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
        unlink(name);
    }
}

TEST(options_go_before_the_configuration_file) {
    char name[32];
    char error[512] = "";
    mp_options o;
    write_config(yaml, name);
    char *argv[] = {"mpshell",
                    "--path",
                    "wifi:delay=7,down=c",
                    "--seed",
                    "3",
                    "--path",
                    "sat:up=x,down=y,delay=300",
                    "--config",
                    name,
                    "--",
                    "sh",
                    NULL};
    assert_true(parse(&o, argv, error));
    assert_int_equal(o.path_count, 3);
    assert_int_equal(o.seed, 3);
    assert_string_equal(o.paths[0].settings[0].trace, "a");
    assert_string_equal(o.paths[0].settings[1].trace, "c");
    assert_int_equal(o.paths[0].settings[0].config.delay_us, 7000);
    assert_int_equal(o.paths[0].settings[1].config.delay_us, 7000);
    assert_true(o.paths[0].settings[0].config.once);
    assert_string_equal(o.paths[2].name, "sat");
    mp_options_free(&o);
    unlink(name);
}

TEST(tells_what_is_wrong_in_a_configuration_file) {
    static const struct {
        const char *text;
        const char *what;
    } cases[] = {
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
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[32];
        write_config(cases[i].text, name);
        char *argv[] = {"mpshell", "--config", name, "--", "sh", NULL};
        refuses(argv, cases[i].what);
        unlink(name);
    }
}

TEST(tells_what_is_missing_or_unknown) {
    static char *const lines[][8] = {
        {"mpshell", "--", "sh", NULL},
        {"mpshell", WIFI, NULL},
        {"mpshell", WIFI, "--", NULL},
        {"mpshell", WIFI, "--sed", "3", "--", "sh", NULL},
        {"mpshell", WIFI, "--seed", NULL},
        {"mpshell", WIFI, "--seed", "-3", "--", "sh", NULL},
        {"mpshell", WIFI, "--log-dir", "", "x", NULL},
        {"mpshell", WIFI, "-x", "--", "sh", NULL},
        {"mpshell", "--seed", "3", "--seed", "3", "sh", NULL},
        {"mpshell", "--live", WIFI, "--live", "sh", NULL},
        {"mpshell", "--config", "a", "--config", "b", "sh", NULL},
        {"mpshell", WIFI, "--sysctl", "kernel.x=1", "sh", NULL},
        {"mpshell", WIFI, "--control", "", "sh", NULL},
    };
    static const char *const what[] = {"no path",
                                       "no command",
                                       "no command",
                                       "unknown option '--sed'",
                                       "--seed needs a value",
                                       "--seed takes a whole number from 0 to 9223372036854775807, not '-3'.",
                                       "--log-dir takes a text, not ''.",
                                       "unknown option '-x'",
                                       "--seed is given twice.",
                                       "--live is given twice.",
                                       "--config is given twice.",
                                       "--sysctl takes net.NAME=VALUE, not 'kernel.x=1'.",
                                       "--control takes a text, not ''."};
    for (size_t i = 0; i < sizeof what / sizeof what[0]; i++) {
        char *argv[8];
        memcpy(argv, lines[i], sizeof argv);
        refuses(argv, what[i]);
    }
}

TEST(more_paths_than_the_limit_are_refused) {
    static char specs[MP_MAX_PATHS + 1][40];
    char *argv[2 * (MP_MAX_PATHS + 1) + 4] = {"mpshell"};
    size_t n = 1;
    for (size_t k = 0; k <= MP_MAX_PATHS; k++) {
        memcpy(specs[k], "p00:up=a,down=b,delay=1", sizeof("p00:up=a,down=b,delay=1"));
        specs[k][1] = (char)('0' + k / 10);
        specs[k][2] = (char)('0' + k % 10);
        argv[n++] = "--path";
        argv[n++] = specs[k];
    }
    argv[n++] = "sh";
    refuses(argv, "more than 32 paths");
}

TEST(the_side_that_lends_takes_no_path_and_no_command) {
    char *alone[] = {"mpshell", "--lend-outside", "/join/outside", NULL};
    char *command[] = {"mpshell", "--lend-outside", "/join/outside", "--", "sh", NULL};
    char *path[] = {"mpshell", "--lend-outside", "/join/outside", WIFI, NULL};
    char *borrow[] = {"mpshell", "--outside", "/join/outside", WIFI, "--", "sh", NULL};
    char *nat[] = {"mpshell", "--outside", "/join/outside", WIFI, "--nat", "--", "sh", NULL};
    mp_options options;
    char error[512] = "";
    assert_true(parse(&options, alone, error));
    assert_string_equal(options.lend_outside, "/join/outside");
    mp_options_free(&options);
    refuses(command, "takes no --path and no COMMAND");
    assert_false(parse(&options, path, error));
    mp_options_free(&options);
    assert_true(parse(&options, borrow, error));
    assert_string_equal(options.outside, "/join/outside");
    mp_options_free(&options);
    refuses(nat, "--nat and --outside");
}

OPTIONS_TEST(reads_bottlenecks) {
    char *argv[] = {"mpshell",
                    "--bottleneck",
                    "edge:up-rate=3mbps,down-rate=9mbps",
                    "--path",
                    "wifi:up=a,down=b,delay=10,via=core:edge,down-via=edge",
                    "--bottleneck",
                    "core:rate=20mbps,delay=5,queue=droptail:packets=9",
                    "--",
                    "x",
                    NULL};
    assert_parsed(o, argv);
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
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char spec[80];
        char *argv[] = {"mpshell", "--path", "wifi:up=a,down=b,delay=10,via=core", "--bottleneck", spec, "--",
                        "x",       NULL};
        strcpy(spec, cases[i][0]);
        refuses(argv, cases[i][1]);
    }
}

OPTIONS_TEST(reads_flows) {
    char *argv[] = {"mpshell",
                    "--flow",
                    "bulk:cc=newreno,via=core,count=3,delay=15,from=1.5,to=60",
                    "--path",
                    WIFI_SPEC,
                    "--flow",
                    "web:path=wifi,direction=up,size=50000,pause=300",
                    "--bottleneck",
                    "core:rate=20mbps,delay=5",
                    "--",
                    "x",
                    NULL};
    assert_parsed(o, argv);
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
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char spec[80];
        char *argv[] = {"mpshell", "--path", WIFI_SPEC, "--bottleneck", "core:rate=5mbps", "--flow", spec,
                        "--",      "x",      NULL};
        strcpy(spec, cases[i][0]);
        refuses(argv, cases[i][1]);
    }
}

TEST(flows_go_with_no_borrowed_outside) {
    char *argv[] = {"mpshell", WIFI, "--flow", "x:path=wifi", "--outside", "s", "--", "x", NULL};
    char *alone[] = {"mpshell", WIFI, "--flow-log", "f", "--", "x", NULL};
    char *twice[] = {"mpshell", WIFI, "--flow", "x:path=wifi", "--flow", "x:path=wifi", "--", "x", NULL};
    refuses(argv, "--flow and --outside cannot be combined");
    refuses(alone, "--flow-log needs --flow");
    refuses(twice, "two flows are named x");
}

TEST(a_configuration_file_has_flows) {
    static const char *const text = "paths:\n"
                                    "  - {name: wifi, up: a, down: b, delay: 5}\n"
                                    "flows:\n"
                                    "  - {path: wifi, name: bulk, cc: bbr, count: 2}\n";
    static const char *const wrong[][2] = {
        {"flows: x\n", "flows is a list"},
        {"flows: [{path: wifi}]\n", "this flow has no name"},
        {"flows: [{name: x, cc: B}]\n", "flow x: cc takes a congestion controller"},
    };
    char name[32];
    char error[512] = "";
    mp_options o;
    write_config(text, name);
    char *argv[] = {"mpshell", "--config", name, "--", "sh", NULL};
    assert_true(parse(&o, argv, error));
    assert_int_equal(o.flow_count, 1);
    assert_string_equal(o.flows[0].cc, "bbr");
    assert_int_equal(o.flows[0].count, 2);
    mp_options_free(&o);
    unlink(name);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_config(wrong[i][0], name);
        refuses(argv, wrong[i][1]);
        unlink(name);
    }
}

TEST_MAIN(NULL, NULL)
