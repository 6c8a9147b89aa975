/* How codel, pie and fq_codel control a queue that responsive senders fill. Their windows grow by a packet per RTT and
 * are halved by a loss, at most once per RTT (Reno's congestion avoidance), over 12 Mbps with a base RTT of 40 ms. */

#include "emulator/link/testing/bench.h"

#define BASE_RTT  (40 * MS)
#define SOURCES   4
#define MOST_ACKS 65536

typedef struct {
    double window;
    uint32_t sent, next_expected, in_flight;
    uint64_t recover_us; /* no second halving before */
} aqm_source;

typedef struct {
    uint64_t at_us;
    uint32_t number;
    uint8_t source;
} source_ack;

typedef struct {
    link_bench *bench;
    aqm_source sources[SOURCES];
    size_t count;
    source_ack acks[MOST_ACKS]; /* a ring, by time */
    size_t first, last;
    uint64_t measured_from_us;
    uint64_t delay_sum_us, delay_max_us, delivered;
} aqm_run;

static void send_window(aqm_run *r, uint8_t i, uint64_t now) {
    aqm_source *s = &r->sources[i];
    while (s->in_flight < (uint32_t)s->window) {
        bench_send(r->bench, i, ++s->sent, 1504, now);
        s->in_flight++;
    }
}

/* Handles an acknowledgement, which comes a base RTT after the departure. */
static void take_ack(aqm_run *r, const source_ack *ack) {
    aqm_source *s = &r->sources[ack->source];
    uint32_t lost = ack->number - s->next_expected;
    s->in_flight -= lost + 1;
    s->next_expected = ack->number + 1;
    if (lost > 0 && ack->at_us >= s->recover_us) {
        s->window = s->window / 2 < 2 ? 2 : s->window / 2;
        s->recover_us = ack->at_us + BASE_RTT;
    } else if (lost == 0) {
        s->window += 1.0 / s->window;
    }
    send_window(r, ack->source, ack->at_us);
}

static void take_departures(aqm_run *r, uint64_t now) {
    link_advance(r->bench->link, now);
    for (link_packet *p = link_pull(r->bench->link); p; p = link_pull(r->bench->link)) {
        uint64_t delay = p->due_us - p->arrival_us;
        if (now >= r->measured_from_us) {
            r->delay_sum_us += delay;
            r->delay_max_us = delay > r->delay_max_us ? delay : r->delay_max_us;
            r->delivered++;
        }
        r->acks[r->last] = (source_ack){p->due_us + BASE_RTT, numbered_number(p), p->data[21]};
        r->last = (r->last + 1) % MOST_ACKS;
        link_departed(r->bench->link, p, now);
    }
}

/* Runs `count` sources for a minute and measures its second half. */
static aqm_run *run(const char *queue, size_t count) {
    aqm_run *r = calloc(1, sizeof *r);
    r->bench = bench_new("12mbps", (link_config){.queue = queue, .seed = 7});
    r->count = count;
    r->measured_from_us = 30 * S;
    for (size_t i = 0; i < count; i++) {
        r->sources[i] = (aqm_source){.window = 10, .next_expected = 1};
        send_window(r, (uint8_t)i, 0);
    }
    for (uint64_t now = 0; now < 60 * S;) {
        uint64_t due = link_next_deadline(r->bench->link);
        uint64_t ack = r->first != r->last ? r->acks[r->first].at_us : LINK_NEVER;
        now = due < ack ? due : ack;
        if (due <= ack) {
            take_departures(r, now);
        } else {
            take_ack(r, &r->acks[r->first]);
            r->first = (r->first + 1) % MOST_ACKS;
        }
    }
    return r;
}

/* Measures the mean queueing delay in us and the share of used opportunities in the second half. */
static void measure(const char *queue, size_t count, uint64_t *mean_us, double *utilisation) {
    aqm_run *r = run(queue, count);
    *mean_us = r->delay_sum_us / r->delivered;
    *utilisation = (double)r->delivered * 12032 / (12e6 * 30);
    bench_check_balance(r->bench);
    bench_free(r->bench);
    free(r);
}

