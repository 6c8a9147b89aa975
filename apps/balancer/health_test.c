/* When a server counts as down. */
#include <string.h>

#include "tests/unit.h"
#include "balancer/health.h"

#define INTERVAL_US UINT64_C(1000000)

static const uint8_t random_bytes[2 * HEALTH_ID_BYTES] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/* Asks the server three times from `now`, once an interval. Returns when the third interval is over. */
static uint64_t ask_three_times(health *h, size_t server, uint64_t now) {
    uint8_t probe[HEALTH_PROBE_BYTES];
    for (int i = 0; i < 3; i++, now += INTERVAL_US) {
        assert_false(health_check(h, server, now));
        assert_true(health_probe(h, server, random_bytes, now, probe));
    }
    return now;
}

TEST(a_silent_server_is_down_after_three_intervals_and_up_when_it_speaks) {
    static health h;
    health_init(&h, INTERVAL_US, 2, 500);
    uint64_t end = ask_three_times(&h, 0, 500);
    assert_int_equal(end, ask_three_times(&h, 1, 500));
    assert_false(health_hear(&h, 1));
    assert_false(health_check(&h, 0, end - 1));
    assert_true(health_check(&h, 0, end));
    assert_false(health_check(&h, 0, end + 1)); /* no change */
    assert_false(health_check(&h, 1, end));
    assert_true(h.server[0].is_down && !h.server[1].is_down);
    assert_true(health_hear(&h, 0));
    assert_false(health_hear(&h, 0));
    assert_false(h.server[0].is_down);
}

TEST(a_balancer_that_stood_still_takes_no_server_for_silent) {
    static health h;
    uint8_t probe[HEALTH_PROBE_BYTES];
    health_init(&h, INTERVAL_US, 1, 500);
    assert_true(health_probe(&h, 0, random_bytes, 500, probe));
    assert_false(health_hear(&h, 0));
    const uint64_t late = 500 + 100 * INTERVAL_US;
    assert_true(health_check(&h, 0, ask_three_times(&h, 0, late)));
}

TEST(a_server_that_moves_in_the_list_stays_down) {
    static health h;
    const size_t moved[] = {SIZE_MAX, 0, 2};
    health_init(&h, INTERVAL_US, 3, 500);
    for (size_t i = 0; i < 2; i++)
        assert_true(health_refuse(&h, i));
    health_move(&h, moved, 3, 600);
    assert_true(h.server[0].is_down && !h.server[1].is_down && !h.server[2].is_down);
    assert_int_equal(health_next(&h), 600);
    assert_false(health_check(&h, 2, 600 + 3 * INTERVAL_US));
    assert_true(health_hear(&h, 0));
}

TEST(a_closed_port_is_down_at_once) {
    static health h;
    health_init(&h, INTERVAL_US, 1, 500);
    assert_true(health_refuse(&h, 0));
    assert_false(health_refuse(&h, 0));
    assert_true(health_hear(&h, 0));
}

TEST(servers_that_are_not_asked_are_never_down) {
    static health h;
    uint8_t probe[HEALTH_PROBE_BYTES];
    health_init(&h, 0, 1, 500);
    assert_false(health_refuse(&h, 0));
    assert_false(health_check(&h, 0, UINT64_MAX / 2));
    assert_false(health_probe(&h, 0, random_bytes, 500, probe));
    assert_true(health_next(&h) == XL_NEVER);
}

TEST(each_server_is_asked_once_an_interval) {
    static health h;
    uint8_t probe[HEALTH_PROBE_BYTES];
    health_init(&h, INTERVAL_US, 2, 500);
    assert_true(health_probe(&h, 0, random_bytes, 500, probe));
    assert_false(health_probe(&h, 0, random_bytes, 500, probe));
    assert_int_equal(health_next(&h), 500); /* of the other server */
    assert_true(health_probe(&h, 1, random_bytes, 600, probe));
    assert_int_equal(health_next(&h), 500 + INTERVAL_US);
    assert_true(health_probe(&h, 0, random_bytes, 500 + INTERVAL_US, probe));
}

TEST(only_who_saw_the_probe_can_answer_it) {
    static health h;
    uint8_t probe[HEALTH_PROBE_BYTES], answer[32] = {0x80, 0, 0, 0, 0, HEALTH_ID_BYTES};
    health_init(&h, INTERVAL_US, 1, 500);
    assert_true(health_probe(&h, 0, random_bytes, 500, probe));
    const uint8_t *scid = probe + 6 + HEALTH_ID_BYTES + 1;
    memcpy(answer + 6, scid, HEALTH_ID_BYTES);
    assert_true(health_is_answer(&h, 0, answer, sizeof answer));
    assert_true(health_is_answer(&h, 0, answer, 6 + HEALTH_ID_BYTES + 1));
    assert_false(health_is_answer(&h, 0, answer, 6 + HEALTH_ID_BYTES));
    for (size_t i = 0; i < 6 + HEALTH_ID_BYTES; i++) {
        answer[i] ^= 0x80;
        assert_false(health_is_answer(&h, 0, answer, sizeof answer));
        answer[i] ^= 0x80;
    }
    uint8_t other[2 * HEALTH_ID_BYTES] = {9};
    assert_true(health_probe(&h, 0, other, 500 + INTERVAL_US, probe));
    assert_false(health_is_answer(&h, 0, answer, sizeof answer)); /* the response to the previous probe */
}

TEST_MAIN(NULL, NULL)
