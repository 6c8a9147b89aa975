#include "tests/unit.h"
#include "recovery/ledger.h"
#include "testing/test_random.h"
#include "xlink/xlink.h"

#include <string.h>

#define LOSS_DELAY 50000
#define MAX_PN     4000

/* The naive model: every packet ever sent, in an array. */
typedef struct {
    uint64_t time;
    int state; /* xl_sent_state */
    bool eliciting;
    int8_t path;
    int acked_calls, lost_calls;
    bool is_forgotten;
} model_packet;

typedef struct {
    model_packet at[MAX_PN];
    uint64_t count, largest;
    bool has_largest;
    uint64_t last_lost;
    bool has_last_lost;
} model;

static void on_acked(void *user, xl_sent_packet *p) {
    model *m = user;
    assert_int_equal(p->state, m->at[p->pn].state == XL_SENT_LOST ? XL_SENT_LOST : XL_SENT_OUTSTANDING);
    m->at[p->pn].state = XL_SENT_ACKED;
    m->at[p->pn].acked_calls++;
}

static void on_lost(void *user, xl_sent_packet *p) {
    model *m = user;
    assert_int_equal(p->state, XL_SENT_LOST);
    assert_int_equal(m->at[p->pn].state, XL_SENT_OUTSTANDING);
    if (m->has_last_lost)
        assert_true(p->pn > m->last_lost);
    m->has_last_lost = true;
    m->last_lost = p->pn;
    m->at[p->pn].state = XL_SENT_LOST;
    m->at[p->pn].lost_calls++;
}

static void send_one(xl_ledger *l, model *m, uint64_t *rng, uint64_t now) {
    model_packet *mp = &m->at[m->count];
    mp->time = now;
    if (test_below(rng, 40) == 0) {
        mp->state = XL_SENT_SKIPPED;
        assert_int_equal(xl_ledger_skip(l), 0);
        m->count++;
        return;
    }
    xl_sent_packet *p = xl_ledger_push(l);
    assert_non_null(p);
    assert_int_equal(p->pn, m->count++);
    p->time_us = now;
    p->ack_eliciting = mp->eliciting = test_below(rng, 4) != 0;
    p->in_flight = true;
    p->path = mp->path = (int8_t)test_below(rng, 2);
}

static void check_totals(xl_ledger *l, const model *m) {
    size_t outstanding = 0;
    const model_packet *oldest[2] = {NULL, NULL};
    for (uint64_t pn = 0; pn < m->count; pn++) {
        const model_packet *mp = &m->at[pn];
        assert_true(mp->acked_calls <= 1 && mp->lost_calls <= 1);
        xl_sent_packet *found = xl_ledger_find(l, pn);
        if (mp->state == XL_SENT_OUTSTANDING || (mp->state == XL_SENT_LOST && !mp->is_forgotten)) {
            assert_non_null(found);
            assert_int_equal(found->state, mp->state);
        } else if (mp->state != XL_SENT_ACKED) {
            assert_null(found);
        }
        if (mp->state != XL_SENT_OUTSTANDING)
            continue;
        outstanding++;
        if (mp->eliciting && !oldest[mp->path])
            oldest[mp->path] = mp;
    }
    assert_int_equal(l->outstanding, outstanding);
    for (int path = 0; path < 2; path++) {
        xl_sent_packet *p = xl_ledger_oldest(l, path);
        assert_ptr_equal(p ? &m->at[p->pn] : NULL, oldest[path]);
    }
}

