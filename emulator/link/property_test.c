/* Properties of thousands of random links, arrivals and drivers. */
#include <stdbool.h>
#include <stdio.h>

#include "emulator/link/testing/bench.h"
#include "emulator/link/rng.h"

#define CASES    2000
#define ARRIVALS 150

static link_log any;

static const char *const queues[] = {
    "infinite",
    "droptail:packets=3",
    "droptail:bytes=4000",
    "drophead:packets=3",
    "drophead:bytes=4000",
    "codel:target=2:interval=10",
    "pie:max_burst=0",
    "pie:qdelay_ref=2:bytes=9000",
    "fq_codel:target=2:interval=10:packets=8:flows=16",
    "fq_codel:quantum=300",
};
#define QUEUES (sizeof queues / sizeof queues[0])

static uint64_t below(link_rng *rng, uint64_t n) {
    return link_rng_next(rng) % n;
}

static bool coin(link_rng *rng) {
    return (link_rng_next(rng) >> 40 & 1) != 0;
}

/* Draws a trace with sparse, dense and empty stretches; sometimes a rate. */
static const char *draw_trace(link_rng *rng, char text[1024]) {
    uint64_t count = 1 + below(rng, 20), at = below(rng, 3), used = 0;
    if (below(rng, 5) == 0) {
        snprintf(text, 1024, "%llukbps", (unsigned long long)(300 + below(rng, 30000)));
        return text;
    }
    for (uint64_t i = 0; i < count; i++) {
        at += below(rng, 4) == 0 ? below(rng, 40) : below(rng, 3);
        at += i + 1 == count && at == 0;
        used += (uint64_t)snprintf(text + used, 1024 - used, "%llu\n", (unsigned long long)at);
    }
    return text;
}

static link_config draw_config(link_rng *rng) {
    link_config c = {.log = &any, .seed = link_rng_next(rng), .queue = queues[below(rng, QUEUES)]};
    c.once = below(rng, 8) == 0;
    c.start_offset_ms = coin(rng) ? below(rng, 100) : 0;
    c.delay_us = coin(rng) ? below(rng, 20000) : 0;
    c.jitter_us = coin(rng) ? below(rng, 5000) : 0;
    c.duplicate = coin(rng) ? 0.1 : 0.0;
    if (below(rng, 3) == 0) {
        c.reorder = 0.1;
        c.reorder_us = 1 + below(rng, 10000);
    }
    if (coin(rng))
        c.loss = (link_loss){.good = 0.02, .bad = 0.7, .p = 0.05, .r = 0.3};
    if (below(rng, 3) == 0)
        c.onoff = (link_onoff){.is_random = coin(rng), .count = 2, .us = {30000, 10000}};
    return c;
}

typedef struct {
    link_bench *bench;
    const link_config *config;
    bool in_order, by_flow;
    uint32_t length[ARRIVALS + 1];
    uint8_t flow[ARRIVALS + 1];
    uint64_t sent_us[ARRIVALS + 1];
    uint32_t newest[4]; /* per flow, or [0] */
    uint64_t bytes;     /* delivered */
    uint64_t last_due;
} link_watch;

/* Returns the bytes of the opportunities from t0 to t. */
static uint64_t capacity(const link_watch *w, uint64_t t) {
    const link_trace *trace = &w->bench->trace;
    uint64_t offset = w->config->start_offset_ms * 1000;
    uint64_t before = offset == 0 ? 0 : link_trace_count_near(trace, 0, offset - 1);
    uint64_t until = link_trace_count_near(trace, 0, t + offset);
    uint64_t most = w->config->once && trace->at_ms ? trace->count : UINT64_MAX;
    before = before < most ? before : most;
    until = until < most ? until : most;
    return (until - before) * LINK_OPPORTUNITY_BYTES;
}

static bool is_opportunity(const link_watch *w, uint64_t t) {
    return t > 0 ? capacity(w, t) > capacity(w, t - 1) : capacity(w, 0) > 0;
}

