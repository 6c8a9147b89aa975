/* Others' traffic on a link, and links in a row. */
#include <stdio.h>

#include "emulator/link/testing/bench.h"
#include "emulator/link/route.h"

static link_log any;

static uint64_t departed(link_bench *b, uint64_t now) {
    link_advance(b->link, now);
    return link_get_stats(b->link).cross_departed;
}

/* 1.504 Mbps are 125 packets of 1504 bytes per second. */
TEST(a_constant_rate_takes_its_share) {
    link_bench *b = bench_new("12mbps", (link_config){.queue = "droptail:packets=10", .cross = {.rate_bps = 1504000}});
    assert_in_range(departed(b, 10 * S), 1249, 1250);
    assert_int_equal(link_next_deadline(b->link), LINK_NEVER); /* there is no deadline for others' packets */
    link_stats s = link_get_stats(b->link);
    assert_int_equal(s.arrived_packets + s.departed_packets + s.queue_drops + s.inside_packets, 0);
    assert_int_equal(s.opportunities_used, s.cross_departed);
    bench_free(b);
}

/* For any steps of the driver, and with random gaps and times. */
TEST(steps_of_the_driver_change_nothing) {
    static link_step steps[] = {{0, 3000000}, {300 * MS, 0}, {450 * MS, 8000000}, {700 * MS, 0}};
    static const link_steps profile = {steps, 4};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        link_cross set = {.rate_bps = 2000000, .random_gaps = seed % 2 == 0, .bytes = 28 + 30 * (uint32_t)seed};
        set.profile = seed % 3 == 0 ? &profile : NULL;
        if (seed % 5 == 0)
            set.onoff = (link_onoff){.is_random = true, .count = 2, .us = {90 * MS, 40 * MS}};
        link_cross_state whole, steppy;
        link_cross_init(&whole, &set, seed, 7 * MS, 0);
        link_cross_init(&steppy, &set, seed, 7 * MS, 0);
        for (uint64_t now = 0, packets = 0; now < 3 * S; now += 1 + seed * 977 % 5003) {
            for (uint64_t t = link_cross_next(&steppy, now); t != UINT64_MAX; t = link_cross_next(&steppy, now)) {
                assert_int_equal(link_cross_next(&whole, 4 * S), t);
                link_cross_take(&whole);
                link_cross_take(&steppy);
                packets++;
            }
            assert_true(now < 2 * S || packets > 100);
        }
    }
}

static uint64_t packets_until(link_cross_state *state, uint64_t until) {
    uint64_t n = 0;
    for (; link_cross_next(state, until) != UINT64_MAX; n++)
        link_cross_take(state);
    return n;
}

/* Over a long time the rate is the set one: for a profile the mean of its period, with on/off times the share of on. */
TEST(the_rate_is_the_one_that_was_set) {
    static link_step steps[] = {{0, 2000000}, {500 * MS, 6000000}, {S, 0}};
    static const link_steps profile = {steps, 3};
    const link_onoff half = {.count = 2, .us = {250 * MS, 250 * MS}};
    const struct {
        link_cross set;
        double bps, error;
    } cases[] = {
        {{.rate_bps = 4000000}, 4e6, 0.0001},
        {{.rate_bps = 4000000, .bytes = 28}, 4e6, 0.0001},
        {{.rate_bps = 4000000, .random_gaps = true}, 4e6, 0.02},
        {{.profile = &profile}, 4e6, 0.0001},
        {{.profile = &profile, .onoff = half}, 2e6, 0.001},
        {{.rate_bps = 4000000, .onoff = {.is_random = true, .count = 2, .us = {30 * MS, 90 * MS}}}, 1e6, 0.12},
        {{.rate_bps = LINK_CROSS_MOST_BPS, .bytes = 28}, 1e10, 0.0001},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint64_t length = cases[i].bps > 1e9 ? S / 100 : 100 * S;
        link_cross_state cross;
        link_cross_init(&cross, &cases[i].set, 3, 0, 0);
        uint32_t bytes = (cases[i].set.bytes == 0 ? 1500 : cases[i].set.bytes) + 4;
        double bps = (double)packets_until(&cross, length) * bytes * 8e6 / (double)length;
        if (bps < cases[i].bps * (1 - cases[i].error) || bps > cases[i].bps * (1 + cases[i].error))
            fail_msg("case %zu: %f", i, bps);
    }
}

TEST(a_profile_repeats_and_begins_where_it_is_told) {
    link_steps p;
    char error[200];
    uint64_t stays;
    static const char text[] = "10,1.5\n20,0\n30.5,4";
    assert_true(link_text_parse(&link_cross_profile_form, &p, "p", text, strlen(text), error, sizeof error));
    assert_int_equal(link_steps_at(&p, 0, false, &stays), 1500000);
    assert_int_equal(stays, 10000);
    assert_int_equal(link_steps_at(&p, 30499, false, &stays), 0);
    assert_int_equal(stays, 1);
    assert_int_equal(link_steps_at(&p, 30500 + 10000, false, &stays), 1500000);
    assert_int_equal(stays, 10000);
    link_steps_free(&p);
    static const char *const bad[] = {"", "1", "1,2,3", "5,1\n5,2", "1,10001", "1,-1", "\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(link_text_parse(&link_cross_profile_form, &p, "p", bad[i], strlen(bad[i]), error, sizeof error));
        assert_memory_equal(error, i == 3 ? "p:2: the line " : "p:1: the line ", 14);
    }
}

