#include "emulator/mpshell/options.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_name(const char *name, size_t length) {
    static const char *const reserved[] = {"lo", "all", "default"}; /* names that the kernel uses */
    if (length == 0 || length >= MP_NAME_SIZE || name[0] == '-')
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
            return false;
    }
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
        if (strlen(reserved[i]) == length && memcmp(reserved[i], name, length) == 0)
            return false;
    return true;
}

bool mp_options_check_name(const char *what, const char *name, size_t length, char *error, size_t error_size) {
    return is_name(name, length) ||
           error_set(error, error_size, "\"%.*s\" cannot name a %s; use at most 15 of a-z 0-9 - (not lo, all, default)",
                     (int)(length < 40 ? length : 40), name, what);
}

char *mp_options_keep(mp_options *options, const char *text) {
    mp_text *copy = malloc(sizeof *copy + strlen(text) + 1);
    if (!copy)
        return NULL;
    copy->next = options->texts;
    options->texts = copy;
    return strcpy(copy->text, text);
}

char *mp_options_keep_joined(mp_options *options, const char *folder, const char *name) {
    char *joined = NULL, *kept = NULL;
    if (asprintf(&joined, "%s/%s", folder, name) > 0) {
        kept = mp_options_keep(options, joined);
        free(joined);
    }
    return kept;
}

mp_path_options *mp_options_links(mp_options *options, mp_link_kind kind) {
    return kind == MP_PATH ? options->paths : options->bottlenecks;
}

static bool has_name(const mp_path_options *links, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(links[i].name, name) == 0)
            return true;
    return false;
}

mp_path_options *mp_options_add(mp_options *options, mp_link_kind kind, const char *name, size_t length, char *error,
                                size_t error_size) {
    const char *what = kind == MP_PATH ? "path" : "bottleneck";
    size_t *count = kind == MP_PATH ? &options->path_count : &options->bottleneck_count;
    size_t most = kind == MP_PATH ? MP_MAX_PATHS : LINK_BOTTLENECKS_MOST;
    if (*count == most)
        return error_null(error, error_size, "more than %zu %ss", most, what);
    if (!mp_options_check_name(what, name, length, error, error_size))
        return NULL;
    mp_path_options *link = &mp_options_links(options, kind)[*count];
    memcpy(link->name, name, length);
    link->name[length] = '\0';
    bool is_path = has_name(options->paths, options->path_count, link->name);
    bool is_bottleneck = has_name(options->bottlenecks, options->bottleneck_count, link->name);
    if (is_path || is_bottleneck)
        return error_null(error, error_size,
                          (kind == MP_PATH) == is_path ? "two %ss are named %s"
                                                       : "a %s has the name %s of another link",
                          what, link->name);
    ++*count;
    return link;
}

/* ---- Settings with a form of their own ---- */

/* Makes the path absolute, so that COMMAND finds the socket from any directory. */
static bool read_control(void *into, const char *text, char *reason, size_t cap) {
    mp_options *options = into;
    char *here = text[0] == '/' || text[0] == '\0' ? NULL : getcwd(NULL, 0);
    options->control = here ? mp_options_keep_joined(options, here, text) : text;
    const bool is_found = text[0] == '/' || (here && options->control);
    free(here);
    return is_found || (text[0] == '\0' ? error_set(reason, cap, "takes a text, not ''")
                                        : error_set(reason, cap, "%.60s: the current directory is not known", text));
}

