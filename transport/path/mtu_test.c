#include "tests/unit.h"
#include "path/mtu.h"

#define BASE        1200
#define TEN_MINUTES 600000000

/* Probes a path that carries `carries` bytes until there is nothing left to try. Returns the number of probes. */
static int search(xl_mtu *m, uint64_t carries, uint64_t now) {
    int probes = 0;
    uint64_t size;
    while ((size = xl_mtu_next_probe(m, now)) && probes < 100) {
        probes++;
        xl_mtu_probe_sent(m, size);
        assert_int_equal(0, xl_mtu_next_probe(m, now)); /* one at a time */
        if (size <= carries)
            xl_mtu_probe_acked(m, size, now);
        else
            xl_mtu_probe_lost(m, size, false, now);
    }
    return probes;
}

TEST(the_common_size_takes_one_probe) {
    xl_mtu m;
    xl_mtu_init(&m, BASE, 1452);
    assert_int_equal(BASE, m.size);
    assert_int_equal(1, search(&m, 1452, 1));
    assert_int_equal(1452, m.size);
}

TEST(the_search_ends_within_eight_bytes_of_what_the_path_carries) {
    for (uint64_t mtu = 1228; mtu <= 1500; mtu++) {
        xl_mtu m;
        xl_mtu_init(&m, BASE, 1472);
        uint64_t carries = mtu - 28;
        assert_true(search(&m, carries, 1) <= 3 * 7);
        assert_true(m.size <= carries && carries - m.size < 8);
    }
}

TEST(jumbo_frames_are_tried_after_the_common_size) {
    xl_mtu m;
    xl_mtu_init(&m, BASE, 8952);
    assert_int_equal(2, search(&m, 8952, 1));
    assert_int_equal(8952, m.size);
    xl_mtu_init(&m, BASE, 8952);
    assert_int_equal(1 + 3, search(&m, 1472, 1));
    assert_int_equal(1452, m.size);
}

/* RFC 8899 section 5.1.2: MAX_PROBES is for each size. */
TEST(each_size_is_given_up_after_three_probes_of_its_own) {
    xl_mtu m;
    xl_mtu_init(&m, BASE, 8952);
    for (int k = 0; k < 3; k++) {
        xl_mtu_probe_sent(&m, 1452);
        if (k < 2)
            xl_mtu_probe_lost(&m, 1452, false, 1);
        else
            xl_mtu_probe_acked(&m, 1452, 1);
    }
    const uint64_t next = xl_mtu_next_probe(&m, 1);
    assert_true(next > 1452);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(xl_mtu_next_probe(&m, 1), next);
        xl_mtu_probe_sent(&m, next);
        xl_mtu_probe_lost(&m, next, false, 1);
    }
    assert_true(xl_mtu_next_probe(&m, 1) < next);
}

TEST(a_refused_probe_is_not_tried_again) {
    xl_mtu m;
    xl_mtu_init(&m, BASE, 1452);
    xl_mtu_probe_sent(&m, xl_mtu_next_probe(&m, 1));
    assert_false(xl_mtu_too_large(&m, 1452, 1));
    assert_true(xl_mtu_next_probe(&m, 1) < 1452);
}

TEST(a_refused_packet_lowers_the_size_at_once) {
    xl_mtu m;
    xl_mtu_init(&m, BASE, 1452);
    search(&m, 1452, 1);
    assert_true(xl_mtu_too_large(&m, 1452, 1));
    assert_int_equal(BASE, m.size);
    search(&m, 1372, 1);
    assert_true(m.size <= 1372 && m.size > 1364);
}

TEST(after_ten_minutes_the_search_begins_anew) {
    xl_mtu m;
    xl_mtu_init(&m, BASE, 1452);
    search(&m, 1300, 1);
    assert_int_equal(0, xl_mtu_next_probe(&m, TEN_MINUTES));
    assert_int_equal(1452, xl_mtu_next_probe(&m, TEN_MINUTES + 1));
    search(&m, 1452, TEN_MINUTES + 1);
    assert_int_equal(1452, m.size);
}

TEST(large_packets_that_alone_are_lost_show_a_black_hole) {
    xl_mtu m;
    xl_mtu_init(&m, BASE, 1452);
    search(&m, 1452, 1);
    xl_mtu_packet_acked(&m, 1200, 100);
    for (uint64_t t = 101; t < 104; t++)
        assert_false(xl_mtu_packet_lost(&m, 1452, t));
    assert_true(xl_mtu_packet_lost(&m, 1452, 104));
    assert_int_equal(BASE, m.size);
    search(&m, 1372, 1);
    assert_true(m.size <= 1372 && m.size > 1364);
}

TEST(an_outage_and_random_loss_show_none) {
    xl_mtu m;
    xl_mtu_init(&m, BASE, 1452);
    search(&m, 1452, 1);
    xl_mtu_packet_acked(&m, 1200, 100); /* the first to arrive after an outage … */
    for (uint64_t t = 0; t < 100; t++)
        assert_false(xl_mtu_packet_lost(&m, 1452, t)); /* … in which large ones were lost */
    for (uint64_t t = 101; t < 200; t++)
        if (t % 4 == 0) /* one in four gets through */
            xl_mtu_packet_acked(&m, 1452, t);
        else
            assert_false(xl_mtu_packet_lost(&m, 1452, t));
    assert_int_equal(1452, m.size);
}

TEST_MAIN(NULL, NULL)
