/* For tests of links: one link with its trace, log and pool. Sizes are the link's, IP bytes + 4. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "tests/unit.h"
#include "emulator/link/link.h"
#include "emulator/link/testing/change.h"
#include "emulator/link/testing/numbered.h"

#define MS UINT64_C(1000)
#define S  UINT64_C(1000000)

typedef struct {
    link_trace trace;
    link_pool *pool;
    emulated_link *link;
    link_log log;
    char *text; /* the log so far */
    size_t text_length, text_capacity;
} link_bench;

static inline void bench_sink(void *context, const char *text, size_t length) {
    link_bench *bench = context;
    if (bench->text_length + length + 1 > bench->text_capacity) {
        bench->text_capacity = 2 * (bench->text_length + length + 1);
        bench->text = realloc(bench->text, bench->text_capacity);
        assert_non_null(bench->text);
    }
    memcpy(bench->text + bench->text_length, text, length);
    bench->text_length += length;
    bench->text[bench->text_length] = '\0';
}

/* trace: text of a trace, or a rate. config.log: any address except NULL asks for a log. */
static inline link_bench *bench_new(const char *trace, link_config config) {
    link_bench *bench = calloc(1, sizeof(*bench));
    char error[512] = "";
    uint64_t rate;
    if (link_trace_parse_rate(trace, &rate))
        bench->trace = link_trace_constant(rate);
    else
        assert_true(link_trace_parse(&bench->trace, "t", trace, strlen(trace), error, sizeof error));
    bench->pool = link_pool_new(0);
    link_log_init(&bench->log, bench_sink, bench);
    config.trace = &bench->trace;
    config.pool = bench->pool;
    config.log = config.log ? &bench->log : NULL;
    bench->link = link_new(&config, error, sizeof error);
    if (!bench->link)
        fail_msg("%s", error);
    return bench;
}

static inline void bench_free(link_bench *bench) {
    link_free(bench->link);
    assert_int_equal(link_pool_in_use(bench->pool), 0); /* nothing leaks, whatever is still inside */
    link_pool_free(bench->pool);
    link_trace_free(&bench->trace);
    free(bench->text);
    free(bench);
}

static inline void bench_send(link_bench *bench, uint8_t flow, uint32_t number, uint32_t bytes, uint64_t now) {
    link_packet *packet = numbered_packet(bench->pool, 4, flow, number, bytes - LINK_HEADER_BYTES);
    assert_non_null(packet);
    uint64_t before = link_next_deadline(bench->link);
    assert_true(link_enqueue(bench->link, packet, now) || link_next_deadline(bench->link) == before);
}

/* Sends packets first, first + 1, ... of one size. */
static inline void bench_send_many(link_bench *bench, uint32_t first, uint32_t count, uint32_t bytes, uint64_t now) {
    for (uint32_t i = 0; i < count; i++)
        bench_send(bench, 0, first + i, bytes, now);
}

typedef struct {
    uint32_t number;
    uint64_t due_us;
} bench_departure;

/* Advances to `now` and expects exactly these departures, in this order, at these times (number 0 ends the list). */
static inline void bench_expect(link_bench *bench, uint64_t now, const bench_departure *expected) {
    link_advance(bench->link, now);
    for (; expected->number != 0; expected++) {
        link_packet *packet = link_pull(bench->link);
        assert_non_null(packet);
        assert_int_equal(numbered_number(packet), expected->number);
        assert_int_equal(packet->due_us, expected->due_us);
        link_departed(bench->link, packet, packet->due_us);
    }
    assert_null(link_pull(bench->link));
}
#define BENCH_EXPECT(bench, now, ...)                                                                                  \
    bench_expect(bench, now, (const bench_departure[]){__VA_ARGS__ __VA_OPT__(, ){0, 0}})

static inline void bench_check_balance(const link_bench *bench) {
    link_stats s = link_get_stats(bench->link);
    assert_int_equal(s.arrived_packets + s.duplicates, s.departed_packets + s.queue_drops + s.random_losses +
                                                           s.off_losses + s.oversize_drops + s.memory_drops +
                                                           s.nat_drops + s.retry_drops + s.inside_packets);
    assert_true(s.opportunities_used <= s.opportunities);
}
