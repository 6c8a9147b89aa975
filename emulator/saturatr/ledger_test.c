
#include "tests/unit.h"
#include "emulator/link/rng.h"
#include "emulator/saturatr/ledger.h"

static void assert_same(const sat_arrival *a, const sat_arrival *b) {
    assert_int_equal(a->received_us, b->received_us);
    assert_int_equal(a->sent_us, b->sent_us);
    assert_int_equal(a->seq, b->seq);
    assert_int_equal(a->ip_bytes, b->ip_bytes);
    assert_int_equal(a->kind, b->kind);
}

static sat_arrival arbitrary(link_rng *rng) {
    unsigned shift = (unsigned)(link_rng_next(rng) % 64); /* small and large numbers alike */
    return (sat_arrival){
        .received_us = link_rng_next(rng) >> shift,
        .sent_us = link_rng_next(rng) >> shift,
        .seq = link_rng_next(rng) >> shift,
        .ip_bytes = (uint32_t)(link_rng_next(rng) % (SAT_MAX_IP_BYTES + 1)),
        .kind = (uint8_t)(link_rng_next(rng) % 3),
    };
}

TEST(gives_back_every_record) {
    link_rng rng = {.state = 7};
    sat_records records;
    sat_records_init(&records, 0);
    for (int i = 0; i < 20000; i++) {
        sat_arrival arrival = arbitrary(&rng);
        assert_true(sat_records_append(&records, &arrival));
    }
    assert_true(records.blocks > 2);
    rng.state = 7;
    sat_cursor cursor;
    sat_arrival read;
    sat_cursor_init(&cursor, &records);
    for (int i = 0; i < 20000; i++) {
        sat_arrival arrival = arbitrary(&rng);
        assert_true(sat_cursor_next(&cursor, &read));
        assert_same(&read, &arrival);
    }
    assert_false(sat_cursor_next(&cursor, &read));
    sat_records_free(&records);
}

TEST(needs_few_bytes_for_a_steady_flow) {
    sat_records records;
    sat_records_init(&records, 0);
    for (uint64_t i = 0; i < 10000; i++) {
        sat_arrival arrival = {
            .received_us = 50000000 + i * 240 + i % 7, .sent_us = 49000000 + i * 239, .seq = i, .ip_bytes = 1500};
        sat_records_append(&records, &arrival);
    }
    assert_true(records.bytes < 10000 * 7);
    sat_records_free(&records);
}

TEST(stops_at_its_limit_and_says_so) {
    sat_records records;
    sat_records_init(&records, 3 * sizeof(sat_block));
    sat_arrival arrival = {.ip_bytes = 1500};
    uint64_t n = 0;
    while (sat_records_append(&records, &arrival)) {
        arrival.received_us += 1000;
        n++;
        assert_true(n < 3 * SAT_BLOCK_BYTES);
    }
    assert_true(records.full);
    assert_int_equal(records.count, n);
    assert_int_equal(records.blocks, 3);
    assert_null(sat_records_block(&records, 10));
    sat_records_free(&records);
}

TEST(survives_any_bytes) {
    link_rng rng = {.state = 3};
    for (int round = 0; round < 2000; round++) {
        sat_records records;
        sat_cursor cursor;
        sat_arrival arrival;
        sat_records_init(&records, 0);
        size_t used = (size_t)(link_rng_next(&rng) % 200);
        uint8_t *data = sat_records_block(&records, used);
        for (size_t i = 0; i < used; i++)
            data[i] = (uint8_t)link_rng_next(&rng);
        sat_cursor_init(&cursor, &records);
        for (size_t n = 0; sat_cursor_next(&cursor, &arrival); n++) {
            assert_true(n < used);
            assert_true(arrival.kind <= SAT_KIND_PROBE && arrival.ip_bytes <= SAT_MAX_IP_BYTES);
        }
        sat_records_free(&records);
    }
    assert_null(sat_records_block(&(sat_records){0}, SAT_BLOCK_BYTES + 1));
}

static sat_arrival data_packet(uint64_t seq, uint64_t sent_us, uint64_t received_us) {
    return (sat_arrival){.seq = seq, .sent_us = sent_us, .received_us = received_us, .ip_bytes = 1500};
}

TEST(acknowledges_the_highest_packet_once_a_ms) {
    sat_ledger ledger;
    sat_ledger_init(&ledger, 0);
    assert_int_equal(sat_ledger_ack_due(&ledger), UINT64_MAX);
    sat_arrival first = data_packet(0, 100, 5100);
    sat_arrival third = data_packet(2, 120, 5140);
    sat_arrival second = data_packet(1, 110, 5150);
    sat_ledger_add(&ledger, &first);
    sat_ledger_add(&ledger, &third);
    assert_int_equal(sat_ledger_lost(&ledger), 1);
    sat_ledger_add(&ledger, &second);
    assert_int_equal(ledger.highest, 2);
    assert_int_equal(ledger.echo_us, 120);
    assert_int_equal(ledger.echo_received_us, 5140);
    assert_int_equal(ledger.received, 3);
    assert_int_equal(ledger.disordered, 1);
    assert_int_equal(sat_ledger_lost(&ledger), 0);
    sat_ledger_acked(&ledger, 6000);
    assert_int_equal(sat_ledger_ack_due(&ledger), UINT64_MAX);
    sat_arrival fourth = data_packet(3, 200, 6200);
    sat_ledger_add(&ledger, &fourth);
    assert_int_equal(sat_ledger_ack_due(&ledger), 7000);
    sat_ledger_free(&ledger);
}

TEST(tells_queueing_from_the_clocks_difference) {
    sat_ledger ledger;
    sat_ledger_init(&ledger, 0);
    /* The sender's clock is ahead, so that packets seem to arrive before they were sent. */
    sat_arrival slow = data_packet(0, 9000000, 1030000);
    sat_arrival fast = data_packet(1, 9001000, 1021000);
    sat_arrival queued = data_packet(2, 9002000, 1092000);
    sat_ledger_add(&ledger, &slow);
    sat_ledger_add(&ledger, &fast);
    assert_int_equal(sat_ledger_queue_us(&ledger), 0);
    sat_ledger_add(&ledger, &queued);
    assert_int_equal(sat_ledger_queue_us(&ledger), 70000);
    sat_ledger_free(&ledger);
}

TEST(records_other_packets_without_acknowledging_them) {
    sat_ledger ledger;
    sat_ledger_init(&ledger, 0);
    sat_arrival probe = {.received_us = 5, .ip_bytes = 100, .kind = SAT_KIND_PROBE};
    sat_ledger_add(&ledger, &probe);
    assert_int_equal(ledger.records.count, 1);
    assert_int_equal(ledger.received, 0);
    assert_int_equal(sat_ledger_ack_due(&ledger), UINT64_MAX);
    sat_ledger_free(&ledger);
}

TEST_MAIN(NULL, NULL)