/* A flow gets the rate that others leave, in order, and its counters do not include theirs. */
TEST(others_are_counted_apart) {
    link_bench *b = bench_new("12mbps", (link_config){.queue = "droptail:packets=20",
                                                      .log = &any,
                                                      .cross = {.rate_bps = 6000000, .random_gaps = true}});
    uint32_t sent = 0, newest = 0, received = 0;
    for (uint64_t now = 0; now < 4 * S; now += 500) {
        bench_send(b, 0, ++sent, 1504, now);
        while (link_next_deadline(b->link) <= now) {
            link_advance(b->link, now);
            for (link_packet *p = link_pull(b->link); p; p = link_pull(b->link)) {
                assert_false(p->is_cross);
                assert_true(numbered_number(p) > newest);
                newest = numbered_number(p);
                received++;
                link_departed(b->link, p, now);
            }
        }
        bench_check_balance(b);
    }
    link_stats s = link_get_stats(b->link);
    assert_int_equal(s.departed_packets, received);
    assert_int_equal(s.cross_packets, s.cross_departed + s.cross_drops + s.cross_inside);
    assert_int_equal(link_pool_in_use(b->pool), s.inside_packets + s.cross_inside);
    assert_in_range(s.departed_packets + s.cross_departed, s.opportunities - 2, s.opportunities);
    /* The queue is full. The first packet to come takes the place that an opportunity frees. One of ours comes every
     * 500 us, one of theirs every 2000 us at random, so theirs is first with a probability of about 250 / 2000. */
    assert_in_range(1000 * s.cross_departed / s.opportunities, 105, 145);
    uint64_t lines[128] = {0}, cross_drops = 0;
    link_log_flush(&b->log);
    for (const char *line = b->text; *line != '\0'; line = strchr(line, '\n') + 1) {
        unsigned long long t, n;
        char kind;
        assert_int_equal(sscanf(line, "%llu %c %llu", &t, &kind, &n), 3);
        lines[(int)kind]++;
        cross_drops += kind == 'x' ? n : 0;
    }
    assert_int_equal(lines['c'] + 0, s.cross_packets);
    assert_int_equal(lines['s'], s.cross_departed);
    assert_int_equal(lines['-'], s.departed_packets);
    assert_int_equal(cross_drops, s.cross_drops);
    bench_free(b);
}

TEST(a_link_that_is_off_takes_nobody) {
    char error[200];
    link_bench *b = bench_new("12mbps", (link_config){.queue = "droptail:packets=10", .cross = {.rate_bps = 1504000}});
    CHANGE(b->link, S, .has_state = true, .is_up = false);
    departed(b, 2 * S);
    CHANGE(b->link, 2 * S, .has_state = true, .is_up = true);
    assert_in_range(link_get_stats(b->link).cross_drops, 124, 125);
    CHANGE(b->link, 2 * S, .has_cross = true, .cross_bps = 0);
    uint64_t before = link_get_stats(b->link).cross_packets;
    departed(b, 3 * S);
    assert_int_equal(link_get_stats(b->link).cross_packets, before);
    CHANGE(b->link, 3 * S, .has_cross = true, .cross_bps = 3008000);
    departed(b, 4 * S);
    assert_in_range(link_get_stats(b->link).cross_packets - before, 249, 250);
    bench_free(b);
    link_trace trace = link_trace_constant(1000000);
    link_config endless = {.trace = &trace, .pool = link_pool_new(0), .cross = {.rate_bps = 1}};
    assert_null(link_new(&endless, error, sizeof error));
    assert_string_equal(error, LINK_CROSS_NEEDS_LIMIT);
    link_pool_free(endless.pool);
}

/* ---- links in a row ---- */

