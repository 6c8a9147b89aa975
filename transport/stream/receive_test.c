#include "tests/unit.h"
#include "stream/receive.h"
#include "testing/test_random.h"
#include "wire/frame.h"

#define WINDOW 100000

static uint8_t data[WINDOW];

static uint64_t insert(xl_recv *r, uint64_t offset, size_t len, bool fin, uint64_t *fresh) {
    return xl_recv_insert(r, offset, data + offset, len, fin, WINDOW, fresh);
}

static int fill_data(void **state) {
    (void)state;
    for (size_t i = 0; i < WINDOW; i++)
        data[i] = (uint8_t)(i * 131 + (i >> 7));
    return 0;
}

#define RECV_TEST(name) TEST_OF(name, xl_recv, r, xl_recv_free)

TEST(pieces_in_any_order_come_out_in_order) {
    static uint8_t out[WINDOW];
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint64_t rng = seed, got = 0, counted = 0, fresh;
        bool fin = false;
        xl_recv r;
        xl_recv_init(&r);
        while (!fin) {
            uint64_t offset = test_below(&rng, WINDOW), len = test_below(&rng, 3000);
            if (offset + len > WINDOW)
                len = WINDOW - offset;
            assert_int_equal(insert(&r, offset, (size_t)len, offset + len == WINDOW, &fresh), 0);
            counted += fresh;
            assert_int_equal(counted, r.highest);
            size_t readable = xl_recv_readable(&r), cap = (size_t)test_below(&rng, 5000);
            size_t n = xl_recv_read(&r, out + got, cap, &fin);
            assert_int_equal(n, readable < cap ? readable : cap);
            got += n;
        }
        assert_int_equal(got, WINDOW);
        assert_int_equal(counted, WINDOW);
        assert_memory_equal(out, data, WINDOW);
        assert_false(xl_recv_is_ready(&r));
        assert_int_equal(insert(&r, 5, 100, false, &fresh), 0); /* a late duplicate */
        assert_int_equal(fresh, 0);
        assert_null(r.ring);
        xl_recv_free(&r);
    }
}

RECV_TEST(an_empty_fin_is_announced_once) {
    uint8_t out[100];
    uint64_t fresh;
    bool fin;
    xl_recv_init(r);
    insert(r, 0, 50, false, &fresh);
    assert_true(xl_recv_is_ready(r));
    assert_int_equal(xl_recv_read(r, out, 100, &fin), 50);
    assert_false(fin);
    assert_false(xl_recv_is_ready(r));
    assert_int_equal(insert(r, 50, 0, true, &fresh), 0);
    assert_int_equal(fresh, 0);
    assert_true(xl_recv_is_ready(r));
    assert_int_equal(xl_recv_read(r, out, 100, &fin), 0);
    assert_true(fin);
    assert_false(xl_recv_is_ready(r));
}

TEST(the_final_size_cannot_change) {
    uint64_t fresh;
    xl_recv r;
    xl_recv_init(&r);
    assert_int_equal(insert(&r, 100, 100, false, &fresh), 0);
    assert_int_equal(insert(&r, 0, 199, true, &fresh), XL_QERR_FINAL_SIZE); /* below what came */
    assert_int_equal(insert(&r, 200, 50, true, &fresh), 0);
    assert_int_equal(insert(&r, 240, 10, true, &fresh), 0); /* the same again */
    assert_int_equal(insert(&r, 240, 9, true, &fresh), XL_QERR_FINAL_SIZE);
    assert_int_equal(insert(&r, 250, 1, false, &fresh), XL_QERR_FINAL_SIZE);
    assert_int_equal(xl_recv_insert(&r, 251, NULL, 0, true, WINDOW, &fresh), XL_QERR_FINAL_SIZE);
    assert_int_equal(xl_recv_insert(&r, 250, NULL, 0, true, WINDOW, &fresh), 0);
    assert_int_equal(fresh, 0);
    xl_recv_free(&r);

    xl_recv_init(&r);
    insert(&r, 0, 100, false, &fresh);
    assert_int_equal(xl_recv_insert(&r, 99, NULL, 0, true, WINDOW, &fresh), XL_QERR_FINAL_SIZE);
    assert_int_equal(xl_recv_insert(&r, WINDOW + 1, NULL, 0, true, WINDOW, &fresh), XL_QERR_FLOW_CONTROL);
    assert_int_equal(xl_recv_insert(&r, 300, NULL, 0, true, WINDOW, &fresh), 0);
    assert_int_equal(fresh, 200); /* counts against the connection's window */
    xl_recv_free(&r);
}

