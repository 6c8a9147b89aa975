/* Re-injection on the virtual clock: figures 3 and 4 of the paper's design (section 5.1) as scenarios, read back from
 * the server's qlog where the order on the wire matters; one copy of each original; the cost of a decision. */
#include "testing/reinjection.h"

/* Writes what the server sent of its streams as runs of letters, one for each kind of data: lower case when sent first,
 * upper case when sent again. kind() names the data at an offset of a stream. */
static void order_on_the_wire(const json_t *records, char (*kind)(uint64_t stream, uint64_t offset), char *out) {
    uint64_t highest[16] = {0};
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *record = json_array_get(records, i), *frames = json_object_get(data_of(record), "frames");
        assert_false(is_event(record, "quic:packet_lost")); /* else upper case would include retransmissions */
        for (size_t k = 0; is_event(record, "quic:packet_sent") && k < json_array_size(frames); k++) {
            const json_t *f = json_array_get(frames, k);
            if (strcmp(text(f, "frame_type"), "stream") != 0)
                continue;
            uint64_t id = whole(f, "stream_id"), offset = whole(f, "offset"),
                     end = offset + whole(json_object_get(f, "raw"), "length");
            bool again = end <= highest[id / 4];
            highest[id / 4] = again ? highest[id / 4] : end;
            char letter = (char)(kind(id, offset) - (again ? 'a' - 'A' : 0));
            if (n == 0 || out[n - 1] != letter)
                out[n++] = letter;
            assert_true(n < 64);
        }
    }
    out[n] = 0;
}

/* ---- Figure 3 ---- */

/* An outage loses the last two packets on the slow path. Returns the time from when all is sent to the last byte at the
 * client. *pto_us: the slow path's probe timeout at the start of it. */
static uint64_t time_after_the_loss(const char *mode, uint64_t *pto_us, uint64_t *reinjected) {
    pair p;
    two_paths(&p, 70, 10000, 60000, mode);
    start(&p);
    size_t i = pair_ask(&p, 18 * PACKET); /* ten packets fill the fast path's first window */
    until_flushed(&p, i);
    uint64_t from = p.now;
    lose_newest(&p, 1, 2);
    p.link[1].dark[1] = true;
    *pto_us = xl_rtt_pto(&p.sc->path[1]->rtt, xl_conn_peer_ack_delay_us(p.sc));
    assert_true(pair_finish(&p, i, 20000000) != UINT64_MAX);
    *reinjected = p.sc->stats.reinjected_bytes;
    uint64_t took = p.request[i].done_at - from;
    pair_free(&p);
    return took;
}

TEST(figure_3_a_copy_saves_the_probe_timeout) {
    uint64_t pto, copied;
    uint64_t without = time_after_the_loss("none", &pto, &copied);
    assert_true(without >= pto);
    assert_int_equal(0, copied);
    uint64_t with = time_after_the_loss("stream", &pto, &copied);
    assert_true(copied >= 2 * PACKET - 100);
    /* The fast path's RTT is 20 ms: its window is full when the last packet leaves, so the copies wait for the next
     * acknowledgement, and they take half a round trip themselves. */
    assert_in_range(with, 10000, 50000);
}

/* ---- Figure 4 ---- */

static char by_stream(uint64_t stream, uint64_t offset) {
    (void)offset;
    return stream == 0 ? 'a' : 'b';
}

static char by_frame(uint64_t stream, uint64_t offset) {
    (void)stream;
    return offset < 18 * PACKET ? 'f' : 'r';
}

/* Waits for both answers and frees the pair. order: that of their packets. */
static void finish_both(pair *p, size_t a, size_t b, char (*kind)(uint64_t, uint64_t), char *order) {
    assert_true(pair_finish(p, a, 5000000) != UINT64_MAX && pair_finish(p, b, 5000000) != UINT64_MAX);
    pair_run(p, 1000000);
    json_t *records = read_log(p);
    order_on_the_wire(records, kind, order);
    json_decref(records);
    pair_free(p);
}

/* Ten packets leave on the fast path, the others on the slow one, which has an RTT of 800 ms. */
static void send_two_answers(const char *mode, const xl_frame_mark *mark, size_t first, size_t second,
                             char (*kind)(uint64_t, uint64_t), char *order) {
    pair p;
    two_paths(&p, 71, 10000, 400000, mode);
    p.server_config.scheme.reinjection_unconditional = true;
    p.mark = mark ? *mark : (xl_frame_mark){0};
    start(&p);
    size_t a = pair_ask(&p, first), b = second ? pair_ask(&p, second) : a;
    finish_both(&p, a, b, kind, order);
}

