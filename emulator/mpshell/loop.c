#include "emulator/mpshell/loop.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define READ_BATCH      64u     /* packets from one device before the others have their turn */
#define HOUSEKEEPING_US 250000u /* logs are brought up to date this often */
#define AT_ONCE_US      20u     /* epoll_wait that took no longer did not sleep */
#define MISSED_BLIND_US 1000u   /* traces have ms, so shorter blindness misses nothing */
#define FIFO_PRIORITY   50
#define KILLING_SIGNALS 3 /* the third interrupt kills */

/* What an epoll event belongs to: a direction, or one of these. */
enum { EVENT_TIMER = -1, EVENT_SIGNAL = -2, EVENT_STATUS = -3 };

struct loop {
    struct mp_shell *shell;
    struct mp_command *command;
    struct mp_direction *directions[2 * MP_MAX_PATHS];
    size_t direction_count;
    int epoll_fd;
    int timer_fd;
    int signal_fd;
    uint64_t slept_us;
    uint64_t armed_us; /* deadline the timer is set to, since t0 */
    uint64_t next_housekeeping_us;
    int interrupts;
    bool logging;
    bool ended;
};

uint64_t mp_clock_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static uint64_t since_t0(const struct loop *loop) {
    return mp_clock_us() - loop->shell->t0_us;
}

static int watch(struct loop *loop, int fd, int what) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)(int64_t)what};
    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int prepare(struct loop *loop, char error[MP_ERROR_SIZE]) {
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (loop->epoll_fd < 0 || loop->timer_fd < 0) {
        return mp_fail(error, "cannot make a timer: %s", strerror(errno));
    }
    int bad = watch(loop, loop->timer_fd, EVENT_TIMER) | watch(loop, loop->signal_fd, EVENT_SIGNAL) |
              watch(loop, loop->command->status_fd, EVENT_STATUS);
    for (size_t k = 0; k < loop->shell->path_count; k++) {
        struct mp_direction *both[2] = {&loop->shell->paths[k].up, &loop->shell->paths[k].down};
        for (size_t d = 0; d < 2; d++) {
            bad |= watch(loop, both[d]->from_fd, (int)loop->direction_count);
            loop->directions[loop->direction_count++] = both[d];
            loop->logging |= both[d]->log != NULL;
        }
    }
    return bad == 0 ? 0 : mp_fail(error, "cannot watch a device: %s", strerror(errno));
}

/* Real-time priority and resident memory where that is permitted. Children do not inherit the priority. */
static bool become_real_time(void) {
    struct sched_param parameters = {.sched_priority = FIFO_PRIORITY};
    mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
    return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters) == 0;
}

static void become_ordinary(void) {
    struct sched_param parameters = {.sched_priority = 0};
    sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &parameters);
    munlockall();
}

/* What was in the devices before t0 belongs to no emulation. */
static void discard_input(const struct loop *loop) {
    uint8_t scratch[XL_LINK_PACKET_CAPACITY];
    for (size_t i = 0; i < loop->direction_count; i++) {
        while (read(loop->directions[i]->from_fd, scratch, sizeof(scratch)) > 0) {
        }
    }
}

static void fix_t0(struct loop *loop) {
    struct timespec epoch;
    clock_gettime(CLOCK_REALTIME, &epoch);
    loop->shell->t0_us = mp_clock_us();
    loop->shell->t0_epoch_ms = (uint64_t)epoch.tv_sec * 1000u + (uint64_t)epoch.tv_nsec / 1000000u;
}

/* One packet from a device into its link; false when the device has no more. */
static bool read_packet(struct loop *loop, struct mp_direction *direction) {
    struct xl_link_packet *packet = xl_link_pool_get(loop->shell->pool);
    uint8_t scratch[XL_LINK_PACKET_CAPACITY];
    ssize_t n = read(direction->from_fd, packet != NULL ? packet->data : scratch, XL_LINK_PACKET_CAPACITY);
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR)) { /* COMMAND deleted the device */
            epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, direction->from_fd, NULL);
        }
        xl_link_pool_put(loop->shell->pool, packet);
        return false;
    }
    if (packet == NULL) {
        xl_link_refuse(direction->link, (uint32_t)n);
        return true;
    }
    packet->length = (uint32_t)n;
    xl_link_enqueue(direction->link, packet, since_t0(loop));
    return true;
}

/* Reads a batch; since is when the device was last looked at, if the loop was busy elsewhere since then. */
static void take_in(struct loop *loop, struct mp_direction *direction, uint64_t since) {
    uint64_t now = since_t0(loop);
    if (now > since && now - since >= MISSED_BLIND_US) {
        xl_link_count_missed(direction->link, since, now);
    }
    for (size_t i = 0; i < READ_BATCH; i++) {
        if (!read_packet(loop, direction)) {
            break;
        }
    }
    direction->looked_us = since_t0(loop);
}

/* Sends what is due. A packet that the device refuses (set down by COMMAND, for one) is lost there, and counted. */
static void send_due(struct loop *loop, struct mp_direction *direction, uint64_t now) {
    if (xl_link_next_deadline(direction->link) > now) {
        return;
    }
    xl_link_advance(direction->link, now);
    for (struct xl_link_packet *packet = xl_link_pull(direction->link); packet != NULL;
         packet = xl_link_pull(direction->link)) {
        ssize_t n = write(direction->to_fd, packet->data, packet->length);
        direction->write_errors += n != (ssize_t)packet->length;
        xl_link_departed(direction->link, packet, since_t0(loop));
    }
}