RECV_TEST(the_window_is_enforced_and_bounds_the_memory) {
    uint64_t fresh;
    xl_recv_init(r);
    assert_int_equal(xl_recv_insert(r, WINDOW - 1, data, 2, false, WINDOW, &fresh), XL_QERR_FLOW_CONTROL);
    assert_int_equal(xl_recv_insert(r, UINT64_MAX - 1, data, 5, false, WINDOW, &fresh), XL_QERR_FLOW_CONTROL);
    assert_int_equal(xl_recv_insert(r, UINT64_MAX - 5, data, 5, true, WINDOW, &fresh), XL_QERR_FLOW_CONTROL);
    assert_int_equal(r->cap, 0);
    assert_int_equal(insert(r, 0, 1000, false, &fresh), 0);
    assert_int_equal(r->cap, 1024);
    assert_int_equal(insert(r, WINDOW - 1, 1, false, &fresh), 0);
    assert_int_equal(r->cap, 131072);
    assert_int_equal(fresh, WINDOW - 1000);
}

RECV_TEST(what_was_stored_survives_growth_of_the_ring) {
    static uint8_t out[WINDOW];
    uint64_t fresh;
    bool fin;
    xl_recv_init(r);
    insert(r, 0, 3000, false, &fresh);
    assert_int_equal(xl_recv_read(r, out, 3000, &fin), 3000);
    insert(r, 4000, 2500, false, &fresh); /* wraps in a ring of 4096 */
    assert_int_equal(r->cap, 4096);
    insert(r, 50000, 10, false, &fresh);
    insert(r, 3000, 1000, false, &fresh);
    assert_int_equal(xl_recv_read(r, out + 3000, WINDOW, &fin), 3500);
    assert_memory_equal(out, data, 6500);
}

RECV_TEST(many_small_gaps_are_refused) {
    uint64_t fresh, error = 0, pieces = 0;
    xl_recv_init(r);
    for (uint64_t offset = 1; offset < WINDOW && error == 0; offset += 2, pieces++)
        error = insert(r, offset, 1, false, &fresh);
    assert_int_equal(error, XL_QERR_INTERNAL);
    assert_int_equal(pieces, 4097);
}

RECV_TEST(a_small_ring_goes_with_its_last_byte_and_a_large_one_at_the_end) {
    static uint8_t out[WINDOW];
    uint64_t fresh;
    bool fin;
    xl_recv_init(r);
    insert(r, 0, 300, false, &fresh);
    assert_int_equal(xl_recv_read(r, out, 299, &fin), 299);
    assert_non_null(r->ring);
    assert_int_equal(xl_recv_read(r, out + 299, WINDOW, &fin), 1);
    assert_null(r->ring);
    assert_null(r->received.at);
    insert(r, 300, 1200, false, &fresh);
    assert_int_equal(xl_recv_read(r, out + 300, WINDOW, &fin), 1200);
    assert_non_null(r->ring);
    insert(r, 1500, 20, true, &fresh);
    assert_int_equal(xl_recv_read(r, out + 1500, WINDOW, &fin), 20);
    assert_true(fin);
    assert_null(r->ring);
    assert_memory_equal(out, data, 1520);
}

TEST(a_ring_that_shrinks_keeps_what_is_in_it) {
    enum { BYTES = 100000 };
    static uint8_t in[BYTES], out[BYTES];
    uint64_t grown;
    bool fin;
    xl_recv r;
    xl_recv_init(&r);
    for (size_t i = 0; i < BYTES; i++)
        in[i] = (uint8_t)(i * 7);
    assert_int_equal(0, xl_recv_insert(&r, 0, in, BYTES, false, 1 << 20, &grown));
    xl_recv_shrink(&r);
    assert_int_equal(1 << 17, r.cap); /* it is full */
    assert_int_equal(BYTES - 1000, xl_recv_read(&r, out, BYTES - 1000, &fin));
    assert_int_equal(0, xl_recv_insert(&r, BYTES + 50, in + 50, 10, false, 1 << 20, &grown));
    xl_recv_shrink(&r);
    assert_int_equal(2048, r.cap);
    assert_int_equal(1000, xl_recv_read(&r, out + BYTES - 1000, 1000, &fin));
    assert_memory_equal(in, out, BYTES);
    assert_int_equal(0, xl_recv_insert(&r, BYTES, in, 50, false, 1 << 20, &grown));
    assert_int_equal(60, xl_recv_read(&r, out, BYTES, &fin));
    assert_memory_equal(in, out, 60);
    xl_recv_free(&r);
}

TEST_MAIN(fill_data, NULL)
