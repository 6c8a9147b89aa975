#include "tests/unit.h"
#include "stream/send.h"
#include "testing/test_random.h"

#include <string.h>

static const uint8_t zeros[65536];

static xl_send_piece take(xl_send *s, size_t max_len) {
    xl_send_piece piece = {0};
    assert_true(xl_send_next(s, UINT64_MAX, max_len, &piece));
    xl_send_mark_sent(s, &piece);
    return piece;
}

#define SEND_TEST(name) TEST_OF(name, xl_send, s, xl_send_free)

SEND_TEST(data_leaves_in_order_and_within_the_credit) {
    xl_send_piece p;
    xl_send_init(s, 65536);
    assert_false(xl_send_pending(s, UINT64_MAX));
    assert_int_equal(xl_send_write(s, zeros, 3000), 3000);
    assert_false(xl_send_next(s, 0, 1000, &p));
    assert_false(xl_send_next(s, UINT64_MAX, 0, &p));
    assert_true(xl_send_next(s, 500, 1000, &p));
    assert_int_equal(p.len, 500);
    p = take(s, 1000);
    assert_int_equal(p.offset, 0);
    assert_int_equal(p.len, 1000);
    assert_false(p.fin || p.is_retransmission);
    xl_send_finish(s);
    p = take(s, 5000);
    assert_int_equal(p.offset, 1000);
    assert_int_equal(p.len, 2000);
    assert_true(p.fin);
    assert_true(xl_send_is_flushed(s));
    assert_false(xl_send_is_done(s));
    assert_false(xl_send_pending(s, UINT64_MAX));
    assert_int_equal(xl_send_mark_acked(s, 1000, 2000, true), 2000);
    assert_false(xl_send_is_done(s));
    assert_int_equal(xl_send_mark_acked(s, 0, 1000, false), 1000);
    assert_true(xl_send_is_done(s));
}

SEND_TEST(a_lone_fin_is_sent_lost_and_acknowledged) {
    xl_send_init(s, 65536);
    xl_send_write(s, zeros, 100);
    take(s, 1000);
    xl_send_finish(s);
    assert_false(xl_send_is_flushed(s));
    assert_true(xl_send_pending(s, 0)); /* needs no credit */
    xl_send_piece p = take(s, 1000);
    assert_int_equal(p.offset, 100);
    assert_int_equal(p.len, 0);
    assert_true(p.fin && !p.is_retransmission);
    assert_false(xl_send_pending(s, UINT64_MAX));
    xl_send_mark_lost(s, 100, 0, true);
    assert_true(xl_send_has_lost(s));
    p = take(s, 1000);
    assert_true(p.fin && p.is_retransmission && p.len == 0);
    assert_int_equal(xl_send_mark_acked(s, 0, 100, false), 100);
    assert_false(xl_send_range_is_acked(s, 0, 100, true));
    xl_send_mark_acked(s, 100, 0, true);
    assert_true(xl_send_range_is_acked(s, 0, 100, true));
    assert_true(xl_send_is_done(s));
    xl_send_mark_lost(s, 100, 0, true); /* the other copy */
    assert_false(xl_send_pending(s, UINT64_MAX));
}

SEND_TEST(lost_data_goes_first_and_needs_no_credit) {
    xl_send_init(s, 65536);
    xl_send_write(s, zeros, 10000);
    for (int i = 0; i < 5; i++)
        take(s, 1000);
    xl_send_mark_lost(s, 3000, 1000, false);
    xl_send_mark_lost(s, 1000, 1000, false);
    xl_send_piece p;
    assert_true(xl_send_next(s, 0, 600, &p));
    assert_int_equal(p.offset, 1000);
    assert_int_equal(p.len, 600);
    assert_true(p.is_retransmission);
    assert_int_equal(take(s, 600).len, 600);
    assert_int_equal(take(s, 600).len, 400);
    assert_int_equal(take(s, 2000).offset, 3000);
    assert_int_equal(take(s, 1000).offset, 5000);
}

