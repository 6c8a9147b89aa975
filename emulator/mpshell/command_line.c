#include "emulator/mpshell/command_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "emulator/mpshell/config.h"
#include "emulator/mpshell/flow_options.h"

/* Reads the members of a path, "key=value,key=value"; a key alone means yes. */
static bool parse_members(link_settings settings[2], char *text, char *error, size_t error_size) {
    char reason[512];
    char *rest = text;
    for (char *member = text[0] == '\0' ? NULL : strsep(&rest, ","); member; member = strsep(&rest, ",")) {
        char *equals = strchr(member, '=');
        if (equals)
            *equals = '\0';
        const char *value = !equals ? "yes" : equals + 1;
        if (!link_settings_set(settings, member, value, reason, sizeof reason))
            return error_set(error, error_size, "%s", reason);
    }
    return true;
}

/* Returns the path or bottleneck of the configuration file that this option overrides. NULL if there is none, or an
 * earlier option has overridden it. */
static mp_path_options *find_in_file(mp_options *options, mp_link_kind kind, const char *name, size_t length) {
    for (size_t i = 0; i < options->of_file[kind]; i++) {
        mp_path_options *path = &mp_options_links(options, kind)[i];
        if (strlen(path->name) == length && memcmp(path->name, name, length) == 0 && !path->overridden) {
            path->overridden = true;
            return path;
        }
    }
    return NULL;
}

static bool parse_link(mp_options *options, mp_link_kind kind, const char *text, char *error, size_t error_size) {
    link_settings settings[2] = {{.trace = NULL}, {.trace = NULL}};
    const char *colon = strchr(text, ':');
    size_t name_length = !colon ? strlen(text) : (size_t)(colon - text);
    mp_path_options *path = find_in_file(options, kind, text, name_length);
    if (!path)
        path = mp_options_add(options, kind, text, name_length, error, error_size);
    if (!path)
        return false;
    char *members = strdup(!colon ? "" : colon + 1);
    if (!members)
        return error_set(error, error_size, "no memory");
    const bool good = parse_members(settings, members, error, error_size);
    free(members);
    if (!good) {
        link_settings_free(settings);
        return false;
    }
    return link_settings_override(path->settings, settings) || error_set(error, error_size, "no memory");
}

static bool read_link(void *into, mp_link_kind kind, const char *text, char *reason, size_t cap) {
    char sentence[512];
    return parse_link(into, kind, text, sentence, sizeof sentence) ||
           error_set(reason, cap, "%.*s: %s", (int)strcspn(text, ":") < 40 ? (int)strcspn(text, ":") : 40, text,
                     sentence);
}

static bool read_path(void *into, const char *text, char *reason, size_t cap) {
    return read_link(into, MP_PATH, text, reason, cap);
}

static bool read_bottleneck(void *into, const char *text, char *reason, size_t cap) {
    return read_link(into, MP_BOTTLENECK, text, reason, cap);
}

static bool read_flow(void *into, const char *text, char *reason, size_t cap) {
    return mp_flow_parse(into, text, reason, cap);
}

#define FIELD(member) SETTING_FIELD(mp_options, member)

static const setting rows_of_command_line[] = {
    {"path", SETTING_OWN, .read = read_path, .repeats = true, .value = "SPEC",
     .help = "A path: device NAME (at most 15 of a-z 0-9 -), uplink and downlink trace or a constant rate (12mbps), "
             "one-way delay in ms, queue (infinite, the default; droptail:packets=N; drophead, codel, pie, fq_codel), "
             "random loss (0..1; ge:p=P:r=P). Further keys: offset, once, delay-trace, delay-trace-end, jitter, "
             "reorder, reorder-delay, duplicate, onoff, radio, grants, leo. The prefix up- or down- limits a key to "
             "one direction (down-queue=pie). See docs/reference/links.md."},
    {"bottleneck", SETTING_OWN, .read = read_bottleneck, .repeats = true, .value = "SPEC",
     .help = "A link that paths share, NAME:rate=RATE, with the keys of a path but nat, wifi and via. Paths name it: "
             "--path …,via=NAME[:NAME...]."},
    {"flow", SETTING_OWN, .read = read_flow, .repeats = true, .value = "SPEC",
     .help = "Connections of the kernel's TCP beside COMMAND's traffic, NAME:path=NAME or NAME:via=BOTTLENECK[:...]. "
             "Further keys: cc, direction, count, from, to, size, pause, and with via rate and delay. See "
             "docs/reference/links.md."},
    {"virtual", SETTING_FLAG, FIELD(in_virtual_time),
     .help = "Run all of this in a Linux kernel of its own, in virtual time: exact and repeatable, without privileges, "
             "for rates up to some 50 Mbps. docs/howto/kernel.md has the limits."},
    {"probe", SETTING_DECIMAL, FIELD(probe_ms), .least = 100, .most = 600000, .value = "SECONDS",
     .help = "Measure for so long how late this machine wakes timers, and print one line of JSON. Without --path and "
             "COMMAND."},
    {"config", SETTING_TEXT, FIELD(config), .is_base = true, .value = "FILE",
     .help = "Read options from a YAML or JSON file. Options on the command line override it."},
    {0},
};

