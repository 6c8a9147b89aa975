#include "server/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/error.h"
#include "base/text_file.h"
#include "server/forward.h"
#include "server/report.h"
#include "xlink/udp.h"

#define STOP_LIMIT_US    UINT64_C(10000000)
#define QUICK_DEATH_US   UINT64_C(1000000) /* a worker that lived no longer waits before it is started again */
#define RESTART_FIRST_US UINT64_C(100000)
#define RESTART_MOST_US  UINT64_C(5000000)
#define MAX_REPORT_BYTES ((size_t)16 << 20)

typedef struct {
    server_worker inherited;
    pid_t pid;  /* 0: not running */
    int report; /* a pipe: "\n" when it has started, its summary when it ends */
    char *text; /* read from it */
    size_t text_len;
    bool started;
    unsigned starts;
    uint64_t started_at, restart_at, restart_wait_us;
    server_totals totals;
} worker;

typedef struct {
    server *server;
    unsigned count;
    worker *workers;
    int outbox[XL_WORKERS_MAX];
    pid_t self;
    bool listening, ending;
    int status;
} parent;

/* ---- In the worker ---- */

static void report_totals(int fd, const server_totals *t) {
    json_t *all = server_totals_counters(t);
    json_object_set(all, "paths", t->paths);
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    if (text)
        (void)file_write(fd, text, strlen(text));
    free(text);
    json_decref(all);
}

/* Closes descriptors of the parent and of other workers, except the sockets that lead to these. */
static void close_foreign(parent *p, unsigned self) {
    for (unsigned i = 0; i < p->count; i++) {
        worker *w = &p->workers[i];
        descriptor_close(&w->report);
        if (i != self) {
            descriptor_close(&w->inherited.udp);
            close(w->inherited.inbox);
        }
    }
}

static int work(server *s, int report) {
    server_totals totals = {.paths = json_array()};
    json_t *listening = json_object();
    bool started = server_start(s, listening);
    json_decref(listening);
    if (started) {
        (void)file_write(report, "\n", 1);
        server_run(s);
    }
    server_stop(s, &totals);
    if (started)
        report_totals(report, &totals);
    json_decref(totals.paths);
    bool logged = jsonl_close(s->log);
    server_close(s);
    return !started ? 2 : logged ? 0 : 1;
}

_Noreturn static void become_worker(parent *p, unsigned number, int report) {
    server *s = p->server;
    server_signalled = (server_signals){0};
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != p->self)
        _exit(0); /* the parent ended meanwhile */
    close_foreign(p, number);
    s->worker = &p->workers[number].inherited;
    s->deployment.worker = number;
    if (s->log) {
        (void)jsonl_close(s->log); /* its buffer is empty */
        s->log = jsonl_open_shared(s->config.out_file, s->start_us, (int)number);
        jsonl_limit(s->log, s->config.out_bytes);
    }
    exit(work(s, report));
}

/* ---- In the parent ---- */

static bool start_worker(parent *p, unsigned number) {
    worker *w = &p->workers[number];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    w->pid = fork();
    if (w->pid == 0) {
        close(ends[0]);
        become_worker(p, number, ends[1]);
    }
    close(ends[1]);
    if (w->pid < 0) {
        w->pid = 0;
        close(ends[0]);
        return false;
    }
    w->report = ends[0];
    w->started = false;
    w->text_len = 0;
    w->starts++;
    w->started_at = clock_us();
    w->restart_at = XL_NEVER;
    jsonl_write(p->server->log, "worker_started",
                json_pack("{s:i, s:i, s:i}", "worker", (int)number, "pid", (int)w->pid, "starts", (int)w->starts),
                w->started_at);
    return true;
}

static void take_summary(worker *w) {
    json_t *o = json_loadb(w->text, w->text_len, 0, NULL);
    server_totals_take(&w->totals, o);
    json_array_extend(w->totals.paths, json_object_get(o, "paths"));
    json_decref(o);
}

/* Reads what the worker has written. False: end of its pipe. */
static bool read_report(worker *w) {
    char piece[16384];
    ssize_t n = read(w->report, piece, sizeof piece);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    char *grown =
        n > 0 && w->text_len + (size_t)n <= MAX_REPORT_BYTES ? realloc(w->text, w->text_len + (size_t)n) : NULL;
    if (!grown)
        return n > 0;
    w->text = grown;
    memcpy(w->text + w->text_len, piece, (size_t)n);
    w->text_len += (size_t)n;
    w->started = true;
    return true;
}

