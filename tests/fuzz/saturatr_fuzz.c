/* saturatr's input from the other end: datagrams, acknowledgements, the control connection, records. Properties: data
 * that are read and written again are the same; the window keeps its limits for any acknowledgement; records are
 * restored unchanged; conversion makes no more opportunities than bytes; links can read the light trace of any
 * arrivals. */
#include <math.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/input.h"
#include "emulator/saturatr/clock.h"
#include "emulator/link/light.h"
#include "emulator/saturatr/convert.h"
#include "emulator/saturatr/light.h"
#include "emulator/saturatr/server_session.h"

#define RECORDS_MOST 300
#define TRACE_MOST   (1u << 19)

static void check_wire(fuzz_input *in) {
    sat_packet packet, again;
    uint8_t out[SAT_CONTROL_BYTES] = {0};
    size_t more = fuzz_u16(in), len = fuzz_left(in);
    uint8_t *exact = fuzz_copy(in->p, len);
    if (sat_wire_read(&packet, exact, len, len + more)) {
        FUZZ_CHECK(packet.type >= SAT_HELLO && packet.type <= SAT_ACK && packet.channel < SAT_MAX_CHANNELS);
        size_t n = sat_wire_write(&packet, out);
        FUZZ_CHECK(n >= SAT_HEADER_BYTES && n <= SAT_CONTROL_BYTES);
        FUZZ_CHECK(sat_wire_read(&again, out, n, packet.type == SAT_DATA ? len + more : n));
        FUZZ_CHECK(again.type == packet.type && again.channel == packet.channel && again.path == packet.path &&
                   again.flags == packet.flags && again.tag == packet.tag && again.seq == packet.seq &&
                   again.sent_us == packet.sent_us);
        if (packet.type != SAT_DATA)
            FUZZ_CHECK(memcmp(again.cookie, packet.cookie, SAT_COOKIE_BYTES) == 0 && again.echo_us == packet.echo_us &&
                       again.received_us == packet.received_us && again.received_packets == packet.received_packets);
        fuzz_note(out, n);
    }
    free(exact);
}

static bool is_same(const sat_arrival *a, const sat_arrival *b) {
    return a->received_us == b->received_us && a->sent_us == b->sent_us && a->seq == b->seq &&
           a->ip_bytes == b->ip_bytes && a->kind == b->kind;
}

static sat_arrival read_arrival(fuzz_input *in, const sat_arrival *before) {
    sat_arrival a = *before;
    uint8_t kind = fuzz_u8(in);
    a.received_us = kind & 0x80 ? fuzz_number(in) : before->received_us + fuzz_u16(in);
    a.sent_us = kind & 0x40 ? fuzz_number(in) : before->sent_us + fuzz_u16(in);
    a.seq = kind & 0x20 ? fuzz_number(in) : before->seq + 1;
    a.ip_bytes = fuzz_u16(in);
    a.kind = kind % 3;
    return a;
}

/* Checks the receiving end of a flow, its records, and the traces made of them. */
static void check_ledger(fuzz_input *in) {
    static sat_arrival added[RECORDS_MOST];
    sat_ledger ledger;
    sat_arrival before = {0}, now;
    sat_cursor cursor;
    sat_converter converter;
    uint64_t data = 0, completed = 0;
    size_t count = 0;
    sat_ledger_init(&ledger, fuzz_bool(in) ? 2 * SAT_BLOCK_BYTES : 0);
    sat_converter_init(&converter, 1 + (fuzz_u32(in) & 0xffffff));
    while (fuzz_left(in) > 0 && count < RECORDS_MOST) {
        before = added[count++] = read_arrival(in, &before);
        data += before.kind == SAT_KIND_DATA;
        sat_ledger_add(&ledger, &before);
        FUZZ_CHECK(ledger.received == data);
        FUZZ_CHECK(sat_ledger_lost(&ledger) <= ledger.highest || ledger.received == 0);
        if (sat_ledger_ack_due(&ledger) <= before.received_us)
            sat_ledger_acked(&ledger, before.received_us);
        fuzz_note_number(sat_ledger_saturated(&ledger) + 2 * sat_ledger_queue_us(&ledger));
    }
    sat_cursor_init(&cursor, &ledger.records);
    size_t at = 0;
    for (; sat_cursor_next(&cursor, &now); at++) {
        uint32_t ms = 0;
        FUZZ_CHECK(at < count && is_same(&now, &added[at]));
        uint32_t n = sat_converter_add(&converter, (int64_t)(now.received_us & 0x3ffffff), now.ip_bytes,
                                       now.sent_us & 0xffff, &ms);
        FUZZ_CHECK(n == 0 || ms <= converter.duration_us / 1000 + 1);
        completed += n;
    }
    FUZZ_CHECK(at == ledger.records.count && (at == count || ledger.records.full));
    FUZZ_CHECK(completed == converter.opportunities && completed * 1504 <= converter.bytes);
    fuzz_note_number(sat_converter_finish(&converter));
    sat_ledger_free(&ledger);
}