/* The problem that the disciplines solve: droptail's queue of 300 packets, or 300 ms, is full half of the time. */
TEST(droptail_has_a_standing_queue) {
    uint64_t mean_us;
    double utilisation;
    measure("droptail:packets=300", SOURCES, &mean_us, &utilisation);
    assert_true(mean_us > 100 * MS);
    assert_true(utilisation > 0.99);
}

TEST(codel_holds_the_queue_near_its_target) {
    static const struct {
        const char *queue;
        uint64_t least_us, most_us;
    } cases[] = {{"codel", 1 * MS, 10 * MS}, {"codel:target=20:interval=100", 7 * MS, 30 * MS}};
    for (size_t i = 0; i < 2; i++) {
        for (size_t count = 1; count <= SOURCES; count += SOURCES - 1) {
            uint64_t mean_us;
            double utilisation;
            measure(cases[i].queue, count, &mean_us, &utilisation);
            assert_in_range(mean_us, cases[i].least_us, cases[i].most_us);
            assert_true(utilisation > (count == 1 ? 0.8 : 0.9)); /* one Reno flow alone halves into an empty queue */
        }
    }
}

TEST(pie_holds_the_queue_near_its_reference) {
    static const struct {
        const char *queue;
        uint64_t least_us, most_us;
    } cases[] = {{"pie", 8 * MS, 22 * MS}, {"pie:qdelay_ref=40", 25 * MS, 55 * MS}};
    for (size_t i = 0; i < 2; i++) {
        uint64_t mean_us;
        double utilisation;
        measure(cases[i].queue, SOURCES, &mean_us, &utilisation);
        assert_in_range(mean_us, cases[i].least_us, cases[i].most_us);
        assert_true(utilisation > 0.95);
    }
}

/* 95 packets at once take 95 ms at 12 Mbps: less than CoDel's interval and PIE's burst allowance. */
TEST(a_burst_passes_untouched) {
    static const char *const queues[] = {"codel", "pie", "fq_codel"};
    for (size_t i = 0; i < 3; i++) {
        link_bench *b = bench_new("12mbps", (link_config){.queue = queues[i]});
        for (uint32_t burst = 0; burst < 10; burst++) {
            bench_send_many(b, 1, 95, 1504, burst * S);
            link_advance(b->link, burst * S + 900 * MS);
        }
        assert_int_equal(link_get_stats(b->link).queue_drops, 0);
        bench_free(b);
    }
}

static uint64_t worst_delay_of_a_sparse_flow(const char *queue) {
    link_bench *b = bench_new("12mbps", (link_config){.queue = queue});
    uint64_t worst = 0;
    uint32_t arrived = 0;
    for (uint32_t n = 1; n <= 5000; n++) { /* 24 Mbps of bulk, and 100 bytes every 20 ms */
        uint64_t now = n * 500;
        bench_send(b, 1, n, 1504, now);
        if (n % 40 == 0)
            bench_send(b, 2, n, 100, now);
        link_advance(b->link, now);
        for (link_packet *p = link_pull(b->link); p; p = link_pull(b->link)) {
            uint64_t delay = p->due_us - p->arrival_us;
            worst = p->data[21] == 2 && delay > worst ? delay : worst;
            arrived += p->data[21] == 2;
            link_departed(b->link, p, now);
        }
    }
    assert_true(arrived > 100 || strncmp(queue, "fq", 2) != 0);
    bench_free(b);
    return worst;
}

/* Beside a bulk flow of twice the link's rate, the delay is 2 to 3 ms: the packet in service, the rest of an
 * opportunity, and its own opportunity. */
TEST(fq_codel_keeps_the_delay_of_a_sparse_flow_low) {
    assert_in_range(worst_delay_of_a_sparse_flow("fq_codel"), 1, 3 * MS);
    assert_true(worst_delay_of_a_sparse_flow("infinite") > 1000 * MS);
}

TEST(fq_codel_shares_the_link_among_greedy_flows) {
    aqm_run *r = run("fq_codel", SOURCES);
    for (size_t i = 0; i < SOURCES; i++) {
        double share = (double)r->sources[i].next_expected / (60.0 * 12e6 / 12032);
        assert_true(share > 0.22 && share < 0.28);
    }
    assert_true(r->delay_sum_us / r->delivered < 15 * MS);
    bench_free(r->bench);
    free(r);
}

TEST_MAIN(NULL, NULL)
