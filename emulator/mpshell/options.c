#include "emulator/mpshell/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char mp_options_usage[] =
    "usage: mpshell --path NAME:up=TRACE,down=TRACE,delay=MS[,queue=QUEUE][,loss=P][,KEY=VALUE...] [--path ...] "
    "[options] -- COMMAND...\n"
    "\n"
    "Runs COMMAND in a network namespace with one device per path; every path replays its traces.\n"
    "\n"
    "  --path SPEC          a path: device NAME (at most 15 of a-z 0-9 -), uplink and downlink trace or a constant "
    "rate\n"
    "                       (12mbps), one-way delay in ms, queue (infinite, the default; droptail:packets=N; "
    "drophead,\n"
    "                       codel, pie, fq_codel), random loss (0..1; ge:p=P:r=P). Further keys: offset, once,\n"
    "                       delay-trace, delay-trace-end, jitter, reorder, reorder-delay, duplicate, onoff. A key "
    "with\n"
    "                       up- or down- before it is for one direction (down-queue=pie). docs/link.md tells all.\n"
    "  --seed N             seed of the random loss (default 1)\n"
    "  --start-offset MS    place in the traces at which COMMAND starts (default 0)\n"
    "  --log-dir DIR        write NAME.up.log and NAME.down.log (mm-link's format) and mpshell.json\n"
    "  --summary FILE       write the summary there instead\n"
    "  --mptcp              make the kernel's MPTCP use every path\n"
    "  --no-offload         let the kernel make every packet and checksum: slower, the same for COMMAND\n"
    "  --busy-poll US       do not sleep for the last US before a delivery: more exact, more processor time (default "
    "0)\n"
    "  --help               this text\n"
    "\n"
    "COMMAND finds its paths in MPSHELL_PATHS, MPSHELL_PATH_<i>_NAME, _ADDR, _GATEWAY and MPSHELL_GATEWAY.\n"
    "The exit status is COMMAND's (128 + n if signal n ended it), 2 if mpshell cannot start.\n";

__attribute__((format(printf, 3, 4))) static int fail(char *error, size_t error_size, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error, error_size, format, args);
    va_end(args);
    return -1;
}

static bool parse_u64(const char *text, uint64_t limit, uint64_t *value) {
    char *end;
    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    *value = v;
    return errno == 0 && *end == '\0' && v <= limit;
}

static bool is_device_name(const char *name, size_t length) {
    static const char *const reserved[] = {"lo", "all", "default"}; /* names that the kernel uses itself */
    if (length == 0 || length >= MP_NAME_SIZE || name[0] == '-') {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-')) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        if (strlen(reserved[i]) == length && memcmp(reserved[i], name, length) == 0) {
            return false;
        }
    }
    return true;
}

static int set_string(char **slot, const char *value, const char *what, char *error, size_t error_size) {
    if (*slot != NULL) {
        return fail(error, error_size, "%s is given twice", what);
    }
    if (value[0] == '\0') {
        return fail(error, error_size, "%s is empty", what);
    }
    *slot = strdup(value);
    return *slot != NULL ? 0 : fail(error, error_size, "no memory");
}

/* The members of a path, "key=value,key=value"; a key alone says yes. */
static int parse_members(struct mp_path_options *path, char *text, char *error, size_t error_size) {
    char reason[512];
    char *rest = text;
    for (char *member = text[0] == '\0' ? NULL : strsep(&rest, ","); member != NULL; member = strsep(&rest, ",")) {
        char *equals = strchr(member, '=');
        if (equals != NULL) {
            *equals = '\0';
        }
        const char *value = equals == NULL ? "yes" : equals + 1;
        if (xl_link_settings_set(path->settings, member, value, reason, sizeof(reason)) != 0) {
            return fail(error, error_size, "path %s: %s", path->name, reason);
        }
    }
    if (xl_link_settings_check(path->settings, reason, sizeof(reason)) != 0) {
        return fail(error, error_size, "path %s needs up=TRACE, down=TRACE and delay=MS; %s", path->name, reason);
    }
    return 0;
}

static int parse_path(struct mp_options *options, const char *text, char *error, size_t error_size) {
    if (options->path_count == MP_MAX_PATHS) {
        return fail(error, error_size, "more than %d paths", MP_MAX_PATHS);
    }
    const char *colon = strchr(text, ':');
    size_t name_length = colon == NULL ? strlen(text) : (size_t)(colon - text);
    if (!is_device_name(text, name_length)) {
        return fail(error, error_size,
                    "\"%.*s\" cannot name a path; use at most 15 of a-z 0-9 - (not lo, all, default)",
                    (int)(name_length < 40 ? name_length : 40), text);
    }
    struct mp_path_options *path = &options->paths[options->path_count];
    memcpy(path->name, text, name_length);
    path->name[name_length] = '\0';
    for (size_t i = 0; i < options->path_count; i++) {
        if (strcmp(options->paths[i].name, path->name) == 0) {
            return fail(error, error_size, "two paths are named %s", path->name);
        }
    }
    options->path_count++;
    char *members = strdup(colon == NULL ? "" : colon + 1);
    if (members == NULL) {
        return fail(error, error_size, "no memory");
    }
    int rc = parse_members(path, members, error, error_size);
    free(members);
    return rc;
}