static size_t trace_length;
static char trace_text[TRACE_MOST];

static void write_text(uint64_t number, char after) {
    FUZZ_CHECK(trace_length < TRACE_MOST - 32);
    trace_length += (size_t)snprintf(trace_text + trace_length, 32, "%llu%c", (unsigned long long)number, after);
}

static void write_row(void *user, const sat_light_row *row) {
    (void)user;
    write_text(row->at_ms, ' ');
    write_text(row->delay_ms, row->count > 0 ? ' ' : '\n');
    for (uint32_t i = 0; i < row->count; i++)
        write_text(row->offsets_ms[i], i + 1 < row->count ? ' ' : '\n');
}

/* Checks arrivals of packets that are sent alone, and the latencies made of them. */
static void check_sizes(const fuzz_input *given, uint32_t count, uint64_t sent) {
    sat_sizes sizes = {.count = 1 + count % SAT_SIZES_MOST};
    fuzz_input in = *given;
    sat_latencies latencies;
    sat_arrival a = {0};
    bool whole = true;
    uint64_t arrived = 0;
    for (uint32_t i = 0; i < sizes.count; i++)
        sizes.bytes[i] = SAT_SIZE_LEAST + 85 * i + count % 85;
    FUZZ_CHECK(sat_sizes_are_allowed(&sizes, sizes.bytes[sizes.count - 1]));
    FUZZ_CHECK(sat_latencies_init(&latencies, &sizes, sent % 65536, 1000 + (fuzz_u32(&in) & 0xffffff)));
    for (int i = 0; i < RECORDS_MOST && fuzz_left(&in) > 0; i++) {
        a = read_arrival(&in, &a);
        uint32_t bytes = a.ip_bytes & 1 ? a.ip_bytes : sat_sizes_of(&sizes, a.seq);
        sat_latencies_add(&latencies, a.seq, bytes, (int64_t)a.sent_us, (int64_t)a.received_us);
    }
    for (uint32_t s = 0; s < sizes.count; s++) {
        double delay_us = 0;
        bool any = sat_latencies_median(&latencies, s, &delay_us);
        FUZZ_CHECK(any == (latencies.arrived[s] > 0) && fabs(delay_us) <= 3.6e9);
        whole = whole && any;
        arrived += latencies.arrived[s];
    }
    FUZZ_CHECK(arrived + latencies.outside + latencies.left_out <= latencies.sent);
    for (uint32_t bytes = 100; whole && bytes <= 1600; bytes += 100)
        FUZZ_CHECK(fabs(sat_latencies_at(&latencies, bytes)) <= 7.2e9);
    if (whole)
        FUZZ_CHECK(fabs(sat_latencies_at(&latencies, sizes.bytes[sizes.count - 1])) < 1e-9);
    fuzz_note_number(arrived);
    sat_latencies_free(&latencies);
}

