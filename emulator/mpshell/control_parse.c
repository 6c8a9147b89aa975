/* The commands of the control socket. */
#include <string.h>
#include <sys/stat.h>

#include "emulator/link/text.h"
#include "emulator/mpshell/control.h"
#include "emulator/mpshell/setup.h"

#define MAX_WORDS 4

/* "wifi", "wifi:up", "wifi:down" */
static int parse_target(const struct mp_shell *shell, char *text, struct mp_request *request,
                        char error[MP_ERROR_SIZE]) {
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
    for (size_t k = 0; k < shell->path_count; k++) {
        if (strcmp(shell->options.paths[k].name, text) == 0) {
            request->path = k;
            return 0;
        }
    }
    return mp_fail(error, "there is no path named \"%.40s\"", text);
}

static int parse_delay(struct mp_shell *shell, const char *value, struct mp_request *request,
                       char error[MP_ERROR_SIZE]) {
    (void)shell;
    request->kind = MP_REQUEST_DELAY;
    return number_parse_ms(value, strlen(value), LINK_MS_MOST, &request->delay_us)
               ? 0
               : mp_fail(error, "\"%.40s\" is not a one-way delay in ms (0 to 3600000)", value);
}

static int parse_loss(struct mp_shell *shell, const char *value, struct mp_request *request,
                      char error[MP_ERROR_SIZE]) {
    char wanted[160];
    (void)shell;
    request->kind = MP_REQUEST_LOSS;
    return link_loss_parse(&request->loss, value, wanted, sizeof(wanted)) == 0
               ? 0
               : mp_fail(error, "\"%.40s\" is not %s", value, wanted);
}

static int parse_trace(struct mp_shell *shell, const char *value, struct mp_request *request,
                       char error[MP_ERROR_SIZE]) {
    struct stat st;
    uint64_t rate;
    request->kind = MP_REQUEST_TRACE;
    if (!link_trace_parse_rate(value, &rate) && stat(value, &st) == 0 && !S_ISREG(st.st_mode))
        return mp_fail(error, "%.200s is not a file", value);
    const struct mp_trace *trace = mp_setup_trace(shell, value, error);
    request->trace = !trace ? NULL : &trace->trace;
    return !trace ? -1 : 0;
}

int mp_control_parse(struct mp_shell *shell, char *line, struct mp_request *request, char error[MP_ERROR_SIZE]) {
    static const struct {
        const char *name;
        int (*parse)(struct mp_shell *shell, const char *value, struct mp_request *request, char error[MP_ERROR_SIZE]);
    } settings[] = {{"delay", parse_delay}, {"loss", parse_loss}, {"trace", parse_trace}, {"rate", parse_trace}};
    char *words[MAX_WORDS] = {NULL};
    size_t count = 0;
    char *rest = NULL;
    for (char *w = strtok_r(line, " \t\r", &rest); w && count < MAX_WORDS; w = strtok_r(NULL, " \t\r", &rest))
        words[count++] = w;
    if (count == 1 && strcmp(words[0], "stats") == 0) {
        request->kind = MP_REQUEST_FIGURES;
        return 0;
    }
    if (count == 2 && (strcmp(words[0], "up") == 0 || strcmp(words[0], "down") == 0)) {
        request->kind = MP_REQUEST_UP;
        request->up = words[0][0] == 'u';
        return parse_target(shell, words[1], request, error);
    }
    for (size_t i = 0; count == 3 && i < sizeof(settings) / sizeof(settings[0]); i++) {
        if (strcmp(words[0], settings[i].name) == 0) {
            return parse_target(shell, words[1], request, error) != 0
                       ? -1
                       : settings[i].parse(shell, words[2], request, error);
        }
    }
    return mp_fail(error, "this is not one of: up PATH, down PATH, delay PATH MS, loss PATH LOSS, rate PATH RATE, "
                          "trace PATH FILE, stats; PATH:up and PATH:down are one direction");
}
