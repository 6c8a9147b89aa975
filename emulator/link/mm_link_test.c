/* Comparison with logs of Mahimahi's mm-link (tests/data/mm-link): with the arrivals of a log, our link produces the
 * log's opportunities, departures with their delays, and drops. */
#include <inttypes.h>
#include <stdio.h>

#include "emulator/link/testing/bench.h"

static link_log any; /* asks for a log */

typedef struct {
    uint64_t t_ms;
    char kind;
    char rest[40]; /* the numbers after it */
} event;

/* Reads the next event of a log, with its time since the log's base timestamp. False at the end. */
static bool next_event(const char **text, uint64_t *base_ms, event *e) {
    while (**text != '\0') {
        const char *line = *text, *end = strchr(line, '\n');
        *text = end ? end + 1 : line + strlen(line);
        if (sscanf(line, "# base timestamp: %" SCNu64, base_ms) == 1 || *line == '#')
            continue;
        assert_int_equal(sscanf(line, "%" SCNu64 " %c %39[^\n]", &e->t_ms, &e->kind, e->rest), 3);
        e->t_ms -= *base_ms;
        return true;
    }
    return false;
}

static void drain(link_bench *b, uint64_t now) {
    link_advance(b->link, now);
    for (link_packet *p = link_pull(b->link); p; p = link_pull(b->link))
        link_departed(b->link, p, p->due_us);
}

/* Sends the arrivals of the log, moment_us within their millisecond, and advances to the last event. */
static void bring_arrivals(link_bench *b, const char *log, uint64_t moment_us) {
    uint64_t base_ms = 0, last_ms = 0;
    uint32_t number = 0;
    for (event e; next_event(&log, &base_ms, &e); last_ms = e.t_ms) {
        if (e.kind != '+')
            continue;
        drain(b, e.t_ms * MS + moment_us);
        bench_send(b, 0, ++number, (uint32_t)strtoul(e.rest, NULL, 10), e.t_ms * MS + moment_us);
    }
    drain(b, last_ms * MS + MS - 1);
    link_log_flush(&b->log);
}

/* Checks that events of this kind are the same. mm-link's log may end within a millisecond. Returns their number. */
static size_t compare(const char *theirs, const char *ours, char kind) {
    uint64_t base_ms = 0, zero = 0;
    size_t count = 0;
    for (event their, our; next_event(&theirs, &base_ms, &their);) {
        if (their.kind != kind)
            continue;
        do
            assert_true(next_event(&ours, &zero, &our));
        while (our.kind != kind);
        assert_int_equal(our.t_ms, their.t_ms);
        assert_string_equal(our.rest, their.rest);
        count++;
    }
    return count;
}

static void expect_as_logged(const char *file, const char *trace, const char *queue, bool once, size_t departures,
                             size_t drops) {
    char name[80], error[256], *log;
    size_t length;
    snprintf(name, sizeof name, "tests/data/mm-link/%s", file);
    if (!link_trace_read_file(name, &log, &length, error, sizeof error))
        fail_msg("%s", error);
    static const uint64_t moments_us[] = {0, 500, 999};
    for (size_t i = 0; i < 3; i++) {
        link_bench *b = bench_new(trace, (link_config){.queue = queue, .once = once, .log = &any});
        bring_arrivals(b, log, moments_us[i]);
        assert_true(compare(log, b->text, '#') > 0);
        assert_int_equal(compare(log, b->text, '-'), departures);
        assert_int_equal(compare(log, b->text, 'd'), drops);
        bench_free(b);
    }
    free(log);
}

TEST(droptail_is_mm_links) {
    expect_as_logged("droptail.log", "0\n0\n5\n10\n10\n20\n", "droptail:bytes=12000:packets=15", false, 72, 21);
}

TEST(drophead_is_mm_links) {
    expect_as_logged("drophead.log", "0\n0\n5\n10\n10\n20\n", "drophead:packets=6", false, 54, 39);
}

TEST(a_queue_without_a_limit_is_mm_links) {
    expect_as_logged("infinite.log", "3\n4\n4\n4\n50\n120\n", "infinite", false, 43, 0);
}

TEST(a_trace_that_is_replayed_once_ends_as_mm_links) {
    expect_as_logged("once.log", "5\n5\n20\n40\n41\n90\n", "infinite", true, 4, 0);
}

TEST_MAIN(NULL, NULL)
