/* The description of a recording: session.json, and index.yaml for its replay. */
#include "base/error.h"
#include "emulator/saturatr/recording.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "emulator/link/packet.h"
#include "emulator/saturatr/control.h"
#include "xlink/xlink.h"

#define LEAST_QUEUE_PACKETS 50.0

static json_t *figures(const sat_direction *direction) {
    return direction->figures ? json_incref(direction->figures) : json_null();
}

static json_t *path_figures(const sat_recording *r, size_t k) {
    const sat_path_options *path = &r->options->paths[k];
    const sat_recorded_path *p = &r->paths[k];
    char text[SAT_ADDRESS_TEXT];
    return json_pack("{s:s, s:s, s:s, s:o, s:f, s:o, s:o}", "name", path->name, "technology", path->technology,
                     "address", xl_addr_format(&path->local, text, sizeof text), "interface",
                     p->interface[0] == '\0' ? json_null() : json_string(p->interface), "base_rtt_ms", p->base_rtt_ms,
                     "up", figures(&p->up), "down", figures(&p->down));
}

static json_t *started(const sat_recording *r) {
    char text[32];
    time_t seconds = (time_t)(r->t0_epoch_us / 1000000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return json_string(text);
}

static json_t *arguments(const sat_recording *r) {
    json_t *argv = json_array();
    for (int i = 0; i < r->argc; i++) {
        json_t *text = json_string(r->argv[i]);
        json_array_append_new(argv, text ? text : json_string("(not UTF-8)"));
    }
    return argv;
}

static json_t *optional(const char *text) {
    json_t *value = !text ? NULL : json_string(text);
    return value ? value : json_null();
}

static json_t *sizes(const sat_recording *r) {
    return json_pack("{s:I, s:i, s:i, s:i}", "packet_ip_bytes", (json_int_t)r->options->packet_bytes,
                     "opportunity_bytes", (int)LINK_OPPORTUNITY_BYTES, "link_header_bytes", (int)LINK_HEADER_BYTES,
                     "ack_udp_payload_bytes", (int)SAT_CONTROL_BYTES);
}

static json_t *clock_figures(const sat_recording *r) {
    return json_pack("{s:f, s:f, s:f, s:I}", "offset_us", sat_clock_offset_us(&r->clock, r->t0_us), "uncertainty_us",
                     sat_clock_uncertainty_us(&r->clock), "drift_ppm", sat_clock_drift_ppm(&r->clock), "exchanges",
                     (json_int_t)r->clock.exchanges);
}

static json_t *machines(const sat_recording *r, const struct utsname *host) {
    char text[SAT_ADDRESS_TEXT];
    return json_pack("{s:{s:s, s:s, s:I, s:I}, s:{s:s, s:s, s:s, s:I, s:I}}", "client", "host", host->nodename,
                     "kernel", host->release, "socket_drops", (json_int_t)r->client_socket_drops, "stray_datagrams",
                     (json_int_t)r->client_strays, "server", "address",
                     xl_addr_format(&r->options->server, text, sizeof text), "host", r->server_host, "kernel",
                     r->server_kernel, "socket_drops", (json_int_t)r->server_socket_drops, "stray_datagrams",
                     (json_int_t)r->server_strays);
}

static json_t *mode(const sat_recording *r) {
    const sat_options *o = r->options;
    if (o->sizes.count > 0)
        return json_pack("{s:s, s:f}", "mode", "sizes", "every_ms", (double)o->every_us / 1000.0);
    if (o->mode == SAT_LIGHT)
        return json_pack("{s:s, s:{s:I, s:f}}", "mode", "light", "train", "packets", (json_int_t)o->train_packets,
                         "every_ms", (double)o->every_us / 1000.0);
    return json_pack("{s:s, s:I, s:b}", "mode", "heavy", "ramp_us", (json_int_t)r->ramp_us, "saturated_at_t0",
                     (int)r->saturated);
}

static json_t *session(const sat_recording *r) {
    struct utsname host;
    char via[SAT_ADDRESS_TEXT];
    json_t *paths = json_array();
    uname(&host);
    for (size_t k = 0; k < r->options->path_count; k++)
        json_array_append_new(paths, path_figures(r, k));
    json_t *top = json_pack(
        "{s:i, s:s, s:s, s:i, s:o, s:s, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:o}", "schema", 1, "program", "saturatr",
        "version", XL_VERSION, "protocol", SAT_PROTOCOL, "argv", arguments(r), "name", r->options->name, "scenario",
        r->options->scenario, "licence", r->options->licence, "note", optional(r->options->note), "started", started(r),
        "t0_epoch_us", (json_int_t)r->t0_epoch_us, "t0_monotonic_us", (json_int_t)r->t0_us, "duration_us",
        (json_int_t)r->duration_us, "ack_via",
        r->options->ack_via.family ? json_string(xl_addr_format(&r->options->ack_via, via, sizeof via)) : json_null());
    json_object_update_new(top, mode(r));
    json_object_set_new(top, "sizes", sizes(r));
    json_object_set_new(top, "clock", clock_figures(r));
    json_object_update_missing_new(top, machines(r, &host));
    json_object_set_new(top, "paths", paths);
    return top;
}

void sat_session_path(const sat_options *options, char *path, size_t size) {
    snprintf(path, size, "%s/%s.json", options->out,
             options->sizes.count > 0     ? "sizes"
             : options->mode == SAT_LIGHT ? "light"
                                          : "session");
}

static bool write_session(const sat_recording *r, char *error) {
    char path[PATH_MAX];
    sat_session_path(r->options, path, sizeof path);
    json_t *top = session(r);
    bool ok = top && json_dump_file(top, path, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0;
    if (!ok)
        snprintf(error, SAT_ERROR_SIZE, "cannot write %.300s: %s", path, strerror(errno));
    json_decref(top);
    return ok;
}

/* Writes a double-quoted YAML scalar, which is the same as a JSON string. */
static void write_text(FILE *stream, const char *key, const char *text) {
    json_t *value = json_string(text);
    fprintf(stream, "  %s: ", key);
    json_dumpf(value, stream, JSON_ENCODE_ANY);
    fputc('\n', stream);
    json_decref(value);
}

/* One bandwidth-delay product at the 95th percentile of the 1 s rate, at least 50 (docs/reference/traces.md). */
static double queue_packets(const sat_recorded_path *p) {
    double pps = p->down.recorded ? p->down.p95_pps : p->up.p95_pps;
    double packets = ceil(pps * p->base_rtt_ms / 1000.0);
    return packets > LEAST_QUEUE_PACKETS ? packets : LEAST_QUEUE_PACKETS;
}

/* Writes one path. A direction that was not recorded replays the other one. */
static void write_path(FILE *stream, const sat_recording *r, size_t k) {
    const sat_path_options *path = &r->options->paths[k];
    const sat_recorded_path *p = &r->paths[k];
    fprintf(stream, "  - name: %s\n    technology: %s\n", path->name, path->technology);
    fprintf(stream, "    uplink: %s.%s\n", path->name, p->up.recorded ? "up" : "down");
    fprintf(stream, "    downlink: %s.%s\n", path->name, p->down.recorded ? "down" : "up");
    fprintf(stream, "    base_rtt_ms: %.3f\n    queue: droptail:packets=%.0f\n", p->base_rtt_ms, queue_packets(p));
    fputs("    kind: saturated-udp\n    resolution_ms: 1\n", stream);
}

/* Whether a recording has a trace, or latencies, of the direction. */
static bool is_made(const sat_direction *d) {
    return d->recorded && d->missing[0] == '\0';
}

static void tell_light(const sat_recording *r, size_t k, FILE *stream) {
    const sat_direction *both[2] = {&r->paths[k].up, &r->paths[k].down};
    const char *before = "", *name = r->options->paths[k].name;
    const bool sizes = r->options->sizes.count > 0;
    fprintf(stream, "to replay %s, give its link these keys%s: ", name, sizes ? " beside its light traces" : "");
    for (size_t d = 0; d < 2; d++) {
        const char *way = d == 0 ? "up" : "down";
        if (!is_made(both[d]))
            continue;
        fprintf(stream, "%s%s-%s=%s/%s.%s.%s", before, way, sizes ? "size-latency" : "light-trace", r->options->out,
                name, way, sizes ? "sizes" : "light");
        before = ",";
    }
    putc('\n', stream);
}

void sat_recording_tell_replay(const sat_recording *r, FILE *stream) {
    const char *out = r->options->out;
    if (r->options->mode == SAT_LIGHT) {
        for (size_t k = 0; k < r->options->path_count; k++)
            if (is_made(&r->paths[k].up) || is_made(&r->paths[k].down))
                tell_light(r, k, stream);
        return;
    }
    if (r->options->path_count >= 2) {
        fprintf(stream, "to replay it, put %s on RAILYARD_TRACE_PATH and name the pair: %s\n", out, r->options->name);
        return;
    }
    const char *name = r->options->paths[0].name;
    const sat_recorded_path *p = &r->paths[0];
    fprintf(stream,
            "one path is no pair, so there is no index.yaml; to replay it: mpshell --path "
            "%s:up=%s/%s.%s,down=%s/%s.%s,delay=%.3f,queue=droptail:packets=%.0f\n",
            name, out, name, p->up.recorded ? "up" : "down", out, name, p->down.recorded ? "down" : "up",
            p->base_rtt_ms / 2, queue_packets(p));
}

static bool write_index(const sat_recording *r, char *error) {
    char path[PATH_MAX];
    char source[160];
    snprintf(path, sizeof path, "%s/index.yaml", r->options->out);
    FILE *stream = fopen(path, "we");
    if (!stream)
        return error_set(error, SAT_ERROR_SIZE, "cannot write %.300s: %s", path, strerror(errno));
    json_t *when = started(r);
    snprintf(source, sizeof source, "recorded with saturatr " XL_VERSION ", %s; figures in session.json",
             json_string_value(when));
    json_decref(when);
    fprintf(stream,
            "# A recording as a trace pair; docs/reference/traces.md explains the fields.\nschema: 1\npairs:\n");
    fprintf(stream, "- name: \"%s\"\n", r->options->name);
    write_text(stream, "scenario", r->options->scenario);
    write_text(stream, "licence", r->options->licence);
    write_text(stream, "source", source);
    fprintf(stream, "  paths:\n");
    for (size_t k = 0; k < r->options->path_count; k++)
        write_path(stream, r, k);
    bool bad = ferror(stream) != 0;
    if (fclose(stream) != 0 || bad)
        return error_set(error, SAT_ERROR_SIZE, "cannot write %.300s: %s", path, strerror(errno));
    return true;
}

bool sat_recording_describe(const sat_recording *recording, char *error) {
    if (!write_session(recording, error))
        return false;
    /* A pair has at least two paths, and needs heavy traces. */
    return recording->options->path_count < 2 || recording->options->mode == SAT_LIGHT || write_index(recording, error);
}