TEST(figure_4a_appended_copies_go_behind_all_unsent_data) {
    char order[64];
    send_two_answers("none", NULL, 18 * PACKET, 40 * PACKET, by_stream, order);
    assert_string_equal("ab", order);
    send_two_answers("appending", NULL, 18 * PACKET, 40 * PACKET, by_stream, order);
    assert_string_equal("abAB", order);
}

TEST(figure_4b_copies_of_a_stream_go_before_the_next_streams_data) {
    char order[64];
    send_two_answers("stream", NULL, 18 * PACKET, 40 * PACKET, by_stream, order);
    assert_memory_equal("aAb", order, 3);
    assert_null(strchr(order + 3, 'A')); /* all of them */
}

TEST(figure_4c_copies_of_the_first_frame_go_before_the_rest_of_its_stream) {
    char order[64];
    const xl_frame_mark mark = {.position = 0, .size = 18 * PACKET, .priority = 0};
    send_two_answers("stream", &mark, 58 * PACKET, 0, by_frame, order);
    assert_memory_equal("frF", order, 3); /* the stream's end comes first */
    send_two_answers("frame", &mark, 58 * PACKET, 0, by_frame, order);
    assert_memory_equal("fFr", order, 3);
    assert_null(strchr(order + 3, 'F'));
}

/* Whether a packet of the marked frame is in flight on another path than `onto` and was not copied. */
static bool frame_waits_elsewhere(const xl_stream *s, size_t onto) {
    for (size_t i = 0; i < XL_MAX_PATHS; i++)
        for (const xl_sent_frame *r = i != onto ? s->unacked[i].head : NULL; r; r = r->queue_next)
            if (r->offset < s->mark.position + s->mark.size &&
                !xl_send_range_is_acked(&s->send, r->offset, r->len, r->fin))
                return true;
    return false;
}

static uint64_t new_bytes_on(const xl_path *p) {
    return p->stats.stream_bytes_sent - p->stats.reinjected_bytes - p->stats.retransmitted_bytes;
}

/* Packets of a frame are lost, and sent again behind packets of the rest. Returns how often a path sent new bytes of
 * the rest although it could have copied some of the frame. */
static size_t times_the_rest_went_first(uint64_t seed) {
    pair p;
    two_paths(&p, seed, 10000, 60000, "frame");
    p.server_config.scheme.reinjection_unconditional = true;
    p.mark = (xl_frame_mark){.size = 100 * PACKET};
    start(&p);
    for (size_t i = 0; i < 2; i++) {
        p.link[i].bytes_per_s[1] = 1000000;
        p.link[i].loss = 0.03;
    }
    size_t i = pair_ask(&p, 1500 * PACKET), times = 0;
    while (!p.request[i].done) {
        const xl_stream *s = xl_conn_stream(p.sc, p.request[i].id);
        bool is_sent = s && s->has_mark && s->send.sent >= s->mark.size && s->send.lost.count == 0, waits[2];
        uint64_t before[2];
        for (size_t k = 0; k < 2; k++) {
            waits[k] = is_sent && frame_waits_elsewhere(s, k);
            before[k] = new_bytes_on(p.sc->path[k]);
        }
        assert_true(pair_step(&p));
        s = xl_conn_stream(p.sc, p.request[i].id);
        for (size_t k = 0; s && k < 2; k++)
            times += waits[k] && frame_waits_elsewhere(s, k) && s->send.lost.count == 0 &&
                     new_bytes_on(p.sc->path[k]) > before[k];
    }
    pair_free(&p);
    return times;
}

TEST(a_frames_packets_that_are_sent_again_are_copied_before_the_rest_too) {
    for (uint64_t seed = 90; seed < 110; seed++)
        assert_int_equal(0, times_the_rest_went_first(seed));
}

static char first_answer_or_frame(uint64_t stream, uint64_t offset) {
    return stream == 0 ? 'a' : offset < 18 * PACKET ? 'f' : 'r';
}