static void ack_some(xl_ledger *l, model *m, uint64_t *rng) {
    uint64_t largest = m->count - 1 - test_below(rng, m->count < 60 ? m->count : 60);
    uint64_t width = test_below(rng, 12), smallest = largest > width ? largest - width : 0;
    bool bad = false;
    bool wanted[64] = {0};
    for (uint64_t pn = smallest; pn <= largest; pn++) {
        int s = m->at[pn].state;
        bad |= s == XL_SENT_SKIPPED;
        wanted[pn - smallest] = s == XL_SENT_OUTSTANDING || (s == XL_SENT_LOST && !m->at[pn].is_forgotten);
    }
    if (bad) {
        /* All recent skips are known; one that left the head long ago may be ignored. */
        if (smallest >= l->first_pn)
            assert_int_equal(xl_ledger_ack(l, smallest, largest, on_acked, m), -1);
        return;
    }
    assert_int_equal(xl_ledger_ack(l, smallest, largest, on_acked, m), 0);
    for (uint64_t pn = smallest; pn <= largest; pn++)
        if (wanted[pn - smallest])
            assert_int_equal(m->at[pn].state, XL_SENT_ACKED);
    if (!m->has_largest || largest > m->largest)
        m->largest = largest;
    m->has_largest = true;
    assert_int_equal(l->largest_acked, m->largest);
}

static void trim(xl_ledger *l, model *m, uint64_t before) {
    xl_ledger_trim(l, before);
    for (model_packet *mp = m->at; mp < m->at + m->count; mp++) {
        if (mp->state == XL_SENT_OUTSTANDING || (mp->state == XL_SENT_LOST && mp->time >= before))
            return;
        mp->is_forgotten = mp->state == XL_SENT_LOST;
    }
}

static void detect(xl_ledger *l, model *m, uint64_t now) {
    bool expected[MAX_PN] = {0};
    uint64_t next = XL_NEVER;
    for (uint64_t pn = 0; m->has_largest && pn < m->largest; pn++) {
        if (m->at[pn].state != XL_SENT_OUTSTANDING)
            continue;
        expected[pn] = m->largest - pn >= 3 || now - m->at[pn].time >= LOSS_DELAY;
        if (!expected[pn] && m->at[pn].time + LOSS_DELAY < next)
            next = m->at[pn].time + LOSS_DELAY;
    }
    m->has_last_lost = false;
    assert_int_equal(xl_ledger_detect_lost(l, now, LOSS_DELAY, on_lost, m), next);
    for (uint64_t pn = 0; pn < m->count; pn++)
        if (expected[pn])
            assert_int_equal(m->at[pn].state, XL_SENT_LOST);
        else if (m->at[pn].state == XL_SENT_LOST)
            assert_int_equal(m->at[pn].lost_calls, 1);
}

#define LEDGER_TEST(name) TEST_OF(name, xl_ledger, l, xl_ledger_free)

TEST(any_history_matches_a_plain_list) {
    static model m;
    for (uint64_t seed = 0; seed < 15; seed++) {
        uint64_t rng = seed, now = 0;
        memset(&m, 0, sizeof m);
        xl_ledger l;
        xl_ledger_init(&l);
        while (m.count < MAX_PN - 1) {
            now += test_below(&rng, 4000);
            for (uint64_t n = test_below(&rng, 30); n > 0 && m.count < MAX_PN - 1; n--)
                send_one(&l, &m, &rng, now);
            if (m.count == 0)
                continue;
            for (uint64_t n = test_below(&rng, 5); n > 0; n--)
                ack_some(&l, &m, &rng);
            detect(&l, &m, now);
            if (test_below(&rng, 30) == 0) {
                m.has_last_lost = false;
                xl_ledger_lose_all(&l, (int)test_below(&rng, 2), on_lost, &m);
            }
            if (test_below(&rng, 10) == 0)
                trim(&l, &m, now > 100000 ? now - 100000 : 0);
            if (test_below(&rng, 10) == 0)
                check_totals(&l, &m);
        }
        assert_true(l.cap <= 2048); /* 4000 packets went through */
        xl_ledger_free(&l);
    }
}

static void count_call(void *user, xl_sent_packet *p) {
    (void)p;
    ++*(int *)user;
}

static void push_n(xl_ledger *l, int n, uint64_t time) {
    for (int i = 0; i < n; i++) {
        xl_sent_packet *p = xl_ledger_push(l);
        p->time_us = time;
        p->ack_eliciting = p->in_flight = true;
    }
}

