#include "emulator/mpshell/summary.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static json_t *number(uint64_t value) {
    return json_integer((json_int_t)value);
}

/* Command lines may hold any bytes; JSON takes UTF-8 only. */
static json_t *text(const char *value) {
    json_t *string = json_string(value);
    if (string != NULL) {
        return string;
    }
    char *copy = strdup(value);
    for (char *c = copy; c != NULL && *c != '\0'; c++) {
        *c = (*c & 0x80) != 0 ? '?' : *c;
    }
    string = copy == NULL ? json_null() : json_string(copy);
    free(copy);
    return string;
}

static json_t *lateness_object(const struct xl_lateness *lateness) {
    json_t *object = json_object();
    json_object_set_new(object, "p50", number(xl_lateness_quantile(lateness, 0.50)));
    json_object_set_new(object, "p99", number(xl_lateness_quantile(lateness, 0.99)));
    json_object_set_new(object, "max", number(lateness->max_us));
    json_object_set_new(object, "over_1ms", number(lateness->over_1ms));
    json_object_set_new(object, "count", number(lateness->count));
    return object;
}

static json_t *direction_object(const struct mp_direction *direction) {
    struct xl_link_stats stats = xl_link_stats(direction->link);
    const struct {
        const char *name;
        uint64_t value;
    } figures[] = {
        {"opportunities", stats.opportunities},
        {"opportunities_used", stats.opportunities_used},
        {"missed", stats.missed},
        {"arrived_packets", stats.arrived_packets},
        {"arrived_bytes", stats.arrived_bytes},
        {"departed_packets", stats.departed_packets},
        {"departed_bytes", stats.departed_bytes},
        {"queue_drops", stats.queue_drops},
        {"random_losses", stats.random_losses},
        {"oversize_drops", stats.oversize_drops},
        {"memory_drops", stats.memory_drops},
        {"inside_packets", stats.inside_packets},
        {"write_errors", direction->write_errors},
    };
    json_t *object = json_object();
    json_object_set_new(object, "trace", text(direction->trace->path));
    json_object_set_new(object, "trace_sha256", text(direction->trace->sha256));
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        json_object_set_new(object, figures[i].name, number(figures[i].value));
    }
    json_object_set_new(object, "lateness_us", lateness_object(xl_link_lateness(direction->link)));
    return object;
}

static json_t *path_object(const struct mp_path *path) {
    json_t *object = json_object();
    json_t *drops = json_object();
    json_object_set_new(object, "name", text(path->options->name));
    json_object_set_new(object, "inside_addr", text(path->inside_address));
    json_object_set_new(object, "outside_addr", text(path->outside_address));
    json_object_set_new(object, "outside_device", text(path->outside_name));
    json_object_set_new(object, "delay_ms", json_real((double)path->options->delay_us / 1000.0));
    json_object_set_new(object, "loss", json_real(path->options->loss));
    json_object_set_new(object, "queue", text(path->options->queue));
    json_object_set_new(object, "up", direction_object(&path->up));
    json_object_set_new(object, "down", direction_object(&path->down));
    json_object_set_new(drops, "inside_rx", number(path->inside_drops.received));
    json_object_set_new(drops, "inside_tx", number(path->inside_drops.transmitted));
    json_object_set_new(drops, "outside_rx", number(path->outside_drops.received));
    json_object_set_new(drops, "outside_tx", number(path->outside_drops.transmitted));
    json_object_set_new(object, "device_drops", drops);
    return object;
}

static json_t *exit_object(int status) {
    json_t *object = json_object();
    json_object_set_new(object, "code", WIFEXITED(status) ? json_integer(WEXITSTATUS(status)) : json_null());
    json_object_set_new(object, "signal", WIFSIGNALED(status) ? json_integer(WTERMSIG(status)) : json_null());
    return object;
}

static json_t *summary_object(const struct mp_shell *shell, int status) {
    json_t *object = json_object();
    json_t *command = json_array();
    json_t *paths = json_array();
    for (char **argument = shell->options.command; *argument != NULL; argument++) {
        json_array_append_new(command, text(*argument));
    }
    for (size_t k = 0; k < shell->path_count; k++) {
        json_array_append_new(paths, path_object(&shell->paths[k]));
    }
    json_object_set_new(object, "schema", json_integer(1));
    json_object_set_new(object, "command", command);
    json_object_set_new(object, "seed", number(shell->options.seed));
    json_object_set_new(object, "start_offset_ms", number(shell->options.start_offset_ms));
    json_object_set_new(object, "mptcp", json_boolean(shell->options.mptcp));
    json_object_set_new(object, "t0_monotonic_us", number(shell->t0_us));
    json_object_set_new(object, "t0_epoch_ms", number(shell->t0_epoch_ms));
    json_object_set_new(object, "duration_s", json_real((double)shell->duration_us / 1e6));
    json_object_set_new(object, "exit", exit_object(status));
    json_object_set_new(object, "sched_fifo", json_boolean(shell->sched_fifo));
    json_object_set_new(object, "paths", paths);
    return object;
}

int mp_summary_write(const struct mp_shell *shell, int status, char error[MP_ERROR_SIZE]) {
    const char *path = shell->options.summary;
    char *beside = NULL;
    if (asprintf(&beside, "%s.%d.tmp", path, (int)getpid()) < 0) {
        return mp_fail(error, "no memory for the summary");
    }
    json_t *object = summary_object(shell, status);
    int rc = json_dump_file(object, beside, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
    json_decref(object);
    if (rc != 0 || rename(beside, path) != 0) {
        rc = mp_fail(error, "cannot write the summary %s: %s", path, strerror(errno));
        unlink(beside);
    }
    free(beside);
    return rc;
}