SEND_TEST(with_two_copies_the_first_ack_settles_and_a_later_loss_requeues_nothing) {
    xl_send_init(s, 65536);
    xl_send_write(s, zeros, 3000);
    for (int i = 0; i < 3; i++)
        take(s, 1000);
    assert_int_equal(xl_send_mark_acked(s, 1000, 1000, false), 1000); /* the copy arrived */
    xl_send_mark_lost(s, 1000, 1000, false);                          /* the original did not */
    assert_false(xl_send_has_lost(s));
    assert_int_equal(xl_send_mark_acked(s, 1000, 1000, false), 0);
    /* Lost first, then acknowledged by its other copy: what was queued is removed. */
    xl_send_mark_lost(s, 2000, 1000, false);
    assert_true(xl_send_has_lost(s));
    assert_int_equal(xl_send_mark_acked(s, 2000, 1000, false), 1000);
    assert_false(xl_send_has_lost(s));
    /* Only the missing part of a range is queued. */
    xl_send_mark_lost(s, 500, 1500, false);
    xl_send_piece p;
    assert_true(xl_send_next(s, 0, 5000, &p));
    assert_int_equal(p.offset, 500);
    assert_int_equal(p.len, 500);
}

SEND_TEST(the_buffer_is_bounded_and_used_again) {
    xl_send_init(s, 10000);
    assert_int_equal(xl_send_write(s, zeros, 65536), 10000);
    assert_int_equal(xl_send_write(s, zeros, 1), 0);
    size_t cap = s->cap;
    assert_int_equal(cap, 16384);
    for (int i = 0; i < 1000; i++) {
        xl_send_piece p = take(s, 1000);
        assert_int_equal(xl_send_mark_acked(s, p.offset, p.len, false), 1000);
        assert_int_equal(xl_send_write(s, zeros, 65536), 1000);
    }
    assert_int_equal(s->cap, cap);
    xl_send_finish(s);
    assert_int_equal(xl_send_capacity(s), 0);
}

SEND_TEST(copies_outside_of_the_buffer_are_zeros) {
    uint8_t data[3000], out[3000];
    memset(data, 7, sizeof data);
    xl_send_init(s, 65536);
    memset(out, 1, sizeof out);
    xl_send_copy(s, 0, out, 10); /* nothing written yet */
    assert_memory_equal(out, zeros, 10);
    xl_send_write(s, data, 2000);
    take(s, 1000);
    xl_send_mark_acked(s, 0, 1000, false);
    xl_send_copy(s, 500, out, 3000 - 500);
    assert_memory_equal(out, zeros, 500);
    assert_memory_equal(out + 500, data, 1000);
    assert_memory_equal(out + 1500, zeros, 1000);
}

/* Every byte's state in plain arrays beside the send buffer, in arbitrary orders of loss and acknowledgement. */
#define TOTAL 20000

typedef struct {
    bool acked[TOTAL], queued[TOTAL];
    uint64_t sent;
} model;

static void model_step(xl_send *s, model *m, uint64_t *rng) {
    uint64_t what = test_below(rng, 10);
    if (what < 4) {
        xl_send_piece p;
        if (!xl_send_next(s, UINT64_MAX, 1 + test_below(rng, 200), &p) || p.len == 0)
            return;
        for (uint64_t i = p.offset; i < p.offset + p.len; i++) {
            assert_int_equal(m->queued[i], p.is_retransmission);
            assert_false(m->acked[i]);
            m->queued[i] = false;
        }
        if (!p.is_retransmission) {
            assert_int_equal(p.offset, m->sent);
            m->sent += p.len;
        }
        xl_send_mark_sent(s, &p);
        return;
    }
    if (m->sent == 0)
        return;
    uint64_t start = test_below(rng, m->sent), end = start + test_below(rng, 400), fresh = 0;
    if (end > m->sent)
        end = m->sent;
    if (what < 7) {
        for (uint64_t i = start; i < end; i++) {
            fresh += !m->acked[i];
            m->acked[i] = true;
            m->queued[i] = false;
        }
        assert_int_equal(xl_send_mark_acked(s, start, (size_t)(end - start), false), fresh);
    } else {
        for (uint64_t i = start; i < end; i++)
            m->queued[i] |= !m->acked[i];
        xl_send_mark_lost(s, start, (size_t)(end - start), false);
    }
}

