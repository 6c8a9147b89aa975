#include "emulator/mpshell/flows.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "emulator/mpshell/command.h"

#define SAMPLE_US    UINT64_C(100000)
#define RETRY_US     UINT64_C(1000000) /* after a connection that could not be made */
#define NEVER        UINT64_MAX
#define EVENTS       64
#define CHUNK_BYTES  65536
#define UNSENT_BYTES 131072 /* maximum of written bytes that the kernel has not sent yet */

typedef enum { WAITS, RUNS, ENDED } flow_state;

/* A sequence of connections, one at a time. Each sequence has its own listener, so that every accepted connection
 * belongs to it, even if a NAT on the way changed the address. */
typedef struct {
    const mp_flow_options *options;
    const mp_path *path;
    uint32_t number; /* number within the flow, from 1 */
    flow_state state;
    int listener, client, accepted; /* the client is inside; -1: none */
    uint64_t next_us;               /* if WAITS: when the next connection begins */
    uint64_t began_us;
    uint64_t sent, received;  /* of this connection */
    uint64_t received_before; /* of the earlier connections */
    uint32_t connections, failures;
} flow;

struct mp_flows {
    size_t count;
    const mp_options *options;
    int inside, outside; /* network namespaces, borrowed from the shell */
    int epoll, timer, wake;
    pthread_t thread;
    bool started;
    _Atomic uint64_t t0_us; /* 0: not set yet */
    atomic_bool stopped;
    uint64_t next_sample_us;
    FILE *log;
    char *text;
    size_t length;
    flow each[];
};

/* Sources of events: three descriptors of each connection, and two of the thread. */
enum { OF_LISTENER, OF_CLIENT, OF_ACCEPTED, OF_KINDS };
#define OF_THREAD UINT64_MAX

static const uint8_t zeros[CHUNK_BYTES];

static uint64_t since_t0(const mp_flows *flows) {
    const uint64_t now = clock_us();
    return now > flows->t0_us ? now - flows->t0_us : 0;
}

/* ---- records ---- */

static void record(mp_flows *flows, const flow *f, const char *event, uint64_t now) {
    fprintf(flows->log, "{\"t\": %.6f, \"event\": \"%s\", \"flow\": \"%s\", \"connection\": %" PRIu32,
            (double)now / 1e6, event, f->options->name, f->number);
}

static int sender_of(const flow *f) {
    return f->options->is_down ? f->accepted : f->client;
}

static int receiver_of(const flow *f) {
    return f->options->is_down ? f->client : f->accepted;
}

static void sample(mp_flows *flows, const flow *f, uint64_t now) {
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    const int fd = sender_of(f);
    record(flows, f, "flow_sample", now);
    fprintf(flows->log, ", \"received_bytes\": %" PRIu64, f->received_before + f->received);
    if (fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
        fprintf(flows->log,
                ", \"srtt_ms\": %.3f, \"min_rtt_ms\": %.3f, \"cwnd_bytes\": %" PRIu64
                ", \"retransmitted_bytes\": %" PRIu64,
                info.tcpi_rtt / 1000.0, info.tcpi_min_rtt / 1000.0, (uint64_t)info.tcpi_snd_cwnd * info.tcpi_snd_mss,
                (uint64_t)info.tcpi_bytes_retrans);
    fprintf(flows->log, "}\n");
}

/* ---- connections ---- */

static bool watch(const mp_flows *flows, const flow *f, int fd, unsigned kind, uint32_t events, int how) {
    struct epoll_event event = {.events = events, .data.u64 = (uint64_t)(f - flows->each) * OF_KINDS + kind};
    return epoll_ctl(flows->epoll, how, fd, &event) == 0;
}

static struct sockaddr_in address_of(const char *text) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    inet_pton(AF_INET, text, &address.sin_addr);
    return address;
}

static bool set_controller(const flow *f, int fd) {
    const char *cc = f->options->cc;
    return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc)) == 0;
}

static int new_socket(void) {
    return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
}

/* Changes only the calling thread's network namespace. */
static int socket_inside(const mp_flows *flows) {
    if (setns(flows->inside, CLONE_NEWNET) != 0)
        return -1;
    const int fd = new_socket();
    const int saved = errno;
    if (setns(flows->outside, CLONE_NEWNET) != 0)
        perror("mpshell: cannot return to the outer network namespace");
    errno = saved;
    return fd;
}

