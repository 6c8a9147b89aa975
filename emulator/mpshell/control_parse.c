/* The commands of the control socket. */
#include <string.h>
#include <sys/stat.h>

#include "emulator/link/queue.h"
#include "emulator/link/text.h"
#include "emulator/mpshell/control.h"
#include "emulator/mpshell/setup.h"

#define MAX_WORDS 5

/* "wifi", "wifi:up", "wifi:down" */
static bool parse_target(const mp_shell *shell, char *text, mp_request *request, char error[MP_ERROR_SIZE]) {
    char *colon = strchr(text, ':');
    if (colon) {
        *colon++ = '\0';
        if (strcmp(colon, "up") != 0 && strcmp(colon, "down") != 0) {
            return mp_fail(error, "\"%.40s\" is no direction; say %.40s, %.40s:up or %.40s:down", colon, text, text,
                           text);
        }
    }
    request->ways[0] = !colon || strcmp(colon, "up") == 0;
    request->ways[1] = !colon || strcmp(colon, "down") == 0;
    for (size_t k = 0; k < shell->link_count; k++) {
        if (strcmp(shell->paths[k].options->name, text) == 0) {
            request->path = k;
            return true;
        }
    }
    return mp_fail(error, "there is no path named \"%.40s\"", text);
}

/* The words of a command after its target, and what they are read into. */
typedef struct {
    mp_shell *shell;
    const char *value, *second; /* second is NULL if there is only one */
    link_change *change;
    char *error;
} setting_words;

static bool parse_delay(const setting_words *w) {
    w->change->has_delay = true;
    return number_parse_ms(w->value, strlen(w->value), LINK_MS_MOST, &w->change->delay_us) ||
           mp_fail(w->error, "\"%.40s\" is not a one-way delay in ms (0 to 3600000)", w->value);
}

static bool parse_loss(const setting_words *w) {
    char wanted[160];
    w->change->has_loss = true;
    return link_loss_parse(&w->change->loss, w->value, wanted, sizeof wanted) ||
           mp_fail(w->error, "\"%.40s\" is not %s", w->value, wanted);
}

static bool parse_trace(const setting_words *w) {
    struct stat st;
    uint64_t rate;
    if (!link_trace_parse_rate(w->value, &rate) && stat(w->value, &st) == 0 && !S_ISREG(st.st_mode))
        return mp_fail(w->error, "%.200s is not a file", w->value);
    const mp_trace *trace = mp_setup_trace(w->shell, w->value, w->error);
    w->change->trace = !trace ? NULL : &trace->trace;
    return trace;
}

static bool parse_mtu(const setting_words *w) {
    uint64_t *bytes = &w->change->mtu_bytes;
    bool good = number_parse(w->value, strlen(w->value), bytes) && *bytes >= LINK_MTU_LEAST && *bytes <= LINK_MTU_MOST;
    return good || mp_fail(w->error, "\"%.40s\" is not an MTU (%u to %u)", w->value, LINK_MTU_LEAST, LINK_MTU_MOST);
}

static bool parse_probability(const setting_words *w, double *probability) {
    return number_parse_probability(w->value, strlen(w->value), probability) ||
           mp_fail(w->error, "\"%.40s\" is not a probability (0 to 1)", w->value);
}

static bool parse_duplicate(const setting_words *w) {
    w->change->has_duplicate = true;
    return parse_probability(w, &w->change->duplicate);
}

static bool parse_cross(const setting_words *w) {
    w->change->has_cross = true;
    return link_cross_parse_rate(w->value, &w->change->cross_bps) ||
           mp_fail(w->error, "\"%.40s\" is not a rate of at most 10gbps, or off", w->value);
}

static bool parse_reorder(const setting_words *w) {
    w->change->has_reorder = true;
    if (!parse_probability(w, &w->change->reorder))
        return false;
    if (w->second && !number_parse_ms(w->second, strlen(w->second), LINK_MS_MOST, &w->change->reorder_us))
        return mp_fail(w->error, "\"%.40s\" is not a delay in ms (0 to 3600000)", w->second);
    return (w->change->reorder > 0.0) == (w->change->reorder_us > 0) ||
           mp_fail(w->error, "reorder takes a probability above 0 and a delay above 0 in ms, or 0");
}

