/* Logs are read back with another JSON parser: syntax, names, numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "tests/unit.h"
#include "qlog/frames.h"
#include "qlog/qlog.h"

#define REFERENCE UINT64_C(5000123)

typedef struct {
    char text[1 << 20];
    size_t used, pieces, largest_piece;
    bool opened, is_server, closed;
} sink;

static void *sink_open(void *user, bool is_server, const uint8_t *odcid, size_t odcid_len) {
    sink *s = user;
    memset(s, 0, sizeof *s);
    s->opened = odcid_len == 8 && odcid[0] == 0xab;
    s->is_server = is_server;
    return s;
}

static void sink_write(void *user, const char *text, size_t len) {
    sink *s = user;
    assert_true(!s->closed && s->used + len < sizeof s->text);
    assert_true(text[0] == 0x1e && text[len - 1] == '\n'); /* whole records */
    memcpy(s->text + s->used, text, len);
    s->used += len;
    s->pieces++;
    s->largest_piece = len > s->largest_piece ? len : s->largest_piece;
}

static void sink_close(void *user) {
    ((sink *)user)->closed = true;
}

static sink out;

static xl_qlog *new_log(bool is_server) {
    const xl_log log = {.user = &out, .qlog_open = sink_open, .qlog_write = sink_write, .qlog_close = sink_close};
    const xl_cid odcid = {8, {0xab, 0xcd, 0xef, 0, 1, 2, 3, 4}};
    out.opened = false;
    xl_qlog *q = xl_qlog_new(&log, is_server, &odcid, REFERENCE);
    assert_non_null(q);
    return q;
}

static xl_qlog *open_log(bool is_server) {
    xl_qlog *q = new_log(is_server);
    assert_false(out.opened);
    assert_ptr_equal(q, xl_qlog_open(q, REFERENCE));
    assert_ptr_equal(q, xl_qlog_open(q, REFERENCE));
    assert_true(out.opened);
    return q;
}

/* Closes the log and returns its records, RFC 7464 undone, as an array. */
static json_t *close_log(xl_qlog *q) {
    xl_qlog_free(q);
    assert_true(out.closed);
    json_t *records = json_array();
    for (const char *at = out.text, *end = out.text + out.used; at < end;) {
        assert_int_equal(*at, 0x1e);
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        assert_non_null(newline);
        json_error_t error;
        json_t *record = json_loadb(at + 1, (size_t)(newline - at - 1), JSON_REJECT_DUPLICATES, &error);
        if (!record)
            fail_msg("%s at %d: %.*s", error.text, error.position, (int)(newline - at - 1), at + 1);
        json_array_append_new(records, record);
        at = newline + 1;
    }
    return records;
}

static json_t *event(json_t *records, size_t i, const char *name) {
    json_t *record = json_array_get(records, i);
    assert_non_null(record);
    assert_string_equal(json_string_value(json_object_get(record, "name")), name);
    return json_object_get(record, "data");
}

static double time_of(json_t *records, size_t i) {
    return json_real_value(json_object_get(json_array_get(records, i), "time"));
}

static json_int_t integer(json_t *object, const char *name) {
    json_t *v = json_object_get(object, name);
    if (!json_is_integer(v))
        fail_msg("no integer %s", name);
    return json_integer_value(v);
}

static double real(json_t *object, const char *name) {
    json_t *v = json_object_get(object, name);
    if (!json_is_real(v))
        fail_msg("no real %s", name);
    return json_real_value(v);
}

static const char *string(json_t *object, const char *name) {
    json_t *v = json_object_get(object, name);
    if (!json_is_string(v))
        fail_msg("no string %s", name);
    return json_string_value(v);
}

/* Compares an event's data with JSON text, in which ' stands for ". */
static void assert_data(json_t *records, size_t i, const char *name, const char *expected) {
    char text[2048];
    snprintf(text, sizeof text, "%s", expected);
    for (char *quote = text; (quote = strchr(quote, '\''));)
        *quote = '"';
    json_t *wanted = json_loads(text, 0, NULL), *data = event(records, i, name);
    if (!wanted || !json_equal(wanted, data))
        fail_msg("%s: %s", name, json_dumps(data, 0));
    json_decref(wanted);
}