/* Closes both ends by a reset, so that nothing of an ended connection stays in the sockets' buffers. */
static void close_both(flow *f) {
    const struct linger at_once = {.l_onoff = 1};
    int *both[2] = {&f->client, &f->accepted};
    for (size_t i = 0; i < 2; i++) {
        if (*both[i] >= 0)
            setsockopt(*both[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        descriptor_close(both[i]);
    }
}

/* why: phrase about a failure; NULL: no failure. */
static void end(mp_flows *flows, flow *f, uint64_t now, const char *why) {
    sample(flows, f, now);
    record(flows, f, why ? "flow_failed" : "flow_ended", now);
    fprintf(flows->log, ", \"began_s\": %.6f, \"bytes\": %" PRIu64, (double)f->began_us / 1e6, f->received);
    if (why)
        fprintf(flows->log, ", \"why\": \"%s\"", why);
    fprintf(flows->log, "}\n");
    close_both(f);
    f->received_before += f->received;
    f->received = 0;
    f->failures += why != NULL;
    const uint64_t pause = why ? RETRY_US : f->options->pause_us;
    const uint64_t to = f->options->to_us > 0 ? f->options->to_us : NEVER;
    const bool goes_on = pause != MP_NO_PAUSE && now < to && to - now > pause;
    f->state = goes_on ? WAITS : ENDED;
    f->next_us = now + pause;
}

static void begin(mp_flows *flows, flow *f, uint64_t now) {
    struct sockaddr_in own = address_of(f->path->ends.inside_address), to;
    socklen_t size = sizeof to;
    const int one = 1;
    f->state = RUNS;
    f->began_us = now;
    f->sent = 0;
    f->connections++;
    record(flows, f, "flow_began", now);
    fprintf(flows->log, ", \"cc\": \"%s\"}\n", f->options->cc);
    f->client = socket_inside(flows);
    const uint32_t events = f->options->is_down ? EPOLLIN : EPOLLOUT;
    const bool good = f->client >= 0 && getsockname(f->listener, (struct sockaddr *)&to, &size) == 0 &&
                      set_controller(f, f->client) &&
                      setsockopt(f->client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0 &&
                      bind(f->client, (const struct sockaddr *)&own, sizeof own) == 0 &&
                      (connect(f->client, (const struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS) &&
                      watch(flows, f, f->client, OF_CLIENT, events, EPOLL_CTL_ADD);
    if (!good)
        end(flows, f, now, strerror(errno));
}

static void accept_one(mp_flows *flows, flow *f) {
    const int fd = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (f->state != RUNS || f->accepted >= 0 ||
        !watch(flows, f, fd, OF_ACCEPTED, f->options->is_down ? EPOLLOUT : EPOLLIN, EPOLL_CTL_ADD)) {
        close(fd);
        return;
    }
    f->accepted = fd;
}

static size_t next_piece(const flow *f) {
    const uint64_t left = f->options->size_bytes > 0 ? f->options->size_bytes - f->sent : CHUNK_BYTES;
    return left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
}

/* Sends as much as the kernel takes, which TCP_NOTSENT_LOWAT limits. */
static void send_some(mp_flows *flows, flow *f, int fd, unsigned kind, uint64_t now) {
    const unsigned lowat = UNSENT_BYTES;
    if (f->sent == 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof lowat);
    ssize_t n = 1;
    for (size_t piece = next_piece(f); piece > 0 && n > 0; piece = next_piece(f)) {
        n = send(fd, zeros, piece, MSG_NOSIGNAL);
        f->sent += n > 0 ? (uint64_t)n : 0;
    }
    if (n < 0 && errno != EAGAIN)
        end(flows, f, now, strerror(errno));
    else if (next_piece(f) == 0 && (shutdown(fd, SHUT_WR) != 0 || !watch(flows, f, fd, kind, 0, EPOLL_CTL_MOD)))
        end(flows, f, now, strerror(errno));
}

static void receive_all(mp_flows *flows, flow *f, int fd, uint64_t now) {
    ssize_t n;
    while ((n = recv(fd, NULL, CHUNK_BYTES, MSG_TRUNC)) > 0) /* discards the data, tcp(7) */
        f->received += (uint64_t)n;
    if (n == 0)
        end(flows, f, now, f->received == f->options->size_bytes ? NULL : "closed early");
    else if (errno != EAGAIN)
        end(flows, f, now, strerror(errno));
}

/* Handles the event of a sender that has written everything, which is an error. */
static void fail(mp_flows *flows, flow *f, int fd, uint64_t now) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    end(flows, f, now, error != 0 ? strerror(error) : "closed early");
}

static void handle(mp_flows *flows, flow *f, unsigned kind, uint64_t now) {
    const int fd = kind == OF_CLIENT ? f->client : f->accepted;
    if (kind == OF_LISTENER)
        accept_one(flows, f);
    else if (f->state == RUNS && fd >= 0 && fd == sender_of(f) && next_piece(f) > 0)
        send_some(flows, f, fd, kind, now);
    else if (f->state == RUNS && fd >= 0 && fd == receiver_of(f))
        receive_all(flows, f, fd, now);
    else if (f->state == RUNS && fd >= 0)
        fail(flows, f, fd, now);
}

/* ---- the thread ---- */

/* Does what is due at `now`. Returns when the next action is due. */
static uint64_t do_due(mp_flows *flows, uint64_t now) {
    uint64_t next = flows->next_sample_us + SAMPLE_US;
    const bool samples = now >= flows->next_sample_us;
    for (size_t i = 0; i < flows->count; i++) {
        flow *f = &flows->each[i];
        const uint64_t to = f->options->to_us > 0 ? f->options->to_us : NEVER;
        if (f->state == WAITS && now >= f->next_us)
            begin(flows, f, now);
        if (f->state == RUNS && now >= to)
            end(flows, f, now, NULL);
        else if (f->state == RUNS && samples && f->began_us <= flows->next_sample_us)
            sample(flows, f, flows->next_sample_us);
        const uint64_t of_flow = f->state == WAITS ? f->next_us : f->state == RUNS ? to : NEVER;
        next = of_flow < next ? of_flow : next;
    }
    while (flows->next_sample_us <= now)
        flows->next_sample_us += SAMPLE_US;
    return next < flows->next_sample_us ? next : flows->next_sample_us;
}

static void set_timer(const mp_flows *flows, uint64_t next) {
    const uint64_t at = flows->t0_us + next;
    const struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at / 1000000u), .tv_nsec = (long)(at % 1000000u) * 1000}};
    timerfd_settime(flows->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void take_event(mp_flows *flows, const struct epoll_event *event) {
    uint64_t count;
    if (event->data.u64 == OF_THREAD) {
        const int both[2] = {flows->timer, flows->wake};
        for (size_t i = 0; i < 2; i++)
            if (read(both[i], &count, sizeof count) < 0 && errno != EAGAIN)
                perror("mpshell: flows");
    } else if (flows->t0_us > 0) {
        flow *f = &flows->each[event->data.u64 / OF_KINDS];
        handle(flows, f, (unsigned)(event->data.u64 % OF_KINDS), since_t0(flows));
    }
}

static void *run(void *context) {
    mp_flows *flows = context;
    const struct sched_param parameters = {.sched_priority = MP_COMMAND_PRIORITY};
    struct epoll_event events[EVENTS];
    prctl(PR_SET_NAME, "mpshell-flows");
    if (flows->options->real_time)
        sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters);
    uint64_t set = 0;
    while (!flows->stopped) {
        const int n = epoll_wait(flows->epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++)
            take_event(flows, &events[i]);
        if (flows->t0_us == 0 || flows->stopped)
            continue;
        const uint64_t next = do_due(flows, since_t0(flows));
        if (next != set)
            set_timer(flows, next);
        set = next;
    }
    for (size_t i = 0; i < flows->count; i++)
        if (flows->each[i].state == RUNS)
            end(flows, &flows->each[i], since_t0(flows), NULL);
    return NULL;
}

/* ---- start and stop ---- */

static bool refuse_controller(const flow *f, char error[MP_ERROR_SIZE]) {
    char has[256] = "";
    FILE *file = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "re");
    if (file) {
        if (fgets(has, sizeof has, file))
            has[strcspn(has, "\n")] = '\0';
        fclose(file);
    }
    return mp_fail(error, "flow %s: this kernel's TCP has no congestion controller %s; it has %s", f->options->name,
                   f->options->cc, has);
}

static bool open_one(mp_flows *flows, flow *f, char error[MP_ERROR_SIZE]) {
    const struct sockaddr_in own = address_of(f->path->ends.outside_address);
    f->listener = new_socket();
    if (f->listener >= 0 && !set_controller(f, f->listener))
        return refuse_controller(f, error);
    if (f->listener < 0 || bind(f->listener, (const struct sockaddr *)&own, sizeof own) != 0 ||
        listen(f->listener, 1) != 0 || !watch(flows, f, f->listener, OF_LISTENER, EPOLLIN, EPOLL_CTL_ADD))
        return mp_fail(error, "flow %s: cannot listen: %s", f->options->name, strerror(errno));
    return true;
}

static bool open_all(mp_flows *flows, char error[MP_ERROR_SIZE]) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = OF_THREAD};
    flows->log = open_memstream(&flows->text, &flows->length);
    flows->epoll = epoll_create1(EPOLL_CLOEXEC);
    flows->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    flows->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!flows->log || epoll_ctl(flows->epoll, EPOLL_CTL_ADD, flows->timer, &event) != 0 ||
        epoll_ctl(flows->epoll, EPOLL_CTL_ADD, flows->wake, &event) != 0)
        return mp_fail(error, "cannot prepare flows: %s", strerror(errno));
    for (size_t i = 0; i < flows->count; i++)
        if (!open_one(flows, &flows->each[i], error))
            return false;
    return true;
}