LEDGER_TEST(an_ack_of_what_was_never_sent_is_refused) {
    int acked = 0;
    xl_ledger_init(l);
    assert_int_equal(xl_ledger_ack(l, 0, 0, count_call, &acked), -1);
    push_n(l, 5, 0);
    assert_int_equal(xl_ledger_ack(l, 0, 5, count_call, &acked), -1);
    assert_int_equal(xl_ledger_ack(l, 3, 2, count_call, &acked), -1);
    assert_int_equal(xl_ledger_ack(l, 0, UINT64_MAX, count_call, &acked), -1);
    assert_int_equal(acked, 0);
    xl_ledger_skip(l);
    push_n(l, 3, 0);
    assert_int_equal(xl_ledger_ack(l, 4, 6, count_call, &acked), -1);
    assert_int_equal(acked, 0);
    assert_int_equal(l->largest_acked, UINT64_MAX);
    /* The skip is remembered after its entry is gone. */
    assert_int_equal(xl_ledger_ack(l, 0, 4, count_call, &acked), 0);
    assert_int_equal(xl_ledger_ack(l, 6, 8, count_call, &acked), 0);
    assert_int_equal(xl_ledger_ack(l, 0, 8, count_call, &acked), -1);
    assert_int_equal(xl_ledger_ack(l, 0, 5, count_call, &acked), -1);
    assert_int_equal(xl_ledger_ack(l, 5, 8, count_call, &acked), -1);
    assert_int_equal(acked, 8);
}

LEDGER_TEST(numbers_below_the_first_were_never_sent) {
    int acked = 0;
    xl_ledger_init(l);
    xl_ledger_start_at(l, 9000);
    push_n(l, 201, 0);
    assert_int_equal(xl_ledger_oldest(l, -1)->pn, 9000);
    assert_null(xl_ledger_find(l, 8999));
    assert_int_equal(xl_ledger_ack(l, 8999, 9002, count_call, &acked), -1);
    assert_int_equal(xl_ledger_ack(l, 0, 0, count_call, &acked), -1);
    assert_int_equal(acked, 0);
    assert_int_equal(xl_ledger_ack(l, 9000, 9200, count_call, &acked), 0);
    assert_int_equal(acked, 201);
    assert_int_equal(xl_ledger_ack(l, 8999, 9200, count_call, &acked), -1);
}

LEDGER_TEST(a_huge_range_costs_only_what_is_in_the_ring) {
    int acked = 0;
    xl_ledger_init(l);
    l->first_pn = l->next_pn = l->cursor = UINT64_C(1) << 61;
    push_n(l, 10, 0);
    assert_int_equal(xl_ledger_ack(l, 0, l->next_pn - 1, count_call, &acked), 0);
    assert_int_equal(acked, 10);
    assert_int_equal(l->first_pn, l->next_pn);
}

LEDGER_TEST(packet_and_time_threshold_are_those_of_rfc_9002) {
    int lost = 0, acked = 0;
    xl_ledger_init(l);
    push_n(l, 5, 1000);
    assert_int_equal(xl_ledger_detect_lost(l, 999999, 10, count_call, &lost), XL_NEVER);
    xl_ledger_ack(l, 3, 3, count_call, &acked);
    /* 0 is three behind; 1 and 2 wait for the timer; 4 is above the largest acknowledged. */
    assert_int_equal(xl_ledger_detect_lost(l, 1500, 9000, count_call, &lost), 10000);
    assert_int_equal(lost, 1);
    assert_int_equal(xl_ledger_detect_lost(l, 9999, 9000, count_call, &lost), 10000);
    assert_int_equal(lost, 1);
    assert_int_equal(xl_ledger_detect_lost(l, 10000, 9000, count_call, &lost), XL_NEVER);
    assert_int_equal(lost, 3);
    assert_int_equal(xl_ledger_oldest(l, -1)->pn, 4);
    assert_int_equal(l->outstanding, 1);
}

