#include "tests/unit.h"
#include "testing/random.h"
#include "endpoint/timer_heap.h"

#include <stdlib.h>

#define MOST 300

static xl_connection *make(xl_timer_heap *h, size_t index) {
    xl_connection *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->slot.index = index;
    assert_int_equal(0, xl_timer_heap_reserve(h));
    xl_timer_heap_add(h, c);
    return c;
}

static void assert_order(const xl_timer_heap *h) {
    for (size_t i = 0; i < h->count; i++) {
        assert_int_equal(i, h->timer[i].connection->slot.timer);
        if (i > 0)
            assert_true(h->timer[(i - 1) / 2].at <= h->timer[i].at);
    }
    for (size_t i = 0; i < h->touched_count; i++) {
        assert_true(h->touched[i]->slot.is_touched);
        assert_int_equal(i, h->touched[i]->slot.touched_place);
    }
}

TEST(an_empty_heap_has_no_deadline) {
    xl_timer_heap h = {0};
    assert_true(XL_NEVER == xl_timer_heap_earliest(&h));
    assert_int_equal(0, xl_timer_heap_due(&h, XL_NEVER));
    assert_null(xl_timer_heap_take_touched(&h));
    xl_timer_heap_free(&h);
}

TEST(who_comes_is_touched_and_has_no_deadline) {
    xl_timer_heap h = {0};
    xl_connection *a = make(&h, 0), *b = make(&h, 1);
    assert_true(XL_NEVER == xl_timer_heap_earliest(&h));
    xl_connection *first = xl_timer_heap_take_touched(&h), *second = xl_timer_heap_take_touched(&h);
    assert_true((first == a && second == b) || (first == b && second == a));
    assert_null(xl_timer_heap_take_touched(&h));
    xl_timer_heap_touch(&h, a);
    xl_timer_heap_touch(&h, a);
    assert_ptr_equal(a, xl_timer_heap_take_touched(&h));
    assert_null(xl_timer_heap_take_touched(&h)); /* once, however often it was touched */
    xl_timer_heap_touch(&h, b);
    xl_timer_heap_remove(&h, b);
    assert_null(xl_timer_heap_take_touched(&h));
    free(a);
    free(b);
    xl_timer_heap_free(&h);
}

/* A heap and its model, a plain list. */
typedef struct {
    xl_timer_heap heap;
    xl_connection *connection[MOST];
    uint64_t at[MOST];
    bool touched[MOST];
    size_t count, made;
} model;

static void drop(model *m, size_t i) {
    xl_timer_heap_remove(&m->heap, m->connection[i]);
    free(m->connection[i]);
    m->count--;
    m->connection[i] = m->connection[m->count];
    m->at[i] = m->at[m->count];
    m->touched[i] = m->touched[m->count];
}

static void act(model *m, xl_random *r) {
    uint64_t what = xl_random_next(r) % 10;
    size_t i = m->count ? xl_random_next(r) % m->count : 0;
    if (what < 2 && m->count < MOST) {
        m->connection[m->count] = make(&m->heap, m->made++);
        m->at[m->count] = XL_NEVER;
        m->touched[m->count++] = true;
    } else if (m->count == 0) {
        return;
    } else if (what == 2) {
        drop(m, i);
    } else if (what < 5) {
        xl_timer_heap_touch(&m->heap, m->connection[i]);
        m->touched[i] = true;
    } else {
        m->at[i] = xl_random_next(r) % 16 ? xl_random_next(r) % 1000 : XL_NEVER; /* equal ones happen */
        xl_timer_heap_set(&m->heap, m->connection[i], m->at[i]);
    }
}

static bool contains(xl_connection **list, size_t n, const xl_connection *c) {
    size_t times = 0;
    for (size_t i = 0; i < n; i++)
        times += list[i] == c;
    assert_true(times <= 1);
    return times == 1;
}

static void assert_like(model *m, uint64_t now) {
    uint64_t earliest = XL_NEVER;
    size_t n = xl_timer_heap_due(&m->heap, now), due = 0, touched = 0;
    for (size_t i = 0; i < m->count; i++) {
        earliest = m->at[i] < earliest ? m->at[i] : earliest;
        assert_true(m->at[i] == xl_timer_heap_get(&m->heap, m->connection[i]));
        assert_int_equal(m->touched[i], m->connection[i]->slot.is_touched);
        assert_int_equal(m->at[i] <= now, contains(m->heap.due, n, m->connection[i]));
        due += m->at[i] <= now;
        touched += m->touched[i];
    }
    assert_int_equal(due, n);
    assert_int_equal(touched, m->heap.touched_count);
    assert_true(earliest == xl_timer_heap_earliest(&m->heap));
    assert_order(&m->heap);
}

TEST(it_agrees_with_a_plain_list) {
    for (uint64_t seed = 1; seed <= 3; seed++) {
        static model m;
        m = (model){0};
        xl_random r;
        xl_random_seed(&r, seed);
        for (int step = 0; step < 3000; step++) {
            act(&m, &r);
            if (step % 20 == 0)
                assert_like(&m, xl_random_next(&r) % 1000);
        }
        assert_true(m.count > 100);
        while (m.count > 0) {
            drop(&m, xl_random_next(&r) % m.count);
            assert_order(&m.heap);
        }
        xl_timer_heap_free(&m.heap);
    }
}

TEST_MAIN(NULL, NULL)