static mp_flows *make(const mp_shell *shell) {
    const mp_options *options = &shell->options;
    size_t count = 0;
    for (size_t i = 0; i < options->flow_count; i++)
        count += options->flows[i].count;
    mp_flows *flows = calloc(1, sizeof *flows + count * sizeof flows->each[0]);
    if (!flows)
        return NULL;
    flows->options = options;
    flows->inside = shell->inside_netns;
    flows->outside = shell->outside_netns;
    flows->epoll = flows->timer = flows->wake = -1;
    for (size_t i = 0; i < options->flow_count; i++) {
        const mp_flow_options *own = &options->flows[i];
        for (uint32_t number = 1; number <= own->count; number++)
            flows->each[flows->count++] = (flow){.options = own,
                                                 .path = &shell->paths[own->at],
                                                 .number = number,
                                                 .listener = -1,
                                                 .client = -1,
                                                 .accepted = -1,
                                                 .next_us = own->from_us};
    }
    return flows;
}

bool mp_flows_start(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    if (shell->options.flow_count == 0)
        return true;
    shell->flows = make(shell);
    if (!shell->flows)
        return mp_fail(error, "no memory for flows");
    if (!open_all(shell->flows, error))
        return false;
    shell->flows->started = pthread_create(&shell->flows->thread, NULL, run, shell->flows) == 0;
    return shell->flows->started || mp_fail(error, "cannot start the thread of the flows");
}