static void assert_near(double a, double b) {
    assert_true(a - b < 1e-9 && b - a < 1e-9);
}

TEST(the_header_record_names_format_vantage_point_and_reference) {
    json_t *records = close_log(open_log(true));
    json_t *header = json_array_get(records, 0), *trace = json_object_get(header, "trace");
    json_t *common = json_object_get(trace, "common_fields");
    assert_string_equal(string(header, "file_schema"), "urn:ietf:params:qlog:file:sequential");
    assert_string_equal(string(header, "serialization_format"), "application/qlog+json-seq");
    assert_string_equal(string(json_object_get(trace, "vantage_point"), "type"), "server");
    const json_t *schemas = json_object_get(trace, "event_schemas");
    assert_int_equal(json_array_size(schemas), 4);
    assert_string_equal(json_string_value(json_array_get(schemas, 0)), "urn:ietf:params:qlog:events:quic-13");
    assert_string_equal(string(common, "group_id"), "abcdef0001020304");
    assert_string_equal(string(common, "time_format"), "relative_to_epoch");
    assert_string_equal(string(json_object_get(common, "reference_time"), "clock_type"), "monotonic");
    assert_int_equal(integer(common, "reference_monotonic_us"), 5000123);
    json_decref(records);
}

TEST(a_packet_lists_its_frames) {
    xl_qlog *q = open_log(false);
    xl_qlog_packet_begin(q, REFERENCE + 1234567, true, XL_PACKET_1RTT, UINT64_C(4611686018427387903), 1452, 1, 3);
    xl_frame stream = {.type = XL_FRAME_STREAM,
                       .stream = {.stream_id = 4, .offset = 1000000, .len = 1200, .fin = true}};
    xl_frame ack = {.type = XL_FRAME_ACK_MP,
                    .ack = {.path_id = 2,
                            .delay = 125,
                            .range_count = 2,
                            .ranges = {{995, 1000}, {980, 990}},
                            .has_qoe = true,
                            .qoe = {1000000, 120, 2500000, 30}}};
    xl_qlog_frame(q, &stream);
    xl_qlog_frame(q, &ack);
    xl_qlog_packet_end(q);
    json_t *records = close_log(q);
    assert_near(time_of(records, 1), 1234.567);
    assert_data(records, 1, "quic:packet_sent",
                "{'header':{'packet_type':'1RTT','packet_number':4611686018427387903},'raw':{'length':1452},"
                "'path':1,'path_id':3,'frames':[{'frame_type':'stream','stream_id':4,'offset':1000000,"
                "'raw':{'length':1200},'fin':true},{'frame_type':'ack_mp','path_id':2,'ack_delay':1.0,"
                "'acked_ranges':[[995,1000],[980,990]],'qoe':{'cached_bytes':1000000,'cached_frames':120,"
                "'bps':2500000,'fps':30}}]}");
    json_decref(records);
}

TEST(the_peers_ack_delay_exponent_scales_received_acks_only) {
    xl_qlog *q = open_log(false);
    xl_qlog_set_peer_ack_delay_exponent(q, 10);
    xl_frame ack = {.type = XL_FRAME_ACK, .ack = {.delay = 1000, .range_count = 1}};
    for (int sent = 0; sent < 2; sent++) {
        xl_qlog_packet_begin(q, REFERENCE, sent, XL_PACKET_HANDSHAKE, 0, 100, 0, 0);
        xl_qlog_frame(q, &ack);
        xl_qlog_packet_end(q);
    }
    ack.ack.delay = UINT64_C(1) << 61; /* hostile: does not wrap round to a small delay */
    xl_qlog_packet_begin(q, REFERENCE, false, XL_PACKET_HANDSHAKE, 1, 100, 0, 0);
    xl_qlog_frame(q, &ack);
    json_t *records = close_log(q);
    json_t *received = json_array_get(json_object_get(event(records, 1, "quic:packet_received"), "frames"), 0);
    json_t *sent = json_array_get(json_object_get(event(records, 2, "quic:packet_sent"), "frames"), 0);
    assert_near(real(received, "ack_delay"), 1024.0);
    assert_near(real(sent, "ack_delay"), 8.0);
    /* The close ended the packet that was still open. */
    json_t *hostile = json_array_get(json_object_get(event(records, 3, "quic:packet_received"), "frames"), 0);
    assert_true(real(hostile, "ack_delay") > 1e15);
    json_decref(records);
}

