#include "emulator/mpshell/options.h"

#include "emulator/mpshell/config.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    "  --config FILE        read options from a YAML or JSON file; those given here go before it\n"
    "  --seed N             seed of all that is random (default 1)\n"
    "  --start-offset MS    place in the traces at which COMMAND starts (default 0)\n"
    "  --log-dir DIR        write NAME.up.log, NAME.down.log (mm-link's format), exact times, and mpshell.json\n"
    "  --summary FILE       write the summary there instead\n"
    "  --pcap DIR           capture at both devices of every path: NAME.inside.pcap, NAME.outside.pcap\n"
    "  --pcap-snaplen N     bytes of each packet that a capture keeps (default 1500)\n"
    "  --live               show rates, queues, delays and drops in the terminal\n"
    "  --control SOCKET     take commands on a Unix socket; mpshell-ctl SOCKET COMMAND sends one\n"
    "  --nat                let COMMAND reach what the outside reaches\n"
    "  --outside SOCKET     the outside is the namespace of mpshell --lend-outside SOCKET, the inside the current "
    "one:\n"
    "                       for containers, needs no CAP_SYS_ADMIN; COMMAND has no capabilities\n"
    "  --lend-outside SOCKET  make devices in the current namespace for one mpshell --outside SOCKET; no path, no "
    "COMMAND\n"
    "  --mptcp              make the kernel's MPTCP use every path\n"
    "  --no-offload         let the kernel make every packet and checksum: slower, the same for COMMAND\n"
    "  --busy-poll US       do not sleep for the last US before a delivery: more exact, more processor time (default "
    "0)\n"
    "  --keep-awake WHEN    keep the cores awake while COMMAND runs, so that timers fire on time: auto (the default), "
    "if a\n"
    "                       probe of 0.3 s shows that it helps; on; off\n"
    "  --user NAME          run COMMAND as that user, without capabilities (default: who called sudo; else root)\n"
    "  --sysctl NAME=VALUE  set a sysctl of the network inside (net.…); may be repeated\n"
    "  --netstat FILE       write the protocol counters of the network inside there, at the end\n"
    "  --help               this text\n"
    "\n"
    "COMMAND finds its paths in MPSHELL_PATHS, MPSHELL_PATH_<i>_NAME, _ADDR, _ADDR6, _GATEWAY, _GATEWAY6,\n"
    "MPSHELL_GATEWAY and MPSHELL_GATEWAY6.\n"
    "The exit status is COMMAND's (128 + n if signal n ended it), 1 if it is 0 and a log or the summary is "
    "incomplete,\n"
    "2 if mpshell cannot start.\n";

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
    if (value[0] == '\0') {
        return fail(error, error_size, "--%s is empty", what);
    }
    free(*slot);
    *slot = strdup(value);
    return *slot != NULL ? 0 : fail(error, error_size, "no memory");
}

struct mp_path_options *mp_options_add_path(struct mp_options *options, const char *name, size_t length, char *error,
                                            size_t error_size) {
    if (options->path_count == MP_MAX_PATHS) {
        fail(error, error_size, "more than %d paths", MP_MAX_PATHS);
        return NULL;
    }
    if (!is_device_name(name, length)) {
        fail(error, error_size, "\"%.*s\" cannot name a path; use at most 15 of a-z 0-9 - (not lo, all, default)",
             (int)(length < 40 ? length : 40), name);
        return NULL;
    }
    struct mp_path_options *path = &options->paths[options->path_count];
    memcpy(path->name, name, length);
    path->name[length] = '\0';
    for (size_t i = 0; i < options->path_count; i++) {
        if (strcmp(options->paths[i].name, path->name) == 0) {
            fail(error, error_size, "two paths are named %s", path->name);
            return NULL;
        }
    }
    options->path_count++;
    return path;
}

/* The members of a path, "key=value,key=value"; a key alone says yes. */
static int parse_members(const char *name, struct xl_link_settings settings[2], char *text, char *error,
                         size_t error_size) {
    char reason[512];
    char *rest = text;
    for (char *member = text[0] == '\0' ? NULL : strsep(&rest, ","); member != NULL; member = strsep(&rest, ",")) {
        char *equals = strchr(member, '=');
        if (equals != NULL) {
            *equals = '\0';
        }
        const char *value = equals == NULL ? "yes" : equals + 1;
        if (xl_link_settings_set(settings, member, value, reason, sizeof(reason)) != 0) {
            return fail(error, error_size, "path %s: %s", name, reason);
        }
    }
    return 0;
}