static void wake(const mp_flows *flows) {
    const uint64_t one = 1;
    if (write(flows->wake, &one, sizeof one) < 0)
        perror("mpshell: flows");
}

void mp_flows_begin(mp_flows *flows, uint64_t t0_us) {
    if (flows) {
        atomic_store(&flows->t0_us, t0_us);
        wake(flows);
    }
}

void mp_flows_stop(mp_flows *flows) {
    if (flows && flows->started) {
        atomic_store(&flows->stopped, true);
        wake(flows);
        pthread_join(flows->thread, NULL);
        flows->started = false;
    }
}

bool mp_flows_write(const mp_flows *flows, const mp_result *file, char error[MP_ERROR_SIZE]) {
    if (!flows)
        return true;
    return fflush(flows->log) == 0 ? mp_result_write(file, flows->text, flows->length, error)
                                   : mp_fail(error, "no memory for the flows");
}

json_t *mp_flows_report(const mp_flows *flows) {
    json_t *array = json_array();
    for (size_t i = 0; flows && i < flows->count;) {
        const mp_flow_options *options = flows->each[i].options;
        const char *path = flows->each[i].path->options->name;
        uint64_t received = 0, connections = 0, failures = 0;
        for (; i < flows->count && flows->each[i].options == options; i++) {
            received += flows->each[i].received_before;
            connections += flows->each[i].connections;
            failures += flows->each[i].failures;
        }
        json_array_append_new(array, json_pack("{s:s,s:s,s:s,s:s,s:I,s:I,s:I}", "name", options->name, "cc",
                                               options->cc, "direction", options->is_down ? "down" : "up", "path", path,
                                               "received_bytes", (json_int_t)received, "connections",
                                               (json_int_t)connections, "failures", (json_int_t)failures));
    }
    return array;
}

void mp_flows_free(mp_flows *flows) {
    if (!flows)
        return;
    for (size_t i = 0; i < flows->count; i++) {
        close_both(&flows->each[i]);
        descriptor_close(&flows->each[i].listener);
    }
    descriptor_close(&flows->epoll);
    descriptor_close(&flows->timer);
    descriptor_close(&flows->wake);
    if (flows->log)
        fclose(flows->log);
    free(flows->text);
    free(flows);
}
