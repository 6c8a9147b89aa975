/* The commands of the control socket. */
#include <string.h>
#include <sys/stat.h>

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

static bool parse_trace(mp_shell *shell, const char *value, link_change *change, char *error) {
    struct stat st;
    uint64_t rate;
    if (!link_trace_parse_rate(value, &rate) && stat(value, &st) == 0 && !S_ISREG(st.st_mode))
        return mp_fail(error, "%.200s is not a file", value);
    const mp_trace *trace = mp_setup_trace(shell, value, error);
    change->trace = !trace ? NULL : &trace->trace;
    return trace;
}

/* Reads a value by the rules of the key of a path. second: the delay of `reorder`; NULL: not given. */
static bool parse_key(const char *key, const char *value, const char *second, link_change *change, char *error) {
    link_settings given[2] = {{.trace = NULL}, {.trace = NULL}};
    char reason[MP_ERROR_SIZE];
    const bool good = link_settings_set(given, key, value, reason, sizeof reason) &&
                      (!second || link_settings_set(given, "reorder-delay", second, reason, sizeof reason));
    link_change_read(change, &given[0]);
    link_settings_free(given);
    if (!good)
        return mp_fail(error, "%s", reason);
    return (change->reorder > 0.0) == (change->reorder_us > 0) ||
           mp_fail(error, "reorder takes a probability above 0 and a delay above 0 in ms, or 0");
}

/* Whether the path supports the change. False with a sentence in error. */
static bool check_path(const mp_shell *shell, const mp_request *request, const char *name, char error[MP_ERROR_SIZE]) {
    const mp_path *path = &shell->paths[request->path];
    if (request->change.trace && request->change.trace->at_ms && path->up.parts.air)
        return mp_fail(error, "path %.40s is Wi-Fi, which has no trace; give a rate", name);
    return link_change_suits(&request->change, path->options->settings, request->ways) ||
           mp_fail(error, LINK_CROSS_NEEDS_LIMIT);
}

/* The commands NAME PATH VALUE; reorder takes a second value. */
static bool parse_change(mp_shell *shell, char *words[MAX_WORDS], mp_request *request, char error[MP_ERROR_SIZE]) {
    const bool is_trace = strcmp(words[0], "trace") == 0 || strcmp(words[0], "rate") == 0;
    return parse_target(shell, words[1], request, error) &&
           (is_trace ? parse_trace(shell, words[2], &request->change, error)
                     : parse_key(words[0], words[2], words[3], &request->change, error)) &&
           check_path(shell, request, words[1], error);
}

static bool is_change(const char *name, size_t words) {
    static const char *const names[] = {"delay", "loss", "trace", "rate", "mtu", "duplicate", "cross", "reorder"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return words == 3 || (words == 4 && strcmp(name, "reorder") == 0);
    return false;
}

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
    if (count >= 3 && is_change(words[0], count))
        return parse_change(shell, words, request, error);
    return mp_fail(error,
                   "this is not one of: up PATH, down PATH, delay PATH MS, loss PATH LOSS, rate PATH RATE, "
                   "trace PATH FILE, mtu PATH BYTES, reorder PATH P MS, duplicate PATH P, cross PATH RATE, rebind "
                   "PATH, interface PATH up, interface PATH down, stats; PATH:up and PATH:down are one direction");
}