/* Checks arrivals of trains, and the light trace made of them. */
static void check_light(fuzz_input *in) {
    sat_light light;
    sat_arrival a = {0};
    double spacing_us = 0;
    uint32_t from = 0, packets = 1 + fuzz_u16(in) % SAT_TRAIN_MOST;
    uint64_t sent = fuzz_bool(in) ? fuzz_number(in) : fuzz_u16(in);
    trace_length = 0;
    check_sizes(in, packets, sent);
    FUZZ_CHECK(sat_light_init(&light, packets, sent, 1000 + (fuzz_u32(in) & 0xffffff), write_row, NULL));
    for (int i = 0; i < RECORDS_MOST && fuzz_left(in) > 0; i++) {
        a = read_arrival(in, &a);
        sat_light_add(&light, a.seq, (int64_t)a.sent_us, (int64_t)a.received_us);
    }
    sat_light_finish(&light);
    FUZZ_CHECK(light.rows + light.left_out <= light.trains && light.trains <= light.trains_end);
    FUZZ_CHECK(light.arrived <= RECORDS_MOST && light.rows <= light.arrived);
    if (sat_light_heavy(&light, &spacing_us, &from))
        FUZZ_CHECK(isfinite(spacing_us) && spacing_us > 0 && from < packets);
    if (light.rows > 0) {
        link_light_trace trace;
        char error[256];
        write_text(light.duration_us / 1000, ' ');
        write_text(light.last_delay_ms, '\n');
        FUZZ_CHECK(
            link_text_parse(&link_light_trace_form, &trace, "trace", trace_text, trace_length, error, sizeof error));
        FUZZ_CHECK(trace.count == light.rows + 1);
        link_light_trace_free(&trace);
    }
    fuzz_note(trace_text, trace_length);
    sat_light_free(&light);
}

/* Checks blocks of records from the input. */
static void check_records(fuzz_input *in) {
    sat_records records;
    sat_cursor cursor;
    sat_arrival a;
    sat_records_init(&records, 3 * SAT_BLOCK_BYTES);
    while (fuzz_left(in) > 0) {
        size_t len;
        const uint8_t *bytes = fuzz_bytes(in, 4096, &len);
        uint8_t *room = sat_records_block(&records, len);
        if (!room)
            break;
        memcpy(room, bytes, len);
    }
    sat_cursor_init(&cursor, &records);
    for (unsigned n = 0; sat_cursor_next(&cursor, &a); n++) {
        FUZZ_CHECK(n < 100000);
        fuzz_note_number(a.seq ^ a.received_us ^ a.ip_bytes);
    }
    sat_records_free(&records);
}

static void check_window(fuzz_input *in) {
    sat_window w;
    uint64_t now = 1000000;
    sat_window_init(&w, now);
    w.smooth = fuzz_bool(in);
    for (int i = 0; i < 300 && fuzz_left(in) > 0; i++) {
        uint8_t op = fuzz_u8(in);
        now += op & 0x80 ? 1000 * (uint64_t)fuzz_u16(in) : fuzz_u8(in);
        uint64_t allowed = sat_window_allowance(&w, now);
        FUZZ_CHECK(allowed <= SAT_WINDOW_HARD_CAP && w.window <= SAT_WINDOW_HARD_CAP);
        if (op & 1) {
            sat_window_on_sent(&w, allowed, now);
        } else {
            uint64_t highest = op & 2 ? fuzz_number(in) : w.next_seq - (w.next_seq < op ? w.next_seq : op);
            uint64_t received = op & 4 ? fuzz_number(in) : highest;
            uint64_t echo = op & 8 ? fuzz_number(in) : now - 20000;
            sat_window_on_ack(&w, highest, received, echo, op & 16 ? fuzz_number(in) : now - 10000, now);
        }
        FUZZ_CHECK(w.acked_until <= w.next_seq && sat_window_in_flight(&w) <= w.next_seq);
        double pps = sat_window_best_pps(&w);
        FUZZ_CHECK(isfinite(pps) && pps >= 0 && isfinite(w.tokens));
        FUZZ_CHECK(sat_window_next(&w, now) != SAT_NEVER || w.next_seq == 0);
        fuzz_note_number(w.window);
        fuzz_note_number(sat_window_saturated(&w) + 2 * sat_window_queue_us(&w));
    }
}

