#include "http/http3_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/varint.h"

#define MAX_VALUE_BYTES 1024
#define KEPT_BYTES      256 /* of a frame's payload */
#define MAX_STREAMS     512 /* logged at the same time; further ones are not logged */

enum {
    DATA,
    HEADERS,
    CANCEL_PUSH = 3,
    SETTINGS,
    PUSH_PROMISE,
    GOAWAY = 7,
    MAX_PUSH_ID = 0xd,
    PRIORITY_UPDATE = 0xf0700
};
enum { CONTROL, PUSH, QPACK_ENCODER, QPACK_DECODER };

/* One direction of a stream. `head` keeps an incomplete varint. */
typedef struct {
    bool has_type; /* the frame's type has been read */
    bool in_payload, is_opaque;
    uint64_t type, left, length;
    uint8_t head[8], kept[KEPT_BYTES];
    size_t head_bytes, kept_bytes;
} direction;

typedef struct stream {
    struct stream *next;
    uint64_t id;
    bool is_typed;           /* the type of a unidirectional stream has been logged */
    direction directions[2]; /* received, sent */
} stream;

struct h3_log {
    xl_connection *connection;
    bool is_server;
    stream *streams;
    size_t count;
};

h3_log *h3_log_new(xl_connection *connection, bool is_server) {
    h3_log *log = xl_connection_has_qlog(connection) ? calloc(1, sizeof *log) : NULL;
    if (log) {
        log->connection = connection;
        log->is_server = is_server;
    }
    return log;
}

void h3_log_forget(h3_log *log, uint64_t id) {
    for (stream **at = log ? &log->streams : NULL; at && *at; at = &(*at)->next) {
        if ((*at)->id != id)
            continue;
        stream *gone = *at;
        *at = gone->next;
        free(gone);
        log->count--;
        return;
    }
}

void h3_log_free(h3_log *log) {
    while (log && log->streams)
        h3_log_forget(log, log->streams->id);
    free(log);
}

/* Writes an event and frees data; NULL (out of memory) writes nothing. */
static void write_event(const h3_log *log, const char *name, json_t *data, uint64_t now) {
    char *text = data ? json_dumps(data, JSON_COMPACT) : NULL;
    if (text)
        xl_connection_log(log->connection, name, text, now);
    free(text);
    json_decref(data);
}

/* ---- streams ---- */

/* RFC 9000 section 2.1. */
static bool is_bidirectional(uint64_t id) {
    return (id & 2) == 0;
}

static void write_stream_type(const h3_log *log, uint64_t id, const char *type, uint64_t number, uint64_t now) {
    bool is_local = (id & 1) == (log->is_server ? 1 : 0);
    json_t *data = json_pack("{s:s, s:I, s:s}", "initiator", is_local ? "local" : "remote", "stream_id", (json_int_t)id,
                             "stream_type", type);
    if (data && strcmp(type, "unknown") == 0)
        json_object_set_new(data, "stream_type_bytes", json_integer((json_int_t)number));
    write_event(log, "http3:stream_type_set", data, now);
}

/* RFC 9114 sections 6.2 and 7.2.8. */
static bool is_reserved(uint64_t number) {
    return number >= 0x21 && (number - 0x21) % 0x1f == 0;
}

static stream *stream_of(h3_log *log, uint64_t id, uint64_t now) {
    stream *st = log->streams;
    while (st && st->id != id)
        st = st->next;
    if (st || log->count == MAX_STREAMS || !(st = calloc(1, sizeof *st)))
        return st;
    st->id = id;
    st->next = log->streams;
    log->streams = st;
    log->count++;
    if (is_bidirectional(id))
        write_stream_type(log, id, "request", 0, now);
    return st;
}

static void take_stream_type(const h3_log *log, stream *st, direction *d, uint64_t type, uint64_t now) {
    static const char *const names[] = {"control", "push", "qpack_encode", "qpack_decode"};
    const char *name = type < sizeof names / sizeof *names ? names[type] : is_reserved(type) ? "reserved" : "unknown";
    write_stream_type(log, st->id, name, type, now);
    st->is_typed = true;
    d->is_opaque = type != CONTROL;
}

/* ---- frames ---- */

