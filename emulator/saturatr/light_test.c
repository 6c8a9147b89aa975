#include <stdio.h>
#include <string.h>

#include "tests/unit.h"
#include "emulator/link/light.h"
#include "emulator/link/rng.h"
#include "emulator/saturatr/light.h"

#define SECOND_US 1000000

typedef struct {
    sat_light light;
    char text[8192]; /* of the trace */
    size_t length;
} recording;

static void write_row(void *user, const sat_light_row *row) {
    recording *r = user;
    size_t room = sizeof r->text - r->length;
    r->length += (size_t)snprintf(r->text + r->length, room, "%u %u", row->at_ms, row->delay_ms);
    for (uint32_t i = 0; i < row->count; i++)
        r->length += (size_t)snprintf(r->text + r->length, sizeof r->text - r->length, " %u", row->offsets_ms[i]);
    r->length += (size_t)snprintf(r->text + r->length, sizeof r->text - r->length, "\n");
    assert_true(r->length < sizeof r->text);
}

static void start(recording *r, uint32_t packets, uint64_t trains) {
    memset(r, 0, sizeof *r);
    assert_true(sat_light_init(&r->light, packets, packets * trains, SECOND_US, write_row, r));
}

static void add(recording *r, uint64_t packet, int64_t sent_us, int64_t received_us) {
    sat_light_add(&r->light, packet, sent_us, received_us);
}

/* Ends the recording and checks its rows. */
static void assert_rows(recording *r, const char *wanted) {
    sat_light_finish(&r->light);
    assert_string_equal(r->text, wanted);
}

static void release(recording *r) {
    sat_light_free(&r->light);
}

#define LIGHT_TEST(name) TEST_OF(name, recording, r, release)

LIGHT_TEST(a_row_has_the_one_way_delay_and_the_offsets_of_a_train) {
    start(r, 4, 2);
    add(r, 0, 0, 40200);
    add(r, 1, 5, 40230);
    add(r, 2, 9, 43100);
    add(r, 3, 12, 43800);
    for (uint64_t i = 0; i < 4; i++)
        add(r, 4 + i, 100900, 100900 + 39600 + (int64_t)i * 1000);
    assert_rows(r, "0 40 0 0 3 4\n100 40 0 1 2 3\n");
    assert_int_equal(r->light.rows, 2);
    assert_int_equal(r->light.least_delay_us, 39600);
    assert_int_equal(sat_light_lost_trains(&r->light), 0);
    assert_int_equal(sat_light_lost_packets(&r->light), 0);
}

LIGHT_TEST(a_lost_packet_has_no_offset) {
    start(r, 4, 1);
    add(r, 0, 0, 40000);
    add(r, 1, 0, 41000);
    add(r, 3, 0, 43000);
    assert_rows(r, "0 40 0 1 3\n");
    assert_int_equal(sat_light_lost_packets(&r->light), 1);
    assert_int_equal(sat_light_lost_trains(&r->light), 0);
}

LIGHT_TEST(a_train_without_its_first_packet_has_no_row_and_is_counted) {
    start(r, 2, 4); /* the whole third train is lost */
    add(r, 0, 0, 40000);
    add(r, 1, 0, 40000);
    add(r, 3, 100000, 140000);
    add(r, 6, 300000, 345000);
    add(r, 7, 300000, 345000);
    assert_rows(r, "0 40 0 0\n300 45 0 0\n");
    assert_int_equal(r->light.trains, 4);
    assert_int_equal(sat_light_lost_trains(&r->light), 2);
    assert_int_equal(sat_light_lost_packets(&r->light), 3);
}

LIGHT_TEST(order_within_and_between_trains_does_not_matter) {
    start(r, 3, 2);
    add(r, 1, 3, 39000); /* before the first packet: its offset is 0 */
    add(r, 0, 0, 40000);
    add(r, 3, 20000, 60000);
    add(r, 5, 20000, 62000);
    add(r, 4, 20000, 65000);
    add(r, 2, 0, 70000);
    add(r, 2, 0, 90000); /* a copy */
    assert_rows(r, "0 40 0 0 30\n20 40 0 2 5\n");
    assert_int_equal(sat_light_lost_packets(&r->light), 0);
}

LIGHT_TEST(a_packet_that_64_trains_overtook_is_lost) {
    start(r, 1, 70);
    add(r, 0, 0, 10000);
    for (uint64_t i = 2; i < 70; i++)
        add(r, i, (int64_t)i * 5000, (int64_t)i * 5000 + 10000);
    add(r, 1, 5000, 400000);
    sat_light_finish(&r->light);
    assert_int_equal(r->light.rows, 69);
    assert_int_equal(r->light.late, 1);
    assert_int_equal(sat_light_lost_trains(&r->light), 1);
}