TEST(names_become_ways) {
    static const char *const names[] = {"core", "edge", "a", "b", "c"};
    link_via via = {.count = 1};
    char error[200];
    assert_true(link_via_parse(&via, NULL, names, 5, error, sizeof error) && via.count == 0);
    assert_true(link_via_parse(&via, "edge:core", names, 5, error, sizeof error) && via.count == 2);
    link_route up = link_route_make(8, &via, 10, true), down = link_route_make(9, &via, 10, false);
    assert_true(up.count == 3 && up.links[0] == 8 && up.links[1] == 12 && up.links[2] == 10);
    assert_true(down.count == 3 && down.links[0] == 11 && down.links[1] == 13 && down.links[2] == 9);
    static const char *const bad[] = {"", "core:", "cor", "core:core", "core:edge:a:b:c"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(link_via_parse(&via, bad[i], names, 5, error, sizeof error));
}

#define WAYS    3
#define LINKS   5 /* three paths and two bottlenecks */
#define PACKETS 400

/* Packets on three routes, two of which share a bottleneck and all of which share the other one. */
typedef struct {
    link_bench *links[LINKS];
    link_route routes[WAYS];
    uint32_t newest[WAYS], got, sent;
    uint64_t bytes[LINKS], sent_us[PACKETS + 1];
} network;

static void pull_all(network *n, size_t number, uint64_t now) {
    emulated_link *link = n->links[number]->link;
    link_advance(link, now);
    for (link_packet *p = link_pull(link); p; p = link_pull(link)) {
        int next = link_route_next(&n->routes[p->route], p);
        assert_int_equal(p->due_us, now); /* the driver is on time */
        n->bytes[number] += link_packet_bytes(p);
        if (next >= 0) {
            link_route_forward(link, n->links[next]->link, p, now);
            continue;
        }
        assert_true(numbered_number(p) >= n->newest[p->route]); /* order is kept on each route; duplicates follow */
        n->newest[p->route] = numbered_number(p);
        n->got++;
        assert_true(now >= n->sent_us[numbered_number(p)] + 3 * MS + 2 * MS + 1 * MS * (p->route < 2));
        link_departed(link, p, now);
    }
}

/* Handles everything that is due up to `until`, in the order of time. */
static void pass(network *n, uint64_t until) {
    for (;;) {
        size_t first = 0;
        for (size_t i = 1; i < LINKS; i++)
            if (link_next_deadline(n->links[i]->link) < link_next_deadline(n->links[first]->link))
                first = i;
        uint64_t at = link_next_deadline(n->links[first]->link);
        if (at > until)
            return;
        pull_all(n, first, at);
    }
}

static void run_network(uint64_t seed) {
    link_rng rng = {seed};
    network n = {.sent = 0};
    static const char *const rates[LINKS] = {"20mbps", "30mbps", "10mbps", "15mbps", "18mbps"};
    static const uint64_t delays[LINKS] = {3 * MS, 3 * MS, 3 * MS, 1 * MS, 2 * MS};
    for (size_t i = 0; i < LINKS; i++) {
        link_config c = {.delay_us = delays[i],
                         .queue = seed % 2 ? "droptail:packets=12" : "fq_codel:packets=12",
                         .seed = seed + i,
                         .duplicate = i == 1 ? 0.05 : 0};
        if (i >= 3)
            c.cross = (link_cross){.rate_bps = 2000000, .random_gaps = true};
        n.links[i] = bench_new(rates[i], c);
        if (i > 0) { /* packets move between links, so all links use one pool */
            link_free(n.links[i]->link);
            c.trace = &n.links[i]->trace;
            c.pool = n.links[0]->pool;
            char error[200];
            n.links[i]->link = link_new(&c, error, sizeof error);
            assert_non_null(n.links[i]->link);
        }
    }
    for (uint16_t way = 0; way < WAYS; way++)
        n.routes[way] = way < 2 ? (link_route){{way, 3, 4}, 3} : (link_route){{way, 4}, 2};
    uint64_t now = 0;
    for (uint32_t k = 1; k <= PACKETS; k++) {
        now += link_rng_next(&rng) % 900;
        pass(&n, now);
        size_t way = link_rng_next(&rng) % WAYS;
        uint32_t length = 60 + (uint32_t)(link_rng_next(&rng) % 1440);
        link_packet *p = numbered_packet(n.links[0]->pool, 4, (uint8_t)way, k, length);
        n.sent_us[k] = now;
        n.sent++;
        link_route_begin(p, way);
        link_enqueue(n.links[way]->link, p, now);
    }
    pass(&n, now + 10 * S);
    uint64_t drops = 0, duplicates = 0, inside = 0;
    for (size_t i = 0; i < LINKS; i++) {
        link_stats s = link_get_stats(n.links[i]->link);
        bench_check_balance(n.links[i]);
        drops += s.queue_drops;
        duplicates += s.duplicates;
        inside += s.inside_packets;
        assert_int_equal(s.departed_bytes, n.bytes[i]);
        /* The opportunities bound the bytes, others' packets included. */
        assert_true(s.departed_bytes + s.cross_departed_bytes <= s.opportunities_used * LINK_OPPORTUNITY_BYTES);
    }
    assert_int_equal(inside, 0);
    assert_int_equal(n.sent + duplicates, n.got + drops); /* no packet appears or vanishes */
    assert_true(n.got > PACKETS / 4);
    for (size_t i = 1; i < LINKS; i++) {
        link_free(n.links[i]->link);
        n.links[i]->link = NULL;
    }
    for (size_t i = LINKS; i-- > 0;)
        bench_free(n.links[i]);
}

TEST(no_packet_appears_or_vanishes_between_links) {
    for (uint64_t seed = 1; seed <= 300; seed++)
        run_network(seed);
}

TEST_MAIN(NULL, NULL)