/* RFC 9114 section 7.2.4.1, RFC 9204 section 5, RFC 9220, RFC 9297. */
static const char *setting_name(uint64_t id, const char **parameter) {
    *parameter = NULL;
    switch (id) {
    case 0x01:
        *parameter = "max_table_capacity";
        return "settings_qpack_max_table_capacity";
    case 0x06:
        *parameter = "max_field_section_size";
        return "settings_max_field_section_size";
    case 0x07:
        *parameter = "blocked_streams_count";
        return "settings_qpack_blocked_streams";
    case 0x08:
        *parameter = "extended_connect";
        return "settings_enable_connect_protocol";
    case 0x33:
        *parameter = "h3_datagram";
        return "settings_h3_datagram";
    default:
        return is_reserved(id) ? "reserved" : "unknown";
    }
}

static void put_settings(const h3_log *log, const direction *d, bool is_sent, json_t *frame, uint64_t now) {
    json_t *settings = json_array(), *parameters = json_pack("{s:s}", "initiator", is_sent ? "local" : "remote");
    const uint8_t *at = d->kept, *end = d->kept + d->kept_bytes;
    uint64_t id, value;
    while (http_varint_get(&at, end, &id) && http_varint_get(&at, end, &value)) {
        const char *parameter, *name = setting_name(id, &parameter);
        json_t *setting = json_pack("{s:s, s:I}", "name", name, "value", (json_int_t)value);
        if (strcmp(name, "unknown") == 0)
            json_object_set_new(setting, "name_bytes", json_integer((json_int_t)id));
        json_array_append_new(settings, setting);
        if (parameter)
            json_object_set_new(parameters, parameter, json_integer((json_int_t)value));
    }
    json_object_set_new(frame, "settings", settings);
    write_event(log, "http3:parameters_set", parameters, now);
}

static const char *frame_name(uint64_t type) {
    switch (type) {
    case CANCEL_PUSH:
        return "cancel_push";
    case SETTINGS:
        return "settings";
    case GOAWAY:
        return "goaway";
    case MAX_PUSH_ID:
        return "max_push_id";
    case PRIORITY_UPDATE:
        return "priority_update";
    default:
        return is_reserved(type) ? "reserved" : "unknown";
    }
}

static void put_number(const direction *d, json_t *frame, const char *name) {
    const uint8_t *at = d->kept;
    uint64_t value;
    if (http_varint_get(&at, d->kept + d->kept_bytes, &value))
        json_object_set_new(frame, name, json_integer((json_int_t)value));
}

static void put_priority(const direction *d, json_t *frame) {
    const uint8_t *at = d->kept, *end = d->kept + d->kept_bytes;
    uint64_t value;
    if (!http_varint_get(&at, end, &value))
        return;
    json_object_set_new(frame, "stream_id", json_integer((json_int_t)value));
    json_t *text = json_stringn((const char *)at, (size_t)(end - at));
    json_object_set_new(frame, "priority_field_value", text ? text : json_string(""));
}

static const char *frame_event(bool is_sent) {
    return is_sent ? "http3:frame_created" : "http3:frame_parsed";
}

static void write_frame(const h3_log *log, uint64_t id, bool is_sent, json_t *frame, uint64_t now) {
    json_t *data = json_pack("{s:I, s:o}", "stream_id", (json_int_t)id, "frame", frame);
    write_event(log, frame_event(is_sent), data, now);
}

/* Writes what log_frame() would, without JSON objects, because nearly all frames are DATA. */
static void log_data(const h3_log *log, uint64_t id, uint64_t payload_bytes, bool is_sent, uint64_t now) {
    char text[128];
    snprintf(text, sizeof text,
             "{\"stream_id\":%" PRIu64 ",\"frame\":{\"frame_type\":\"data\",\"raw\":{\"payload_length\":%" PRIu64 "}}}",
             id, payload_bytes);
    xl_connection_log(log->connection, frame_event(is_sent), text, now);
}

