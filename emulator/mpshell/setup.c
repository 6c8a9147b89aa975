#include "emulator/mpshell/setup.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emulator/link/rng.h"
#include "emulator/mpshell/flows.h"

/* Each file is loaded once, even if several links replay it. */
const mp_trace *mp_setup_trace(mp_shell *shell, const char *given, char error[MP_ERROR_SIZE]) {
    uint64_t rate;
    bool is_rate = link_trace_parse_rate(given, &rate);
    if (!is_rate && access(given, F_OK) != 0) {
        bool like_rate = given[0] >= '0' && given[0] <= '9' && !strchr(given, '/');
        mp_fail(error, "%s: cannot read the trace: %s%s", given, strerror(errno),
                like_rate ? "; a constant rate is a number above 0 with bps, kbps, mbps or gbps, for example 12mbps"
                          : "");
        return NULL;
    }
    for (size_t i = 0; i < shell->trace_count; i++)
        if (strcmp(shell->traces[i].path, given) == 0)
            return &shell->traces[i];
    if (shell->trace_count == MP_MAX_TRACES)
        return mp_null(error, "%s: that would be more than %d traces", given, MP_MAX_TRACES);
    mp_trace *trace = &shell->traces[shell->trace_count];
    const bool good = link_trace_load(&trace->trace, trace->sha256, given, given, error, MP_ERROR_SIZE);
    trace->path = good ? strdup(given) : NULL;
    if (!trace->path) {
        link_trace_free(&trace->trace);
        return NULL;
    }
    shell->trace_count++;
    return trace;
}

static bool make_link(mp_shell *shell, size_t k, uint32_t way, char error[MP_ERROR_SIZE]) {
    const mp_path_options *options = shell->paths[k].options;
    const link_settings *settings = &options->settings[way];
    mp_direction *direction = mp_direction_at(shell, 2 * k + way);
    const char *what = k < shell->path_count ? "path" : "bottleneck";
    size_t seed = k < shell->path_count ? k : LINK_BOTTLENECK_SEED + (k - shell->path_count);
    char reason[MP_ERROR_SIZE - 64];
    link_config config = link_settings_config(settings, shell->options.start_offset_ms);
    config.trace = &direction->trace->trace;
    config.pool = shell->pool;
    config.log = direction->log;
    config.seed = link_seed(shell->options.seed, (uint32_t)seed, way);
    direction->link =
        link_settings_make(settings, &config, &direction->parts, &shell->paths[k].up.parts, reason, sizeof reason);
    return direction->link || mp_fail(error, "%s %s: %s", what, options->name, reason);
}

static bool make_direction(mp_shell *shell, size_t k, uint32_t way, char error[MP_ERROR_SIZE]) {
    mp_direction *direction = mp_direction_at(shell, 2 * k + way);
    direction->number = 2 * k + way;
    direction->trace = mp_setup_trace(shell, link_settings_trace(&shell->paths[k].options->settings[way]), error);
    if (!direction->trace)
        return false;
    if (shell->options.log_dir) {
        direction->log = malloc(sizeof(*direction->log));
        if (!direction->log)
            return mp_fail(error, "no memory for a log");
        direction->log->used = 0;
    }
    return make_link(shell, k, way, error);
}

static void make_route(mp_shell *shell, size_t number) {
    const size_t way = number % 2;
    const mp_path_options *path = shell->paths[number / 2].options;
    mp_direction *direction = mp_direction_at(shell, number);
    direction->route = link_route_make(number, &path->via[way], 2 * shell->path_count, way == 0);
    direction->entry = mp_direction_at(shell, direction->route.links[0]);
}

bool mp_setup_links(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    shell->pool = link_pool_new(0);
    if (!shell->pool)
        return mp_fail(error, "no memory");
    shell->link_count = shell->path_count + shell->options.bottleneck_count;
    for (size_t k = 0; k < shell->link_count; k++) {
        bool is_path = k < shell->path_count;
        shell->paths[k].options =
            is_path ? &shell->options.paths[k] : &shell->options.bottlenecks[k - shell->path_count];
        if (!make_direction(shell, k, 0, error) || !make_direction(shell, k, 1, error))
            return false;
    }
    for (size_t number = 0; number < 2 * shell->path_count; number++)
        make_route(shell, number);
    return true;
}

/* mkdir -p */
static bool make_directories(const char *path) {
    char part[PATH_MAX];
    if (strlen(path) >= sizeof part) {
        errno = ENAMETOOLONG;
        return false;
    }
    strcpy(part, path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    return mkdir(part, 0755) == 0 || errno == EEXIST;
}

bool mp_setup_output(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    const mp_options *options = &shell->options;
    if (options->pcap && !make_directories(options->pcap))
        return mp_fail(error, "cannot make the capture directory %s: %s", options->pcap, strerror(errno));
    if (options->log_dir && !make_directories(options->log_dir))
        return mp_fail(error, "cannot make the log directory %s: %s", options->log_dir, strerror(errno));
    shell->late.wanted = options->lateness;
    return mp_result_open(&shell->summary, "summary", options->summary, error) &&
           mp_result_open(&shell->netstat, "counters", options->netstat, error) &&
           mp_result_open(&shell->late.file, "lateness", options->lateness, error) &&
           mp_result_open(&shell->flow_log, "flows", options->flow_log, error);
}

void mp_setup_free(mp_shell *shell) {
    for (size_t i = 0; i < 2 * shell->link_count; i++) {
        link_free(mp_direction_at(shell, i)->link);
        free(mp_direction_at(shell, i)->log);
    }
    for (size_t i = 0; i < 2 * shell->link_count; i++)
        link_parts_free(&mp_direction_at(shell, i)->parts);
    for (size_t i = 0; i < shell->trace_count; i++) {
        link_trace_free(&shell->traces[i].trace);
        free(shell->traces[i].path);
    }
    mp_result_close(&shell->summary);
    mp_result_close(&shell->netstat);
    mp_result_close(&shell->flow_log);
    mp_flows_free(shell->flows);
    mp_late_free(&shell->late);
    link_pool_free(shell->pool);
    json_decref(shell->events);
}