void mp_options_print_usage(void) {
    printf("usage: mpshell --path NAME:up=TRACE,down=TRACE,delay=MS[,queue=QUEUE][,loss=P][,KEY=VALUE...] "
           "[--path ...] [options] -- COMMAND...\n"
           "\n"
           "Runs COMMAND in a network namespace with one device for each path. Every path replays its traces.\n"
           "\n");
    settings_help(stdout, rows_of_command_line, 0);
    settings_help(stdout, mp_option_rows, 0);
    printf("\n"
           "COMMAND finds its paths in the environment: MPSHELL_PATHS, MPSHELL_PATH_<i>_NAME, _ADDR, _ADDR6,\n"
           "_GATEWAY, _GATEWAY6, MPSHELL_GATEWAY and MPSHELL_GATEWAY6.\n"
           "The exit status is COMMAND's (128 + n if signal n ended it); 1 if COMMAND's is 0 and a log or the\n"
           "summary is incomplete; 2 if mpshell cannot start.\n");
}

static char *join(int argc, char **argv) {
    size_t length = 1;
    for (int i = 0; i < argc; i++)
        length += strlen(argv[i]) + 1;
    char *line = malloc(length);
    size_t used = 0;
    for (int i = 0; i < argc && line; i++)
        used += (size_t)snprintf(line + used, length - used, "%s%s", i == 0 ? "" : " ", argv[i]);
    return line;
}

static bool check_paths(const mp_options *options, char *error, size_t error_size) {
    char reason[512];
    if (options->path_count == 0)
        return error_set(error, error_size, "no path; give --path NAME:up=TRACE,down=TRACE,delay=MS at least once");
    for (size_t i = 0; i < options->path_count; i++) {
        const mp_path_options *path = &options->paths[i];
        if (!link_settings_check(path->settings, true, reason, sizeof reason))
            return error_set(error, error_size, "path %s: %s", path->name, reason);
    }
    for (size_t i = 0; i < options->bottleneck_count; i++) {
        const mp_path_options *bottleneck = &options->bottlenecks[i];
        if (!link_settings_check(bottleneck->settings, false, reason, sizeof reason))
            return error_set(error, error_size, "bottleneck %s: %s", bottleneck->name, reason);
    }
    return true;
}

static bool find_vias(mp_options *options, char *error, size_t error_size) {
    char reason[512];
    const char *names[LINK_BOTTLENECKS_MOST];
    for (size_t i = 0; i < options->bottleneck_count; i++)
        names[i] = options->bottlenecks[i].name;
    for (size_t i = 0; i < options->path_count; i++) {
        mp_path_options *path = &options->paths[i];
        if (!link_vias_parse(path->via, path->settings, names, options->bottleneck_count, reason, sizeof reason))
            return error_set(error, error_size, "path %s: %s", path->name, reason);
    }
    return true;
}

/* Checks and completes the options once all are known. */
static bool complete(mp_options *options, int argc, char **argv, int rest, char *error, size_t error_size) {
    if (options->lend_outside) {
        return (options->path_count == 0 && rest >= argc) ||
               error_set(error, error_size,
                         "--lend-outside takes no --path and no COMMAND; give them to mpshell --outside");
    }
    if (options->probe_ms > 0) {
        return (options->path_count == 0 && rest >= argc) ||
               error_set(error, error_size, "--probe takes no --path and no COMMAND; run it alone");
    }
    if (options->outside && options->nat)
        return error_set(error, error_size, "--nat and --outside cannot be combined");
    if (options->watched_count > 0 && !options->lateness)
        return error_set(error, error_size, "--watch needs --lateness FILE, which says how late the process was");
    if (!mp_flows_place(options, error, error_size) || !check_paths(options, error, error_size) ||
        !find_vias(options, error, error_size))
        return false;
    if (rest >= argc)
        return error_set(error, error_size, "no command; give it after --, for example: -- sh");
    options->command = argv + rest;
    options->command_line = join(argc, argv);
    if (options->log_dir && !options->summary) {
        options->summary = mp_options_keep_joined(options, options->log_dir, "mpshell.json");
        if (!options->summary)
            return error_set(error, error_size, "no memory");
    }
    return options->command_line || error_set(error, error_size, "no memory");
}

/* Reads --config, at any position, and its file first; then the other options, which override the file. */
static bool read_all(mp_options *options, int argc, char **argv, int *rest, char *error, size_t error_size) {
    char reason[SETTINGS_ERROR_BYTES];
    setting_tables s = {.table = {{rows_of_command_line, options, 0}, {mp_option_rows, options, 0}},
                        .count = 2,
                        .pass = SETTINGS_BASES,
                        .refuse_twice = true};
    if (!settings_read_args(&s, argc, argv, &options->help, rest, reason))
        return error_set(error, error_size, "%s", reason);
    if (options->help)
        return true;
    if (options->config && !mp_config_read(options, options->config, error, error_size))
        return false;
    options->of_file[MP_PATH] = options->path_count;
    options->of_file[MP_BOTTLENECK] = options->bottleneck_count;
    s.pass = SETTINGS_OTHERS;
    return settings_read_args(&s, argc, argv, &options->help, rest, reason) ||
           error_set(error, error_size, "%s", reason);
}

bool mp_options_parse(mp_options *options, int argc, char **argv, char *error, size_t error_size) {
    int rest = argc;
    *options =
        (mp_options){.seed = 1, .snaplen = 1500, .mptcp_subflows = MP_MAX_SUBFLOWS, .mptcp_addresses = MP_MAX_SUBFLOWS};
    if (!read_all(options, argc, argv, &rest, error, error_size))
        return false;
    return options->help || complete(options, argc, argv, rest, error, error_size);
}
