/* Changes of a link's settings at run time, its counters, and its flow hash. */
#include <stdbool.h>

#include "emulator/link/testing/bench.h"
#include "emulator/link/flow.h"

#define TENS "10\n20\n30\n40\n50\n60\n70\n80\n90\n100\n"

/* Packets whose delay ended before the change have the old loss, even if the link was not advanced in between. */
TEST(a_new_loss_begins_now) {
    link_bench *b = bench_new("1\n", (link_config){.delay_us = 10 * MS});
    bench_send(b, 0, 1, 1504, 0);
    bench_send(b, 0, 2, 1504, 15 * MS);
    CHANGE(b->link, 20 * MS, .has_loss = true, .loss = (link_loss){.good = 1.0});
    BENCH_EXPECT(b, 50 * MS, {1, 11 * MS});
    assert_int_equal(link_get_stats(b->link).random_losses, 1);
    bench_free(b);
}

TEST(a_new_model_of_losses_begins_in_the_good_state) {
    link_bench *b = bench_new("1\n", (link_config){.loss = {.p = 1.0, .bad = 1.0}});
    bench_send(b, 0, 1, 1504, 0); /* in the bad state from now on: r is 0 */
    CHANGE(b->link, 5 * MS, .has_loss = true, .loss = (link_loss){.bad = 1.0});
    bench_send(b, 0, 2, 1504, 5 * MS);
    BENCH_EXPECT(b, 50 * MS, {2, 6 * MS});
    bench_free(b);
}

TEST(opportunities_are_counted_over_a_change_of_trace) {
    link_bench *b = bench_new(TENS, (link_config){.start_offset_ms = 25});
    link_advance(b->link, 30 * MS);
    assert_int_equal(link_get_stats(b->link).opportunities, 3); /* at 30, 40, 50 of the trace */
    CHANGE(b->link, 30 * MS, .trace = &b->trace);
    assert_int_equal(link_get_stats(b->link).opportunities, 3);
    link_advance(b->link, 50 * MS);
    assert_int_equal(link_get_stats(b->link).opportunities, 5);
    bench_free(b);
}

/* A packet that waits for a late driver would have been in the queue a delay later. */
TEST(missed_opportunities_are_those_a_delay_later) {
    link_bench *b = bench_new("10\n20\n21\n22\n30\n", (link_config){.delay_us = 10 * MS});
    link_count_missed(b->link, 5 * MS, 10 * MS); /* in the queue from 15 to 20 ms */
    assert_int_equal(link_get_stats(b->link).missed, 1);
    link_count_missed(b->link, 10 * MS, 13 * MS);
    assert_int_equal(link_get_stats(b->link).missed, 3);
    bench_free(b);
}

/* Rates that change before an opportunity is complete: 1203200 bps have one every 10 ms, half of that every 20 ms. */
TEST(what_has_passed_of_an_opportunity_counts_at_the_next_rate) {
    link_bench *b = bench_new("1203200bps", (link_config){.start_offset_ms = 4});
    bench_send_many(b, 1, 5, 1504, 0);
    CHANGE(b->link, 4 * MS, .rate_bps = 601600); /* 8 ms of 10, so 4 of 20 are left */
    BENCH_EXPECT(b, 10 * MS, {1, 8 * MS});
    CHANGE(b->link, 13 * MS, .rate_bps = 601600);  /* no change */
    CHANGE(b->link, 18 * MS, .rate_bps = 1203200); /* half has passed, so 5 ms of 10 are left */
    BENCH_EXPECT(b, 33 * MS, {2, 23 * MS}, {3, 33 * MS});
    assert_int_equal(link_get_stats(b->link).opportunities, 3);
    CHANGE(b->link, 38 * MS, .trace = &b->trace); /* trace time 0 */
    BENCH_EXPECT(b, 50 * MS, {4, 48 * MS});
    bench_free(b);
}

