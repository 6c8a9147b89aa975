#include "qlog/qlog.h"

#include <stdlib.h>
#include <string.h>

#include "qlog/frames.h"
#include "qlog/json.h"

enum {
    PIECE_BYTES = 16 * 1024,            /* passed to the sink once this much has gathered */
    PACKET_BYTES = 16 * 1024,           /* text of one packet, without its closing brackets */
    APPLICATION_BYTES = 15 * 1024,      /* data of an application's event */
    RECORD_BYTES = PACKET_BYTES + 1024, /* upper bound of a record; the other events have at most two strings of 6 KB */
};

/* Why nothing of a stream is copied onto a path, for each path. */
typedef struct {
    uint64_t stream_id;
    const char *why[XL_MAX_PATHS]; /* NULL: it is copied, or was not examined */
} refusal;

/* The values last written. Events that report a state are written when it changes. Strings are literals. */
typedef struct {
    const char *phase[XL_MAX_PATHS];
    bool has_selection[XL_MAX_PATHS];
    xl_qlog_selection selection[XL_MAX_PATHS];
    bool is_waiting; /* reported since data was last sent */
    bool has_gate;
    const char *gate_why;
    refusal *refusals;
    size_t refusal_count, refusal_cap;
} said;

struct xl_qlog {
    xl_log log;
    void *sink; /* NULL: not opened yet */
    bool is_server;
    xl_cid odcid;
    size_t whole_bytes; /* length of `out` up to the end of its last record */
    uint64_t omitted;   /* records left out before the sink was opened */
    uint64_t reference_us;
    uint64_t exponents[2]; /* ack_delay_exponent of received [0] and sent [1] ACKs */
    uint64_t path_ids[XL_MAX_PATHS];
    bool path_id_known[XL_MAX_PATHS];
    xl_qlog_metrics metrics[XL_MAX_PATHS];
    bool metrics_known[XL_MAX_PATHS];
    said said;
    bool packet_open, packet_sent;
    size_t packet_frames, packet_frames_omitted;
    xl_json packet, out;
    char packet_text[PACKET_BYTES];
    char out_text[PIECE_BYTES + RECORD_BYTES];
};

static void flush(xl_qlog *q) {
    if (q->out.used > 0)
        q->log.qlog_write(q->sink, q->out.p, q->out.used);
    q->out.used = 0;
}

/* Without a sink, records are kept as long as there is room. */
static void end_record(xl_qlog *q) {
    xl_json_text(&q->out, "\n");
    if (q->out.used >= PIECE_BYTES && q->sink) {
        flush(q);
    } else if (q->out.used >= PIECE_BYTES) {
        q->out.used = q->whole_bytes;
        q->omitted++;
    }
    q->whole_bytes = q->out.used;
}

/* Writes RS and the time of an event, up to its name (RFC 7464). */
static inline void begin_record(xl_qlog *q, xl_json *j, uint64_t now) {
    xl_json_text(j, "\x1e{\"time\":");
    xl_json_ms(j, now > q->reference_us ? now - q->reference_us : 0);
    xl_json_text(j, ",\"name\":\"");
}

/* Writes an event up to and including the brace that opens its data. */
static inline __attribute__((always_inline)) void begin_event(xl_qlog *q, xl_json *j, uint64_t now,
                                                              const char *category, const char *name) {
    begin_record(q, j, now);
    xl_json_text(j, category);
    xl_json_text(j, ":");
    xl_json_text(j, name);
    xl_json_text(j, "\",\"data\":{");
}

static void end_event(xl_qlog *q) {
    xl_json_text(&q->out, "}}");
    end_record(q);
}

/* Writes "name": with a comma before it unless it is the first of its object. */
static inline __attribute__((always_inline)) void member(xl_json *j, const char *name) {
    xl_json_member(j, name, j->used > 0 && j->p[j->used - 1] != '{');
}

static inline __attribute__((always_inline)) void member_u64(xl_json *j, const char *name, uint64_t v) {
    member(j, name);
    xl_json_u64(j, v);
}

static void member_string(xl_json *j, const char *name, const char *value) {
    if (!value)
        return;
    member(j, name);
    xl_json_string(j, value, strlen(value));
}

static void member_bool(xl_json *j, const char *name, bool value) {
    member(j, name);
    xl_json_text(j, value ? "true" : "false");
}