enum {
    OPT_PATH = 256,
    OPT_SEED,
    OPT_OFFSET,
    OPT_LOG_DIR,
    OPT_SUMMARY,
    OPT_MPTCP,
    OPT_NO_OFFLOAD,
    OPT_BUSY_POLL,
    OPT_HELP
};

static int parse_option(struct mp_options *options, int option, char **argv, char *error, size_t error_size) {
    switch (option) {
    case OPT_PATH:
        return parse_path(options, optarg, error, error_size);
    case OPT_SEED:
        return parse_u64(optarg, INT64_MAX, &options->seed)
                   ? 0
                   : fail(error, error_size, "--seed %s is not a whole number", optarg);
    case OPT_OFFSET:
        return parse_u64(optarg, UINT32_MAX, &options->start_offset_ms)
                   ? 0
                   : fail(error, error_size, "--start-offset %s is not a whole number of ms", optarg);
    case OPT_LOG_DIR:
        return set_string(&options->log_dir, optarg, "--log-dir", error, error_size);
    case OPT_SUMMARY:
        return set_string(&options->summary, optarg, "--summary", error, error_size);
    case OPT_MPTCP:
        options->mptcp = true;
        return 0;
    case OPT_NO_OFFLOAD:
        options->no_offload = true;
        return 0;
    case OPT_BUSY_POLL:
        return parse_u64(optarg, 1000, &options->busy_poll_us)
                   ? 0
                   : fail(error, error_size, "--busy-poll %s is not a time in us (0 to 1000)", optarg);
    case OPT_HELP:
        options->help = true;
        return 0;
    case ':':
        return fail(error, error_size, "option %s needs a value; see mpshell --help", argv[optind - 1]);
    default:
        return fail(error, error_size, "unknown option %s; see mpshell --help", argv[optind - 1]);
    }
}

static char *join(int argc, char **argv) {
    size_t length = 1;
    for (int i = 0; i < argc; i++) {
        length += strlen(argv[i]) + 1;
    }
    char *line = malloc(length);
    size_t used = 0;
    for (int i = 0; i < argc && line != NULL; i++) {
        used += (size_t)snprintf(line + used, length - used, "%s%s", i == 0 ? "" : " ", argv[i]);
    }
    return line;
}

/* What only makes sense when all options are known. */
static int complete(struct mp_options *options, int argc, char **argv, char *error, size_t error_size) {
    if (options->path_count == 0) {
        return fail(error, error_size, "no path; give --path NAME:up=TRACE,down=TRACE,delay=MS at least once");
    }
    if (optind >= argc) {
        return fail(error, error_size, "no command; give it after --, for example: -- sh");
    }
    options->command = argv + optind;
    options->command_line = join(argc, argv);
    if (options->log_dir != NULL && options->summary == NULL &&
        asprintf(&options->summary, "%s/mpshell.json", options->log_dir) < 0) {
        options->summary = NULL;
        return fail(error, error_size, "no memory");
    }
    return options->command_line != NULL ? 0 : fail(error, error_size, "no memory");
}

int mp_options_parse(struct mp_options *options, int argc, char **argv, char *error, size_t error_size) {
    static const struct option known[] = {
        {"path", required_argument, NULL, OPT_PATH},
        {"seed", required_argument, NULL, OPT_SEED},
        {"start-offset", required_argument, NULL, OPT_OFFSET},
        {"log-dir", required_argument, NULL, OPT_LOG_DIR},
        {"summary", required_argument, NULL, OPT_SUMMARY},
        {"mptcp", no_argument, NULL, OPT_MPTCP},
        {"no-offload", no_argument, NULL, OPT_NO_OFFLOAD},
        {"busy-poll", required_argument, NULL, OPT_BUSY_POLL},
        {"help", no_argument, NULL, OPT_HELP},
        {NULL, 0, NULL, 0},
    };
    memset(options, 0, sizeof(*options));
    options->seed = 1;
    optind = 0; /* starts getopt afresh */
    for (int option = getopt_long(argc, argv, "+:", known, NULL); option != -1;
         option = getopt_long(argc, argv, "+:", known, NULL)) {
        if (parse_option(options, option, argv, error, error_size) != 0) {
            return -1;
        }
        if (options->help) {
            return 0;
        }
    }
    return complete(options, argc, argv, error, error_size);
}

void mp_options_free(struct mp_options *options) {
    for (size_t i = 0; i < options->path_count; i++) {
        xl_link_settings_free(options->paths[i].settings);
    }
    free(options->log_dir);
    free(options->summary);
    free(options->command_line);
    memset(options, 0, sizeof(*options));
}