static void check_departure(link_watch *w, const link_packet *p, uint64_t now) {
    uint32_t n = numbered_number(p);
    assert_in_range(n, 1, ARRIVALS);
    assert_int_equal(link_packet_bytes(p), w->length[n]); /* the whole packet that was sent */
    assert_int_equal(p->data[21], w->flow[n]);
    uint64_t least = w->config->delay_us > w->config->jitter_us ? w->config->delay_us - w->config->jitter_us : 0;
    assert_true(p->arrival_us >= w->sent_us[n] + least);
    assert_true(p->due_us > p->arrival_us && p->due_us <= now);
    assert_true(p->due_us / 1000 > p->arrival_us / 1000 || !w->bench->trace.at_ms);
    assert_true(p->due_us >= w->last_due && is_opportunity(w, p->due_us));
    w->last_due = p->due_us;
    w->bytes += w->length[n];
    assert_true(w->bytes <= capacity(w, p->due_us)); /* never more bytes than opportunities */
    uint32_t *newest = &w->newest[w->by_flow ? w->flow[n] : 0];
    assert_true(!w->in_order || n >= *newest); /* a copy has the number of its original */
    *newest = n;
}

static void drain(link_watch *w, uint64_t now) {
    link_advance(w->bench->link, now);
    for (link_packet *p = link_pull(w->bench->link); p; p = link_pull(w->bench->link)) {
        check_departure(w, p, now);
        link_departed(w->bench->link, p, now);
    }
    bench_check_balance(w->bench);
}

static void change_something(link_watch *w, link_rng *rng, uint64_t now) {
    CHANGE(w->bench->link, now, .has_state = true, .is_up = coin(rng));
    const link_loss loss = {.good = 0.1};
    CHANGE(w->bench->link, now, .has_loss = true, .loss = loss);
}

/* Reads the log and compares it with the counters. */
static void check_log(link_watch *w) {
    link_stats s = link_get_stats(w->bench->link);
    uint64_t opportunities = 0, arrived = 0, departed = 0, departed_bytes = 0, dropped = 0;
    link_log_flush(&w->bench->log);
    for (const char *line = w->bench->text; line && *line != '\0'; line = strchr(line, '\n') + 1) {
        unsigned long long t, a;
        char kind;
        assert_int_equal(sscanf(line, "%llu %c %llu", &t, &kind, &a), 3);
        opportunities += kind == '#';
        arrived += kind == '+';
        departed += kind == '-';
        departed_bytes += kind == '-' ? a : 0;
        dropped += kind == 'd' ? a : 0;
    }
    assert_int_equal(opportunities, s.opportunities);
    assert_int_equal(departed, s.departed_packets);
    assert_int_equal(departed_bytes, s.departed_bytes);
    assert_int_equal(dropped, s.queue_drops);
    assert_int_equal(arrived + s.random_losses + s.off_losses + s.oversize_drops, s.arrived_packets + s.duplicates);
}

static void run_case(uint64_t seed) {
    link_rng rng = {seed};
    char trace[1024];
    link_config config = draw_config(&rng);
    link_watch w = {.config = &config, .bench = bench_new(draw_trace(&rng, trace), config)};
    bool changes = below(&rng, 4) == 0;
    w.by_flow = strncmp(config.queue, "fq", 2) == 0;
    w.in_order = config.reorder == 0.0;
    uint64_t now = 0, gap = 1 + below(&rng, 4000);
    for (uint32_t n = 1; n <= ARRIVALS; n++) {
        now += below(&rng, 10) == 0 ? below(&rng, 100000) : below(&rng, gap);
        w.length[n] = 40 + (uint32_t)below(&rng, 1480);
        w.flow[n] = (uint8_t)below(&rng, 4);
        w.sent_us[n] = now;
        bench_send(w.bench, w.flow[n], n, w.length[n], now);
        if (link_next_deadline(w.bench->link) <= now || coin(&rng)) /* sometimes late */
            drain(&w, now);
        if (changes && below(&rng, 30) == 0)
            change_something(&w, &rng, now);
    }
    CHANGE(w.bench->link, now, .has_state = true, .is_up = true);
    for (int i = 0; i < 200 && link_get_stats(w.bench->link).inside_packets > 0; i++) {
        now += 50 * MS;
        drain(&w, now);
    }
    link_stats s = link_get_stats(w.bench->link);
    assert_true(s.inside_packets == 0 || link_next_deadline(w.bench->link) == LINK_NEVER);
    assert_int_equal(s.departed_bytes, w.bytes);
    check_log(&w);
    bench_free(w.bench);
}

TEST(every_link_keeps_its_accounts) {
    for (uint64_t seed = 1; seed <= CASES; seed++)
        run_case(seed);
}