static void member_ms(xl_json *j, const char *name, uint64_t us) {
    member(j, name);
    if (us == UINT64_MAX)
        xl_json_text(j, "null");
    else
        xl_json_ms(j, us);
}

static void member_addr(xl_json *j, const char *name, const xl_addr *addr) {
    char text[64];
    if (addr)
        member_string(j, name, xl_addr_format(addr, text, sizeof text));
}

static bool is_path(int path) {
    return path >= 0 && path < XL_MAX_PATHS;
}

static void learn_path_id(xl_qlog *q, int path, uint64_t path_id) {
    if (!is_path(path))
        return;
    q->path_ids[path] = path_id;
    q->path_id_known[path] = true;
}

static inline __attribute__((always_inline)) void member_path(const xl_qlog *q, xl_json *j, const char *name,
                                                              const char *id_name, int path) {
    if (path < 0)
        return;
    member_u64(j, name, (uint64_t)path);
    if (is_path(path) && q->path_id_known[path])
        member_u64(j, id_name, q->path_ids[path]);
}

static inline __attribute__((always_inline)) void begin_path_event(xl_qlog *q, uint64_t now, const char *category,
                                                                   const char *name, int path) {
    begin_event(q, &q->out, now, category, name);
    member_path(q, &q->out, "path", "path_id", path);
}

/* draft-ietf-quic-qlog-main-schema-14, section 4 (sequential files); draft-ietf-quic-qlog-quic-events-13. Our own
 * events have separate schemas: docs/reference/results.md. */
static void put_header_record(xl_qlog *q) {
    xl_json *j = &q->out;
    xl_json_text(j, "\x1e{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\","
                    "\"serialization_format\":\"application/qlog+json-seq\",\"title\":\"Railyard libxlink\",\"trace\":{"
                    "\"vantage_point\":{\"type\":\"");
    xl_json_text(j, q->is_server ? "server" : "client");
    xl_json_text(
        j, "\"},\"event_schemas\":[\"urn:ietf:params:qlog:events:quic-13\",\"urn:ietf:params:qlog:events:http3-13\","
           "\"urn:railyard:qlog:events:multipath-1\",\"urn:railyard:qlog:events:xlink-1\"],"
           "\"common_fields\":{\"group_id\":\"");
    xl_json_hex(j, q->odcid.id, q->odcid.len);
    xl_json_text(j, "\",\"time_format\":\"relative_to_epoch\","
                    "\"reference_time\":{\"clock_type\":\"monotonic\",\"epoch\":\"unknown\"}");
    member_u64(j, "reference_monotonic_us", q->reference_us);
    xl_json_text(j, "}}}");
    end_record(q);
}

xl_qlog *xl_qlog_new(const xl_log *log, bool is_server, const xl_cid *odcid, uint64_t now) {
    if (!log->qlog_open || !log->qlog_write)
        return NULL;
    xl_qlog *q = calloc(1, sizeof *q);
    if (!q)
        return NULL;
    q->log = *log;
    q->is_server = is_server;
    q->odcid = *odcid;
    q->reference_us = now;
    q->exponents[0] = q->exponents[1] = 3;
    q->out = (xl_json){.p = q->out_text, .cap = sizeof q->out_text};
    q->packet = (xl_json){.p = q->packet_text, .cap = sizeof q->packet_text};
    put_header_record(q);
    return q;
}

static void put_omitted(xl_qlog *q, uint64_t now) {
    begin_event(q, &q->out, now, "xlink", "events_omitted");
    member_string(&q->out, "message", "events before the handshake's end are left out: there was no room for them");
    member_u64(&q->out, "omitted", q->omitted);
    end_event(q);
}

xl_qlog *xl_qlog_open(xl_qlog *q, uint64_t now) {
    if (!q || q->sink)
        return q;
    q->sink = q->log.qlog_open(q->log.user, q->is_server, q->odcid.id, q->odcid.len);
    if (!q->sink) {
        free(q->said.refusals);
        free(q);
        return NULL;
    }
    if (q->omitted > 0)
        put_omitted(q, now);
    return q;
}

void xl_qlog_free(xl_qlog *q) {
    if (!q)
        return;
    if (q->sink) {
        xl_qlog_packet_end(q);
        flush(q);
        if (q->log.qlog_close)
            q->log.qlog_close(q->sink);
    }
    free(q->said.refusals);
    free(q);
}