static void send_all_due(struct loop *loop) {
    for (size_t i = 0; i < loop->direction_count; i++) {
        send_due(loop, loop->directions[i], since_t0(loop));
    }
}

/* A signal from the terminal has already reached COMMAND, which is in the same process group; others are passed on. */
static void take_signal(struct loop *loop) {
    struct signalfd_siginfo info;
    if (read(loop->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return;
    }
    int number = (int)info.ssi_signo;
    if (info.ssi_code == SI_KERNEL) {
        return;
    }
    mp_command_signal(loop->command, number);
    if ((number == SIGINT || number == SIGTERM) && ++loop->interrupts >= KILLING_SIGNALS) {
        mp_command_kill(loop->command);
    }
}

/* Without deliveries to make, logs still get their lines for the opportunities that pass. */
static void keep_house(struct loop *loop, uint64_t now) {
    if (!loop->logging || now < loop->next_housekeeping_us) {
        return;
    }
    for (size_t i = 0; i < loop->direction_count; i++) {
        struct mp_direction *direction = loop->directions[i];
        send_due(loop, direction, now);
        xl_link_advance(direction->link, now);
        xl_link_log_flush(direction->log);
    }
    loop->next_housekeeping_us = now + HOUSEKEEPING_US;
}

static void arm_timer(struct loop *loop) {
    uint64_t deadline = loop->logging ? loop->next_housekeeping_us : XL_LINK_NEVER;
    for (size_t i = 0; i < loop->direction_count; i++) {
        uint64_t next = xl_link_next_deadline(loop->directions[i]->link);
        deadline = next < deadline ? next : deadline;
    }
    if (deadline == loop->armed_us) {
        return;
    }
    struct itimerspec when;
    memset(&when, 0, sizeof(when));
    if (deadline != XL_LINK_NEVER) {
        uint64_t absolute = loop->shell->t0_us + deadline;
        when.it_value.tv_sec = (time_t)(absolute / 1000000u);
        when.it_value.tv_nsec = (long)(absolute % 1000000u) * 1000;
    }
    timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
    loop->armed_us = deadline;
}

static void handle(struct loop *loop, const struct epoll_event *event, bool at_once, uint64_t woken) {
    int what = (int)(int64_t)event->data.u64;
    if (what == EVENT_STATUS) {
        loop->ended = true;
    } else if (what == EVENT_SIGNAL) {
        take_signal(loop);
    } else if (what >= 0) {
        struct mp_direction *direction = loop->directions[what];
        /* Asleep until the packet came, or woken late: the timer's lateness shows by how much. */
        uint64_t looked = direction->looked_us > loop->slept_us ? direction->looked_us : loop->slept_us;
        uint64_t since = at_once ? looked : loop->armed_us > 0 && loop->armed_us < woken ? loop->armed_us : woken;
        take_in(loop, direction, since);
    }
}

static int turn(struct loop *loop, char error[MP_ERROR_SIZE]) {
    struct epoll_event events[2 * MP_MAX_PATHS + 3];
    arm_timer(loop);
    uint64_t before = since_t0(loop);
    int n = epoll_wait(loop->epoll_fd, events, (int)(sizeof(events) / sizeof(events[0])), -1);
    if (n < 0 && errno != EINTR) {
        return mp_fail(error, "cannot wait for packets: %s", strerror(errno));
    }
    uint64_t woken = since_t0(loop);
    if (woken - before >= AT_ONCE_US) {
        loop->slept_us = loop->armed_us > 0 && loop->armed_us < woken ? loop->armed_us : woken;
    }
    for (int i = 0; i < n; i++) {
        handle(loop, &events[i], woken - before < AT_ONCE_US, woken);
    }
    if (loop->armed_us <= woken) {
        loop->armed_us = 0; /* the timer has fired: set it again, whatever the next deadline is */
    }
    send_all_due(loop);
    keep_house(loop, since_t0(loop));
    return 0;
}

/* Up to the end of COMMAND: figures and logs. */
static void settle(struct loop *loop) {
    loop->shell->duration_us = since_t0(loop);
    for (size_t i = 0; i < loop->direction_count; i++) {
        struct mp_direction *direction = loop->directions[i];
        xl_link_advance(direction->link, loop->shell->duration_us);
        if (direction->log != NULL) {
            xl_link_log_flush(direction->log);
        }
    }
}

int mp_loop_run(struct mp_shell *shell, struct mp_command *command, int signal_fd, void (*on_start)(struct mp_shell *),
                int *status, char error[MP_ERROR_SIZE]) {
    struct loop loop = {.shell = shell, .command = command, .epoll_fd = -1, .timer_fd = -1, .signal_fd = signal_fd};
    int rc = prepare(&loop, error);
    if (rc == 0) {
        shell->sched_fifo = become_real_time();
        discard_input(&loop);
        fix_t0(&loop);
        on_start(shell);
        mp_command_start(command);
        while (rc == 0 && !loop.ended) {
            rc = turn(&loop, error);
        }
        settle(&loop);
        become_ordinary();
    }
    if (rc != 0) {
        mp_command_kill(command);
    }
    *status = mp_command_finish(command);
    if (loop.epoll_fd >= 0) {
        close(loop.epoll_fd);
    }
    if (loop.timer_fd >= 0) {
        close(loop.timer_fd);
    }
    return rc;
}
