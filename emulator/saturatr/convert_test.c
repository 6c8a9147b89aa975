#include "tests/unit.h"
#include "emulator/link/rng.h"
#include "emulator/saturatr/convert.h"

static uint32_t add(sat_converter *c, int64_t t_us, uint32_t ip_bytes, uint32_t *at_ms) {
    return sat_converter_add(c, t_us, ip_bytes, SAT_IDLE_QUEUE_US, at_ms);
}

TEST(a_full_packet_is_an_opportunity_at_its_millisecond) {
    sat_converter c;
    uint32_t at_ms;
    sat_converter_init(&c, 1000000);
    assert_int_equal(add(&c, 0, 1500, &at_ms), 1);
    assert_int_equal(at_ms, 0);
    assert_int_equal(add(&c, 7999, 1500, &at_ms), 1);
    assert_int_equal(at_ms, 7);
    assert_int_equal(c.bytes, 3008);
}

TEST(small_packets_add_up) {
    sat_converter c;
    uint32_t at_ms = 0;
    sat_converter_init(&c, 1000000);
    /* 100 + 4 bytes each: the 15th completes 1504, and 56 are left for the next. */
    for (int i = 0; i < 14; i++)
        assert_int_equal(add(&c, i * 1000, 100, &at_ms), 0);
    assert_int_equal(add(&c, 20000, 100, &at_ms), 1);
    assert_int_equal(at_ms, 20);
    assert_int_equal(c.carry_bytes, 15 * 104 - 1504);
    assert_int_equal(add(&c, 30000, 9000, &at_ms), 6); /* coalesced packets: several opportunities at once */
}

TEST(leaves_out_what_is_not_of_the_recording) {
    sat_converter c;
    uint32_t at_ms;
    sat_converter_init(&c, 1000000);
    assert_int_equal(add(&c, -1, 1500, &at_ms), 0);
    assert_int_equal(add(&c, INT64_MIN, 1500, &at_ms), 0);
    assert_int_equal(add(&c, 1000000, 1500, &at_ms), 0);
    assert_int_equal(add(&c, 999999, 1500, &at_ms), 1);
    assert_int_equal(at_ms, 999);
    assert_int_equal(c.packets, 1);
}

TEST(closes_the_period_with_its_last_line) {
    sat_converter c;
    uint32_t at_ms;
    sat_converter_init(&c, 2500000);
    add(&c, 1000, 1500, &at_ms);
    assert_int_equal(sat_converter_finish(&c), 2500);
    assert_int_equal(c.opportunities, 2);
}

TEST(never_goes_back_in_time) {
    sat_converter c;
    uint32_t at_ms;
    sat_converter_init(&c, 1000000);
    add(&c, 50000, 1500, &at_ms);
    assert_int_equal(add(&c, 40000, 1500, &at_ms), 1);
    assert_int_equal(at_ms, 50);
    assert_int_equal(c.disordered, 1);
}

TEST(counts_the_time_in_which_the_link_was_not_full) {
    sat_converter c;
    uint32_t at_ms;
    sat_converter_init(&c, 1000000);
    sat_converter_add(&c, 10000, 1500, SAT_IDLE_QUEUE_US - 1, &at_ms);
    sat_converter_add(&c, 20000, 1500, 0, &at_ms);
    sat_converter_add(&c, 150000, 1500, SAT_IDLE_QUEUE_US, &at_ms);
    sat_converter_add(&c, 250000, 1500, 0, &at_ms);
    assert_int_equal(c.idle_bins, 2);
}

TEST(no_byte_is_lost_or_made) {
    link_rng rng = {.state = 11};
    sat_converter c;
    uint64_t opportunities = 0;
    uint32_t last_ms = 0;
    sat_converter_init(&c, 60000000);
    for (int64_t t = 0; t < 60000000; t += (int64_t)(link_rng_next(&rng) % 3000)) {
        uint32_t at_ms = last_ms;
        opportunities += add(&c, t, (uint32_t)(28 + link_rng_next(&rng) % 1473), &at_ms);
        assert_true(at_ms >= last_ms);
        last_ms = at_ms;
        assert_int_equal(opportunities * 1504 + c.carry_bytes, c.bytes);
    }
    assert_int_equal(opportunities, c.opportunities);
}

TEST_MAIN(NULL, NULL)