/* Whether the path supports the change. False with a sentence in error. */
static bool check_path(const mp_shell *shell, const mp_request *request, const char *name, char error[MP_ERROR_SIZE]) {
    const mp_path *path = &shell->paths[request->path];
    if (request->change.trace && request->change.trace->at_ms && path->up.parts.air)
        return mp_fail(error, "path %.40s is Wi-Fi, which has no trace; give a rate", name);
    for (size_t way = 0; way < 2; way++)
        if (request->ways[way] && request->change.cross_bps > 0 &&
            link_queue_is_infinite(path->options->settings[way].config.queue))
            return mp_fail(error, LINK_CROSS_NEEDS_LIMIT);
    return true;
}

static const struct {
    const char *name;
    size_t words; /* maximum: name, target, values */
    bool (*parse)(const setting_words *);
} settings[] = {
    {"delay", 3, parse_delay},     {"loss", 3, parse_loss},   {"trace", 3, parse_trace},
    {"rate", 3, parse_trace},      {"mtu", 3, parse_mtu},     {"duplicate", 3, parse_duplicate},
    {"reorder", 4, parse_reorder}, {"cross", 3, parse_cross},
};

bool mp_control_parse(mp_shell *shell, char *line, mp_request *request, char error[MP_ERROR_SIZE]) {
    char *words[MAX_WORDS] = {NULL};
    size_t count = 0;
    char *rest = NULL;
    for (char *w = strtok_r(line, " \t\r", &rest); w && count < MAX_WORDS; w = strtok_r(NULL, " \t\r", &rest))
        words[count++] = w;
    request->asks_figures = count == 1 && strcmp(words[0], "stats") == 0;
    if (request->asks_figures)
        return true;
    if (count == 2 && (strcmp(words[0], "up") == 0 || strcmp(words[0], "down") == 0)) {
        request->change.has_state = true;
        request->change.is_up = words[0][0] == 'u';
        return parse_target(shell, words[1], request, error);
    }
    if (count == 2 && strcmp(words[0], "rebind") == 0) {
        request->change.rebinds = true;
        if (!parse_target(shell, words[1], request, error))
            return false;
        return shell->paths[request->path].up.parts.nat ||
               mp_fail(error, "path %.40s has no NAT; start mpshell with its key nat", words[1]);
    }
    if (count == 3 && strcmp(words[0], "interface") == 0) {
        request->has_interface = request->change.has_state = true;
        request->change.is_up = strcmp(words[2], "up") == 0;
        if (!request->change.is_up && strcmp(words[2], "down") != 0)
            return mp_fail(error, "\"%.40s\" is not up or down", words[2]);
        if (strchr(words[1], ':'))
            return mp_fail(error, "an interface has both directions; say interface PATH %s", words[2]);
        if (!parse_target(shell, words[1], request, error))
            return false;
        return request->path < shell->path_count ||
               mp_fail(error, "%.40s is a bottleneck, which has no interface", words[1]);
    }
    for (size_t i = 0; count >= 3 && i < sizeof settings / sizeof settings[0]; i++) {
        if (count <= settings[i].words && strcmp(words[0], settings[i].name) == 0) {
            const setting_words given = {shell, words[2], words[3], &request->change, error};
            return parse_target(shell, words[1], request, error) && settings[i].parse(&given) &&
                   check_path(shell, request, words[1], error);
        }
    }
    return mp_fail(error,
                   "this is not one of: up PATH, down PATH, delay PATH MS, loss PATH LOSS, rate PATH RATE, "
                   "trace PATH FILE, mtu PATH BYTES, reorder PATH P MS, duplicate PATH P, cross PATH RATE, rebind "
                   "PATH, interface PATH up, interface PATH down, stats; PATH:up and PATH:down are one direction");
}