LIGHT_TEST(trains_outside_of_the_recording_are_left_out) {
    start(r, 1, 4);
    add(r, 0, -1, 30000);
    add(r, 1, 0, 40000);
    add(r, 2, SECOND_US - 1, SECOND_US + 39999); /* sent within the recording; arrives after its end */
    add(r, 3, SECOND_US, SECOND_US + 40000);
    add(r, 4, 500000, 540000); /* was never sent */
    assert_rows(r, "0 40 0\n999 40 0\n");
    assert_int_equal(r->light.trains, 2);
    assert_int_equal(sat_light_lost_trains(&r->light), 0);
}

LIGHT_TEST(impossible_times_make_no_row) {
    start(r, 2, 6);
    add(r, 0, 100000, 99500);  /* the clocks' error */
    add(r, 2, 100500, 140000); /* a second train in this ms */
    add(r, 4, 90000, 140000);  /* sent before its predecessor */
    add(r, 6, 200000, INT64_MAX);
    add(r, 8, 300000, INT64_MIN + 1);
    add(r, 10, 400000, 440000);
    add(r, 11, 400000, INT64_MAX);
    assert_rows(r, "100 0 0\n400 40 0\n");
    assert_int_equal(r->light.negative_delays, 1);
    assert_int_equal(r->light.left_out, 4);
    assert_int_equal(sat_light_lost_trains(&r->light), 0);
}

/* Two packets at once, then one every 2 ms, and one every 1 ms after packet 8 (from 0). */
LIGHT_TEST(finds_from_which_packet_on_the_spacing_is_that_of_the_end) {
    double spacing_us;
    uint32_t from;
    start(r, 24, 3);
    for (uint64_t train = 0; train < 3; train++) {
        int64_t sent = (int64_t)train * 100000, at = sent + 40000;
        for (uint64_t i = 0; i < 24; i++) {
            at += i < 2 ? 0 : i < 9 ? 2000 : 1000;
            add(r, 24 * train + i, sent, at);
        }
    }
    sat_light_finish(&r->light);
    assert_true(sat_light_heavy(&r->light, &spacing_us, &from));
    assert_int_equal((int)(spacing_us + 0.5), 1000);
    assert_int_equal(from, 8); /* the next six take 6 ms, those after packet 7 take 7 ms */
}

LIGHT_TEST(tells_nothing_of_heavy_load_from_what_has_none) {
    double spacing_us;
    uint32_t from;
    start(r, 7, 1);
    for (uint64_t i = 0; i < 7; i++)
        add(r, i, 0, 40000 + (int64_t)i * 1000);
    sat_light_finish(&r->light);
    assert_false(sat_light_heavy(&r->light, &spacing_us, &from)); /* the train is too short */
    release(r);
    start(r, 8, 1);
    for (uint64_t i = 0; i < 7; i++)
        add(r, i, 0, 40000 + (int64_t)i * 1000);
    sat_light_finish(&r->light);
    assert_false(sat_light_heavy(&r->light, &spacing_us, &from)); /* its last packet was always lost */
    release(r);
    start(r, 8, 1);
    for (uint64_t i = 0; i < 8; i++)
        add(r, i, 0, 40000);
    sat_light_finish(&r->light);
    assert_false(sat_light_heavy(&r->light, &spacing_us, &from)); /* all at once */
}

/* For any data from a peer, links can read the trace, and the figures are consistent. */
TEST(any_arrivals_make_a_trace_that_links_read) {
    link_rng rng = {.state = 5};
    for (int round = 0; round < 2000; round++) {
        recording r;
        char error[256];
        uint32_t packets = 1 + (uint32_t)(link_rng_next(&rng) % 10);
        start(&r, packets, 1 + link_rng_next(&rng) % 100);
        for (int i = 0; i < 100; i++) {
            uint64_t any = link_rng_next(&rng), seq = any % 1500;
            int64_t sent = (int64_t)(any >> 20) % 1100000;
            bool wild = any % 7 == 0;
            add(&r, wild ? link_rng_next(&rng) : seq, wild ? (int64_t)link_rng_next(&rng) : sent,
                any % 11 == 0 ? (int64_t)link_rng_next(&rng) : sent + (int64_t)(any >> 50));
        }
        sat_light_finish(&r.light);
        assert_true(r.light.rows + r.light.left_out <= r.light.trains && r.light.trains <= r.light.trains_end);
        assert_true(r.light.arrived <= r.light.trains * packets);
        link_light_trace trace;
        r.length += (size_t)snprintf(r.text + r.length, sizeof r.text - r.length, "1000 %u\n", r.light.last_delay_ms);
        assert_true(link_text_parse(&link_light_trace_form, &trace, "trace", r.text, r.length, error, sizeof error));
        assert_int_equal(trace.count, r.light.rows + 1);
        link_light_trace_free(&trace);
        release(&r);
    }
}

TEST_MAIN(NULL, NULL)
