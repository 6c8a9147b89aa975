/* xlink-load: many clients of one server or balancer in one process, each with its own source addresses. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/descriptors.h"
#include "base/error.h"
#include "base/jsonl.h"
#include "base/wait.h"
#include "load/options.h"
#include "xlink/udp.h"

#define PROGRAM     "xlink-load"
#define MAX_EVENTS  256
#define START_BURST 16 /* connections started at once, before events of others are handled */

typedef struct {
    load_client *client; /* NULL: not started, or over and counted */
    uint64_t timeout;
} slot;

typedef struct {
    load_options o;
    jsonl *log;
    int epoll;
    slot *slots;
    uint64_t started, running, over, start_us, next_start;
    uint64_t outcomes[LOAD_OUTCOMES], bytes;
    double *handshakes, *durations;
    size_t handshake_count, duration_count;
} load;

static void log_result(load *l, uint64_t number, const load_result *r) {
    json_t *paths = json_array();
    for (size_t i = 0; i < r->path_count; i++) {
        const load_path *p = &r->path[i];
        char text[64];
        json_array_append_new(paths, json_pack("{s:s, s:s, s:I}", "local", xl_addr_format(&p->local, text, sizeof text),
                                               "state", xl_path_state_name(p->state), "bytes_received",
                                               (json_int_t)p->bytes_received));
    }
    jsonl_write(l->log, "connection",
                json_pack("{s:I, s:s, s:s, s:o, s:o, s:I, s:I, s:o, s:o}", "number", (json_int_t)number, "outcome",
                          load_outcome_name(r->outcome), "reason", r->reason, "handshake_s",
                          r->connected_after ? jsonl_seconds(r->connected_after) : json_null(), "duration_s",
                          jsonl_seconds(r->ended_after), "requests", (json_int_t)r->requests_done, "bytes",
                          (json_int_t)r->bytes, "longest_request_s", jsonl_seconds(r->longest_request_us), "paths",
                          paths),
                xl_udp_now());
}

/* Counts and frees the client of a slot, which is over. */
static void account(load *l, uint64_t number) {
    slot *s = &l->slots[number];
    const load_result *r = load_client_result(s->client);
    l->outcomes[r->outcome]++;
    l->bytes += r->bytes;
    if (r->connected_after > 0)
        l->handshakes[l->handshake_count++] = (double)r->connected_after / 1e6;
    if (r->outcome == LOAD_COMPLETE)
        l->durations[l->duration_count++] = (double)r->ended_after / 1e6;
    log_result(l, number, r);
    jsonl_flush(l->log);
    load_client_free(s->client);
    s->client = NULL;
    l->running--;
    l->over++;
}

static bool start_one(load *l, uint64_t now, char *error) {
    uint64_t number = l->started;
    slot *s = &l->slots[number];
    s->client = load_client_start(&l->o.plan, number, now, error, LOAD_ERROR_BYTES);
    if (!s->client)
        return false;
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = number};
    l->started++;
    l->running++;
    if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, load_client_fd(s->client), &e) != 0)
        return error_set(error, LOAD_ERROR_BYTES, "cannot wait for datagrams: %s", strerror(errno));
    s->timeout = load_client_next_timeout(s->client);
    l->next_start = now + l->o.interval_us;
    return true;
}

static bool start_due(load *l, char *error) {
    for (int i = 0; i < START_BURST; i++) {
        uint64_t now = xl_udp_now();
        if (l->started == l->o.connections || l->running == l->o.concurrent || now < l->next_start)
            return true;
        if (!start_one(l, now, error))
            return false;
    }
    return true;
}

static void step(load *l, uint64_t number) {
    slot *s = &l->slots[number];
    if (!s->client)
        return;
    load_client_step(s->client, xl_udp_now());
    s->timeout = load_client_next_timeout(s->client);
    if (load_client_is_over(s->client))
        account(l, number);
}

static void wait_for_events(load *l, uint64_t next) {
    struct epoll_event ready[MAX_EVENTS];
    if (l->started < l->o.connections && l->running < l->o.concurrent)
        next = l->next_start < next ? l->next_start : next;
    for (uint64_t i = 0; i < l->started; i++)
        next = l->slots[i].client && l->slots[i].timeout < next ? l->slots[i].timeout : next;
    int n = wait_events(l->epoll, ready, MAX_EVENTS, next, NULL);
    for (int i = 0; i < n; i++)
        step(l, ready[i].data.u64);
    const uint64_t now = xl_udp_now();
    for (uint64_t i = 0; i < l->started; i++)
        if (l->slots[i].client && l->slots[i].timeout <= now)
            step(l, i);
}