static void model_check(const xl_send *s, const model *m) {
    uint64_t base = 0;
    while (base < m->sent && m->acked[base])
        base++;
    assert_int_equal(s->base, base);
    assert_int_equal(s->sent, m->sent);
    for (uint64_t i = 0; i < TOTAL; i++) {
        assert_int_equal(xl_ranges_contains(&s->lost, i), m->queued[i]);
        assert_int_equal(xl_send_range_is_acked(s, i, 1, false), m->acked[i]);
    }
}

TEST(any_order_of_losses_and_acks_matches_a_byte_map) {
    static uint8_t data[TOTAL], out[TOTAL];
    for (size_t i = 0; i < TOTAL; i++)
        data[i] = (uint8_t)(i * 31 + (i >> 8));
    for (uint64_t seed = 0; seed < 10; seed++) {
        uint64_t rng = seed;
        static model m;
        memset(&m, 0, sizeof m);
        xl_send s;
        xl_send_init(&s, 6000);
        for (int step = 0; step < 1500; step++) {
            size_t want = (size_t)test_below(&rng, 500);
            if (s.written + want > TOTAL)
                want = (size_t)(TOTAL - s.written);
            assert_true(xl_send_write(&s, data + s.written, want) >= 0);
            model_step(&s, &m, &rng);
            if (step % 50 == 0)
                model_check(&s, &m);
            size_t held = (size_t)(s.written - s.base);
            xl_send_copy(&s, s.base, out, held);
            assert_memory_equal(out, data + s.base, held);
        }
        model_check(&s, &m);
        xl_send_free(&s);
    }
}

/* Writes, sends and acknowledges `len` bytes, one piece at a time. */
static void pass(xl_send *s, size_t len, size_t piece) {
    for (size_t done = 0; done < len; done += piece) {
        assert_int_equal(xl_send_write(s, zeros, piece), piece);
        xl_send_piece p = take(s, piece);
        xl_send_mark_acked(s, p.offset, p.len, false);
    }
}

static void fill(xl_send *s) {
    for (int i = 0; i < 8; i++)
        assert_int_equal(xl_send_write(s, zeros, sizeof zeros), sizeof zeros);
    assert_int_equal(s->cap, 8 * sizeof zeros);
    for (int i = 0; i < 8; i++)
        take(s, sizeof zeros);
}

/* Passes at least `len` bytes with 1000 to 2000 held. */
static void trickle(xl_send *s, size_t len) {
    for (size_t done = 0; done < len; done += 1000) {
        assert_int_equal(xl_send_write(s, zeros, 1000), 1000);
        xl_send_piece p = take(s, 1000);
        xl_send_mark_acked(s, s->base, (size_t)(p.offset - s->base), false);
    }
}

SEND_TEST(a_buffer_that_is_little_used_for_a_while_shrinks) {
    const size_t size = 8 * sizeof zeros;
    xl_send_init(s, 1 << 20);
    fill(s);
    xl_send_mark_acked(s, 0, size - 1000, false);
    trickle(s, 3 * size); /* in this while it was full */
    assert_int_equal(s->cap, size);
    trickle(s, 4 * size - 10000);
    assert_int_equal(s->cap, size);
    trickle(s, 20000);
    assert_int_equal(s->cap, 2048);
}

SEND_TEST(a_buffer_of_which_more_than_half_is_used_keeps_its_size) {
    const size_t size = 8 * sizeof zeros;
    xl_send_init(s, 1 << 20);
    fill(s);
    for (int i = 0; i < 100; i++) {
        xl_send_mark_acked(s, s->base, sizeof zeros, false);
        assert_int_equal(xl_send_write(s, zeros, sizeof zeros), sizeof zeros);
        take(s, sizeof zeros);
        if (i == 50) /* from here on five eighths are held */
            xl_send_mark_acked(s, s->base, 3 * sizeof zeros, false);
    }
    assert_int_equal(s->cap, size);
}

