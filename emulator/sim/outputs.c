#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "emulator/link/capture.h"
#include "emulator/link/report.h"
#include "emulator/sim/sim.h"
#include "server/report.h"

#define IP_BYTES   20 /* length of the header that network.c makes */
#define FILE_BYTES (sizeof(((simulation *)0)->directory) + 128)

/* The command line in all records, which must not vary. */
static char program[] = "xlink-sim";
static char *const arguments[] = {program, NULL};

static const char *base_name(const char *file) {
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

static void name_file(const simulation *sim, const char *name, char out[FILE_BYTES]) {
    snprintf(out, FILE_BYTES, "%s/%s", sim->directory, name);
}

static bool make_directory(const char *directory, char *error) {
    return mkdir(directory, 0777) == 0 || errno == EEXIST ||
           sim_fail(error, "cannot make the directory %s: %s", directory, strerror(errno));
}

/* ---- opening ---- */

static bool open_jsonl(const simulation *sim, const char *name, uint64_t start_us, jsonl **out, char *error) {
    char file[FILE_BYTES];
    name_file(sim, name, file);
    *out = jsonl_open(file, start_us);
    return *out || sim_fail(error, "cannot write %s: %s", file, strerror(errno));
}

static bool open_players(simulation *sim, char *error) {
    for (size_t i = 0; i < sim->job->player_count; i++) {
        sim_player *p = &sim->players[i];
        char name[32];
        snprintf(name, sizeof name, i > 0 ? "player-%zu.jsonl" : "player.jsonl", i + 1);
        if (!open_jsonl(sim, name, p->job->start_us, &p->log, error))
            return false;
        jsonl_write_start(p->log, 1, arguments, player_session_describe(&p->job->options));
    }
    return true;
}

static void write_log(void *file, const char *text, size_t length) {
    (void)fwrite(text, 1, length, file); /* errors are found when it is closed */
}

/* Writes the name of a link: of its path, with the player if that has its own links, or of its bottleneck. */
static void name_link(const simulation *sim, size_t actor, char *out, size_t cap) {
    size_t number = actor / 2, set = number / sim->job->path_count;
    const char *path = sim->job->paths[number % sim->job->path_count].name;
    if (actor >= sim->path_direction_count)
        snprintf(out, cap, "%s", sim->job->paths[sim->job->path_count + number - sim_path_links(sim->job)].name);
    else if (set == 0)
        snprintf(out, cap, "%s", path);
    else
        snprintf(out, cap, "player-%zu.%s", set + 1, path);
}

static bool open_link_log(simulation *sim, sim_direction *d, char *error) {
    char link[48], name[64], place[80], file[FILE_BYTES];
    name_link(sim, d->actor, link, sizeof link);
    snprintf(name, sizeof name, "%s.%s.log", link, d->to_server ? "up" : "down");
    snprintf(place, sizeof place, "links/%s", name);
    name_file(sim, place, file);
    d->log_file = fopen(file, "we");
    if (!d->log_file)
        return sim_fail(error, "cannot write %s: %s", file, strerror(errno));
    link_log_init(d->log, write_log, d->log_file);
    link_log_header(d->log, d->to_server ? "Uplink" : "Downlink", base_name(d->trace->file), name, program,
                    link_queue_description(d->link), 0);
    return true;
}

static bool open_link_logs(simulation *sim, char *error) {
    char directory[FILE_BYTES];
    name_file(sim, "links", directory);
    if (sim->job->link_logs && !make_directory(directory, error))
        return false;
    for (size_t i = 0; i < sim->direction_count; i++)
        if (sim->directions[i].log && !open_link_log(sim, &sim->directions[i], error))
            return false;
    return true;
}

/* Opens a capture with mpshell's names: packets of the uplink come from the inside device. */
static bool open_capture(simulation *sim, sim_direction *d, char *error) {
    char link[48], place[80], file[FILE_BYTES];
    uint8_t head[LINK_CAPTURE_HEAD_BYTES];
    name_link(sim, d->actor, link, sizeof link);
    snprintf(place, sizeof place, "captures/%s.%s.pcap", link, d->to_server ? "inside" : "outside");
    name_file(sim, place, file);
    d->capture = fopen(file, "we");
    if (!d->capture)
        return sim_fail(error, "cannot write %s: %s", file, strerror(errno));
    link_capture_head(head, LINK_PACKET_CAPACITY);
    (void)fwrite(head, 1, sizeof head, d->capture); /* errors are found when it is closed */
    return true;
}

static bool open_captures(simulation *sim, char *error) {
    char directory[FILE_BYTES];
    name_file(sim, "captures", directory);
    if (!make_directory(directory, error))
        return false;
    for (size_t i = 0; i < sim->path_direction_count; i++)
        if (sim->directions[i].link && !open_capture(sim, &sim->directions[i], error))
            return false;
    return true;
}

static xl_log_files *open_transport_logs(const simulation *sim, const char *key_file, char *error) {
    char qlog[FILE_BYTES], keys[FILE_BYTES], reason[FILE_BYTES + 64];
    name_file(sim, "qlog", qlog);
    name_file(sim, key_file, keys);
    const xl_log_options options = {
        .qlog_dir = sim->job->qlog ? qlog : NULL, .keylog_file = sim->job->keylog ? keys : NULL, .replace = true};
    xl_log_files *files = xl_log_files_open(&options, reason, sizeof reason);
    if (!files)
        sim_fail(error, "%.900s", reason);
    return files;
}

bool sim_outputs_open(simulation *sim, char *error) {
    if (!make_directory(sim->directory, error) || !open_players(sim, error) || !open_link_logs(sim, error) ||
        (sim->job->captures && !open_captures(sim, error)) ||
        !open_jsonl(sim, "server.jsonl", 0, &sim->server_log, error))
        return false;
    json_t *fields = server_describe(&sim->job->players[0].server);
    json_object_set_new(fields, "players", json_integer((json_int_t)sim->job->player_count));
    jsonl_write_start(sim->server_log, 1, arguments, fields);
    return true;
}

bool sim_outputs_open_transport(simulation *sim, char *error) {
    if (!make_directory(sim->directory, error))
        return false;
    sim->client_files = open_transport_logs(sim, "player.keys", error);
    sim->server_files = sim->client_files ? open_transport_logs(sim, "server.keys", error) : NULL;
    return sim->server_files != NULL;
}

/* ---- captures ---- */

/* Returns the checksum of the IP header, which network.c leaves out. */
static uint16_t ip_checksum(const uint8_t *header) {
    uint32_t sum = 0;
    for (size_t i = 0; i < IP_BYTES; i += 2)
        sum += (uint32_t)(header[i] << 8 | header[i + 1]);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

void sim_outputs_capture(const simulation *sim, const sim_direction *d, const link_packet *packet) {
    uint8_t head[LINK_CAPTURE_RECORD_BYTES + IP_BYTES], *ip = head + LINK_CAPTURE_RECORD_BYTES;
    if (!d->capture)
        return;
    link_capture_record(head, sim->now * 1000, packet->length, packet->length);
    memcpy(ip, packet->data, IP_BYTES);
    uint16_t checksum = ip_checksum(ip);
    ip[10] = (uint8_t)(checksum >> 8);
    ip[11] = (uint8_t)checksum;
    (void)fwrite(head, 1, sizeof head, d->capture); /* errors are found when it is closed */
    (void)fwrite(packet->data + IP_BYTES, 1, packet->length - IP_BYTES, d->capture);
}

/* ---- the summary, and closing ---- */

static json_t *address(size_t number, uint8_t host) {
    const xl_addr a = sim_link_addr(number, host, 0);
    char text[32];
    snprintf(text, sizeof text, "%u.%u.%u.%u", a.ip[0], a.ip[1], a.ip[2], a.ip[3]);
    return json_string(text);
}

static json_t *direction_report(const sim_direction *d, const link_settings *settings) {
    json_t *report = link_report(d->link, base_name(d->trace->file), d->trace->sha256);
    json_object_set_new(report, "write_errors", json_integer(0));
    link_settings_report(settings, report);
    return report;
}

static json_t *path_report(const simulation *sim, size_t number) {
    size_t set = number / sim->job->path_count;
    const sim_path_job *path = &sim->job->paths[number % sim->job->path_count];
    json_t *report = json_pack("{s:s, s:o, s:o}", "name", path->name, "inside_addr", address(number, 2), "outside_addr",
                               address(number, 1));
    link_settings_report_path(path->settings, report);
    if (set > 0)
        json_object_set_new(report, "player", json_integer((json_int_t)set + 1));
    json_object_set_new(report, "up", direction_report(&sim->directions[2 * number], &path->settings[0]));
    json_object_set_new(report, "down", direction_report(&sim->directions[2 * number + 1], &path->settings[1]));
    json_object_set_new(
        report, "device_drops",
        json_pack("{s:i, s:i, s:i, s:i}", "inside_rx", 0, "inside_tx", 0, "outside_rx", 0, "outside_tx", 0));
    return report;
}

static json_t *bottlenecks_report(const simulation *sim) {
    json_t *all = json_array();
    for (size_t b = 0; b < sim->job->bottleneck_count; b++) {
        const sim_path_job *bottleneck = &sim->job->paths[sim->job->path_count + b];
        const sim_direction *d = &sim->directions[sim->path_direction_count + 2 * b];
        json_t *report = json_pack("{s:s}", "name", bottleneck->name);
        link_settings_report_path(bottleneck->settings, report);
        json_object_set_new(report, "up", direction_report(&d[0], &bottleneck->settings[0]));
        json_object_set_new(report, "down", direction_report(&d[1], &bottleneck->settings[1]));
        json_array_append_new(all, report);
    }
    return all;
}

/* Returns the members of mpshell's summary, in its order. */
static json_t *emulator_report(const simulation *sim, int status) {
    json_t *paths = json_array();
    for (size_t number = 0; 2 * number < sim->path_direction_count; number++)
        if (sim->directions[2 * number].link)
            json_array_append_new(paths, path_report(sim, number));
    json_t *report = json_pack("{s:i, s:s, s:[s], s:I, s:I, s:b, s:i, s:i, s:f, s:{s:i, s:n}, s:b, s:o}", "schema", 1,
                               "arena", "sim", "command", program, "seed", (json_int_t)sim->job->seed,
                               "start_offset_ms", (json_int_t)sim->job->start_offset_ms, "mptcp", 0, "t0_monotonic_us",
                               0, "t0_epoch_ms", 0, "duration_s", (double)sim->now / 1e6, "exit", "code", status,
                               "signal", "sched_fifo", 1, "paths", paths);
    if (sim->job->bottleneck_count > 0)
        json_object_set_new(report, "bottlenecks", bottlenecks_report(sim));
    return report;
}

/* Closes a file if it is open. False if it could not be written. */
static bool close_file(void **file) {
    bool ok = true;
    if (*file) {
        ok = ferror((FILE *)*file) == 0;
        ok = fclose(*file) == 0 && ok;
        *file = NULL;
    }
    return ok;
}

static bool close_link_logs(simulation *sim) {
    bool ok = true;
    for (size_t i = 0; i < sim->direction_count; i++) {
        sim_direction *d = &sim->directions[i];
        if (d->link)
            link_advance(d->link, sim->now);
        if (d->log_file)
            link_log_flush(d->log);
        ok = close_file(&d->log_file) && ok;
        ok = close_file(&d->capture) && ok;
    }
    return ok;
}

bool sim_outputs_close_logs(simulation *sim) {
    bool ok = close_link_logs(sim);
    for (size_t i = 0; sim->players && i < sim->job->player_count; i++) {
        ok = jsonl_close(sim->players[i].log) && ok;
        sim->players[i].log = NULL;
    }
    ok = jsonl_close(sim->server_log) && ok;
    sim->server_log = NULL;
    return ok;
}

bool sim_outputs_close(simulation *sim, int status, char *error) {
    char file[FILE_BYTES];
    name_file(sim, "mpshell.json", file);
    bool ok = sim_outputs_close_logs(sim);
    json_t *report = emulator_report(sim, status);
    ok = json_dump_file(report, file, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) == 0 && ok;
    json_decref(report);
    return ok || sim_fail(error, "cannot write all outputs to %s: %s", sim->directory, strerror(errno));
}
