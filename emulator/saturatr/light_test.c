#include <stdio.h>
#include <string.h>

#include "tests/unit.h"
#include "emulator/link/light.h"
#include "emulator/link/rng.h"
#include "emulator/saturatr/light.h"

#define SECOND_US 1000000

typedef struct {
    char text[8192]; /* the trace */
    size_t length;
} written;

static void write_row(void *user, const sat_light_row *row) {
    written *w = user;
    size_t room = sizeof w->text - w->length;
    w->length += (size_t)snprintf(w->text + w->length, room, "%u %u", row->at_ms, row->delay_ms);
    for (uint32_t i = 0; i < row->count; i++)
        w->length += (size_t)snprintf(w->text + w->length, sizeof w->text - w->length, " %u", row->offsets_ms[i]);
    w->length += (size_t)snprintf(w->text + w->length, sizeof w->text - w->length, "\n");
    assert_true(w->length < sizeof w->text);
}

static void start(sat_light *light, written *w, uint32_t packets, uint64_t trains) {
    memset(w, 0, sizeof *w);
    assert_true(sat_light_init(light, packets, packets * trains, SECOND_US, write_row, w));
}

/* Ends the recording and checks its rows. */
static void assert_rows(sat_light *light, const written *w, const char *wanted) {
    sat_light_finish(light);
    assert_string_equal(w->text, wanted);
}

TEST(a_row_has_the_one_way_delay_and_the_offsets_of_a_train) {
    sat_light light;
    written w;
    start(&light, &w, 4, 2);
    sat_light_add(&light, 0, 0, 40200);
    sat_light_add(&light, 1, 5, 40230);
    sat_light_add(&light, 2, 9, 43100);
    sat_light_add(&light, 3, 12, 43800);
    for (uint64_t i = 0; i < 4; i++)
        sat_light_add(&light, 4 + i, 100900, 100900 + 39600 + (int64_t)i * 1000);
    assert_rows(&light, &w, "0 40 0 0 3 4\n100 40 0 1 2 3\n");
    assert_int_equal(light.rows, 2);
    assert_int_equal(light.least_delay_us, 39600);
    assert_int_equal(sat_light_lost_trains(&light), 0);
    assert_int_equal(sat_light_lost_packets(&light), 0);
    sat_light_free(&light);
}

TEST(a_lost_packet_has_no_offset) {
    sat_light light;
    written w;
    start(&light, &w, 4, 1);
    sat_light_add(&light, 0, 0, 40000);
    sat_light_add(&light, 1, 0, 41000);
    sat_light_add(&light, 3, 0, 43000);
    assert_rows(&light, &w, "0 40 0 1 3\n");
    assert_int_equal(sat_light_lost_packets(&light), 1);
    assert_int_equal(sat_light_lost_trains(&light), 0);
    sat_light_free(&light);
}

TEST(a_train_without_its_first_packet_has_no_row_and_is_counted) {
    sat_light light;
    written w;
    start(&light, &w, 2, 4); /* the third train is lost as a whole */
    sat_light_add(&light, 0, 0, 40000);
    sat_light_add(&light, 1, 0, 40000);
    sat_light_add(&light, 3, 100000, 140000);
    sat_light_add(&light, 6, 300000, 345000);
    sat_light_add(&light, 7, 300000, 345000);
    assert_rows(&light, &w, "0 40 0 0\n300 45 0 0\n");
    assert_int_equal(light.trains, 4);
    assert_int_equal(sat_light_lost_trains(&light), 2);
    assert_int_equal(sat_light_lost_packets(&light), 3);
    sat_light_free(&light);
}

TEST(order_within_and_between_trains_does_not_matter) {
    sat_light light;
    written w;
    start(&light, &w, 3, 2);
    sat_light_add(&light, 1, 3, 39000); /* before the first one: its offset is 0 */
    sat_light_add(&light, 0, 0, 40000);
    sat_light_add(&light, 3, 20000, 60000);
    sat_light_add(&light, 5, 20000, 62000);
    sat_light_add(&light, 4, 20000, 65000);
    sat_light_add(&light, 2, 0, 70000);
    sat_light_add(&light, 2, 0, 90000); /* a copy */
    assert_rows(&light, &w, "0 40 0 0 30\n20 40 0 2 5\n");
    assert_int_equal(sat_light_lost_packets(&light), 0);
    sat_light_free(&light);
}

TEST(a_packet_that_64_trains_overtook_is_lost) {
    sat_light light;
    written w;
    start(&light, &w, 1, 70);
    sat_light_add(&light, 0, 0, 10000);
    for (uint64_t i = 2; i < 70; i++)
        sat_light_add(&light, i, (int64_t)i * 5000, (int64_t)i * 5000 + 10000);
    sat_light_add(&light, 1, 5000, 400000);
    sat_light_finish(&light);
    assert_int_equal(light.rows, 69);
    assert_int_equal(light.late, 1);
    assert_int_equal(sat_light_lost_trains(&light), 1);
    sat_light_free(&light);
}