/* NAME is net.… as for sysctl(8); ".." and "/" are refused, so that it leads nowhere else. */
static bool read_sysctl(void *into, const char *text, char *reason, size_t cap) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    mp_options *options = into;
    const char *equals = strchr(text, '=');
    size_t length = !equals ? 0 : (size_t)(equals - text);
    bool good = length > 4 && length < MP_SYSCTL_NAME_SIZE && strncmp(text, "net.", 4) == 0 && equals[1] != '\0';
    for (size_t i = 0; i < length; i++)
        good = good && (strchr(allowed, text[i]) || (text[i] == '.' && text[i + 1] != '.'));
    if (!good)
        return error_set(reason, cap, "takes net.NAME=VALUE, not '%.80s'", text);
    if (options->sysctl_count == MP_MAX_SYSCTLS)
        return error_set(reason, cap, "may be given %d times", MP_MAX_SYSCTLS);
    options->sysctls[options->sysctl_count++] = text;
    return true;
}

static bool read_watched(void *into, const char *text, char *reason, size_t cap) {
    mp_options *options = into;
    char *end;
    unsigned long pid = strtoul(text, &end, 10);
    if (!(text[0] >= '1' && text[0] <= '9' && *end == '\0' && pid <= INT32_MAX))
        return error_set(reason, cap, "takes a process ID, not '%.40s'", text);
    if (options->watched_count == MP_MAX_WATCHED)
        return error_set(reason, cap, "may be given %d times", MP_MAX_WATCHED);
    options->watched[options->watched_count++] = (pid_t)pid;
    return true;
}

/* ---- The tables ---- */

const char *const mp_keep_awake_names[4] = {"auto", "on", "off", NULL};

#define FIELD(member) SETTING_FIELD(mp_options, member)