SEND_TEST(a_buffer_that_had_no_memory_to_shrink_keeps_what_it_holds_since) {
    xl_send_init(s, 1 << 20);
    fill(s);
    s->usual = 1024;
    xl_send_mark_acked(s, 0, 1000, false);
    assert_int_equal(s->cap, 8 * sizeof zeros);
    xl_send_mark_acked(s, 1000, 8 * sizeof zeros - 1500, false);
    assert_int_equal(s->cap, 1024);
}

SEND_TEST(a_buffer_that_runs_empty_is_freed_and_has_its_size_again) {
    xl_send_init(s, 1 << 20);
    fill(s);
    xl_send_mark_acked(s, 0, 8 * sizeof zeros, false);
    assert_int_equal(s->cap, 0);
    assert_int_equal(xl_send_write(s, zeros, 1), 1);
    assert_int_equal(s->cap, 8 * sizeof zeros);
    take(s, 1);
    xl_send_mark_acked(s, 8 * sizeof zeros, 1, false);
    assert_int_equal(s->cap, 0);
    pass(s, 8 * 8 * sizeof zeros, 512);
    assert_int_equal(xl_send_write(s, zeros, 1), 1);
    assert_int_equal(s->cap, 1024); /* recently used */
}

/* Fills and empties a buffer, and returns its size with the next byte. */
static size_t size_again(xl_budget *budget) {
    xl_send s;
    xl_send_init(&s, 1 << 20);
    s.budget = budget;
    fill(&s);
    xl_send_mark_acked(&s, 0, 8 * sizeof zeros, false);
    assert_int_equal(xl_send_write(&s, zeros, 1), 1);
    size_t cap = s.cap;
    xl_send_free(&s);
    return cap;
}

/* With that size, a quarter of the connection's and half of the pool's bytes have to be left to others. */
TEST(a_buffer_has_its_size_again_where_memory_is_plenty) {
    const size_t size = 8 * sizeof zeros;
    xl_budget_pool pool;
    xl_budget_pool_init(&pool, 4 * size, 1);
    xl_budget budget = {.pool = &pool, .most = size + size / 3 + 4};
    assert_int_equal(size_again(&budget), size);
    budget.most = size + size / 4;
    assert_int_equal(size_again(&budget), 1024);
    budget.most = 2 * size;
    pool.held = 1;
    assert_int_equal(size_again(&budget), 1024);
}

TEST(what_a_buffer_holds_is_taken_from_its_budget) {
    xl_budget_pool pool;
    xl_budget_pool_init(&pool, 1 << 20, 1);
    xl_budget budget = {.pool = &pool, .most = 10000};
    xl_send s, t;
    xl_send_init(&s, 65536);
    xl_send_init(&t, 65536);
    s.budget = t.budget = &budget;
    assert_int_equal(xl_send_capacity(&s), 8192);
    assert_int_equal(xl_send_write(&s, zeros, 20000), 8192);
    assert_int_equal(budget.held, 8192);
    assert_int_equal(xl_send_write(&t, zeros, 20000), 1024);
    assert_int_equal(budget.held, 9216);
    take(&s, 8192);
    xl_send_abandon(&s);
    assert_int_equal(budget.held, 1024);
    assert_int_equal(s.sent, 8192);
    xl_send_mark_lost(&s, 0, 8192, false); /* nothing is sent again */
    assert_false(xl_send_pending(&s, UINT64_MAX));
    assert_int_equal(xl_send_mark_acked(&s, 0, 8192, false), 0);
    xl_send_free(&s);
    xl_send_free(&t);
    assert_int_equal(budget.held, 0);
    assert_int_equal(pool.held, 0);
}

TEST_MAIN(NULL, NULL)