/* ---- a second link, written from the rules, one opportunity after the other ---- */

typedef struct {
    uint32_t size[ARRIVALS + 1];
    uint64_t arrival[ARRIVALS + 1];
    uint32_t queue[ARRIVALS + 1], queued; /* packet numbers, oldest first */
    uint64_t packet_limit, byte_limit;
    bool from_head;
    uint32_t serving, left;
    bench_departure out[ARRIVALS + 1];
    uint32_t out_count, drops;
} queue_model;

static void model_remove(queue_model *m, uint32_t place) {
    memmove(&m->queue[place], &m->queue[place + 1], (m->queued - place - 1) * sizeof m->queue[0]);
    m->queued--;
}

static bool model_is_over(const queue_model *m) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < m->queued; i++)
        bytes += m->size[m->queue[i]];
    return m->queued > m->packet_limit || bytes > m->byte_limit;
}

static void model_arrive(queue_model *m, uint32_t n) {
    m->queue[m->queued++] = n;
    while (model_is_over(m)) {
        model_remove(m, m->from_head ? 0 : m->queued - 1);
        m->drops++;
    }
}

static void model_serve(queue_model *m, uint64_t t) {
    uint32_t budget = LINK_OPPORTUNITY_BYTES;
    while (budget > 0 && (m->serving != 0 || m->queued > 0)) {
        if (m->serving == 0) {
            m->serving = m->queue[0];
            m->left = m->size[m->serving];
            model_remove(m, 0);
        }
        uint32_t n = m->left < budget ? m->left : budget;
        m->left -= n;
        budget -= n;
        if (m->left == 0) {
            m->out[m->out_count++] = (bench_departure){m->serving, t};
            m->serving = 0;
        }
    }
}

/* Steps of 1 ms: first the opportunities of a ms, then its arrivals. */
static void model_run(queue_model *m, const link_trace *trace, uint64_t end_ms) {
    uint32_t next = 1;
    uint64_t k = 0;
    for (uint64_t ms = 0; ms <= end_ms; ms++) {
        for (; k / trace->count * trace->period_ms + trace->at_ms[k % trace->count] == ms; k++)
            model_serve(m, ms * 1000);
        for (; next <= ARRIVALS && m->arrival[next] / 1000 == ms; next++)
            model_arrive(m, next);
    }
}

static const struct {
    const char *queue;
    uint64_t packets, bytes;
    bool from_head;
} simple_queues[] = {
    {"infinite", UINT64_MAX, UINT64_MAX, false},      {"droptail:packets=4", 4, UINT64_MAX, false},
    {"droptail:bytes=5000", UINT64_MAX, 5000, false}, {"droptail:packets=5:bytes=4000", 5, 4000, false},
    {"drophead:packets=4", 4, UINT64_MAX, true},      {"drophead:bytes=5000", UINT64_MAX, 5000, true},
    {"drophead:packets=5:bytes=1000", 5, 1000, true},
};

static void compare_case(uint64_t seed) {
    link_rng rng = {seed};
    static queue_model m;
    size_t q = below(&rng, sizeof simple_queues / sizeof simple_queues[0]);
    char trace[1024];
    link_config config = {.queue = simple_queues[q].queue, .delay_us = below(&rng, 9000)};
    do {
        draw_trace(&rng, trace);
    } while (strstr(trace, "bps"));
    link_bench *b = bench_new(trace, config);
    m = (queue_model){.packet_limit = simple_queues[q].packets, .byte_limit = simple_queues[q].bytes};
    m.from_head = simple_queues[q].from_head;
    uint64_t now = 0, gap = 1 + below(&rng, 3000);
    for (uint32_t n = 1; n <= ARRIVALS; n++) {
        now += below(&rng, gap);
        m.size[n] = 40 + (uint32_t)below(&rng, 1465);
        m.arrival[n] = now + config.delay_us;
        bench_send(b, 0, n, m.size[n], now);
    }
    model_run(&m, &b->trace, now / 1000 + 2000);
    bench_expect(b, now + 2 * S, m.out); /* ends with number 0 */
    assert_int_equal(link_get_stats(b->link).queue_drops, m.drops);
    bench_free(b);
}

TEST(simple_queues_do_what_a_walk_over_the_ms_does) {
    for (uint64_t seed = 1; seed <= CASES; seed++)
        compare_case(seed);
}

TEST_MAIN(NULL, NULL)