const setting mp_option_rows[] = {
    {"seed", SETTING_WHOLE, FIELD(seed), .most = INT64_MAX, .value = "N", .fallback = "1",
     .help = "Seed of all random choices."},
    {"start_offset", SETTING_WHOLE, FIELD(start_offset_ms), .most = UINT32_MAX, .value = "MS", .fallback = "0",
     .help = "Position in the traces at which COMMAND starts."},
    {"log_dir", SETTING_TEXT, FIELD(log_dir), .value = "DIR",
     .help = "Write NAME.up.log and NAME.down.log (mm-link's format), logs with exact times, and mpshell.json."},
    {"summary", SETTING_TEXT, FIELD(summary), .value = "FILE",
     .help = "Write the summary to FILE instead of mpshell.json."},
    {"pcap", SETTING_TEXT, FIELD(pcap), .value = "DIR",
     .help = "Capture packets at both devices of every path: NAME.inside.pcap, NAME.outside.pcap."},
    {"pcap_snaplen", SETTING_WHOLE, FIELD(snaplen), .most = 65535, .value = "N", .fallback = "1500",
     .help = "Number of bytes of each packet that are captured."},
    {"live", SETTING_FLAG, FIELD(live), .help = "Show rates, queues, delays and drops in the terminal."},
    {"control", SETTING_OWN, .read = read_control, .value = "SOCKET",
     .help = "Accept commands on this Unix socket. mpshell-ctl SOCKET COMMAND sends one."},
    {"nat", SETTING_FLAG, FIELD(nat), .help = "Give COMMAND access to all networks that the outside reaches."},
    {"outside", SETTING_TEXT, FIELD(outside), .value = "SOCKET",
     .help = "Use the namespace of mpshell --lend-outside SOCKET as the outside and the current one as the inside. For "
             "containers: needs no CAP_SYS_ADMIN. COMMAND has no capabilities."},
    {"lend_outside", SETTING_TEXT, FIELD(lend_outside), .value = "SOCKET",
     .help = "Make devices in the current namespace for one mpshell --outside SOCKET. Without --path and COMMAND."},
    {"mptcp", SETTING_FLAG, FIELD(mptcp), .help = "Configure the kernel's MPTCP to use every path."},
    {"mptcp_subflows", SETTING_WHOLE, FIELD(mptcp_subflows), .most = MP_MAX_SUBFLOWS, .value = "N", .fallback = "8",
     .help = "With --mptcp: the most subflows that a connection gets beside its first one; at most the number of "
             "paths."},
    {"mptcp_addresses", SETTING_WHOLE, FIELD(mptcp_addresses), .most = MP_MAX_SUBFLOWS, .value = "N", .fallback = "8",
     .help = "With --mptcp: the most addresses of the peer that a connection accepts; at most the number of paths."},
    {"no_offload", SETTING_FLAG, FIELD(no_offload),
     .help = "Turn off segmentation and checksum offload of the devices. Slower; COMMAND sees no difference."},
    {"busy_poll", SETTING_WHOLE, FIELD(busy_poll_us), .most = 1000, .value = "US", .fallback = "0",
     .help = "Poll instead of sleeping for the last US before a delivery. More exact; needs more processor time."},
    {"keep_awake", SETTING_CHOICE, FIELD(keep_awake), .words = mp_keep_awake_names, .fallback = "auto",
     .help = "Keep the cores awake while COMMAND runs, so that timers fire on time. auto: if a probe of 0.3 s shows "
             "that it helps."},
    {"start_when_ready", SETTING_FLAG, FIELD(start_when_ready),
     .help = "Start the links when COMMAND is ready. COMMAND writes a byte to the descriptor $MPSHELL_READY_FD and "
             "continues when it has read one from it, as xlink-player does."},
    {"real_time", SETTING_FLAG, FIELD(real_time),
     .help = "Run COMMAND under SCHED_FIFO, below mpshell, where that is permitted, so that a busy machine does not "
             "delay it. What then uses a core for 3 s without sleeping is ended."},
    {"user", SETTING_TEXT, FIELD(user), .value = "NAME", .fallback = "the caller of sudo; else root",
     .help = "Run COMMAND as this user, without capabilities."},
    {"sysctl", SETTING_OWN, .read = read_sysctl, .repeats = true, .value = "NAME=VALUE",
     .help = "Set a sysctl (net.…) of the inside network. May be repeated."},
    {"netstat", SETTING_TEXT, FIELD(netstat), .value = "FILE",
     .help = "Write the protocol counters of the inside network to FILE at the end."},
    {"lateness", SETTING_TEXT, FIELD(lateness), .value = "FILE",
     .help = "Write to FILE at the end how late links, timers and the processes of COMMAND were, every 5 ms."},
    {"watch", SETTING_OWN, .read = read_watched, .repeats = true, .value = "PID",
     .help = "With --lateness: this process outside and those that it starts count too, for example a server. May be "
             "repeated."},
    {"flow_log", SETTING_TEXT, FIELD(flow_log), .value = "FILE",
     .help = "Write to FILE at the end what the flows of --flow carried over time, as JSON Lines."},
    {0},
};

bool mp_options_set(mp_options *options, const char *name, const char *value, char *error, size_t error_size) {
    const setting_tables s = {.table = {{mp_option_rows, options, 0}}, .count = 1};
    char reason[SETTINGS_ERROR_BYTES];
    void *into = NULL;
    const setting *row = settings_find(&s, name, &into);
    if (!row)
        return error_set(error, error_size, "\"%.40s\" is not an option that a configuration file can have", name);
    if (row->kind == SETTING_FLAG && (strcmp(value, "yes") == 0 || strcmp(value, "no") == 0))
        value = value[0] == 'y' ? "true" : "false";
    const char *kept = mp_options_keep(options, value);
    if (!kept)
        return error_set(error, error_size, "no memory");
    return setting_read(row, into, name, kept, reason) || error_set(error, error_size, "%s", reason);
}

void mp_options_free(mp_options *options) {
    for (size_t i = 0; i < options->path_count; i++)
        link_settings_free(options->paths[i].settings);
    for (size_t i = 0; i < options->bottleneck_count; i++)
        link_settings_free(options->bottlenecks[i].settings);
    for (mp_text *text = options->texts, *next; text; text = next) {
        next = text->next;
        free(text);
    }
    free(options->command_line);
    memset(options, 0, sizeof(*options));
}