/* 2.0 and 2.2 Mbps alternate every ms; an opportunity takes 5 to 6 ms. */
TEST(rates_that_change_faster_than_opportunities_come_carry_their_mean) {
    link_bench *b = bench_new("1gbps", (link_config){0});
    CHANGE(b->link, 0, .rate_bps = 2200000);
    uint64_t before = link_get_stats(b->link).opportunities;
    for (uint64_t ms = 0; ms < 10000; ms++)
        CHANGE(b->link, ms * MS, .rate_bps = ms % 2 ? 2200000 : 2000000);
    link_advance(b->link, 10 * S);
    assert_in_range(link_get_stats(b->link).opportunities - before, 1744, 1746); /* 2.1 Mbps: 1745.3 */
    bench_free(b);
}

TEST(what_waits_and_how_long_the_last_one_did_is_told) {
    link_bench *b = bench_new(TENS, (link_config){0});
    bench_send_many(b, 1, 3, 1504, 4 * MS);
    BENCH_EXPECT(b, 10 * MS, {1, 10 * MS});
    link_stats s = link_get_stats(b->link);
    assert_int_equal(s.queueing_us, 6 * MS);
    assert_int_equal(s.queued_packets, 2);
    assert_int_equal(s.queued_bytes, 2 * 1504);
    assert_int_equal(s.departed_bytes, 1504);
    link_refuse(b->link, 100);
    link_refuse(b->link, 100);
    s = link_get_stats(b->link);
    assert_int_equal(s.memory_drops, 2);
    assert_int_equal(s.arrived_packets, 5);
    assert_int_equal(s.arrived_bytes, 3 * 1504 + 2 * 104);
    bench_check_balance(b);
    bench_free(b);
}

TEST(a_new_mtu_loses_what_is_larger_from_now_on) {
    link_bench *b = bench_new("1\n", (link_config){.delay_us = 10 * MS});
    bench_send(b, 0, 1, 1504, 0);
    CHANGE(b->link, 5 * MS, .mtu_bytes = 1280);
    bench_send(b, 0, 2, 1285, 5 * MS);
    bench_send(b, 0, 3, 1284, 5 * MS);
    CHANGE(b->link, 6 * MS, .mtu_bytes = LINK_MTU_MOST);
    bench_send(b, 0, 4, 1504, 6 * MS);
    BENCH_EXPECT(b, 50 * MS, {1, 11 * MS}, {3, 16 * MS}, {4, 17 * MS});
    assert_int_equal(link_get_stats(b->link).oversize_drops, 1);
    bench_check_balance(b);
    bench_free(b);
}

TEST(reordering_and_duplicates_begin_and_end_now) {
    link_bench *b = bench_new("1\n", (link_config){.delay_us = 10 * MS});
    bench_send(b, 0, 1, 1504, 0);
    CHANGE(b->link, 1 * MS, .has_reorder = true, .reorder = 1.0, .reorder_us = 5 * MS);
    bench_send(b, 0, 2, 1504, 1 * MS);
    CHANGE(b->link, 2 * MS, .has_reorder = true, .reorder = 0.0, .reorder_us = 0);
    bench_send(b, 0, 3, 1504, 2 * MS);
    CHANGE(b->link, 14 * MS, .has_duplicate = true, .duplicate = 1.0); /* the delay of 1 and 3 has ended */
    CHANGE(b->link, 17 * MS, .has_duplicate = true, .duplicate = 0.0);
    bench_send(b, 0, 4, 1504, 17 * MS);
    BENCH_EXPECT(b, 50 * MS, {1, 11 * MS}, {3, 13 * MS}, {2, 17 * MS}, {2, 18 * MS}, {4, 28 * MS});
    assert_int_equal(link_get_stats(b->link).reordered, 1);
    bench_check_balance(b);
    bench_free(b);
}

/* Sends 200 packets, interval_us apart, through a delay with jitter. at[n]: end of the delay; twice[n]: duplicated. */
static void arrivals(uint64_t seed, uint64_t interval_us, uint64_t at[200], bool twice[200]) {
    link_bench *b =
        bench_new("1gbps", (link_config){.delay_us = 5 * MS, .jitter_us = 5 * MS, .duplicate = 0.5, .seed = seed});
    memset(twice, 0, 200 * sizeof twice[0]);
    memset(at, 0, 200 * sizeof at[0]);
    for (uint32_t n = 0; n < 200; n++)
        bench_send(b, 0, n, 104, (n + 1) * interval_us);
    link_advance(b->link, 200 * interval_us + S);
    for (link_packet *p = link_pull(b->link); p; p = link_pull(b->link)) {
        uint32_t n = numbered_number(p);
        twice[n] = at[n] != 0;
        at[n] = p->arrival_us;
        link_departed(b->link, p, p->due_us);
    }
    bench_free(b);
}