/* A path of the configuration file that this option is about, if it is the first to be. */
static struct mp_path_options *path_of_file(struct mp_options *options, const char *name, size_t length) {
    for (size_t i = 0; i < options->paths_of_file; i++) {
        struct mp_path_options *path = &options->paths[i];
        if (strlen(path->name) == length && memcmp(path->name, name, length) == 0 && !path->overridden) {
            path->overridden = true;
            return path;
        }
    }
    return NULL;
}

static int parse_path(struct mp_options *options, const char *text, char *error, size_t error_size) {
    struct xl_link_settings settings[2] = {{.once = false}, {.once = false}};
    const char *colon = strchr(text, ':');
    size_t name_length = colon == NULL ? strlen(text) : (size_t)(colon - text);
    struct mp_path_options *path = path_of_file(options, text, name_length);
    if (path == NULL) {
        path = mp_options_add_path(options, text, name_length, error, error_size);
    }
    if (path == NULL) {
        return -1;
    }
    char *members = strdup(colon == NULL ? "" : colon + 1);
    if (members == NULL) {
        return fail(error, error_size, "no memory");
    }
    int rc = parse_members(path->name, settings, members, error, error_size);
    free(members);
    if (rc != 0) {
        xl_link_settings_free(settings);
        return -1;
    }
    return xl_link_settings_override(path->settings, settings) == 0 ? 0 : fail(error, error_size, "no memory");
}

enum option_number {
    OPT_PATH = 256,
    OPT_CONFIG,
    OPT_SEED,
    OPT_OFFSET,
    OPT_LOG_DIR,
    OPT_SUMMARY,
    OPT_PCAP,
    OPT_SNAPLEN,
    OPT_LIVE,
    OPT_CONTROL,
    OPT_NAT,
    OPT_OUTSIDE,
    OPT_LEND_OUTSIDE,
    OPT_MPTCP,
    OPT_NO_OFFLOAD,
    OPT_BUSY_POLL,
    OPT_KEEP_AWAKE,
    OPT_USER,
    OPT_SYSCTL,
    OPT_NETSTAT,
    OPT_HELP
};