/* Asks for a second answer while the first one is sent, over two similar paths. Only the second answer has a mark. */
static void send_a_marked_answer_later(const char *mode, uint8_t priority, size_t packets, char *order) {
    pair p;
    two_paths(&p, 75, 10000, 10500, mode);
    p.server_config.scheme.reinjection_unconditional = true;
    start(&p);
    size_t a = pair_ask(&p, 400 * PACKET);
    pair_run(&p, 25000);
    p.mark = (xl_frame_mark){.position = 0, .size = 18 * PACKET, .priority = priority};
    size_t b = pair_ask(&p, packets * PACKET);
    finish_both(&p, a, b, first_answer_or_frame, order);
}

TEST(a_frame_of_high_priority_goes_before_other_streams_and_the_rest_of_its_own_does_not) {
    char order[64];
    send_a_marked_answer_later("none", 0, 40, order);
    assert_string_equal("afar", order);
    send_a_marked_answer_later("frame", 0, 40, order);
    assert_memory_equal("afFa", order, 4);
    send_a_marked_answer_later("frame", 0, 18, order); /* the whole answer */
    assert_memory_equal("afFa", order, 4);
    send_a_marked_answer_later("stream", 0, 18, order);
    assert_memory_equal("afa", order, 3);
    send_a_marked_answer_later("none", 3, 40, order); /* in the order of the streams */
    assert_string_equal("afr", order);
}

/* The stream's end is far away, but a full send buffer lets no more of it be sent. Data in flight on the dark path,
 * which is not suspect in the paper's form, must not block it for ever. */
TEST(a_stream_that_is_held_up_is_copied_before_its_end) {
    static const char *const modes[] = {"stream", "frame"};
    for (size_t k = 0; k < 2; k++) {
        pair p;
        two_paths(&p, 78, 10000, 20000, modes[k]);
        p.server_config.scheme.reinjection_unconditional = true;
        p.server_config.scheme.suspect = false;
        p.server_config.limits.send_buffer_bytes = 100 * PACKET;
        start(&p);
        size_t i = pair_ask(&p, 1000 * PACKET);
        pair_run(&p, 50000);
        assert_true(p.request[i].received > 0 && !p.request[i].done);
        p.link[0].dark[1] = true;
        assert_true(pair_finish(&p, i, 10000000) != UINT64_MAX);
        pair_free(&p);
    }
}

/* Loads an answer through a small flow control window, with the fast path dark from its first packets on. */
static void load_through_a_small_window(bool is_uplink_dark) {
    pair p;
    two_paths(&p, 79, 10000, 20000, "stream");
    p.server_config.scheme.reinjection_unconditional = true;
    p.client_config.scheme.suspect = p.server_config.scheme.suspect = false;
    p.client_config.limits.max_data = 100 * PACKET;
    p.client_config.limits.max_stream_data = 80 * PACKET;
    start(&p);
    size_t i = pair_ask(&p, 1000 * PACKET);
    pair_run(&p, 50000);
    assert_true(p.request[i].received > 0 && !p.request[i].done);
    p.link[0].dark[0] = is_uplink_dark;
    p.link[0].dark[1] = !is_uplink_dark;
    assert_true(pair_finish(&p, i, 10000000) != UINT64_MAX);
    pair_free(&p);
}

TEST(a_stream_without_credit_is_copied_before_its_end) {
    load_through_a_small_window(false);
}

/* MAX_DATA and MAX_STREAM_DATA are in several packets of the fast path, none of which arrives. */
TEST(frames_of_flow_control_leave_a_dark_path_without_suspect_paths) {
    load_through_a_small_window(true);
}

/* ---- One original, one copy ---- */

PAIR_TEST(copies_take_no_flow_control_credit) {
    two_paths(p, 72, 10000, 60000, "stream");
    p->server_config.scheme.reinjection_unconditional = true;
    const uint64_t size = 60 * PACKET;
    p->client_config.limits.max_data = p->client_config.limits.max_stream_data = size; /* not one byte more */
    start(p);
    uint64_t before = p->sc->streams.flow_out.used;
    size_t i = pair_ask(p, size);
    until_flushed(p, i);
    pair_run(p, 5000); /* copies leave, none is acknowledged yet */
    const xl_stream *s = xl_conn_stream(p->sc, p->request[i].id);
    assert_non_null(s);
    assert_true(p->sc->stats.reinjected_bytes > 0);
    assert_int_equal(size, s->send_flow.used);
    assert_int_equal(before + size, p->sc->streams.flow_out.used);
    assert_true(pair_finish(p, i, 5000000) != UINT64_MAX);
    assert_int_equal(before + size, p->sc->streams.flow_out.used);
    assert_int_equal(before + size, p->cc->streams.flow_in.received);
}