static void finish_report(worker *w) {
    while (w->report >= 0 && read_report(w))
        ;
    descriptor_close(&w->report);
    if (w->text_len > 1)
        take_summary(w);
    w->text_len = 0;
}

static void plan_restart(worker *w, uint64_t now) {
    bool quick = now - w->started_at < QUICK_DEATH_US;
    w->restart_at = quick ? now + w->restart_wait_us : now;
    w->restart_wait_us = quick ? w->restart_wait_us * 2 : RESTART_FIRST_US;
    if (w->restart_wait_us > RESTART_MOST_US)
        w->restart_wait_us = RESTART_MOST_US;
}

static void worker_ended(parent *p, unsigned number, int status) {
    worker *w = &p->workers[number];
    uint64_t now = clock_us();
    bool by_signal = WIFSIGNALED(status);
    jsonl_write(p->server->log, "worker_ended",
                json_pack("{s:i, s:i, s:o, s:o}", "worker", (int)number, "pid", (int)w->pid, "signal",
                          by_signal ? json_integer(WTERMSIG(status)) : json_null(), "status",
                          by_signal ? json_null() : json_integer(WEXITSTATUS(status))),
                now);
    w->pid = 0;
    finish_report(w);
    if (p->ending)
        return;
    if (!p->listening) { /* its reason is on stderr */
        p->ending = true;
        p->status = 2;
        return;
    }
    error_say(SERVER_PROGRAM, "worker %u ended (%s %d); it is started again.", number, by_signal ? "signal" : "status",
              by_signal ? WTERMSIG(status) : WEXITSTATUS(status));
    plan_restart(w, now);
}

static void collect_children(parent *p) {
    int status;
    pid_t pid;
    server_signalled.child = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (unsigned i = 0; i < p->count; i++)
            if (p->workers[i].pid == pid)
                worker_ended(p, i, status);
}

static void signal_all(const parent *p, int signal) {
    for (unsigned i = 0; i < p->count; i++)
        if (p->workers[i].pid > 0)
            kill(p->workers[i].pid, signal);
}

static bool all_started(const parent *p) {
    for (unsigned i = 0; i < p->count; i++)
        if (!p->workers[i].started)
            return false;
    return true;
}

static bool any_running(const parent *p) {
    for (unsigned i = 0; i < p->count; i++)
        if (p->workers[i].pid > 0)
            return true;
    return false;
}

static void all_serve(parent *p) {
    const server_config *config = &p->server->config;
    const server_worker *first = &p->workers[0].inherited;
    char text[64];
    json_t *listening = json_object();
    if (config->quic_addr.family)
        json_object_set_new(listening, "quic", json_string(xl_addr_format(&first->udp_bound, text, sizeof text)));
    if (config->http1_addr.family)
        json_object_set_new(listening, "http1", json_string(xl_addr_format(&first->tcp_bound, text, sizeof text)));
    jsonl_announce(p->server->log, listening, clock_us());
    p->listening = true;
}

static void wait_for_news(parent *p, uint64_t until) {
    struct pollfd fds[XL_WORKERS_MAX];
    unsigned index[XL_WORKERS_MAX];
    nfds_t n = 0;
    for (unsigned i = 0; i < p->count; i++) {
        const worker *w = &p->workers[i];
        until = w->restart_at < until && !p->ending ? w->restart_at : until;
        if (w->report >= 0) {
            index[n] = i;
            fds[n++] = (struct pollfd){.fd = w->report, .events = POLLIN};
        }
    }
    uint64_t now = clock_us(), left = until > now ? until - now : 0;
    struct timespec timeout = {.tv_sec = (time_t)(left / 1000000), .tv_nsec = (long)(left % 1000000) * 1000};
    if (ppoll(fds, n, until == XL_NEVER ? NULL : &timeout, &p->server->unblocked) <= 0)
        return;
    for (nfds_t k = 0; k < n; k++) {
        worker *w = &p->workers[index[k]];
        if (fds[k].revents && !read_report(w))
            descriptor_close(&w->report);
    }
}