LEDGER_TEST(draining_hands_back_every_unsettled_packet_once) {
    int lost = 0, acked = 0, drained = 0;
    xl_ledger_init(l);
    push_n(l, 10, 0);
    xl_ledger_ack(l, 5, 5, count_call, &acked);
    xl_ledger_detect_lost(l, 0, 1000, count_call, &lost);
    assert_int_equal(lost, 3);
    xl_ledger_drain(l, count_call, &drained);
    assert_int_equal(drained, 9);
    assert_int_equal(l->outstanding, 0);
    assert_null(xl_ledger_oldest(l, -1));
    xl_ledger_drain(l, count_call, &drained);
    assert_int_equal(drained, 9);
    push_n(l, 1, 0);
    assert_int_equal(xl_ledger_find(l, 10)->pn, 10);
    assert_null(xl_ledger_find(l, 11));
}

LEDGER_TEST(a_ring_that_shrinks_keeps_what_is_in_it) {
    int n = 0;
    xl_ledger_init(l);
    push_n(l, 1000, 7);
    size_t full = l->cap;
    xl_ledger_shrink(l);
    assert_int_equal(l->cap, full); /* a larger one would follow from twice what is in it */
    xl_ledger_ack(l, 0, 989, count_call, &n);
    xl_ledger_shrink(l);
    assert_int_equal(l->cap, 32);
    assert_int_equal(l->outstanding, 10);
    for (uint64_t pn = 990; pn < 1000; pn++)
        assert_int_equal(xl_ledger_find(l, pn)->time_us, 7);
    push_n(l, 100, 8);
    assert_int_equal(xl_ledger_find(l, 1099)->time_us, 8);
    xl_ledger_ack(l, 990, 1099, count_call, &n);
    assert_int_equal(n, 1100);
    xl_ledger_shrink(l);
    assert_null(l->ring);
    assert_null(xl_ledger_oldest(l, -1));
    assert_int_equal(xl_ledger_ack(l, 0, 1099, count_call, &n), 0);
    assert_int_equal(n, 1100);
    push_n(l, 1, 9);
    assert_int_equal(xl_ledger_find(l, 1100)->time_us, 9);
}

static int drain_calls;

static void drain_in_callback(void *user, xl_sent_packet *p) {
    (void)p;
    int n = 0;
    drain_calls++;
    xl_ledger_drain(user, count_call, &n);
}

LEDGER_TEST(a_callback_may_empty_the_ledger) {
    xl_ledger_init(l);
    push_n(l, 10, 0);
    drain_calls = 0;
    assert_int_equal(xl_ledger_ack(l, 0, 9, drain_in_callback, l), 0);
    assert_int_equal(drain_calls, 1);
    assert_int_equal(l->outstanding, 0);
}

LEDGER_TEST(an_endpoint_that_only_acknowledges_stays_small) {
    xl_ledger_init(l);
    for (int i = 0; i < 1000000; i++)
        assert_non_null(xl_ledger_push(l));
    assert_true(l->cap <= 128);
    assert_true(l->outstanding <= l->cap);
}

/* All but one packet in 1000 is acknowledged, for ever: the lost ones are kept in a small ring, not in a large one. */
LEDGER_TEST(losses_that_are_remembered_do_not_grow_a_large_ring) {
    int n = 0;
    xl_ledger_init(l);
    for (uint64_t pn = 0; pn < 100000; pn += 1000) {
        push_n(l, 1000, 100);
        assert_int_equal(xl_ledger_ack(l, pn + 1, pn + 999, count_call, &n), 0);
        xl_ledger_detect_lost(l, 100, LOSS_DELAY, count_call, &n);
        assert_non_null(xl_ledger_find(l, pn));
    }
    assert_int_equal(n, 100000);
    assert_int_equal(l->cap, 8192);
    assert_int_equal(l->outstanding, 0);
}

LEDGER_TEST(trimming_forgets_old_losses_and_keeps_young_ones) {
    int n = 0;
    xl_ledger_init(l);
    push_n(l, 4, 100);
    push_n(l, 4, 200);
    xl_ledger_lose_all(l, -1, count_call, &n);
    xl_ledger_trim(l, 200);
    assert_null(xl_ledger_find(l, 3));
    assert_int_equal(xl_ledger_find(l, 4)->state, XL_SENT_LOST);
    n = 0;
    assert_int_equal(xl_ledger_ack(l, 0, 7, count_call, &n), 0); /* late: spurious */
    assert_int_equal(n, 4);
}

TEST_MAIN(NULL, NULL)
