#include "emulator/mpshell/summary.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulator/link/report.h"
#include "emulator/mpshell/flows.h"

static json_t *number(uint64_t value) {
    return json_integer((json_int_t)value);
}

static json_t *direction_object(const mp_direction *direction, const link_settings *settings) {
    json_t *object = link_report(direction->link, direction->trace->path, direction->trace->sha256);
    json_object_set_new(object, "write_errors", number(direction->write_errors));
    link_settings_report(settings, object);
    return object;
}

static json_t *path_object(const mp_path *path) {
    json_t *object = json_object();
    json_t *drops = json_object();
    json_object_set_new(object, "name", link_report_text(path->options->name));
    json_object_set_new(object, "inside_addr", link_report_text(path->inside_address));
    json_object_set_new(object, "outside_addr", link_report_text(path->outside_address));
    if (path->inside_address6[0] != '\0') {
        json_object_set_new(object, "inside_addr6", link_report_text(path->inside_address6));
        json_object_set_new(object, "outside_addr6", link_report_text(path->outside_address6));
    }
    json_object_set_new(object, "outside_device", link_report_text(path->outside_name));
    link_settings_report_path(path->options->settings, object);
    json_object_set_new(object, "up", direction_object(&path->up, &path->options->settings[0]));
    json_object_set_new(object, "down", direction_object(&path->down, &path->options->settings[1]));
    json_object_set_new(drops, "inside_rx", number(path->inside_drops.received));
    json_object_set_new(drops, "inside_tx", number(path->inside_drops.transmitted));
    json_object_set_new(drops, "outside_rx", number(path->outside_drops.received));
    json_object_set_new(drops, "outside_tx", number(path->outside_drops.transmitted));
    json_object_set_new(object, "device_drops", drops);
    return object;
}

static json_t *bottleneck_object(const mp_path *bottleneck) {
    json_t *object = json_object();
    json_object_set_new(object, "name", link_report_text(bottleneck->options->name));
    link_settings_report_path(bottleneck->options->settings, object);
    json_object_set_new(object, "up", direction_object(&bottleneck->up, &bottleneck->options->settings[0]));
    json_object_set_new(object, "down", direction_object(&bottleneck->down, &bottleneck->options->settings[1]));
    return object;
}

static json_t *flows_array(const mp_shell *shell) {
    json_t *flows = mp_flows_report(shell->flows);
    for (size_t i = 0; i < json_array_size(flows); i++) {
        const mp_flow_options *options = &shell->options.flows[i];
        if (options->via)
            json_object_set_new(json_array_get(flows, i), "link", path_object(&shell->paths[options->at]));
    }
    return flows;
}

static json_t *exit_object(int status) {
    json_t *object = json_object();
    json_object_set_new(object, "code", WIFEXITED(status) ? json_integer(WEXITSTATUS(status)) : json_null());
    json_object_set_new(object, "signal", WIFSIGNALED(status) ? json_integer(WTERMSIG(status)) : json_null());
    return object;
}

static json_t *lateness_object(const mp_awake_lateness *lateness) {
    return json_pack("{s:f,s:f,s:f}", "p50", lateness->p50_us, "p95", lateness->p95_us, "p99", lateness->p99_us);
}

static json_t *awake_object(const mp_awake *awake) {
    const mp_awake_probe *probe = &awake->probe;
    json_t *object = json_object();
    json_object_set_new(object, "asked", json_string(mp_keep_awake_names[awake->asked]));
    json_object_set_new(object, "done", json_boolean(awake->done));
    json_object_set_new(object, "because", json_string(mp_awake_reason(awake)));
    json_object_set_new(object, "latency_device", json_boolean(awake->latency_held));
    json_object_set_new(object, "spinners", number(awake->done ? awake->count : 0));
    json_object_set_new(object, "spinners_shared", json_boolean(awake->shared));
    json_object_set_new(object, "cpu_quota", json_boolean(awake->quota));
    json_object_set_new(object, "spinner_cpu_s", json_real(awake->cpu_s));
    if (probe->made) {
        json_t *made = json_object();
        json_object_set_new(made, "sched_fifo", json_boolean(probe->sched_fifo));
        json_object_set_new(made, "age_s", json_real(probe->age_s));
        json_object_set_new(made, "without_us", lateness_object(&probe->without));
        json_object_set_new(made, "with_us", lateness_object(&probe->with));
        json_object_set_new(object, "probe", made);
    } else {
        json_object_set_new(object, "probe", json_null());
    }
    return object;
}

json_t *mp_summary_machine(const mp_shell *shell) {
    const mp_machine *machine = &shell->machine;
    if (!machine->known)
        return json_null();
    double own_s = shell->cpu_s + shell->command_cpu_s + shell->awake.cpu_s;
    json_t *object = json_object();
    json_object_set_new(object, "cores", number(machine->cores));
    json_object_set_new(object, "busy_s", json_real(machine->busy_s));
    json_object_set_new(object, "steal_s", json_real(machine->steal_s));
    json_object_set_new(object, "guest_s", json_real(machine->guest_s));
    json_object_set_new(object, "others_s", json_real(machine->busy_s > own_s ? machine->busy_s - own_s : 0.0));
    return object;
}

