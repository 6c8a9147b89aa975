#include "emulator/mpshell/summary.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulator/link/report.h"
#include "emulator/mpshell/flows.h"

static json_t *direction_object(const mp_direction *direction, const link_settings *settings) {
    json_t *object = link_report(direction->link, direction->trace->path, direction->trace->sha256);
    json_object_set_new(object, "write_errors", json_integer((json_int_t)direction->write_errors));
    link_settings_report(settings, object);
    return object;
}

static json_t *path_object(const mp_path *path) {
    json_t *object = json_object();
    json_object_set_new(object, "name", link_report_text(path->options->name));
    json_object_set_new(object, "inside_addr", link_report_text(path->ends.inside_address));
    json_object_set_new(object, "outside_addr", link_report_text(path->ends.outside_address));
    if (path->ends.inside_address6[0] != '\0') {
        json_object_set_new(object, "inside_addr6", link_report_text(path->ends.inside_address6));
        json_object_set_new(object, "outside_addr6", link_report_text(path->ends.outside_address6));
    }
    json_object_set_new(object, "outside_device", link_report_text(path->ends.outside_name));
    link_settings_report_path(path->options->settings, object);
    json_object_set_new(object, "up", direction_object(&path->up, &path->options->settings[0]));
    json_object_set_new(object, "down", direction_object(&path->down, &path->options->settings[1]));
    json_object_set_new(object, "device_drops",
                        json_pack("{s:I,s:I,s:I,s:I}", "inside_rx", (json_int_t)path->inside_drops.received,
                                  "inside_tx", (json_int_t)path->inside_drops.transmitted, "outside_rx",
                                  (json_int_t)path->outside_drops.received, "outside_tx",
                                  (json_int_t)path->outside_drops.transmitted));
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
    return json_pack("{s:o,s:o}", "code", WIFEXITED(status) ? json_integer(WEXITSTATUS(status)) : json_null(), "signal",
                     WIFSIGNALED(status) ? json_integer(WTERMSIG(status)) : json_null());
}

static json_t *lateness_object(const mp_awake_lateness *lateness) {
    return json_pack("{s:f,s:f,s:f}", "p50", lateness->p50_us, "p95", lateness->p95_us, "p99", lateness->p99_us);
}

static json_t *awake_object(const mp_awake *awake) {
    const mp_awake_probe *probe = &awake->probe;
    json_t *object = json_pack("{s:s,s:b,s:s,s:b,s:I,s:b,s:b,s:f}", "asked", mp_keep_awake_names[awake->asked], "done",
                               awake->done, "because", mp_awake_reason(awake), "latency_device", awake->latency_held,
                               "spinners", (json_int_t)(awake->done ? awake->count : 0), "spinners_shared",
                               awake->shared, "cpu_quota", awake->quota, "spinner_cpu_s", awake->cpu_s);
    if (probe->made) {
        json_object_set_new(object, "probe",
                            json_pack("{s:b,s:f,s:o,s:o}", "sched_fifo", probe->sched_fifo, "age_s", probe->age_s,
                                      "without_us", lateness_object(&probe->without), "with_us",
                                      lateness_object(&probe->with)));
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
    return json_pack("{s:I,s:f,s:f,s:f,s:f}", "cores", (json_int_t)machine->cores, "busy_s", machine->busy_s, "steal_s",
                     machine->steal_s, "guest_s", machine->guest_s, "others_s",
                     machine->busy_s > own_s ? machine->busy_s - own_s : 0.0);
}

static json_t *summary_object(const mp_shell *shell, int status) {
    json_t *command = json_array(), *paths = json_array();
    for (char **argument = shell->options.command; *argument; argument++)
        json_array_append_new(command, link_report_text(*argument));
    for (size_t k = 0; k < shell->told_count; k++)
        json_array_append_new(paths, path_object(&shell->paths[k]));
    json_t *object = json_pack(
        "{s:i,s:o,s:I,s:I,s:b,s:I,s:I,s:f,s:f,s:f,s:o,s:o,s:o,s:b,s:b}", "schema", 1, "command", command, "seed",
        (json_int_t)shell->options.seed, "start_offset_ms", (json_int_t)shell->options.start_offset_ms, "mptcp",
        (int)shell->options.mptcp, "t0_monotonic_us", (json_int_t)shell->t0_us, "t0_epoch_ms",
        (json_int_t)shell->t0_epoch_ms, "duration_s", (double)shell->duration_us / 1e6, "cpu_s", shell->cpu_s,
        "command_cpu_s", shell->command_cpu_s, "machine", mp_summary_machine(shell), "user",
        shell->user.given ? link_report_text(shell->user.name) : json_null(), "exit", exit_object(status), "sched_fifo",
        (int)shell->sched_fifo, "command_fifo", (int)shell->command_fifo);
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
            json_t *link = json_pack(
                "{s:b,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:I,s:I,s:I,s:I}", "is_up", figures->links[k][way].is_up,
                "opportunities", (json_int_t)s->opportunities, "opportunities_used", (json_int_t)s->opportunities_used,
                "arrived_packets", (json_int_t)s->arrived_packets, "arrived_bytes", (json_int_t)s->arrived_bytes,
                "departed_packets", (json_int_t)s->departed_packets, "departed_bytes", (json_int_t)s->departed_bytes,
                "queued_packets", (json_int_t)s->queued_packets, "queued_bytes", (json_int_t)s->queued_bytes,
                "queueing_ms", (double)s->queueing_us / 1000.0, "queue_drops", (json_int_t)s->queue_drops,
                "random_losses", (json_int_t)s->random_losses, "off_losses", (json_int_t)s->off_losses, "late_p99_us",
                (json_int_t)figures->links[k][way].late_p99_us);
            json_object_set_new(path, names[way], link);
        }
        json_array_append_new(paths, path);
    }
    return paths;
}

bool mp_summary_write(const mp_shell *shell, int status, char error[MP_ERROR_SIZE]) {
    json_t *object = shell->summary.path ? summary_object(shell, status) : NULL;
    char *text = object ? json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(object);
    const bool good = !shell->summary.path || (text ? mp_result_write(&shell->summary, text, strlen(text), error)
                                                    : mp_fail(error, "no memory for the summary"));
    free(text);
    return good;
}