void xl_qlog_set_peer_ack_delay_exponent(xl_qlog *q, uint64_t exponent) {
    if (q)
        q->exponents[0] = exponent < 20 ? exponent : 20;
}

static const char *packet_type_name(xl_packet_type type) {
    static const char *const names[] = {
        [XL_PACKET_INITIAL] = "initial",
        [XL_PACKET_0RTT] = "0RTT",
        [XL_PACKET_HANDSHAKE] = "handshake",
        [XL_PACKET_RETRY] = "retry",
        [XL_PACKET_VERSION_NEGOTIATION] = "version_negotiation",
        [XL_PACKET_1RTT] = "1RTT",
        [XL_PACKET_OTHER_VERSION] = "unknown",
    };
    return names[type];
}

static void member_header(xl_json *j, xl_packet_type type, uint64_t pn) {
    member(j, "header");
    xl_json_text(j, "{\"packet_type\":\"");
    xl_json_text(j, packet_type_name(type));
    xl_json_text(j, "\"");
    member_u64(j, "packet_number", pn);
    xl_json_text(j, "}");
}

static void member_raw_length(xl_json *j, size_t bytes) {
    member(j, "raw");
    xl_json_text(j, "{\"length\":");
    xl_json_u64(j, bytes);
    xl_json_text(j, "}");
}

void xl_qlog_packet_begin(xl_qlog *q, uint64_t now, bool sent, xl_packet_type type, uint64_t pn, size_t packet_bytes,
                          int path, uint64_t path_id) {
    if (!q)
        return;
    xl_qlog_packet_end(q);
    learn_path_id(q, path, path_id);
    /* The buffer has room for all of this. */
    char *at = xl_json_put(q->packet_text, "\x1e{\"time\":");
    at = xl_json_put_ms(at, now > q->reference_us ? now - q->reference_us : 0);
    at = sent ? xl_json_put(at, ",\"name\":\"quic:packet_sent\"")
              : xl_json_put(at, ",\"name\":\"quic:packet_received\"");
    at = xl_json_put(at, ",\"data\":{\"header\":{\"packet_type\":\"");
    at = type == XL_PACKET_1RTT ? xl_json_put(at, "1RTT") : xl_json_put(at, packet_type_name(type));
    at = xl_json_put_u64(xl_json_put(at, "\",\"packet_number\":"), pn);
    at = xl_json_put_u64(xl_json_put(at, "},\"raw\":{\"length\":"), packet_bytes);
    at = xl_json_put(at, "}");
    if (path >= 0) {
        at = xl_json_put_u64(xl_json_put(at, ",\"path\":"), (uint64_t)path);
        if (is_path(path))
            at = xl_json_put_u64(xl_json_put(at, ",\"path_id\":"), path_id);
    }
    at = xl_json_put(at, ",\"frames\":[");
    q->packet.used = (size_t)(at - q->packet_text);
    q->packet.overflow = false;
    q->packet_open = true;
    q->packet_sent = sent;
    q->packet_frames = 0;
    q->packet_frames_omitted = 0;
}

void xl_qlog_frame(xl_qlog *q, const xl_frame *frame) {
    if (!q || !q->packet_open)
        return;
    xl_json *j = &q->packet;
    size_t before = j->used;
    if (q->packet_frames > 0)
        xl_json_text(j, ",");
    xl_qlog_put_frame(j, frame, q->exponents[q->packet_sent]);
    if (j->overflow || q->packet_frames_omitted > 0) {
        j->used = before;
        j->overflow = false;
        q->packet_frames_omitted++;
    } else {
        q->packet_frames++;
    }
}

void xl_qlog_packet_end(xl_qlog *q) {
    if (!q || !q->packet_open)
        return;
    q->packet_open = false;
    xl_json_bytes(&q->out, q->packet.p, q->packet.used);
    xl_json_text(&q->out, "]");
    if (q->packet_frames_omitted > 0)
        member_u64(&q->out, "frames_omitted", q->packet_frames_omitted);
    end_event(q);
}

void xl_qlog_packet_dropped(xl_qlog *q, uint64_t now, size_t bytes, const char *trigger, int path) {
    if (!q)
        return;
    begin_event(q, &q->out, now, "quic", "packet_dropped");
    member_raw_length(&q->out, bytes);
    member_path(q, &q->out, "path", "path_id", path);
    member_string(&q->out, "trigger", trigger);
    end_event(q);
}