static void check_clock(fuzz_input *in) {
    sat_clock clock = {0};
    for (int i = 0; i < 20 && fuzz_left(in) > 0; i++) {
        uint64_t t[4];
        uint8_t how = fuzz_u8(in);
        for (int k = 0; k < 4; k++)
            t[k] = how & (1 << k) ? fuzz_number(in) : 1000000u + (unsigned)(k + i) * 1000u + fuzz_u8(in);
        sat_clock_add(&clock, t[0], t[1], t[2], t[3], how & 0x80);
    }
    if (clock.exchanges > 0) {
        FUZZ_CHECK(isfinite(sat_clock_offset_us(&clock, 5000000)) && isfinite(sat_clock_drift_ppm(&clock)));
        FUZZ_CHECK(sat_clock_uncertainty_us(&clock) >= 0);
        fuzz_note_number(sat_clock_to_client(&clock, 5000000) != 0);
    }
}

/* Begins a session, as for a request on the server's control connection. */
static void begin_session(json_t *request) {
    sat_socket none = {.fd = -1};
    const sat_options options = {.max_duration_us = 60000000, .memory_bytes = 1 << 20, .token = "a secret text"};
    const sat_nonces nonces = {0};
    sat_session session = {.data_socket = &none, .ack_socket = &none};
    sat_control control = {.fd = -1};
    char error[512] = "";
    if (sat_session_begin(&session, &options, &control, &nonces, request, error)) {
        FUZZ_CHECK(session.peer.train_packets == 0 ||
                   sat_train_is_allowed(session.peer.train_packets, session.peer.every_us));
        FUZZ_CHECK(
            session.peer.sizes.count == 0 ||
            (session.peer.train_packets == 1 && sat_sizes_are_allowed(&session.peer.sizes, session.peer.packet_bytes)));
        FUZZ_CHECK(session.stage == SAT_SETUP && session.peer.path_count <= SAT_MAX_PATHS);
        FUZZ_CHECK(session.length_us <= options.max_duration_us);
        fuzz_note_number(session.peer.path_count);
        sat_session_end(&session);
    } else {
        FUZZ_CHECK(error[0] != 0);
        fuzz_note(error, strlen(error));
    }
}

/* Sends lines in pieces over a socket. Each accepted line is tried as a request. */
static void check_control(fuzz_input *in) {
    static sat_control control;
    int ends[2];
    uint8_t octets[64];
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    sat_control_init(&control, ends[0]);
    sat_line found = SAT_LINE_NONE;
    while (fuzz_left(in) > 0 && found != SAT_LINE_BAD) {
        size_t len;
        const uint8_t *bytes = fuzz_bytes(in, 255, &len);
        FUZZ_CHECK(len == 0 || write(ends[1], bytes, len) == (ssize_t)len);
        do {
            json_t *line = NULL;
            found = sat_control_read(&control, &line);
            if (found == SAT_LINE_READ) {
                FUZZ_CHECK(json_is_object(line));
                begin_session(line);
                FUZZ_CHECK(sat_control_write(&control, json_incref(line)));
                while (recv(ends[1], octets, sizeof octets, 0) > 0)
                    ;
                json_decref(line);
            }
        } while (found == SAT_LINE_READ);
    }
    fuzz_note_number((uint64_t)found);
    sat_control_close(&control);
    close(ends[1]);
}

static void check_auth(fuzz_input *in) {
    uint8_t bytes[SAT_NONCE_BYTES], again[SAT_NONCE_BYTES];
    char text[2 * SAT_NONCE_BYTES + 1];
    fuzz_fill(in, bytes, sizeof bytes);
    hex_write(bytes, sizeof bytes, text);
    FUZZ_CHECK(hex_read(text, again, sizeof again) && memcmp(bytes, again, sizeof bytes) == 0);
    char *other = fuzz_rest_string(in);
    fuzz_note_number(hex_read(other, again, 4));
    free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const checks[])(fuzz_input *) = {check_wire,  check_ledger,  check_records, check_window,
                                                   check_clock, check_control, check_auth,    check_light};
    fuzz_input in = fuzz_input_of(data, size);
    checks[fuzz_below(&in, sizeof checks / sizeof checks[0])](&in);
    return 0;
}