TEST(trains_outside_of_the_recording_are_left_out) {
    sat_light light;
    written w;
    start(&light, &w, 1, 4);
    sat_light_add(&light, 0, -1, 30000);
    sat_light_add(&light, 1, 0, 40000);
    sat_light_add(&light, 2, SECOND_US - 1, SECOND_US + 39999); /* sent inside of it, however late it arrives */
    sat_light_add(&light, 3, SECOND_US, SECOND_US + 40000);
    sat_light_add(&light, 4, 500000, 540000); /* was never sent */
    assert_rows(&light, &w, "0 40 0\n999 40 0\n");
    assert_int_equal(light.trains, 2);
    assert_int_equal(sat_light_lost_trains(&light), 0);
    sat_light_free(&light);
}

TEST(impossible_times_make_no_row) {
    sat_light light;
    written w;
    start(&light, &w, 2, 6);
    sat_light_add(&light, 0, 100000, 99500);  /* the clocks' error */
    sat_light_add(&light, 2, 100500, 140000); /* another train in this ms */
    sat_light_add(&light, 4, 90000, 140000);  /* sent before the one before it */
    sat_light_add(&light, 6, 200000, INT64_MAX);
    sat_light_add(&light, 8, 300000, INT64_MIN + 1);
    sat_light_add(&light, 10, 400000, 440000);
    sat_light_add(&light, 11, 400000, INT64_MAX);
    assert_rows(&light, &w, "100 0 0\n400 40 0\n");
    assert_int_equal(light.negative_delays, 1);
    assert_int_equal(light.left_out, 4);
    assert_int_equal(sat_light_lost_trains(&light), 0);
    sat_light_free(&light);
}

/* Two packets at once, then one each 2 ms, then one each 1 ms from the ninth packet on. */
TEST(finds_from_which_packet_on_the_spacing_is_that_of_the_end) {
    sat_light light;
    written w;
    double spacing_us;
    uint32_t from;
    start(&light, &w, 24, 3);
    for (uint64_t train = 0; train < 3; train++) {
        int64_t sent = (int64_t)train * 100000, at = sent + 40000;
        for (uint64_t i = 0; i < 24; i++) {
            at += i < 2 ? 0 : i < 9 ? 2000 : 1000;
            sat_light_add(&light, 24 * train + i, sent, at);
        }
    }
    sat_light_finish(&light);
    assert_true(sat_light_heavy(&light, &spacing_us, &from));
    assert_int_equal((int)(spacing_us + 0.5), 1000);
    assert_int_equal(from, 8); /* the six after it come in 6 ms, those after packet 7 in 7 ms */
    sat_light_free(&light);
}

TEST(tells_nothing_of_heavy_load_from_what_has_none) {
    sat_light light;
    written w;
    double spacing_us;
    uint32_t from;
    start(&light, &w, 7, 1);
    for (uint64_t i = 0; i < 7; i++)
        sat_light_add(&light, i, 0, 40000 + (int64_t)i * 1000);
    sat_light_finish(&light);
    assert_false(sat_light_heavy(&light, &spacing_us, &from)); /* too short */
    sat_light_free(&light);
    start(&light, &w, 8, 1);
    for (uint64_t i = 0; i < 7; i++)
        sat_light_add(&light, i, 0, 40000 + (int64_t)i * 1000);
    sat_light_finish(&light);
    assert_false(sat_light_heavy(&light, &spacing_us, &from)); /* its last packet never arrived */
    sat_light_free(&light);
    start(&light, &w, 8, 1);
    for (uint64_t i = 0; i < 8; i++)
        sat_light_add(&light, i, 0, 40000);
    sat_light_finish(&light);
    assert_false(sat_light_heavy(&light, &spacing_us, &from)); /* all at once */
    sat_light_free(&light);
}

/* Whatever a peer sends, links read the trace, and the figures add up. */
TEST(any_arrivals_make_a_trace_that_links_read) {
    link_rng rng = {.state = 5};
    for (int round = 0; round < 2000; round++) {
        sat_light light;
        written w;
        char error[256];
        uint32_t packets = 1 + (uint32_t)(link_rng_next(&rng) % 10);
        start(&light, &w, packets, 1 + link_rng_next(&rng) % 100);
        for (int i = 0; i < 100; i++) {
            uint64_t any = link_rng_next(&rng), seq = any % 1500;
            int64_t sent = (int64_t)(any >> 20) % 1100000;
            bool wild = any % 7 == 0;
            sat_light_add(&light, wild ? link_rng_next(&rng) : seq, wild ? (int64_t)link_rng_next(&rng) : sent,
                          any % 11 == 0 ? (int64_t)link_rng_next(&rng) : sent + (int64_t)(any >> 50));
        }
        sat_light_finish(&light);
        assert_true(light.rows + light.left_out <= light.trains && light.trains <= light.trains_end);
        assert_true(light.arrived <= light.trains * packets);
        link_light_trace trace;
        w.length += (size_t)snprintf(w.text + w.length, sizeof w.text - w.length, "1000 %u\n", light.last_delay_ms);
        assert_true(link_light_trace_parse(&trace, "trace", w.text, w.length, error, sizeof error));
        assert_int_equal(trace.count, light.rows + 1);
        link_light_trace_free(&trace);
        sat_light_free(&light);
    }
}

TEST_MAIN(NULL, NULL)