typedef struct {
    const char *name;
    size_t offset;
    bool is_time;
} metric;

/* Writes the metrics that differ from `last` (NULL: all). Returns whether there were any. */
static bool put_changed_metrics(xl_json *j, const xl_qlog_metrics *now, const xl_qlog_metrics *last) {
    static const metric metrics[] = {
        {"smoothed_rtt", offsetof(xl_qlog_metrics, srtt_us), true},
        {"latest_rtt", offsetof(xl_qlog_metrics, latest_rtt_us), true},
        {"min_rtt", offsetof(xl_qlog_metrics, min_rtt_us), true},
        {"rtt_variance", offsetof(xl_qlog_metrics, rttvar_us), true},
        {"congestion_window", offsetof(xl_qlog_metrics, cwnd_bytes), false},
        {"ssthresh", offsetof(xl_qlog_metrics, ssthresh_bytes), false},
        {"bytes_in_flight", offsetof(xl_qlog_metrics, bytes_in_flight), false},
        {"pacing_rate", offsetof(xl_qlog_metrics, pacing_bps), false},
        {"pto_count", offsetof(xl_qlog_metrics, pto_count), false},
    };
    bool any = false;
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        uint64_t v, before;
        memcpy(&v, (const char *)now + metrics[i].offset, sizeof v);
        if (last) {
            memcpy(&before, (const char *)last + metrics[i].offset, sizeof before);
            if (before == v)
                continue;
        }
        if (v == UINT64_MAX)
            continue;
        any = true;
        if (metrics[i].is_time)
            member_ms(j, metrics[i].name, v);
        else
            member_u64(j, metrics[i].name, v);
    }
    return any;
}

void xl_qlog_metrics_updated(xl_qlog *q, uint64_t now, int path, const xl_qlog_metrics *metrics) {
    if (!q)
        return;
    const xl_qlog_metrics *last = is_path(path) && q->metrics_known[path] ? &q->metrics[path] : NULL;
    size_t before = q->out.used;
    begin_path_event(q, now, "quic", "recovery_metrics_updated", path);
    if (put_changed_metrics(&q->out, metrics, last))
        end_event(q);
    else
        q->out.used = before;
    if (is_path(path)) {
        q->metrics[path] = *metrics;
        q->metrics_known[path] = true;
    }
}

