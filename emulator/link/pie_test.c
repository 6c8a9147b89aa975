/* PIE against the pseudo-code of RFC 8033, appendix A, with the cap of section 5.5: both drop the same packets for any
 * arrivals and departures. */
#include <stdbool.h>
#include "tests/unit.h"
#include "emulator/link/queue.h"

#define MS   UINT64_C(1000)
#define S    UINT64_C(1000000)
#define SIZE 1504
#define MOST 8192 /* packets in the model's queue */

/* The RFC's variables, times in seconds. */
typedef struct {
    double qdelay_ref, max_burst;
    double drop_prob, accu_prob, qdelay_old, burst_allowance;
    uint64_t next_update_us;
    uint64_t arrival_us[MOST]; /* of the queued packets: a ring */
    size_t head, count;
    link_rng rng;
} pie_model;

static void model_update(pie_model *m, uint64_t t) {
    double qdelay = m->count > 0 ? (double)(t - m->arrival_us[m->head]) / 1e6 : 0.0;
    double p = 0.125 * (qdelay - m->qdelay_ref) + 1.25 * (qdelay - m->qdelay_old);
    if (m->drop_prob < 0.000001)
        p /= 2048;
    else if (m->drop_prob < 0.00001)
        p /= 512;
    else if (m->drop_prob < 0.0001)
        p /= 128;
    else if (m->drop_prob < 0.001)
        p /= 32;
    else if (m->drop_prob < 0.01)
        p /= 8;
    else if (m->drop_prob < 0.1)
        p /= 2;
    if (m->drop_prob >= 0.1 && p > 0.02)
        p = 0.02;
    m->drop_prob += p;
    if (qdelay == 0.0 && m->qdelay_old == 0.0)
        m->drop_prob *= 0.98;
    m->drop_prob = m->drop_prob < 0.0 ? 0.0 : m->drop_prob > 1.0 ? 1.0 : m->drop_prob;
    m->burst_allowance = m->burst_allowance > 0.015 ? m->burst_allowance - 0.015 : 0.0;
    if (m->drop_prob == 0.0 && qdelay < m->qdelay_ref / 2 && m->qdelay_old < m->qdelay_ref / 2)
        m->burst_allowance = m->max_burst;
    m->qdelay_old = qdelay;
}

static void model_until(pie_model *m, uint64_t now) {
    for (; m->next_update_us <= now; m->next_update_us += 15 * MS)
        model_update(m, m->next_update_us);
}

static bool model_drops(pie_model *m) {
    if (m->burst_allowance > 1e-9 || (m->qdelay_old < m->qdelay_ref / 2 && m->drop_prob < 0.2) ||
        m->count * SIZE <= 2 * SIZE)
        return false;
    m->accu_prob = m->drop_prob == 0.0 ? 0.0 : m->accu_prob + m->drop_prob;
    if (m->accu_prob < 0.85)
        return false;
    bool drops = link_rng_uniform(&m->rng) < m->drop_prob || m->accu_prob >= 8.5;
    m->accu_prob = drops ? 0.0 : m->accu_prob;
    return drops;
}

typedef struct {
    link_pool *pool;
    link_queue *queue;
    pie_model model;
    uint64_t dropped;
} pie_pair;

static void arrive(pie_pair *p, uint64_t now) {
    link_packet *packet = link_pool_get(p->pool);
    packet->length = SIZE - LINK_HEADER_BYTES;
    packet->arrival_us = now;
    link_queue_enqueue(p->queue, packet, now);
    model_until(&p->model, now);
    if (model_drops(&p->model)) {
        p->dropped++;
    } else {
        assert_true(p->model.count < MOST);
        p->model.arrival_us[(p->model.head + p->model.count++) % MOST] = now;
    }
    assert_int_equal(p->dropped, p->queue->dropped_packets);
}

static void depart(pie_pair *p, uint64_t now) {
    link_packet *packet = link_queue_dequeue(p->queue, now);
    model_until(&p->model, now);
    assert_int_equal(packet != NULL, p->model.count > 0);
    if (packet) {
        assert_int_equal(p->model.arrival_us[p->model.head], packet->arrival_us);
        p->model.head = (p->model.head + 1) % MOST;
        p->model.count--;
        link_pool_put(p->pool, packet);
    }
}

/* A minute with a departure per ms and a load that changes twice a second, from none to twice the rate, with bursts. */
static uint64_t run(const char *specification, double qdelay_ref, double max_burst, uint64_t seed) {
    static pie_pair p;
    char error[256];
    link_rng load = {seed};
    p = (pie_pair){.pool = link_pool_new(0)};
    p.queue = link_queue_new(specification, p.pool, seed, error, sizeof error);
    assert_non_null(p.queue);
    p.model = (pie_model){.qdelay_ref = qdelay_ref,
                          .max_burst = max_burst,
                          .burst_allowance = max_burst,
                          .next_update_us = 15 * MS,
                          .rng = {seed}};
    double arrivals_a_ms = 1.0;
    for (uint64_t now = 0; now < 60 * S; now += MS) {
        if (now % (500 * MS) == 0) {
            static const double loads[] = {0.0, 0.6, 0.99, 1.1, 2.0, 0.2};
            arrivals_a_ms = loads[link_rng_next(&load) % 6];
        }
        uint64_t at = now;
        for (double left = arrivals_a_ms; left > 0.0; left -= 1.0)
            if (link_rng_uniform(&load) < left)
                arrive(&p, at += link_rng_next(&load) % 400);
        for (uint64_t burst = link_rng_next(&load) % 5000 == 0 ? 120 : 0; burst > 0; burst--)
            arrive(&p, now + 999);
        if (now / S % 20 != 19) /* no departures in one second of twenty */
            depart(&p, now + 999);
    }
    link_queue_free(p.queue);
    assert_int_equal(link_pool_in_use(p.pool), 0);
    link_pool_free(p.pool);
    return p.dropped;
}

TEST(it_drops_what_the_rfc_drops) {
    for (uint64_t seed = 1; seed <= 3; seed++) {
        assert_true(run("pie:packets=1000000", 0.015, 0.15, seed) > 100);
        assert_true(run("pie:packets=1000000:qdelay_ref=40:max_burst=60", 0.04, 0.06, seed) > 100);
    }
}

TEST_MAIN(NULL, NULL)
