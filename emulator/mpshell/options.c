#include "emulator/mpshell/options.h"

#include "base/settings.h"
#include "emulator/mpshell/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((format(printf, 3, 4))) static int fail(char *error, size_t error_size, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error, error_size, format, args);
    va_end(args);
    return -1;
}

static bool is_device_name(const char *name, size_t length) {
    static const char *const reserved[] = {"lo", "all", "default"}; /* names that the kernel uses itself */
    if (length == 0 || length >= MP_NAME_SIZE || name[0] == '-')
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
            return false;
    }
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
        if (strlen(reserved[i]) == length && memcmp(reserved[i], name, length) == 0)
            return false;
    return true;
}

/* The options' own copy; NULL: out of memory. */
static char *keep(struct mp_options *options, const char *text) {
    struct mp_text *copy = malloc(sizeof(*copy) + strlen(text) + 1);
    if (!copy)
        return NULL;
    copy->next = options->texts;
    options->texts = copy;
    return strcpy(copy->text, text);
}

/* The same of two parts with a slash between. */
static char *keep_joined(struct mp_options *options, const char *folder, const char *name) {
    char *joined = NULL, *kept = NULL;
    if (asprintf(&joined, "%s/%s", folder, name) > 0) {
        kept = keep(options, joined);
        free(joined);
    }
    return kept;
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
static int parse_members(struct xl_link_settings settings[2], char *text, char *error, size_t error_size) {
    char reason[512];
    char *rest = text;
    for (char *member = text[0] == '\0' ? NULL : strsep(&rest, ","); member; member = strsep(&rest, ",")) {
        char *equals = strchr(member, '=');
        if (equals)
            *equals = '\0';
        const char *value = !equals ? "yes" : equals + 1;
        if (xl_link_settings_set(settings, member, value, reason, sizeof(reason)) != 0)
            return fail(error, error_size, "%s", reason);
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
    size_t name_length = !colon ? strlen(text) : (size_t)(colon - text);
    struct mp_path_options *path = path_of_file(options, text, name_length);
    if (!path)
        path = mp_options_add_path(options, text, name_length, error, error_size);
    if (!path)
        return -1;
    char *members = strdup(!colon ? "" : colon + 1);
    if (!members)
        return fail(error, error_size, "no memory");
    int rc = parse_members(settings, members, error, error_size);
    free(members);
    if (rc != 0) {
        xl_link_settings_free(settings);
        return -1;
    }
    return xl_link_settings_override(path->settings, settings) == 0 ? 0 : fail(error, error_size, "no memory");
}

/* ---- Settings with a form of their own ---- */

static bool read_path(void *into, const char *text, char *reason, size_t cap) {
    char sentence[512];
    if (parse_path(into, text, sentence, sizeof(sentence)) == 0)
        return true;
    snprintf(reason, cap, "%.*s: %s", (int)strcspn(text, ":") < 40 ? (int)strcspn(text, ":") : 40, text, sentence);
    return false;
}

/* COMMAND may change its directory and still find the file. */
static bool read_control(void *into, const char *text, char *reason, size_t cap) {
    struct mp_options *options = into;
    char *here = text[0] == '/' || text[0] == '\0' ? NULL : getcwd(NULL, 0);
    options->control = here ? keep_joined(options, here, text) : text;
    if (text[0] == '\0')
        snprintf(reason, cap, "takes a text, not ''");
    else if (text[0] != '/' && (!here || !options->control))
        snprintf(reason, cap, "%.60s: the current directory is not known", text);
    else
        reason = NULL;
    free(here);
    return !reason;
}

/* NAME is net.… as for sysctl(8), and leads nowhere else. */
static bool read_sysctl(void *into, const char *text, char *reason, size_t cap) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    struct mp_options *options = into;
    const char *equals = strchr(text, '=');
    size_t length = !equals ? 0 : (size_t)(equals - text);
    bool good = length > 4 && length < MP_SYSCTL_NAME_SIZE && strncmp(text, "net.", 4) == 0 && equals[1] != '\0';
    for (size_t i = 0; i < length; i++)
        good = good && (strchr(allowed, text[i]) || (text[i] == '.' && text[i + 1] != '.'));
    if (!good) {
        snprintf(reason, cap, "takes net.NAME=VALUE, not '%.80s'", text);
    } else if (options->sysctl_count == MP_MAX_SYSCTLS) {
        snprintf(reason, cap, "may be given %d times", MP_MAX_SYSCTLS);
        good = false;
    } else {
        options->sysctls[options->sysctl_count++] = text;
    }
    return good;
}

/* ---- The tables ---- */

const char *const mp_keep_awake_names[4] = {"auto", "on", "off", NULL};

#define FIELD(member) SETTING_FIELD(struct mp_options, member)

static const setting rows_of_command_line[] = {
    {"path", SETTING_OWN, .read = read_path, .repeats = true, .value = "SPEC",
     .help = "A path: device NAME (at most 15 of a-z 0-9 -), uplink and downlink trace or a constant rate (12mbps), "
             "one-way delay in ms, queue (infinite, the default; droptail:packets=N; drophead, codel, pie, fq_codel), "
             "random loss (0..1; ge:p=P:r=P). Further keys: offset, once, delay-trace, delay-trace-end, jitter, "
             "reorder, reorder-delay, duplicate, onoff. A key with up- or down- before it is for one direction "
             "(down-queue=pie). docs/reference/link.md tells all."},
    {"config", SETTING_TEXT, FIELD(config), .is_base = true, .value = "FILE",
     .help = "Read options from a YAML or JSON file; those given here go before it."},
    {0},
};

static const setting rows[] = {
    {"seed", SETTING_WHOLE, FIELD(seed), .most = INT64_MAX, .value = "N", .fallback = "1",
     .help = "Seed of all that is random."},
    {"start_offset", SETTING_WHOLE, FIELD(start_offset_ms), .most = UINT32_MAX, .value = "MS", .fallback = "0",
     .help = "Place in the traces at which COMMAND starts."},
    {"log_dir", SETTING_TEXT, FIELD(log_dir), .value = "DIR",
     .help = "Write NAME.up.log, NAME.down.log (mm-link's format), exact times, and mpshell.json."},
    {"summary", SETTING_TEXT, FIELD(summary), .value = "FILE", .help = "Write the summary there instead."},
    {"pcap", SETTING_TEXT, FIELD(pcap), .value = "DIR",
     .help = "Capture at both devices of every path: NAME.inside.pcap, NAME.outside.pcap."},
    {"pcap_snaplen", SETTING_WHOLE, FIELD(snaplen), .most = 65535, .value = "N", .fallback = "1500",
     .help = "Bytes of each packet that a capture keeps."},
    {"live", SETTING_FLAG, FIELD(live), .help = "Show rates, queues, delays and drops in the terminal."},
    {"control", SETTING_OWN, .read = read_control, .value = "SOCKET",
     .help = "Take commands on a Unix socket; mpshell-ctl SOCKET COMMAND sends one."},
    {"nat", SETTING_FLAG, FIELD(nat), .help = "Let COMMAND reach what the outside reaches."},
    {"outside", SETTING_TEXT, FIELD(outside), .value = "SOCKET",
     .help = "The outside is the namespace of mpshell --lend-outside SOCKET, the inside the current one: for "
             "containers, needs no CAP_SYS_ADMIN; COMMAND has no capabilities."},
    {"lend_outside", SETTING_TEXT, FIELD(lend_outside), .value = "SOCKET",
     .help = "Make devices in the current namespace for one mpshell --outside SOCKET; no path, no COMMAND."},
    {"mptcp", SETTING_FLAG, FIELD(mptcp), .help = "Make the kernel's MPTCP use every path."},
    {"no_offload", SETTING_FLAG, FIELD(no_offload),
     .help = "Let the kernel make every packet and checksum: slower, the same for COMMAND."},
    {"busy_poll", SETTING_WHOLE, FIELD(busy_poll_us), .most = 1000, .value = "US", .fallback = "0",
     .help = "Do not sleep for the last US before a delivery: more exact, more processor time."},
    {"keep_awake", SETTING_CHOICE, FIELD(keep_awake), .words = mp_keep_awake_names, .fallback = "auto",
     .help = "Keep the cores awake while COMMAND runs, so that timers fire on time. auto: if a probe of 0.3 s shows "
             "that it helps."},
    {"user", SETTING_TEXT, FIELD(user), .value = "NAME", .fallback = "who called sudo; else root",
     .help = "Run COMMAND as that user, without capabilities."},
    {"sysctl", SETTING_OWN, .read = read_sysctl, .repeats = true, .value = "NAME=VALUE",
     .help = "Set a sysctl of the network inside (net.…); may be repeated."},
    {"netstat", SETTING_TEXT, FIELD(netstat), .value = "FILE",
     .help = "Write the protocol counters of the network inside there, at the end."},
    {0},
};

char *mp_options_usage(void) {
    char *own = settings_help(rows_of_command_line, 0), *others = settings_help(rows, 0), *text = NULL;
    if (!own || !others ||
        asprintf(&text,
                 "usage: mpshell --path NAME:up=TRACE,down=TRACE,delay=MS[,queue=QUEUE][,loss=P][,KEY=VALUE...] "
                 "[--path ...] [options] -- COMMAND...\n"
                 "\n"
                 "Runs COMMAND in a network namespace with one device per path; every path replays its traces.\n"
                 "\n"
                 "%s%s"
                 "\n"
                 "COMMAND finds its paths in MPSHELL_PATHS, MPSHELL_PATH_<i>_NAME, _ADDR, _ADDR6, _GATEWAY, "
                 "_GATEWAY6,\n"
                 "MPSHELL_GATEWAY and MPSHELL_GATEWAY6.\n"
                 "The exit status is COMMAND's (128 + n if signal n ended it), 1 if it is 0 and a log or the summary "
                 "is incomplete,\n"
                 "2 if mpshell cannot start.\n",
                 own, others) < 0)
        text = NULL;
    free(own);
    free(others);
    return text;
}

int mp_options_set(struct mp_options *options, const char *name, const char *value, char *error, size_t error_size) {
    const setting_tables s = {.table = {{rows, options, 0}}, .count = 1};
    char reason[SETTINGS_ERROR_BYTES];
    void *into = NULL;
    const setting *row = settings_find(&s, name, &into);
    if (!row)
        return fail(error, error_size, "\"%.40s\" is not an option that a configuration file can have", name);
    if (row->kind == SETTING_FLAG && (strcmp(value, "yes") == 0 || strcmp(value, "no") == 0))
        value = value[0] == 'y' ? "true" : "false";
    const char *kept = keep(options, value);
    if (!kept)
        return fail(error, error_size, "no memory");
    return setting_read(row, into, name, kept, reason) ? 0 : fail(error, error_size, "%s", reason);
}

/* ---- All together ---- */

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

static int check_paths(const struct mp_options *options, char *error, size_t error_size) {
    char reason[512];
    if (options->path_count == 0)
        return fail(error, error_size, "no path; give --path NAME:up=TRACE,down=TRACE,delay=MS at least once");
    for (size_t i = 0; i < options->path_count; i++) {
        const struct mp_path_options *path = &options->paths[i];
        if (xl_link_settings_check(path->settings, reason, sizeof(reason)) != 0)
            return fail(error, error_size, "path %s needs up=TRACE, down=TRACE and delay=MS; %s", path->name, reason);
    }
    return 0;
}

/* What only makes sense when all options are known. */
static int complete(struct mp_options *options, int argc, char **argv, int rest, char *error, size_t error_size) {
    if (options->lend_outside) {
        return options->path_count == 0 && rest >= argc
                   ? 0
                   : fail(error, error_size, "--lend-outside takes no path and no command; the other side has them");
    }
    if (options->outside && options->nat)
        return fail(error, error_size, "--nat and --outside exclude each other; the other side decides what is beyond");
    if (check_paths(options, error, error_size) != 0)
        return -1;
    if (rest >= argc)
        return fail(error, error_size, "no command; give it after --, for example: -- sh");
    options->command = argv + rest;
    options->command_line = join(argc, argv);
    if (options->log_dir && !options->summary) {
        options->summary = keep_joined(options, options->log_dir, "mpshell.json");
        if (!options->summary)
            return fail(error, error_size, "no memory");
    }
    return options->command_line ? 0 : fail(error, error_size, "no memory");
}

/* --config first, wherever it stands, and its file; then the options that go before what the file says. */
static int read_all(struct mp_options *options, int argc, char **argv, int *rest, char *error, size_t error_size) {
    char reason[SETTINGS_ERROR_BYTES];
    setting_tables s = {.table = {{rows_of_command_line, options, 0}, {rows, options, 0}},
                        .count = 2,
                        .pass = SETTINGS_BASES,
                        .refuse_twice = true};
    if (!settings_read_args(&s, argc, argv, &options->help, rest, reason))
        return fail(error, error_size, "%s", reason);
    if (options->help)
        return 0;
    if (options->config && mp_config_read(options, options->config, error, error_size) != 0)
        return -1;
    options->paths_of_file = options->path_count;
    s.pass = SETTINGS_OTHERS;
    return settings_read_args(&s, argc, argv, &options->help, rest, reason) ? 0 : fail(error, error_size, "%s", reason);
}

int mp_options_parse(struct mp_options *options, int argc, char **argv, char *error, size_t error_size) {
    int rest = argc;
    *options = (struct mp_options){.seed = 1, .snaplen = 1500};
    if (read_all(options, argc, argv, &rest, error, error_size) != 0)
        return -1;
    return options->help ? 0 : complete(options, argc, argv, rest, error, error_size);
}

void mp_options_free(struct mp_options *options) {
    for (size_t i = 0; i < options->path_count; i++)
        xl_link_settings_free(options->paths[i].settings);
    for (struct mp_text *text = options->texts, *next; text; text = next) {
        next = text->next;
        free(text);
    }
    free(options->command_line);
    memset(options, 0, sizeof(*options));
}
