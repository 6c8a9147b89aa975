#include "emulator/mpshell/outputs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "emulator/mpshell/stream.h"

static const char *const ways[2] = {"up", "down"};

static bool open_stream(mp_stream **stream, const char *folder, const char *path, const char *suffix,
                        char error[MP_ERROR_SIZE]) {
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s/%s.%s", folder, path, suffix);
    *stream = mp_stream_open(name);
    return *stream || mp_fail(error, "cannot write %s: %s", name, strerror(errno));
}

static bool open_log(mp_direction *direction, const char *folder, const char *path, size_t way,
                     char error[MP_ERROR_SIZE]) {
    char log[32], departures[32];
    snprintf(log, sizeof log, "%s.log", ways[way]);
    snprintf(departures, sizeof departures, "%s.departures", ways[way]);
    if (!open_stream(&direction->log_file, folder, path, log, error) ||
        !open_stream(&direction->departures, folder, path, departures, error))
        return false;
    link_log_init(direction->log, mp_stream_queue, direction->log_file);
    return true;
}

/* Each file shows what tcpdump would show on the device: uplink packets come from the inside device. */
static bool open_captures(mp_path *path, const char *folder, char error[MP_ERROR_SIZE]) {
    const char *name = path->options->name;
    if (!open_stream(&path->up.captured_in, folder, name, "inside.pcap", error) ||
        !open_stream(&path->down.captured_in, folder, name, "outside.pcap", error))
        return false;
    path->down.captured_out = path->up.captured_in;
    path->up.captured_out = path->down.captured_in;
    return true;
}

bool mp_outputs_open(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    const char *log_dir = shell->options.log_dir;
    for (size_t k = 0; k < shell->link_count; k++) {
        mp_path *path = &shell->paths[k];
        const char *name = path->options->name;
        if (log_dir &&
            (!open_log(&path->up, log_dir, name, 0, error) || !open_log(&path->down, log_dir, name, 1, error)))
            return false;
        if (shell->options.pcap && k < shell->told_count && !open_captures(path, shell->options.pcap, error))
            return false;
    }
    return true;
}

static void begin_log(const mp_shell *shell, const mp_direction *direction, size_t way) {
    link_log_header(direction->log, way == 0 ? "Uplink" : "Downlink", direction->trace->path,
                    mp_stream_name(direction->log_file), shell->options.command_line,
                    link_queue_description(direction->link), shell->t0_epoch_ms);
    mp_stream_departures_header(direction->departures, shell->t0_us);
}

void mp_outputs_begin(mp_shell *shell) {
    for (size_t i = 0; i < 2 * shell->link_count; i++) {
        const mp_direction *direction = mp_direction_at(shell, i);
        if (direction->log)
            begin_log(shell, direction, i % 2);
        if (direction->captured_in)
            mp_stream_capture_header(direction->captured_in, (uint32_t)shell->options.snaplen);
    }
}

void mp_outputs_flush(mp_direction *direction) {
    if (direction->log)
        link_log_flush(direction->log);
    mp_stream_flush(direction->departures);
    mp_stream_flush(direction->captured_in);
}

static bool close_outputs(mp_direction *direction) {
    bool good = mp_stream_close(direction->log_file);
    good = mp_stream_close(direction->departures) && good;
    good = mp_stream_close(direction->captured_in) && good;
    direction->log_file = direction->departures = direction->captured_in = direction->captured_out = NULL;
    return good;
}

bool mp_outputs_close(mp_shell *shell) {
    bool good = true;
    for (size_t i = 0; i < 2 * shell->link_count; i++)
        good = close_outputs(mp_direction_at(shell, i)) && good;
    return good;
}