static bool is_same(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Ends an event that says what a property was before (NULL: not set) and is now. */
static void end_change(xl_qlog *q, const char *before, const char *after) {
    member_string(&q->out, "old", before);
    member_string(&q->out, "new", after);
    end_event(q);
}

void xl_qlog_congestion_state(xl_qlog *q, uint64_t now, int path, const char *phase) {
    if (!q || !is_path(path) || is_same(phase, q->said.phase[path]))
        return;
    begin_path_event(q, now, "quic", "congestion_state_updated", path);
    end_change(q, q->said.phase[path], phase);
    q->said.phase[path] = phase;
}

void xl_qlog_packet_lost(xl_qlog *q, uint64_t now, xl_packet_type type, uint64_t pn, int path, const char *trigger) {
    if (!q)
        return;
    begin_event(q, &q->out, now, "quic", "packet_lost");
    member_header(&q->out, type, pn);
    member_path(q, &q->out, "path", "path_id", path);
    member_string(&q->out, trigger ? "trigger" : "why", trigger ? trigger : "path given up");
    end_event(q);
}

void xl_qlog_path(xl_qlog *q, uint64_t now, const char *name, int path, uint64_t path_id, const xl_addr *local,
                  const xl_addr *remote, const char *why) {
    if (!q)
        return;
    learn_path_id(q, path, path_id);
    begin_path_event(q, now, "multipath", name, path);
    member_addr(&q->out, "local", local);
    member_addr(&q->out, "remote", remote);
    member_string(&q->out, "why", why);
    end_event(q);
}

/* Writes "name":[0,2] for a bit set; nothing for an empty one. */
static void member_paths(xl_json *j, const char *name, uint32_t paths) {
    if (paths == 0)
        return;
    member(j, name);
    const char *before = "[";
    for (unsigned i = 0; i < XL_MAX_PATHS; i++) {
        if (!(paths & 1u << i))
            continue;
        xl_json_text(j, before);
        xl_json_u64(j, i);
        before = ",";
    }
    xl_json_text(j, "]");
}

static bool is_same_selection(const xl_qlog_selection *a, const xl_qlog_selection *b) {
    return a->no_window == b->no_window && a->set_aside == b->set_aside && a->nothing_to_carry == b->nothing_to_carry &&
           a->not_preferred == b->not_preferred && is_same(a->rule, b->rule);
}

void xl_qlog_path_selected(xl_qlog *q, uint64_t now, const xl_qlog_selection *s) {
    if (!q)
        return;
    q->said.is_waiting = false;
    if (is_path(s->path)) {
        xl_qlog_selection *last = &q->said.selection[s->path];
        if (q->said.has_selection[s->path] && is_same_selection(s, last))
            return;
        *last = *s;
        q->said.has_selection[s->path] = true;
    }
    bool fastest = !(s->no_window | s->set_aside | s->nothing_to_carry | s->not_preferred);
    begin_path_event(q, now, "multipath", "path_selected", s->path);
    member_string(&q->out, "scheduler", s->scheduler);
    member_string(&q->out, "why", fastest ? "smallest RTT" : "faster paths not used");
    member_string(&q->out, "rule", s->rule);
    member_ms(&q->out, "smoothed_rtt", s->srtt_us);
    member_paths(&q->out, "no_window", s->no_window);
    member_paths(&q->out, "set_aside", s->set_aside);
    member_paths(&q->out, "nothing_to_carry", s->nothing_to_carry);
    member_paths(&q->out, "not_preferred", s->not_preferred);
    end_event(q);
}

void xl_qlog_ecn_state(xl_qlog *q, uint64_t now, int path, const char *before, const char *after) {
    if (!q || before == after)
        return;
    begin_path_event(q, now, "quic", "ecn_state_updated", path);
    end_change(q, before, after);
}

void xl_qlog_mtu(xl_qlog *q, uint64_t now, int path, uint64_t old_bytes, uint64_t new_bytes) {
    if (!q)
        return;
    begin_path_event(q, now, "quic", "mtu_updated", path);
    member_u64(&q->out, "old", old_bytes);
    member_u64(&q->out, "new", new_bytes);
    end_event(q);
}

void xl_qlog_scheduler_waits(xl_qlog *q, uint64_t now, const char *scheduler, int for_path, const char *why) {
    if (!q || q->said.is_waiting)
        return;
    q->said.is_waiting = true;
    if (for_path < 0)
        return;
    begin_path_event(q, now, "multipath", "scheduler_waits", for_path);
    member_string(&q->out, "scheduler", scheduler);
    member_string(&q->out, "why", why);
    end_event(q);
}

static void member_race(xl_json *j, const xl_qlog_race *race) {
    member_ms(j, "original_ms", race->original_us);
    member_ms(j, "copy_ms", race->copy_us);
}

static void member_gate(xl_json *j, const xl_qlog_gate *gate) {
    member_ms(j, "play_time_left_ms", gate->play_time_left_us);
    member_ms(j, "t_th1_ms", gate->t_th1_us);
    member_ms(j, "t_th2_ms", gate->t_th2_us);
    member_ms(j, "deliver_time_max_ms", gate->deliver_time_max_us);
}

/* Returns where the reason for copying nothing of the stream onto that path is stored; NULL: out of memory. */
static const char **refusal_of(xl_qlog *q, uint64_t stream_id, int path) {
    said *s = &q->said;
    for (size_t i = 0; i < s->refusal_count; i++)
        if (s->refusals[i].stream_id == stream_id)
            return &s->refusals[i].why[path];
    if (s->refusal_count == s->refusal_cap) {
        size_t cap = s->refusal_cap ? 2 * s->refusal_cap : 8;
        refusal *grown = realloc(s->refusals, cap * sizeof *grown);
        if (!grown)
            return NULL;
        s->refusals = grown;
        s->refusal_cap = cap;
    }
    s->refusals[s->refusal_count] = (refusal){.stream_id = stream_id};
    return &s->refusals[s->refusal_count++].why[path];
}

void xl_qlog_stream_gone(xl_qlog *q, uint64_t stream_id) {
    for (size_t i = 0; q && i < q->said.refusal_count; i++) {
        if (q->said.refusals[i].stream_id == stream_id) {
            q->said.refusals[i] = q->said.refusals[--q->said.refusal_count];
            return;
        }
    }
}

void xl_qlog_path_replaced(xl_qlog *q, int path) {
    if (!q || !is_path(path))
        return;
    q->said.phase[path] = NULL;
    q->said.has_selection[path] = q->metrics_known[path] = false;
    for (size_t i = 0; i < q->said.refusal_count; i++)
        q->said.refusals[i].why[path] = NULL;
}

void xl_qlog_reinjection(xl_qlog *q, uint64_t now, uint64_t stream_id, uint64_t offset, size_t len, int from_path,
                         int to_path, unsigned copy, const char *why, const xl_qlog_race *race) {
    if (!q)
        return;
    const char **refused = is_path(to_path) ? refusal_of(q, stream_id, to_path) : NULL;
    if (refused)
        *refused = NULL;
    begin_path_event(q, now, "xlink", "reinjection", to_path);
    member_path(q, &q->out, "from_path", "from_path_id", from_path);
    member_path(q, &q->out, "to_path", "to_path_id", to_path);
    member_u64(&q->out, "stream_id", stream_id);
    member_u64(&q->out, "offset", offset);
    member_u64(&q->out, "length", len);
    member_u64(&q->out, "copy", copy);
    if (race)
        member_race(&q->out, race);
    member_string(&q->out, "why", why);
    end_event(q);
}

void xl_qlog_reinjection_refused(xl_qlog *q, uint64_t now, uint64_t stream_id, int to_path, const char *why,
                                 const xl_qlog_gate *gate, const xl_qlog_race *race) {
    if (!q)
        return;
    const char **last = is_path(to_path) ? refusal_of(q, stream_id, to_path) : NULL;
    if (last && *last && is_same(why, *last))
        return;
    if (last)
        *last = why;
    begin_path_event(q, now, "xlink", "reinjection_refused", to_path);
    member_u64(&q->out, "stream_id", stream_id);
    member_string(&q->out, "why", why);
    if (gate) {
        member_string(&q->out, "gate", gate->why);
        member_gate(&q->out, gate);
    }
    if (race)
        member_race(&q->out, race);
    end_event(q);
}

void xl_qlog_qoe_gate(xl_qlog *q, uint64_t now, const xl_qlog_gate *gate) {
    if (!q || (q->said.has_gate && is_same(gate->why, q->said.gate_why)))
        return;
    q->said.has_gate = true;
    q->said.gate_why = gate->why;
    begin_event(q, &q->out, now, "xlink", "qoe_gate");
    member_bool(&q->out, "on", gate->on);
    member_gate(&q->out, gate);
    member_string(&q->out, "why", gate->why);
    end_event(q);
}

void xl_qlog_qoe_received(xl_qlog *q, uint64_t now, const xl_qoe *qoe) {
    if (!q)
        return;
    begin_event(q, &q->out, now, "xlink", "qoe_received");
    xl_qlog_put_qoe(&q->out, qoe);
    end_event(q);
}

/* Two of the names belong to the QUIC schema. Its connection_started requires more than is known here. */
void xl_qlog_connection(xl_qlog *q, uint64_t now, const char *name, const char *detail) {
    if (!q)
        return;
    bool closed = strcmp(name, "connection_closed") == 0, updated = strcmp(name, "key_updated") == 0;
    begin_event(q, &q->out, now, closed || updated ? "quic" : "xlink", name);
    if (updated)
        member_string(&q->out, "key_type", q->is_server ? "server_1rtt_secret" : "client_1rtt_secret");
    member_string(&q->out, closed ? "reason" : updated ? "trigger" : "detail", detail);
    end_event(q);
}

void xl_qlog_application(xl_qlog *q, uint64_t now, const char *name, const char *data) {
    if (!q || strlen(data) > APPLICATION_BYTES)
        return;
    begin_record(q, &q->out, now);
    xl_json_text(&q->out, name);
    xl_json_text(&q->out, "\",\"data\":");
    xl_json_text(&q->out, data);
    xl_json_text(&q->out, "}");
    end_record(q);
}

void xl_qlog_params(xl_qlog *q, uint64_t now, bool local, bool multipath, uint64_t max_idle_ms, uint64_t max_data) {
    if (!q)
        return;
    begin_event(q, &q->out, now, "quic", "parameters_set");
    member_string(&q->out, "initiator", local ? "local" : "remote");
    member_bool(&q->out, "enable_multipath", multipath);
    member_u64(&q->out, "max_idle_timeout", max_idle_ms);
    member_u64(&q->out, "initial_max_data", max_data);
    end_event(q);
}
