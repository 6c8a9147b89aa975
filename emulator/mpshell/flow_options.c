#include "emulator/mpshell/flow_options.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define DAY_MS 86400000
/* Defaults of a flow. */
#define CC    "cubic"
#define RATE  "100mbps"
#define DELAY "0"

/* Reads the kernel's name of a controller, [a-z0-9_]. Takes `newreno`, as in QUIC's settings, for the kernel's reno. */
static bool read_cc(void *into, const char *text, char *reason, size_t cap) {
    mp_flow_options *flow = into;
    const size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (length == 0 || length >= MP_CC_SIZE || text[length] != '\0')
        return error_set(reason, cap, "takes a congestion controller of the kernel, such as cubic, not '%.40s'", text);
    snprintf(flow->cc, sizeof flow->cc, "%s", strcmp(text, "newreno") == 0 ? "reno" : text);
    return true;
}

static const char *const directions[] = {"up", "down", NULL};

#define FIELD(member) SETTING_FIELD(mp_flow_options, member)

const setting mp_flow_rows[] = {
    {"cc", SETTING_OWN, .read = read_cc, .value = "NAME", .fallback = CC, .help = "Congestion controller."},
    {"path", SETTING_TEXT, FIELD(path), .value = "NAME", .help = "The path of COMMAND that carries it."},
    {"via", SETTING_TEXT, FIELD(via), .value = "NAMES",
     .help = "The bottlenecks that it passes behind a link of its own, in the order from client to server."},
    {"rate", SETTING_TEXT, FIELD(rate), .value = "RATE", .fallback = RATE, .help = "Rate of that link."},
    {"delay", SETTING_TEXT, FIELD(delay), .value = "MS", .fallback = DELAY, .help = "One-way delay of that link."},
    {"direction", SETTING_CHOICE, FIELD(is_down), .words = directions, .fallback = "down",
     .help = "Where the data go: to the client is down."},
    {"count", SETTING_WHOLE, FIELD(count), .least = 1, .most = 64, .value = "N", .fallback = "1",
     .help = "So many connections at the same time."},
    {"from", SETTING_DECIMAL, FIELD(from_us), .most = DAY_MS, .scale = 1000, .value = "S", .fallback = "0",
     .help = "When they begin, since the links started."},
    {"to", SETTING_DECIMAL, FIELD(to_us), .least = 1, .most = DAY_MS, .scale = 1000, .value = "S",
     .fallback = "the end of COMMAND", .help = "When they are closed."},
    {"size", SETTING_WHOLE, FIELD(size_bytes), .least = 1, .most = UINT64_C(1) << 40, .value = "BYTES",
     .fallback = "without end", .help = "What a connection carries; then it ends."},
    {"pause", SETTING_MS, FIELD(pause_us), .most = DAY_MS, .value = "MS", .fallback = "no further one",
     .help = "With size: the next connection begins so long after the end of one."},
    {0},
};

mp_flow_options *mp_flow_add(mp_options *options, const char *name, size_t length, char *error, size_t error_size) {
    if (options->flow_count == MP_MAX_FLOWS)
        return error_null(error, error_size, "more than %d flows", MP_MAX_FLOWS);
    if (!mp_options_check_name("flow", name, length, error, error_size))
        return NULL;
    for (size_t i = 0; i < options->flow_count; i++)
        if (strlen(options->flows[i].name) == length && memcmp(options->flows[i].name, name, length) == 0)
            return error_null(error, error_size, "two flows are named %s", options->flows[i].name);
    mp_flow_options *flow = &options->flows[options->flow_count++];
    *flow = (mp_flow_options){.cc = CC, .is_down = 1, .count = 1, .pause_us = MP_NO_PAUSE};
    memcpy(flow->name, name, length);
    return flow;
}