static bool run(load *l, char *error) {
    uint64_t limit = l->start_us + l->o.time_limit_us;
    while (xl_udp_now() < limit && l->over < l->o.connections) {
        if (wait_is_ended && l->o.plan.requests > 0)
            break;
        if (wait_is_ended) { /* clients without end finish their current request */
            wait_is_ended = 0;
            l->o.plan.requests = 1;
        }
        if (!start_due(l, error))
            return false;
        wait_for_events(l, limit);
    }
    for (uint64_t i = 0; i < l->started; i++) {
        if (l->slots[i].client) {
            load_client_give_up(l->slots[i].client, xl_udp_now());
            account(l, i);
        }
    }
    l->outcomes[LOAD_TIME_LIMIT] += l->o.connections - l->started;
    return true;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static json_t *quantiles(double *values, size_t n) {
    if (n == 0)
        return json_null();
    qsort(values, n, sizeof *values, by_value);
    return json_pack("{s:f, s:f, s:f}", "median", values[n / 2], "p99", values[n * 99 / 100], "max", values[n - 1]);
}

static void summarise(load *l) {
    double seconds = (double)(xl_udp_now() - l->start_us) / 1e6;
    json_t *outcomes = json_object();
    printf("%" PRIu64 " connection%s in %.2f s:", l->o.connections, l->o.connections == 1 ? "" : "s", seconds);
    for (int i = LOAD_COMPLETE; i < LOAD_OUTCOMES; i++) {
        const char *name = load_outcome_name((load_outcome)i);
        json_object_set_new(outcomes, name, json_integer((json_int_t)l->outcomes[i]));
        if (l->outcomes[i] > 0)
            printf(" %" PRIu64 " %s", l->outcomes[i], name);
    }
    putchar('\n');
    jsonl_write(l->log, "summary",
                json_pack("{s:I, s:o, s:f, s:I, s:o, s:o}", "connections", (json_int_t)l->o.connections, "outcomes",
                          outcomes, "seconds", seconds, "bytes", (json_int_t)l->bytes, "handshake_s",
                          quantiles(l->handshakes, l->handshake_count), "duration_s",
                          quantiles(l->durations, l->duration_count)),
                xl_udp_now());
}

static bool open_all(load *l, int argc, char **argv, char *error) {
    const load_options *o = &l->o;
    descriptors_raise_limit(); /* per connection one for each path, and one for epoll */
    l->o.plan.credentials = quic_settings_credentials(o->insecure ? NULL : o->ca_file, error, LOAD_ERROR_BYTES);
    if (!l->o.plan.credentials)
        return false;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->slots = calloc(o->connections, sizeof *l->slots);
    l->handshakes = calloc(o->connections, sizeof *l->handshakes);
    l->durations = calloc(o->connections, sizeof *l->durations);
    l->start_us = l->next_start = xl_udp_now();
    snprintf(error, LOAD_ERROR_BYTES, "out of memory");
    if (l->epoll < 0 || !l->slots || !l->handshakes || !l->durations)
        return false;
    if (o->out_file && !(l->log = jsonl_open(o->out_file, l->start_us)))
        return error_set(error, LOAD_ERROR_BYTES, "cannot write %s: %s", o->out_file, strerror(errno));
    jsonl_write_start(l->log, argc, argv, json_object());
    random_key_warn(&o->plan.seed, PROGRAM, l->log, l->start_us);
    return true;
}

static void close_all(load *l) {
    for (uint64_t i = 0; l->slots && i < l->started; i++)
        load_client_free(l->slots[i].client);
    free(l->slots);
    free(l->handshakes);
    free(l->durations);
    xl_credentials_free(l->o.plan.credentials);
    descriptor_close(&l->epoll);
}

int main(int argc, char **argv) {
    static load l = {.epoll = -1};
    char error[LOAD_ERROR_BYTES];
    if (!load_options_parse(argc, argv, &l.o, error))
        return error_status(PROGRAM, "%s", error);
    if (l.o.help) {
        load_options_print_usage();
        return 0;
    }
    wait_catch_end(NULL);
    int status = 2;
    if (!open_all(&l, argc, argv, error) || !run(&l, error)) {
        error_say(PROGRAM, "%s.", error);
    } else {
        summarise(&l);
        status = l.outcomes[LOAD_COMPLETE] == l.o.connections ? 0 : 1;
    }
    status = jsonl_end(l.log, PROGRAM, l.o.out_file, status);
    close_all(&l);
    return status;
}