static const struct option known[] = {
    {"path", required_argument, NULL, OPT_PATH},
    {"config", required_argument, NULL, OPT_CONFIG},
    {"seed", required_argument, NULL, OPT_SEED},
    {"start-offset", required_argument, NULL, OPT_OFFSET},
    {"log-dir", required_argument, NULL, OPT_LOG_DIR},
    {"summary", required_argument, NULL, OPT_SUMMARY},
    {"pcap", required_argument, NULL, OPT_PCAP},
    {"pcap-snaplen", required_argument, NULL, OPT_SNAPLEN},
    {"live", no_argument, NULL, OPT_LIVE},
    {"control", required_argument, NULL, OPT_CONTROL},
    {"nat", no_argument, NULL, OPT_NAT},
    {"outside", required_argument, NULL, OPT_OUTSIDE},
    {"lend-outside", required_argument, NULL, OPT_LEND_OUTSIDE},
    {"mptcp", no_argument, NULL, OPT_MPTCP},
    {"no-offload", no_argument, NULL, OPT_NO_OFFLOAD},
    {"busy-poll", required_argument, NULL, OPT_BUSY_POLL},
    {"keep-awake", required_argument, NULL, OPT_KEEP_AWAKE},
    {"user", required_argument, NULL, OPT_USER},
    {"sysctl", required_argument, NULL, OPT_SYSCTL},
    {"netstat", required_argument, NULL, OPT_NETSTAT},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static const struct option *find_option(int number) {
    const struct option *option = known;
    while (option->val != number) {
        option++;
    }
    return option;
}

/* COMMAND may change its directory and still find the file. */
static int set_path(char **slot, const char *value, const char *name, char *error, size_t error_size) {
    if (value[0] == '/' || value[0] == '\0') {
        return set_string(slot, value, name, error, error_size);
    }
    char *here = getcwd(NULL, 0);
    free(*slot);
    *slot = NULL;
    int n = here != NULL ? asprintf(slot, "%s/%s", here, value) : -1;
    free(here);
    return n > 0 ? 0 : fail(error, error_size, "--%s %s: the current directory is not known", name, value);
}

static int set_number(uint64_t *slot, const char *value, uint64_t limit, const char *name, const char *what,
                      char *error, size_t error_size) {
    return parse_u64(value, limit, slot) ? 0 : fail(error, error_size, "--%s %s is not %s", name, value, what);
}

const char *const mp_keep_awake_names[3] = {"auto", "on", "off"};

static int set_keep_awake(enum mp_keep_awake *slot, const char *value, char *error, size_t error_size) {
    for (int i = 0; i < 3; i++) {
        if (strcmp(value, mp_keep_awake_names[i]) == 0) {
            *slot = (enum mp_keep_awake)i;
            return 0;
        }
    }
    return fail(error, error_size, "--keep-awake is auto, on or off, not \"%.40s\"", value);
}

/* NAME is net.… as for sysctl(8), and leads nowhere else. */
static int add_sysctl(struct mp_options *options, const char *value, char *error, size_t error_size) {
    const char *equals = strchr(value, '=');
    size_t length = equals == NULL ? 0 : (size_t)(equals - value);
    bool good = length > 4 && length < MP_SYSCTL_NAME_SIZE && strncmp(value, "net.", 4) == 0 && equals[1] != '\0';
    for (size_t i = 0; i < length; i++) {
        good = good && (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", value[i]) != NULL ||
                        (value[i] == '.' && value[i + 1] != '.'));
    }
    if (!good) {
        return fail(error, error_size, "--sysctl %.80s is not net.NAME=VALUE", value);
    }
    if (options->sysctl_count == MP_MAX_SYSCTLS) {
        return fail(error, error_size, "more than %d sysctls", MP_MAX_SYSCTLS);
    }
    return set_string(&options->sysctls[options->sysctl_count++], value, "sysctl", error, error_size);
}

static int set_option(struct mp_options *options, int number, const char *value, char *error, size_t error_size) {
    const char *name = find_option(number)->name;
    switch ((enum option_number)number) {
    case OPT_PATH:
        return parse_path(options, value, error, error_size);
    case OPT_CONFIG:
        return set_string(&options->config, value, name, error, error_size);
    case OPT_SEED:
        return set_number(&options->seed, value, INT64_MAX, name, "a whole number", error, error_size);
    case OPT_OFFSET:
        return set_number(&options->start_offset_ms, value, UINT32_MAX, name, "a whole number of ms", error,
                          error_size);
    case OPT_LOG_DIR:
        return set_string(&options->log_dir, value, name, error, error_size);
    case OPT_SUMMARY:
        return set_string(&options->summary, value, name, error, error_size);
    case OPT_PCAP:
        return set_string(&options->pcap, value, name, error, error_size);
    case OPT_SNAPLEN:
        return set_number(&options->snaplen, value, 65535, name, "a whole number of bytes (0 to 65535)", error,
                          error_size);
    case OPT_CONTROL:
        return set_path(&options->control, value, name, error, error_size);
    case OPT_OUTSIDE:
        return set_string(&options->outside, value, name, error, error_size);
    case OPT_LEND_OUTSIDE:
        return set_string(&options->lend_outside, value, name, error, error_size);
    case OPT_BUSY_POLL:
        return set_number(&options->busy_poll_us, value, 1000, name, "a time in us (0 to 1000)", error, error_size);
    case OPT_KEEP_AWAKE:
        return set_keep_awake(&options->keep_awake, value, error, error_size);
    case OPT_USER:
        return set_string(&options->user, value, name, error, error_size);
    case OPT_SYSCTL:
        return add_sysctl(options, value, error, error_size);
    case OPT_NETSTAT:
        return set_string(&options->netstat, value, name, error, error_size);
    default:
        return 0; /* switches */
    }
}

static bool *switch_of(struct mp_options *options, int number) {
    switch (number) {
    case OPT_LIVE:
        return &options->live;
    case OPT_NAT:
        return &options->nat;
    case OPT_MPTCP:
        return &options->mptcp;
    case OPT_NO_OFFLOAD:
        return &options->no_offload;
    case OPT_HELP:
        return &options->help;
    default:
        return NULL;
    }
}

int mp_options_set(struct mp_options *options, const char *name, const char *value, char *error, size_t error_size) {
    for (const struct option *option = known; option->name != NULL; option++) {
        if (strcmp(option->name, name) != 0 || option->val == OPT_CONFIG || option->val == OPT_HELP ||
            option->val == OPT_PATH) {
            continue;
        }
        bool *flag = switch_of(options, option->val);
        if (flag == NULL) {
            return set_option(options, option->val, value, error, error_size);
        }
        *flag = strcmp(value, "true") == 0 || strcmp(value, "yes") == 0;
        return *flag || strcmp(value, "false") == 0 || strcmp(value, "no") == 0
                   ? 0
                   : fail(error, error_size, "%s is true or false, not \"%.40s\"", name, value);
    }
    return fail(error, error_size, "\"%.40s\" is not an option that a configuration file can have", name);
}

static int parse_option(struct mp_options *options, int number, char **argv, char *error, size_t error_size) {
    if (number == ':') {
        return fail(error, error_size, "option %s needs a value; see mpshell --help", argv[optind - 1]);
    }
    if (number < OPT_PATH) {
        return fail(error, error_size, "unknown option %s; see mpshell --help", argv[optind - 1]);
    }
    uint32_t bit = 1u << (number - OPT_PATH);
    if ((options->given & bit) != 0 && number != OPT_PATH && number != OPT_SYSCTL) {
        return fail(error, error_size, "--%s is given twice", find_option(number)->name);
    }
    options->given |= bit;
    bool *flag = switch_of(options, number);
    if (flag != NULL) {
        *flag = true;
        return 0;
    }
    return set_option(options, number, optarg, error, error_size);
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

static int check_paths(const struct mp_options *options, char *error, size_t error_size) {
    char reason[512];
    if (options->path_count == 0) {
        return fail(error, error_size, "no path; give --path NAME:up=TRACE,down=TRACE,delay=MS at least once");
    }
    for (size_t i = 0; i < options->path_count; i++) {
        const struct mp_path_options *path = &options->paths[i];
        if (xl_link_settings_check(path->settings, reason, sizeof(reason)) != 0) {
            return fail(error, error_size, "path %s needs up=TRACE, down=TRACE and delay=MS; %s", path->name, reason);
        }
    }
    return 0;
}

/* What only makes sense when all options are known. */
static int complete(struct mp_options *options, int argc, char **argv, char *error, size_t error_size) {
    if (options->lend_outside != NULL) {
        return options->path_count == 0 && optind >= argc
                   ? 0
                   : fail(error, error_size, "--lend-outside takes no path and no command; the other side has them");
    }
    if (options->outside != NULL && options->nat) {
        return fail(error, error_size, "--nat and --outside exclude each other; the other side decides what is beyond");
    }
    if (check_paths(options, error, error_size) != 0) {
        return -1;
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

/* The value of --config, wherever it stands among the options: the file comes first. */
static const char *find_config(int argc, char **argv) {
    const char *config = NULL;
    optind = 0; /* starts getopt afresh */
    for (int option = getopt_long(argc, argv, "+:", known, NULL); option != -1;
         option = getopt_long(argc, argv, "+:", known, NULL)) {
        config = option == OPT_CONFIG ? optarg : config;
    }
    return config;
}

int mp_options_parse(struct mp_options *options, int argc, char **argv, char *error, size_t error_size) {
    memset(options, 0, sizeof(*options));
    options->seed = 1;
    options->snaplen = 1500;
    const char *config = find_config(argc, argv);
    if (config != NULL && mp_config_read(options, config, error, error_size) != 0) {
        return -1;
    }
    options->paths_of_file = options->path_count;
    optind = 0;
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
    free(options->config);
    free(options->pcap);
    free(options->control);
    free(options->outside);
    free(options->lend_outside);
    free(options->user);
    free(options->netstat);
    for (size_t i = 0; i < options->sysctl_count; i++) {
        free(options->sysctls[i]);
    }
    free(options->log_dir);
    free(options->summary);
    free(options->command_line);
    memset(options, 0, sizeof(*options));
}