bool mp_flow_set(mp_flow_options *flow, const char *key, const char *value, char *error, size_t error_size) {
    const setting_tables s = {.table = {{mp_flow_rows, flow, 0}}, .count = 1};
    char reason[SETTINGS_ERROR_BYTES];
    void *into = NULL;
    const setting *row = settings_find(&s, key, &into);
    if (!row)
        return error_set(error, error_size, "\"%.40s\" is not a key of a flow", key);
    if (setting_read(row, into, key, value, reason))
        return true;
    const size_t length = strlen(reason);
    return error_set(error, error_size, "%.*s", (int)length - (length > 0 && reason[length - 1] == '.'), reason);
}

bool mp_flow_parse(mp_options *options, const char *text, char *error, size_t error_size) {
    char reason[SETTINGS_ERROR_BYTES];
    const size_t name_length = strcspn(text, ":");
    mp_flow_options *flow = mp_flow_add(options, text, name_length, error, error_size);
    char *rest = flow ? mp_options_keep(options, text[name_length] == ':' ? text + name_length + 1 : "") : NULL;
    if (!rest)
        return flow ? error_set(error, error_size, "no memory") : false;
    bool good = true;
    for (char *member = *rest == '\0' ? NULL : strsep(&rest, ","); member && good; member = strsep(&rest, ",")) {
        char *equals = strchr(member, '=');
        if (equals)
            *equals = '\0';
        good = mp_flow_set(flow, member, equals ? equals + 1 : "", reason, sizeof reason) ||
               error_set(error, error_size, "%s: %s", flow->name, reason);
    }
    return good;
}

/* Adds a path for the flow. COMMAND is not told about it. */
static bool add_link(mp_options *options, mp_flow_options *flow, char *error, size_t error_size) {
    char reason[SETTINGS_ERROR_BYTES];
    flow->at = options->path_count;
    mp_path_options *path = mp_options_add(options, MP_PATH, flow->name, strlen(flow->name), error, error_size);
    if (!path)
        return false;
    const char *const given[][2] = {
        {"rate", flow->rate ? flow->rate : RATE}, {"delay", flow->delay ? flow->delay : DELAY}, {"via", flow->via}};
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++)
        if (!link_settings_set(path->settings, given[i][0], given[i][1], reason, sizeof reason))
            return error_set(error, error_size, "flow %s: %s", flow->name, reason);
    return true;
}

static bool find_path(const mp_options *options, mp_flow_options *flow, char *error, size_t error_size) {
    for (size_t k = 0; k < options->told_count; k++) {
        if (strcmp(options->paths[k].name, flow->path) == 0) {
            flow->at = k;
            return true;
        }
    }
    return error_set(error, error_size, "flow %s: there is no path %.40s", flow->name, flow->path);
}

static bool place(mp_options *options, mp_flow_options *flow, char *error, size_t error_size) {
    if (!flow->path == !flow->via)
        return error_set(error, error_size, "flow %s needs path=NAME or via=NAMES, one of the two", flow->name);
    if (flow->path && (flow->rate || flow->delay))
        return error_set(error, error_size,
                         "flow %s: rate and delay are of a link of its own, which a flow with via has", flow->name);
    if (flow->to_us > 0 && flow->to_us <= flow->from_us)
        return error_set(error, error_size, "flow %s: to is not after from", flow->name);
    if (flow->pause_us != MP_NO_PAUSE && flow->size_bytes == 0)
        return error_set(error, error_size, "flow %s: pause needs size, which ends a connection", flow->name);
    return flow->path ? find_path(options, flow, error, error_size) : add_link(options, flow, error, error_size);
}

bool mp_flows_place(mp_options *options, char *error, size_t error_size) {
    options->told_count = options->path_count;
    if (options->flow_count > 0 && options->outside)
        return error_set(error, error_size, "--flow and --outside cannot be combined");
    if (options->flow_log && options->flow_count == 0)
        return error_set(error, error_size, "--flow-log needs --flow");
    for (size_t i = 0; i < options->flow_count; i++)
        if (!place(options, &options->flows[i], error, error_size))
            return false;
    return true;
}