static json_t *summary_object(const mp_shell *shell, int status) {
    json_t *object = json_object();
    json_t *command = json_array();
    json_t *paths = json_array();
    for (char **argument = shell->options.command; *argument; argument++)
        json_array_append_new(command, link_report_text(*argument));
    for (size_t k = 0; k < shell->told_count; k++)
        json_array_append_new(paths, path_object(&shell->paths[k]));
    json_object_set_new(object, "schema", json_integer(1));
    json_object_set_new(object, "command", command);
    json_object_set_new(object, "seed", number(shell->options.seed));
    json_object_set_new(object, "start_offset_ms", number(shell->options.start_offset_ms));
    json_object_set_new(object, "mptcp", json_boolean(shell->options.mptcp));
    json_object_set_new(object, "t0_monotonic_us", number(shell->t0_us));
    json_object_set_new(object, "t0_epoch_ms", number(shell->t0_epoch_ms));
    json_object_set_new(object, "duration_s", json_real((double)shell->duration_us / 1e6));
    json_object_set_new(object, "cpu_s", json_real(shell->cpu_s));
    json_object_set_new(object, "command_cpu_s", json_real(shell->command_cpu_s));
    json_object_set_new(object, "machine", mp_summary_machine(shell));
    json_object_set_new(object, "user", shell->user.given ? json_string(shell->user.name) : json_null());
    json_object_set_new(object, "exit", exit_object(status));
    json_object_set_new(object, "sched_fifo", json_boolean(shell->sched_fifo));
    json_object_set_new(object, "command_fifo", json_boolean(shell->command_fifo));
    if (shell->late.wanted) {
        json_object_set_new(object, "timers", mp_timers_report(&shell->late.timers_found));
        const mp_waits_found *waits = &shell->late.waits_found;
        json_object_set_new(object, "run_delay_s", waits->known ? json_real(waits->run_delay_s) : json_null());
        json_object_set_new(object, "blocked_s", waits->known ? json_real(waits->blocked_s) : json_null());
    }
    json_object_set_new(object, "keep_awake", awake_object(&shell->awake));
    json_object_set_new(object, "paths", paths);
    if (shell->link_count > shell->path_count) {
        json_t *bottlenecks = json_array();
        for (size_t k = shell->path_count; k < shell->link_count; k++)
            json_array_append_new(bottlenecks, bottleneck_object(&shell->paths[k]));
        json_object_set_new(object, "bottlenecks", bottlenecks);
    }
    if (shell->flows)
        json_object_set_new(object, "flows", flows_array(shell));
    if (shell->events)
        json_object_set(object, "events", shell->events);
    return object;
}

json_t *mp_summary_figures(const mp_shell *shell, const mp_figures *figures) {
    static const char *const names[2] = {"up", "down"};
    json_t *paths = json_array();
    for (size_t k = 0; k < shell->link_count; k++) {
        json_t *path = json_pack("{s:s}", "name", shell->paths[k].options->name);
        for (size_t way = 0; way < 2; way++) {
            const link_stats *s = &figures->links[k][way].stats;
            json_t *link = json_object();
            json_object_set_new(link, "is_up", json_boolean(figures->links[k][way].is_up));
            json_object_set_new(link, "opportunities", number(s->opportunities));
            json_object_set_new(link, "opportunities_used", number(s->opportunities_used));
            json_object_set_new(link, "arrived_packets", number(s->arrived_packets));
            json_object_set_new(link, "arrived_bytes", number(s->arrived_bytes));
            json_object_set_new(link, "departed_packets", number(s->departed_packets));
            json_object_set_new(link, "departed_bytes", number(s->departed_bytes));
            json_object_set_new(link, "queued_packets", number(s->queued_packets));
            json_object_set_new(link, "queued_bytes", number(s->queued_bytes));
            json_object_set_new(link, "queueing_ms", json_real((double)s->queueing_us / 1000.0));
            json_object_set_new(link, "queue_drops", number(s->queue_drops));
            json_object_set_new(link, "random_losses", number(s->random_losses));
            json_object_set_new(link, "off_losses", number(s->off_losses));
            json_object_set_new(link, "late_p99_us", number(figures->links[k][way].late_p99_us));
            json_object_set_new(path, names[way], link);
        }
        json_array_append_new(paths, path);
    }
    return paths;
}

bool mp_summary_write(const mp_shell *shell, int status, char error[MP_ERROR_SIZE]) {
    json_t *object = summary_object(shell, status);
    char *text = json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
    json_decref(object);
    const bool good =
        text ? mp_result_write(&shell->summary, text, strlen(text)) : mp_fail(error, "no memory for the summary");
    if (text && !good)
        mp_fail(error, "cannot write the summary %s: %s", shell->summary.path, strerror(errno));
    free(text);
    return good;
}