/* dark_link: the link, of the originals or of the copies, whose packets are lost once all is sent. */
static void one_of_two_arrives(size_t dark_link) {
    pair p;
    two_paths(&p, 73, 10000, 25000, "stream");
    p.server_config.scheme.reinjection_unconditional = true;
    start(&p);
    size_t i = pair_ask(&p, 18 * PACKET);
    until_flushed(&p, i);
    if (dark_link == 1)
        lose_newest(&p, 1, 6);
    pair_run(&p, 1000);
    p.link[dark_link].dark[1] = true;
    assert_true(pair_finish(&p, i, 5000000) != UINT64_MAX);
    const xl_stream *s = xl_conn_stream(p.sc, p.request[i].id);
    pair_run(&p, 100000); /* acknowledgements arrive, well before a probe timeout of the dark path */
    s = xl_conn_stream(p.sc, p.request[i].id);
    assert_true(!s || xl_send_is_done(&s->send));
    pair_run(&p, 3000000); /* lost packets are declared lost, but not sent again */
    assert_int_equal(0, p.sc->stats.retransmitted_bytes);
    assert_true(p.sc->stats.reinjected_bytes > 0);
    pair_free(&p);
}

TEST(an_acknowledgement_of_either_copy_settles_both) {
    one_of_two_arrives(1); /* the copies arrive */
    one_of_two_arrives(0); /* the originals arrive */
}

/* Returns the most copies of one packet, and checks that no path carried two of them. Nothing comes back once all is
 * sent. */
static uint64_t most_copies(uint8_t allowed, size_t paths) {
    pair p;
    pair_init(&p, 74, paths, 10000);
    pair_multipath(&p, "minrtt", "stream");
    pair_capture_qlog(&p);
    p.server_config.scheme.reinjection_unconditional = true;
    p.server_config.scheme.max_reinjections = allowed;
    for (size_t i = 1; i < paths; i++)
        pair_delay(&p.link[i], 10000 + 150000 * i);
    start(&p);
    size_t i = pair_ask(&p, 8 * PACKET);
    until_flushed(&p, i);
    for (size_t k = 0; k < paths; k++)
        p.link[k].dark[0] = true;
    pair_run(&p, 60000); /* before any probe timeout */
    json_t *records = read_log(&p);
    uint64_t copies[8] = {0}, most = 0;
    unsigned carried[8] = {0};
    for (size_t k = 0; k < json_array_size(records); k++) {
        const json_t *d = data_of(json_array_get(records, k));
        if (!is_event(json_array_get(records, k), "xlink:reinjection") || whole(d, "stream_id") != p.request[i].id)
            continue;
        size_t slot = (size_t)(whole(d, "offset") / PACKET);
        assert_true(slot < 8);
        assert_true(whole(d, "from_path") != whole(d, "to_path"));
        assert_false(carried[slot] & 1u << whole(d, "to_path"));
        carried[slot] |= 1u << whole(d, "to_path");
        assert_int_equal(++copies[slot], whole(d, "copy"));
        most = copies[slot] > most ? copies[slot] : most;
    }
    if (allowed == 1)
        assert_string_equal("all copied", text(last_event(records, "xlink:reinjection_refused"), "why"));
    json_decref(records);
    pair_free(&p);
    return most;
}

TEST(a_packet_is_copied_at_most_once_unless_asked) {
    assert_int_equal(1, most_copies(1, 3));
    assert_int_equal(2, most_copies(2, 3));
    assert_int_equal(1, most_copies(5, 2)); /* no third path for a second copy */
}

/* Ten packets fill each path's first window. What is in flight on both slow ones is copied in stream order, since the
 * player waits for the first missing byte. */