static void restart_due(parent *p) {
    for (unsigned i = 0; i < p->count; i++) {
        worker *w = &p->workers[i];
        uint64_t now = clock_us();
        if (w->pid == 0 && w->restart_at <= now && !start_worker(p, i))
            w->restart_at = now + RESTART_FIRST_US;
    }
}

static void reload_all(parent *p) {
    server_signalled.reload = 0;
    if (server_reload(p->server))
        signal_all(p, SIGHUP);
}

static void supervise(parent *p) {
    while (!p->ending && !server_signalled.end) {
        wait_for_news(p, XL_NEVER);
        if (server_signalled.child)
            collect_children(p);
        if (server_signalled.reload)
            reload_all(p);
        if (!p->ending)
            restart_due(p);
        if (!p->listening && !p->ending && all_started(p))
            all_serve(p);
    }
    p->ending = true;
    signal_all(p, SIGTERM);
    uint64_t limit = clock_us() + STOP_LIMIT_US;
    while (any_running(p)) {
        wait_for_news(p, limit);
        collect_children(p);
        if (clock_us() >= limit) {
            signal_all(p, SIGKILL);
            limit = XL_NEVER;
        }
    }
}

static bool open_sockets(parent *p) {
    const server_config *config = &p->server->config;
    int udp[XL_WORKERS_MAX], tcp = -1;
    char error[SERVER_ERROR_BYTES], text[64];
    xl_addr udp_bound = {0}, tcp_bound = {0};
    int rv =
        config->quic_addr.family ? xl_udp_open_group(&config->quic_addr, &p->server->deployment, udp, &udp_bound) : 0;
    if (rv < 0)
        return error_say(SERVER_PROGRAM, "cannot listen on %s: %s.",
                         xl_addr_format(&config->quic_addr, text, sizeof text), strerror(-rv));
    if (config->http1_addr.family && (tcp = server_http1_listen(config, &tcp_bound, error)) < 0)
        return error_say(SERVER_PROGRAM, "%s.", error);
    for (unsigned i = 0; i < p->count; i++) {
        server_worker *w = &p->workers[i].inherited;
        *w = (server_worker){.udp = config->quic_addr.family ? udp[i] : -1,
                             .tcp = tcp,
                             .udp_bound = udp_bound,
                             .tcp_bound = tcp_bound,
                             .outbox = p->outbox};
        if (!forward_open(&w->inbox, &p->outbox[i]))
            return error_say(SERVER_PROGRAM, "no socket between the workers: %s.", strerror(errno));
    }
    return true;
}

static void add_up(parent *p, server_totals *totals, json_t *by_worker) {
    for (unsigned i = 0; i < p->count; i++) {
        const worker *w = &p->workers[i];
        const server_totals *t = &w->totals;
        server_totals_add(totals, t);
        json_array_append_new(by_worker, json_pack("{s:i, s:i, s:I, s:I, s:I, s:I}", "worker", (int)i, "starts",
                                                   (int)w->starts, "connections", (json_int_t)t->connections,
                                                   "stateless_resets", (json_int_t)t->stateless_resets, "misrouted",
                                                   (json_int_t)t->misrouted, "forwarded", (json_int_t)t->forwarded));
        json_decref(t->paths);
        free(w->text);
    }
}

int workers_run(server *s, server_totals *totals, json_t *by_worker) {
    parent p = {.server = s, .count = s->deployment.workers, .self = getpid()};
    p.workers = calloc(p.count, sizeof *p.workers);
    if (!p.workers)
        return error_status(SERVER_PROGRAM, "out of memory.");
    for (unsigned i = 0; i < p.count; i++)
        p.workers[i] = (worker){.report = -1,
                                .restart_at = XL_NEVER,
                                .restart_wait_us = RESTART_FIRST_US,
                                .totals = {.paths = json_array()}};
    if (!open_sockets(&p))
        p.status = 2;
    for (unsigned i = 0; i < p.count && p.status == 0; i++)
        if (!start_worker(&p, i)) {
            error_say(SERVER_PROGRAM, "cannot start a worker: %s.", strerror(errno));
            p.status = 2;
        }
    p.ending = p.status != 0;
    supervise(&p);
    add_up(&p, totals, by_worker);
    free(p.workers);
    return p.status;
}