/* Logs a frame. It is called at the frame's end, but for DATA at its beginning, because its payload may take long. */
static void log_frame(const h3_log *log, const stream *st, const direction *d, bool is_sent, uint64_t now) {
    if (d->type == HEADERS || d->type == PUSH_PROMISE)
        return;
    if (d->type == DATA) {
        log_data(log, st->id, d->length, is_sent, now);
        return;
    }
    const char *name = frame_name(d->type);
    json_t *frame = json_pack("{s:s, s:{s:I}}", "frame_type", name, "raw", "payload_length", (json_int_t)d->length);
    switch (d->type) {
    case SETTINGS:
        put_settings(log, d, is_sent, frame, now);
        break;
    case GOAWAY:
        put_number(d, frame, "id");
        break;
    case CANCEL_PUSH:
    case MAX_PUSH_ID:
        put_number(d, frame, "push_id");
        break;
    case PRIORITY_UPDATE:
        put_priority(d, frame);
        break;
    default:
        json_object_set_new(frame, "frame_type_bytes", json_integer((json_int_t)d->type));
    }
    write_frame(log, st->id, is_sent, frame, now);
}

static void take_number(h3_log *log, stream *st, bool is_sent, uint64_t value, uint64_t now) {
    direction *d = &st->directions[is_sent];
    if (!is_bidirectional(st->id) && !st->is_typed) {
        take_stream_type(log, st, d, value, now);
        return;
    }
    if (!d->has_type) {
        d->type = value;
        d->has_type = true;
        return;
    }
    d->has_type = false;
    d->length = d->left = value;
    d->kept_bytes = 0;
    d->in_payload = value > 0;
    if (d->type == DATA || value == 0)
        log_frame(log, st, d, is_sent, now);
}

/* Takes bytes of a frame's payload. Returns how many belong to it. */
static size_t take_payload(h3_log *log, stream *st, bool is_sent, const uint8_t *data, size_t len, uint64_t now) {
    direction *d = &st->directions[is_sent];
    size_t n = len < d->left ? len : (size_t)d->left;
    size_t room = sizeof d->kept - d->kept_bytes, kept = n < room ? n : room;
    memcpy(d->kept + d->kept_bytes, data, kept);
    d->kept_bytes += kept;
    d->left -= n;
    d->in_payload = d->left > 0;
    if (!d->in_payload && d->type != DATA)
        log_frame(log, st, d, is_sent, now);
    return n;
}

void h3_log_bytes(h3_log *log, uint64_t id, bool is_sent, const uint8_t *data, size_t len, uint64_t now) {
    stream *st = log && len > 0 ? stream_of(log, id, now) : NULL;
    direction *d = st ? &st->directions[is_sent] : NULL;
    while (d && len > 0 && !d->is_opaque) {
        if (d->in_payload) {
            size_t n = take_payload(log, st, is_sent, data, len, now);
            data += n;
            len -= n;
            continue;
        }
        d->head[d->head_bytes++] = *data++;
        len--;
        const uint8_t *at = d->head;
        uint64_t value;
        if (!http_varint_get(&at, d->head + d->head_bytes, &value))
            continue;
        d->head_bytes = 0;
        take_number(log, st, is_sent, value, now);
    }
}

/* ---- field sections ---- */

json_t *h3_log_fields(const h3_log *log) {
    return log ? json_array() : NULL;
}

/* Sets `name`, or if the bytes are not UTF-8, `bytes_name` with hexadecimal digits, as in the draft. */
static void put_text(json_t *field, const char *name, const char *bytes_name, const uint8_t *text, size_t len) {
    static const char digits[] = "0123456789abcdef";
    char hex[2 * MAX_VALUE_BYTES];
    len = len < MAX_VALUE_BYTES ? len : MAX_VALUE_BYTES;
    json_t *value = json_stringn((const char *)text, len);
    if (value) {
        json_object_set_new(field, name, value);
        return;
    }
    for (size_t i = 0; i < len; i++) {
        hex[2 * i] = digits[text[i] >> 4];
        hex[2 * i + 1] = digits[text[i] & 15];
    }
    json_object_set_new(field, bytes_name, json_stringn(hex, 2 * len));
}

void h3_log_field(json_t *fields, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len) {
    json_t *field = fields ? json_object() : NULL;
    if (!field)
        return;
    put_text(field, "name", "name_bytes", name, name_len);
    put_text(field, "value", "value_bytes", value, value_len);
    json_array_append_new(fields, field);
}

void h3_log_headers(h3_log *log, uint64_t id, bool is_sent, json_t *fields, uint64_t now) {
    if (!fields)
        return;
    if (!log || !stream_of(log, id, now)) {
        json_decref(fields);
        return;
    }
    write_frame(log, id, is_sent, json_pack("{s:s, s:o}", "frame_type", "headers", "headers", fields), now);
}