PAIR_TEST(of_two_paths_the_earlier_data_of_a_stream_is_copied_first) {
    pair_init(p, 75, 3, 10000);
    pair_multipath(p, "minrtt", "stream");
    pair_capture_qlog(p);
    p->server_config.scheme.reinjection_unconditional = true;
    for (size_t i = 1; i < 3; i++)
        pair_delay(&p->link[i], 300000 + 100000 * i);
    start(p);
    size_t i = pair_ask(p, 28 * PACKET);
    pair_finish(p, i, 5000000);
    json_t *records = read_log(p);
    uint64_t copied = 0, end = 0;
    unsigned from = 0;
    for (size_t k = 0; k < json_array_size(records); k++) {
        const json_t *d = data_of(json_array_get(records, k));
        if (!is_event(json_array_get(records, k), "xlink:reinjection") || whole(d, "stream_id") != p->request[i].id ||
            whole(d, "to_path") != 0)
            continue;
        assert_true(whole(d, "offset") >= end);
        end = whole(d, "offset") + whole(d, "length");
        from |= 1u << whole(d, "from_path");
        copied++;
    }
    assert_true(copied >= 16);
    assert_int_equal(1u << 1 | 1u << 2, from);
    json_decref(records);
}

/* ---- Cost ---- */

static unsigned times_asked;

static xl_reinjection_scope count_and_copy_nothing(const xl_reinjection_view *view) {
    (void)view;
    times_asked++;
    return XL_REINJECT_NOTHING;
}

/* A stream with plenty to send fills each packet alone. One choice is made when the pacer holds a packet back, and one
 * when it is sent; the choice that finds the path is also the packet's content. */
PAIR_TEST(what_goes_into_a_packet_is_chosen_once) {
    const xl_reinjection_ops counting = {.name = "counting", .scope = count_and_copy_nothing};
    two_paths(p, 79, 10000, 60000, "stream");
    start(p);
    p->sc->reinjection = &counting;
    times_asked = 0;
    size_t i = pair_ask(p, 500 * PACKET);
    uint64_t before = pair_server_path(p, 0).packets_sent + pair_server_path(p, 1).packets_sent;
    until_flushed(p, i);
    uint64_t packets = pair_server_path(p, 0).packets_sent + pair_server_path(p, 1).packets_sent - before;
    assert_true(packets >= 400);
    assert_true(times_asked < 2 * packets + packets / 4);
    p->sc->reinjection = &xl_reinjection_none;
}

/* Returns the packets examined per decision with in_flight packets in flight on the slow path. */
static double steps_a_decision(size_t in_flight, const char *mode, bool unconditional) {
    pair p;
    two_paths(&p, 77, 10000, 300000, mode);
    p.server_config.scheme.reinjection_unconditional = unconditional;
    p.client_config.limits.max_data = p.client_config.limits.max_stream_data = 64 << 20;
    p.server_config.limits.send_buffer_bytes = 64 << 20;
    start(&p);
    /* A short queue keeps the fast path's window small; the slow path's grows until it holds enough. */
    p.link[0].bytes_per_s[1] = 1250000;
    p.link[0].queue_us = 10000;
    size_t i = 0;
    for (int k = 0; k < 40 && p.sc->path[1]->flight.bytes < in_flight * PACKET; k++) {
        i = pair_ask(&p, in_flight * PACKET * 2);
        until_flushed(&p, i);
        if (p.sc->path[1]->flight.bytes >= in_flight * PACKET)
            break;
        pair_finish(&p, i, 30000000);
    }
    assert_true(p.sc->path[1]->flight.bytes >= in_flight * PACKET);
    uint64_t decisions = p.sc->stats.reinjection_decisions, steps = p.sc->stats.reinjection_steps;
    pair_run(&p, 30000);
    decisions = p.sc->stats.reinjection_decisions - decisions;
    steps = p.sc->stats.reinjection_steps - steps;
    assert_true(decisions >= 5);
    pair_free(&p);
    return (double)steps / (double)decisions;
}

TEST(a_decision_costs_the_same_whatever_is_in_flight) {
    for (int unconditional = 0; unconditional < 2; unconditional++) {
        double few = steps_a_decision(30, "stream", unconditional);
        double many = steps_a_decision(1500, "stream", unconditional);
        print_message("copy_rule %s: %.1f packets examined for a decision with 30 in flight, %.1f with 1500\n",
                      unconditional ? "always" : "pays", few, many);
        /* Only the two ends of a queue are examined, and a settled packet leaves it once. */
        assert_true(few <= 4 && many <= 4);
    }
}

TEST_MAIN(NULL, NULL)