TEST(jitter_and_duplicates_follow_the_seed) {
    uint64_t first[200], again[200], other[200];
    bool first_twice[200], again_twice[200], other_twice[200];
    arrivals(1, 20 * MS, first, first_twice);
    arrivals(1, 20 * MS, again, again_twice);
    arrivals(2, 20 * MS, other, other_twice);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_equal(first_twice, again_twice, sizeof first_twice);
    assert_memory_not_equal(first, other, sizeof first);
    assert_memory_not_equal(first_twice, other_twice, sizeof first_twice);
}

TEST(nobody_comes_out_of_the_delay_before_who_went_in_first) {
    uint64_t at[200];
    bool twice[200];
    arrivals(3, 1 * MS, at, twice);
    for (size_t n = 1; n < 200; n++)
        assert_true(at[n] >= at[n - 1]);
}

TEST(the_start_offset_moves_a_delay_trace_too) {
    link_step steps[] = {{0, 50 * MS}, {10 * MS, 5 * MS}};
    link_steps delays = {.steps = steps, .count = 2};
    link_bench *b = bench_new("1\n", (link_config){.delay_trace = &delays, .hold_delay = true, .start_offset_ms = 10});
    bench_send(b, 0, 1, 1504, 0);
    BENCH_EXPECT(b, 100 * MS, {1, 6 * MS});
    bench_free(b);
}

static uint64_t hash(uint8_t *packet, size_t byte, uint8_t change) {
    packet[byte] ^= change;
    uint64_t h = link_flow_hash(packet, 60, 7);
    packet[byte] ^= change;
    return h;
}

/* Every byte of the addresses counts, and the protocol, and the ports if the protocol has ports. */
TEST(a_flow_is_its_five_tuple) {
    static const uint8_t with_ports[] = {6, 17, 33, 132, 136}, without[] = {1, 47, 50, 58};
    for (int version = 4; version <= 6; version += 2) {
        uint8_t packet[60] = {version == 4 ? 0x45 : 0x60};
        size_t protocol = version == 4 ? 9 : 6, from = version == 4 ? 12 : 8, ports = version == 4 ? 20 : 40;
        packet[protocol] = 17;
        uint64_t h = hash(packet, 0, 0);
        for (size_t i = from; i < ports + 4; i++)
            assert_true(hash(packet, i, 1) != h);
        assert_true(hash(packet, ports + 4, 1) == h);
        for (size_t i = 0; i < sizeof with_ports; i++) {
            packet[protocol] = with_ports[i];
            assert_true(hash(packet, ports + 3, 1) != hash(packet, 0, 0));
            assert_true(with_ports[i] == 17 || hash(packet, 0, 0) != h);
        }
        for (size_t i = 0; i < sizeof without; i++) {
            packet[protocol] = without[i];
            assert_true(hash(packet, ports + 3, 1) == hash(packet, 0, 0));
        }
    }
}

/* Only the first fragment has ports, so the ports of fragments are left out. */
TEST(fragments_of_a_packet_stay_in_one_flow) {
    static const uint8_t offsets[][2] = {{0x20, 0}, {0x20, 1}, {0, 1}, {0x01, 0}};
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        uint8_t packet[60] = {[0] = 0x45, [6] = offsets[i][0], [7] = offsets[i][1], [9] = 17};
        assert_true(hash(packet, 23, 1) == hash(packet, 0, 0));
    }
    uint8_t whole[60] = {[0] = 0x45, [6] = 0x40, [9] = 17}; /* "don't fragment" */
    assert_true(hash(whole, 23, 1) != hash(whole, 0, 0));
}

TEST_MAIN(NULL, NULL)