/* Of each type: its members if its first number is 1, its second 2, and so on. */
TEST(the_numbers_of_frames_have_their_names) {
    static const struct {
        uint64_t type;
        const char *members;
    } rows[] = {
        {XL_FRAME_RESET_STREAM, "'stream_id':1,'error':'unknown','error_code':2,'final_size':3"},
        {XL_FRAME_STOP_SENDING, "'stream_id':1,'error':'unknown','error_code':2"},
        {XL_FRAME_MAX_STREAM_DATA, "'stream_id':1,'maximum':2"},
        {XL_FRAME_MAX_STREAMS_BIDI, "'stream_type':'bidirectional','maximum':2"},
        {XL_FRAME_STREAM_DATA_BLOCKED, "'stream_id':1,'limit':2"},
        {XL_FRAME_NEW_CONNECTION_ID,
         "'sequence_number':2,'retire_prior_to':3,'connection_id_length':0,'connection_id':''"},
        {XL_FRAME_RETIRE_CONNECTION_ID, "'sequence_number':2"},
        {XL_FRAME_CONNECTION_CLOSE, "'error_space':'transport','error_code':1,'trigger_frame_type':2"},
        {XL_FRAME_ACK_FREQUENCY, "'sequence_number':1,'ack_eliciting_threshold':2,'requested_max_ack_delay':3,"
                                 "'reordering_threshold':4"},
        {XL_FRAME_PATH_STATUS, "'path_id':1,'sequence_number':2,'status':'unknown','priority':4"},
        {XL_FRAME_PATH_ABANDON, "'path_id':1,'error_code':2"},
        {XL_FRAME_PATH_STATUS_BACKUP, "'path_id':1,'sequence_number':2"},
        {XL_FRAME_PATH_NEW_CONNECTION_ID,
         "'path_id':1,'sequence_number':2,'retire_prior_to':3,'connection_id_length':0,'connection_id':''"},
        {XL_FRAME_PATH_RETIRE_CONNECTION_ID, "'path_id':1,'sequence_number':2"},
        {XL_FRAME_MAX_PATH_ID, "'maximum_path_id':2"},
        {XL_FRAME_PATH_CIDS_BLOCKED, "'path_id':1,'next_sequence_number':2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const xl_frame_info *info = xl_frame_info_of(rows[i].type);
        char text[256] = "", wanted[256];
        xl_json j = {.p = text, .cap = sizeof text - 1};
        xl_frame f;
        memset(&f, 0, sizeof f);
        f.type = rows[i].type;
        for (size_t n = 0; n < XL_FRAME_NUMBERS; n++)
            if (info->numbers[n])
                f.number[n] = n + 1;
        xl_qlog_put_frame(&j, &f, 0);
        for (char *quote = text; (quote = strchr(quote, '"'));)
            *quote = '\'';
        snprintf(wanted, sizeof wanted, "{'frame_type':'%s',%s}", info->name, rows[i].members);
        assert_string_equal(text, wanted);
    }
}

/* Every frame type, with members unset where a pointer may be missing. */
TEST(every_frame_type_is_valid_json_with_its_name) {
    xl_qlog *q = open_log(false);
    size_t count = 0;
    xl_qlog_packet_begin(q, REFERENCE, false, XL_PACKET_1RTT, 1, 1200, 0, 0);
    for (uint64_t type = 0; type <= XL_FRAME_PATH_STATUS; type += type == 0x31 ? XL_FRAME_ACK_MP - 0x31 : 1) {
        xl_frame f;
        memset(&f, 0, sizeof f);
        f.type = type;
        xl_qlog_frame(q, &f);
        count++;
    }
    xl_qlog_packet_end(q);
    json_t *records = close_log(q), *frames = json_object_get(event(records, 1, "quic:packet_received"), "frames");
    assert_int_equal(json_array_size(frames), count);
    assert_string_equal(string(json_array_get(frames, XL_FRAME_MAX_STREAMS_UNI), "stream_type"), "unidirectional");
    assert_int_equal(integer(json_array_get(frames, XL_FRAME_DATA_BLOCKED), "limit"), 0);
    assert_string_equal(string(json_array_get(frames, XL_FRAME_APPLICATION_CLOSE), "error_space"), "application");
    assert_string_equal(string(json_array_get(frames, 0x1f), "frame_type"), "immediate_ack");
    assert_string_equal(string(json_array_get(frames, 0x20), "frame_type"), "unknown");
    assert_string_equal(string(json_array_get(frames, 0x30), "frame_type"), "datagram");
    assert_string_equal(string(json_array_get(frames, XL_FRAME_RESET_STREAM), "error"), "unknown");
    assert_int_equal(integer(json_object_get(json_array_get(frames, XL_FRAME_CRYPTO), "raw"), "length"), 0);
    assert_non_null(json_object_get(json_array_get(frames, XL_FRAME_NEW_TOKEN), "token"));
    assert_string_equal(string(json_array_get(frames, count - 1), "status"), "abandon");
    json_decref(records);
}

TEST(text_from_the_peer_is_escaped) {
    xl_qlog *q = open_log(false);
    static const uint8_t reason[] = "a\"b\\c\n\x01\x7f \xc3\xa9 \xff\xc0\xaf \xed\xa0\x80 \xf0\x9f\x8e\xac \xe2\x82";
    xl_frame f = {.type = XL_FRAME_APPLICATION_CLOSE,
                  .close = {.error_code = 256, .reason = reason, .reason_len = sizeof reason - 1}};
    xl_qlog_packet_begin(q, REFERENCE, false, XL_PACKET_1RTT, 1, 1200, 0, 0);
    xl_qlog_frame(q, &f);
    xl_qlog_packet_end(q);
    xl_qlog_connection(q, REFERENCE, "connection_closed", "quote \" and tab \t");
    json_t *records = close_log(q);
    json_t *close = json_array_get(json_object_get(event(records, 1, "quic:packet_received"), "frames"), 0);
#define BAD "\xef\xbf\xbd" /* U+FFFD, one for each byte that is no UTF-8 */
    assert_string_equal(string(close, "reason"),
                        "a\"b\\c\n\x01\x7f \xc3\xa9 " BAD BAD BAD " " BAD BAD BAD " \xf0\x9f\x8e\xac " BAD BAD);
    assert_string_equal(string(event(records, 2, "quic:connection_closed"), "reason"), "quote \" and tab \t");
    json_decref(records);
}

TEST(metrics_are_written_when_they_change_and_per_path) {
    xl_qlog *q = open_log(false);
    xl_qlog_path(q, REFERENCE, "path_new", 1, 5, NULL, NULL, NULL);
    xl_qlog_metrics m = {.srtt_us = 30500,
                         .latest_rtt_us = 31007,
                         .min_rtt_us = UINT64_MAX,
                         .rttvar_us = 1,
                         .cwnd_bytes = 14520,
                         .ssthresh_bytes = UINT64_MAX,
                         .bytes_in_flight = 0};
    xl_qlog_metrics_updated(q, REFERENCE + 1, 1, &m);
    xl_qlog_metrics_updated(q, REFERENCE + 2, 1, &m); /* nothing new */
    m.bytes_in_flight = 1452;
    xl_qlog_metrics_updated(q, REFERENCE + 3, 1, &m);
    xl_qlog_metrics_updated(q, REFERENCE + 4, 0, &m); /* another path: everything */
    json_t *records = close_log(q);
    assert_int_equal(json_array_size(records), 5);
    assert_data(records, 2, "quic:recovery_metrics_updated",
                "{'path':1,'path_id':5,'smoothed_rtt':30.5,'latest_rtt':31.007,'rtt_variance':0.001,"
                "'congestion_window':14520,'bytes_in_flight':0,'pacing_rate':0,'pto_count':0}");
    assert_data(records, 3, "quic:recovery_metrics_updated", "{'path':1,'path_id':5,'bytes_in_flight':1452}");
    assert_near(time_of(records, 3), 0.003);
    assert_data(records, 4, "quic:recovery_metrics_updated",
                "{'path':0,'smoothed_rtt':30.5,'latest_rtt':31.007,'rtt_variance':0.001,"
                "'congestion_window':14520,'bytes_in_flight':1452,'pacing_rate':0,'pto_count':0}");
    json_decref(records);
}

TEST(path_and_xlink_events_carry_their_members) {
    xl_qlog *q = open_log(true);
    xl_addr local = {.family = 4, .ip = {100, 64, 0, 2}, .port = 4433}, remote = local;
    remote.ip[3] = 1;
    xl_qlog_path(q, REFERENCE, "path_validated", 1, 2, &local, &remote, "PATH_RESPONSE");
    xl_qlog_path(q, REFERENCE, "path_new", 0, 7, &local, NULL, NULL);
    xl_qlog_reinjection(q, REFERENCE + 1000, 8, UINT64_C(1) << 40, 1300, 1, 0, 1, "play time left below t_th1",
                        &(xl_qlog_race){UINT64_MAX, 30000});
    xl_qlog_qoe_gate(q, REFERENCE, &(xl_qlog_gate){true, "below t_th1", 250000, 300000, 900000, 80001});
    xl_qlog_qoe_gate(q, REFERENCE, &(xl_qlog_gate){false, NULL, UINT64_MAX, 300000, 900000, 0});
    xl_qlog_qoe_received(q, REFERENCE, &(xl_qoe){1, 2, 3, 4});
    xl_qlog_packet_lost(q, REFERENCE, XL_PACKET_1RTT, 17, 1, "time_threshold");
    xl_qlog_packet_dropped(q, REFERENCE, 1200, "decryption_failure", -1);
    xl_qlog_params(q, REFERENCE, false, true, 30000, 1 << 24);
    json_t *records = close_log(q);
    assert_data(records, 1, "multipath:path_validated",
                "{'path':1,'path_id':2,'local':'100.64.0.2:4433','remote':'100.64.0.1:4433',"
                "'why':'PATH_RESPONSE'}");
    assert_data(records, 3, "xlink:reinjection",
                "{'path':0,'path_id':7,'from_path':1,'from_path_id':2,'to_path':0,'to_path_id':7,"
                "'stream_id':8,'offset':1099511627776,'length':1300,'copy':1,'original_ms':null,"
                "'copy_ms':30.0,'why':'play time left below t_th1'}");
    assert_data(records, 4, "xlink:qoe_gate",
                "{'on':true,'play_time_left_ms':250.0,'t_th1_ms':300.0,'t_th2_ms':900.0,"
                "'deliver_time_max_ms':80.001,'why':'below t_th1'}");
    assert_data(records, 5, "xlink:qoe_gate",
                "{'on':false,'play_time_left_ms':null,'t_th1_ms':300.0,'t_th2_ms':900.0,"
                "'deliver_time_max_ms':0.0}");
    assert_data(records, 6, "xlink:qoe_received", "{'cached_bytes':1,'cached_frames':2,'bps':3,'fps':4}");
    assert_data(records, 7, "quic:packet_lost",
                "{'header':{'packet_type':'1RTT','packet_number':17},'path':1,'path_id':2,"
                "'trigger':'time_threshold'}");
    assert_data(records, 8, "quic:packet_dropped", "{'raw':{'length':1200},'trigger':'decryption_failure'}");
    assert_data(records, 9, "quic:parameters_set",
                "{'initiator':'remote','enable_multipath':true,'max_idle_timeout':30000,"
                "'initial_max_data':16777216}");
    json_decref(records);
}

static size_t count_events(json_t *records, const char *name) {
    size_t count = 0, i;
    json_t *record;
    json_array_foreach(records, i, record) {
        const char *its = json_string_value(json_object_get(record, "name"));
        count += its && strcmp(its, name) == 0;
    }
    return count;
}

/* Callers report a state each time; a state is written only when it changes. */
TEST(states_are_written_when_they_change) {
    xl_qlog *q = open_log(true);
    const xl_qlog_gate open = {.on = true, .why = "below T_th1"}, closed = {.why = "above T_th2"};
    const xl_qlog_selection fastest = {.path = 1, .scheduler = "minrtt"}, other = {.path = 1, .no_window = 1};
    for (int i = 0; i < 2; i++) {
        xl_qlog_congestion_state(q, REFERENCE, 0, "slow_start");
        xl_qlog_congestion_state(q, REFERENCE, 1, "slow_start");
        xl_qlog_qoe_gate(q, REFERENCE, &open);
        xl_qlog_reinjection_refused(q, REFERENCE, 4, 1, "all copied", NULL, NULL);
        xl_qlog_reinjection_refused(q, REFERENCE, 8, 1, "all copied", NULL, NULL);
    }
    xl_qlog_qoe_gate(q, REFERENCE, &closed);
    xl_qlog_path_selected(q, REFERENCE, &fastest);
    xl_qlog_path_selected(q, REFERENCE, &fastest);
    xl_qlog_path_selected(q, REFERENCE, &other);
    for (int i = 0; i < 2; i++) { /* only once until data is sent */
        xl_qlog_scheduler_waits(q, REFERENCE, "ecf", 1, "earlier");
        xl_qlog_scheduler_waits(q, REFERENCE, "ecf", 0, "earlier");
        xl_qlog_path_selected(q, REFERENCE, &other);
    }
    xl_qlog_reinjection(q, REFERENCE, 4, 0, 100, 0, 1, 1, "below T_th1", NULL);
    xl_qlog_reinjection_refused(q, REFERENCE, 4, 1, "all copied", NULL, NULL); /* a copy was made since */
    xl_qlog_stream_gone(q, 8);
    xl_qlog_reinjection_refused(q, REFERENCE, 8, 1, "all copied", NULL, NULL); /* a stream with no record yet */
    xl_qlog_path_replaced(q, 1);
    xl_qlog_congestion_state(q, REFERENCE, 1, "slow_start");
    xl_qlog_congestion_state(q, REFERENCE, 0, "slow_start");
    json_t *records = close_log(q);
    assert_int_equal(3, count_events(records, "quic:congestion_state_updated"));
    assert_int_equal(2, count_events(records, "xlink:qoe_gate"));
    assert_int_equal(2, count_events(records, "multipath:path_selected"));
    assert_int_equal(2, count_events(records, "multipath:scheduler_waits"));
    assert_int_equal(4, count_events(records, "xlink:reinjection_refused"));
    json_decref(records);
}

TEST(what_was_not_done_is_logged_with_its_reason) {
    xl_qlog *q = open_log(true);
    const xl_qlog_gate gate = {false, "above T_th2", 1200000, 300000, 900000, 80000};
    xl_qlog_reinjection_refused(q, REFERENCE, 8, 1, "gate closed", &gate, NULL);
    xl_qlog_reinjection_refused(q, REFERENCE, 8, 1, "does not pay", NULL, &(xl_qlog_race){20000, 30000});
    xl_qlog_path_selected(
        q, REFERENCE,
        &(xl_qlog_selection){
            .path = 2, .scheduler = "minrtt", .srtt_us = 90000, .no_window = 1, .nothing_to_carry = 2});
    xl_qlog_path_selected(q, REFERENCE, &(xl_qlog_selection){.path = 0, .scheduler = "minrtt", .srtt_us = 9000});
    xl_qlog_path_selected(q, REFERENCE, &(xl_qlog_selection){.path = 1, .scheduler = "ecf", .rule = "both needed"});
    xl_qlog_scheduler_waits(q, REFERENCE, "ecf", 1, "earlier");
    json_t *records = close_log(q);
    assert_data(records, 1, "xlink:reinjection_refused",
                "{'path':1,'stream_id':8,'why':'gate closed','gate':'above T_th2','play_time_left_ms':1200.0,"
                "'t_th1_ms':300.0,'t_th2_ms':900.0,'deliver_time_max_ms':80.0}");
    assert_data(records, 2, "xlink:reinjection_refused",
                "{'path':1,'stream_id':8,'why':'does not pay','original_ms':20.0,'copy_ms':30.0}");
    assert_data(records, 3, "multipath:path_selected",
                "{'path':2,'scheduler':'minrtt','why':'faster paths not used','smoothed_rtt':90.0,"
                "'no_window':[0],'nothing_to_carry':[1]}");
    assert_data(records, 4, "multipath:path_selected",
                "{'path':0,'scheduler':'minrtt','why':'smallest RTT','smoothed_rtt':9.0}");
    assert_data(records, 5, "multipath:path_selected",
                "{'path':1,'scheduler':'ecf','why':'smallest RTT','rule':'both needed','smoothed_rtt':0.0}");
    assert_data(records, 6, "multipath:scheduler_waits", "{'path':1,'scheduler':'ecf','why':'earlier'}");
    json_decref(records);
}

TEST(events_while_a_packet_is_open_do_not_break_its_record) {
    xl_qlog *q = open_log(false);
    xl_frame ping = {.type = XL_FRAME_PING};
    xl_qlog_packet_begin(q, REFERENCE + 5, false, XL_PACKET_1RTT, 9, 100, 0, 0);
    xl_qlog_frame(q, &ping);
    xl_qlog_packet_lost(q, REFERENCE + 5, XL_PACKET_1RTT, 3, 0, "reordering_threshold");
    xl_qlog_frame(q, &ping);
    xl_qlog_packet_end(q);
    json_t *records = close_log(q);
    event(records, 1, "quic:packet_lost");
    assert_int_equal(json_array_size(json_object_get(event(records, 2, "quic:packet_received"), "frames")), 2);
    json_decref(records);
}

TEST(a_packet_of_very_many_frames_has_a_bounded_record) {
    xl_qlog *q = open_log(false);
    xl_frame ping = {.type = XL_FRAME_PING};
    xl_qlog_packet_begin(q, REFERENCE, false, XL_PACKET_1RTT, 9, 65527, 0, 0);
    for (int i = 0; i < 65500; i++)
        xl_qlog_frame(q, &ping);
    xl_qlog_packet_end(q);
    json_t *records = close_log(q), *data = event(records, 1, "quic:packet_received");
    json_int_t listed = (json_int_t)json_array_size(json_object_get(data, "frames"));
    assert_true(listed > 500);
    assert_int_equal(listed + integer(data, "frames_omitted"), 65500);
    assert_true(out.used < 18000);
    json_decref(records);
}

TEST(text_is_handed_over_in_pieces_of_about_16_kb) {
    xl_qlog *q = open_log(false);
    char longest[4000];
    memset(longest, 1, sizeof longest - 1); /* each byte becomes \u0001; cut after 1 KB */
    longest[sizeof longest - 1] = 0;
    for (int i = 0; i < 100; i++)
        xl_qlog_connection(q, REFERENCE, "connection_closed", longest);
    size_t before_close = out.pieces;
    json_t *records = close_log(q);
    assert_int_equal(json_array_size(records), 101);
    assert_int_equal(json_string_length(json_object_get(event(records, 50, "quic:connection_closed"), "reason")), 1024);
    assert_true(before_close > 20 && out.largest_piece >= 16384 && out.largest_piece < 32768);
    json_decref(records);
}

TEST(what_comes_before_the_sink_is_kept_within_bounds) {
    xl_qlog *q = new_log(true);
    for (int i = 0; i < 20; i++)
        xl_qlog_packet_dropped(q, REFERENCE, 100 + (size_t)i, "x", -1);
    assert_false(out.opened);
    q = xl_qlog_open(q, REFERENCE + 1000);
    json_t *records = close_log(q);
    assert_int_equal(json_array_size(records), 21);
    json_t *raw = json_object_get(event(records, 20, "quic:packet_dropped"), "raw");
    assert_int_equal(json_integer_value(json_object_get(raw, "length")), 119);
    json_decref(records);

    q = new_log(true);
    for (int i = 0; i < 5000; i++)
        xl_qlog_packet_dropped(q, REFERENCE, 100, "x", -1);
    q = xl_qlog_open(q, REFERENCE + 1000);
    xl_qlog_packet_dropped(q, REFERENCE + 2000, 4242, "after", -1);
    records = close_log(q);
    size_t count = json_array_size(records);
    assert_true(out.used < 32768 && count > 100);
    json_t *omitted = json_object_get(event(records, count - 2, "xlink:events_omitted"), "omitted");
    assert_int_equal(count - 3 + (size_t)json_integer_value(omitted), 5000);
    raw = json_object_get(event(records, count - 1, "quic:packet_dropped"), "raw");
    assert_int_equal(json_integer_value(json_object_get(raw, "length")), 4242);
    json_decref(records);
}

TEST(a_log_that_was_never_opened_leaves_nothing) {
    xl_qlog *q = new_log(true);
    xl_qlog_connection(q, REFERENCE, "connection_started", "x");
    xl_qlog_free(q);
    assert_false(out.opened);
}

static void *no_sink(void *user, bool is_server, const uint8_t *odcid, size_t odcid_len) {
    (void)user, (void)is_server, (void)odcid, (void)odcid_len;
    return NULL;
}

TEST(a_log_without_a_sink_is_none) {
    const xl_log log = {.qlog_open = no_sink, .qlog_write = sink_write};
    assert_null(xl_qlog_open(xl_qlog_new(&log, true, &(xl_cid){0}, 0), 0));
    assert_null(xl_qlog_open(NULL, 0));
}

TEST(without_a_sink_every_call_is_quiet) {
    const xl_cid odcid = {0};
    xl_qlog *q = xl_qlog_new(&(xl_log){0}, true, &odcid, 0);
    assert_null(q);
    xl_frame f = {.type = XL_FRAME_PING};
    xl_qlog_metrics m = {0};
    xl_qlog_set_peer_ack_delay_exponent(q, 3);
    xl_qlog_packet_begin(q, 0, true, XL_PACKET_1RTT, 0, 0, 0, 0);
    xl_qlog_frame(q, &f);
    xl_qlog_packet_end(q);
    xl_qlog_packet_dropped(q, 0, 0, "x", 0);
    xl_qlog_metrics_updated(q, 0, 0, &m);
    xl_qlog_packet_lost(q, 0, XL_PACKET_1RTT, 0, 0, "x");
    xl_qlog_path(q, 0, "path_new", 0, 0, NULL, NULL, NULL);
    xl_qlog_path_selected(q, 0, &(xl_qlog_selection){0});
    xl_qlog_scheduler_waits(q, 0, NULL, 0, NULL);
    xl_qlog_reinjection(q, 0, 0, 0, 0, 0, 0, 1, NULL, NULL);
    xl_qlog_reinjection_refused(q, 0, 0, 0, NULL, NULL, NULL);
    xl_qlog_qoe_gate(q, 0, &(xl_qlog_gate){0});
    xl_qlog_qoe_received(q, 0, &(xl_qoe){0});
    xl_qlog_connection(q, 0, "x", NULL);
    xl_qlog_params(q, 0, true, true, 0, 0);
    xl_qlog_free(q);
}

TEST_MAIN(NULL, NULL)
