#include "emulator/mpshell/loop.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/wait.h"
#include "emulator/mpshell/mailbox.h"
#include "emulator/mpshell/outputs.h"
#include "emulator/mpshell/traffic.h"

#define READ_BATCH 64u /* packets read from a device before the next device */
#define EVENTS     (2 * MP_MAX_PATHS + 3)
/* Under load the loop reads the devices every MODERATION_US, and polls for the last POLL_US before a deadline. */
#define LOAD_WINDOW_US       1000u
#define MODERATE_FROM_PER_MS 8u
#define MODERATION_US        250u
#define POLL_US              40u
#define DENSE_US             75u
#define SPARSE_US            500u /* minimum distance of deadlines that are polled */
#define SHORTEST_PAUSE_US    15u
#define HOUSEKEEPING_US      250000u /* interval of updates of the logs */
#define AT_ONCE_US           20u     /* a shorter epoll_wait did not sleep */
#define MISSED_BLIND_US      1000u   /* traces have whole ms: a shorter time without reads misses nothing */
#define FIFO_PRIORITY        50
#define KILLING_SIGNALS      3 /* the third interrupt kills */

/* Source of an epoll event: a direction's number, or one of these. */
enum { EVENT_SIGNAL = -1, EVENT_STATUS = -2, EVENT_MAILBOX = -3 };

typedef struct {
    mp_shell *shell;
    mp_command *command;
    mp_direction *directions[2 * MP_MAX_LINKS]; /* index: their numbers */
    size_t direction_count, device_count;       /* directions[0 .. device_count) read devices */
    size_t first;                               /* index of the direction that is served first */
    int epoll_fd;
    int signal_fd;
    uint64_t slept_us;
    uint64_t next_send_us; /* the earliest deadline of a link */
    uint64_t next_housekeeping_us;
    uint64_t window_us; /* start of the interval in which reads are counted */
    uint64_t reads;
    uint64_t sent_us; /* when a packet was last due */
    bool moderated;
    bool virtual_time; /* wake-ups cost nothing */
    bool more;         /* a device may have more packets than the last batch */
    int interrupts;
    bool logging;
    bool ended;
} mp_loop;

static uint64_t since_t0(const mp_loop *loop) {
    return clock_us() - loop->shell->t0_us;
}

static int watch(mp_loop *loop, int fd, int what) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)(int64_t)what};
    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static bool prepare(mp_loop *loop, char error[MP_ERROR_SIZE]) {
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0)
        return mp_fail(error, "cannot watch devices: %s", strerror(errno));
    int bad = watch(loop, loop->signal_fd, EVENT_SIGNAL) | watch(loop, loop->command->status_fd, EVENT_STATUS);
    if (loop->shell->mailbox)
        bad |= watch(loop, loop->shell->mailbox->fd, EVENT_MAILBOX);
    loop->logging = loop->shell->options.log_dir || loop->shell->options.pcap;
    loop->device_count = 2 * loop->shell->path_count;
    loop->direction_count = 2 * loop->shell->link_count;
    for (size_t i = 0; i < loop->direction_count; i++)
        loop->directions[i] = mp_direction_at(loop->shell, i);
    for (size_t i = 0; i < loop->device_count; i++)
        bad |= watch(loop, loop->directions[i]->from_fd, (int)i);
    return bad == 0 || mp_fail(error, "cannot watch a device: %s", strerror(errno));
}

/* Sets real-time priority and locks memory if permitted. Children do not inherit the priority. False: no priority. */
static bool become_real_time(void) {
    struct sched_param parameters = {.sched_priority = FIFO_PRIORITY};
    prctl(PR_SET_TIMERSLACK, 1ul); /* in case the priority is not permitted */
    mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
    return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters) == 0;
}

static void become_ordinary(void) {
    struct sched_param parameters = {.sched_priority = 0};
    sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &parameters);
    munlockall();
}

/* Discards packets that came before t0. */
static void discard_input(const mp_loop *loop) {
    uint8_t scratch[LINK_PACKET_CAPACITY];
    for (size_t i = 0; i < loop->device_count; i++) {
        while (read(loop->directions[i]->from_fd, scratch, sizeof scratch) > 0) {
        }
    }
}

static void fix_t0(mp_loop *loop) {
    loop->shell->t0_epoch_ns = clock_ns(CLOCK_REALTIME);
    loop->shell->t0_us = clock_us();
    loop->shell->t0_epoch_ms = loop->shell->t0_epoch_ns / 1000000u;
}

/* Reads a batch from a device; stops early if a packet is due. since: when the loop stopped watching the device. */
static void take_in(mp_loop *loop, mp_direction *direction, uint64_t since) {
    uint64_t now = since_t0(loop);
    const bool blind = now > since && now - since >= MISSED_BLIND_US;
    if (blind)
        link_count_missed(direction->entry->link, since, now);
    mp_read_result result = MP_READ_ONE;
    for (size_t i = 0; i < READ_BATCH && result == MP_READ_ONE && (i == 0 || now < loop->next_send_us); i++) {
        result = mp_traffic_read(loop->shell, direction, &now);
        loop->reads++;
        if (i == 0 && blind && result == MP_READ_ONE)
            mp_late_record(&loop->shell->late, since, now - since);
        if (i == 0) { /* later packets are not due earlier */
            uint64_t due = link_next_deadline(direction->entry->link);
            loop->next_send_us = due < loop->next_send_us ? due : loop->next_send_us;
        }
    }
    if (result == MP_READ_GONE) /* COMMAND has deleted the device */
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, direction->from_fd, NULL);
    loop->more |= result == MP_READ_ONE;
    direction->looked_us = now;
}

/* Sends all due packets. On the wall clock each write delays the other packets, so the links take turns to be first. In
 * virtual time the order is the simulator's. */
static void send_all_due(mp_loop *loop) {
    bool any = false;
    for (size_t i = 0; i < loop->direction_count; i++) {
        mp_direction *direction = loop->directions[(loop->first + i) % loop->direction_count];
        uint64_t now = since_t0(loop);
        if (link_next_deadline(direction->link) > now)
            continue;
        loop->sent_us = now;
        any = true;
        mp_traffic_send_due(loop->shell, direction, now);
    }
    if (any && !loop->virtual_time)
        loop->first = (loop->first + 1) % loop->direction_count;
}

/* Passes a signal on to COMMAND, unless it is from the terminal: COMMAND, in the same process group, already has it. */
static void take_signal(mp_loop *loop) {
    struct signalfd_siginfo info;
    if (read(loop->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    int number = (int)info.ssi_signo;
    if (info.ssi_code == SI_KERNEL)
        return;
    mp_command_signal(loop->command, number);
    if ((number == SIGINT || number == SIGTERM) && ++loop->interrupts >= KILLING_SIGNALS)
        mp_command_kill(loop->command);
}

/* Writes the logs' lines of opportunities that pass without deliveries. */
static void keep_house(mp_loop *loop, uint64_t now) {
    if (!loop->logging || now < loop->next_housekeeping_us)
        return;
    for (size_t i = 0; i < loop->direction_count; i++) {
        mp_direction *direction = loop->directions[i];
        mp_traffic_send_due(loop->shell, direction, now);
        link_advance(direction->link, now);
        mp_outputs_flush(direction);
    }
    loop->next_housekeeping_us = now + HOUSEKEEPING_US;
}

/* Returns when the loop must act next even if no packet comes in. */
static uint64_t next_deadline(mp_loop *loop) {
    loop->next_send_us = LINK_NEVER;
    for (size_t i = 0; i < loop->direction_count; i++) {
        uint64_t next = link_next_deadline(loop->directions[i]->link);
        loop->next_send_us = next < loop->next_send_us ? next : loop->next_send_us;
    }
    bool house_first = loop->logging && loop->next_housekeeping_us < loop->next_send_us;
    return house_first ? loop->next_housekeeping_us : loop->next_send_us;
}

/* Switches moderation on if there were many reads per ms, except in virtual time, in which it would save nothing. */
static void judge_load(mp_loop *loop, uint64_t now) {
    uint64_t elapsed = now - loop->window_us;
    if (elapsed >= LOAD_WINDOW_US) {
        loop->moderated = !loop->virtual_time && loop->reads * 1000u >= MODERATE_FROM_PER_MS * elapsed;
        loop->reads = 0;
        loop->window_us = now;
    }
}

/* Returns the end of a pause; 0: no pause. Under load, a wake-up per packet would cost more than the packet. The
 * devices' queues hold packets meanwhile. The loop is back before the next deadline, but no earlier than DENSE_US after
 * the last one: opportunities of a constant rate may be a few us apart. */
static uint64_t pause_until(const mp_loop *loop, uint64_t now, uint64_t deadline, uint64_t poll_us) {
    uint64_t end = now + MODERATION_US;
    uint64_t before = deadline > poll_us ? deadline - poll_us : 0;
    before = before > loop->sent_us + DENSE_US ? before : loop->sent_us + DENSE_US;
    end = end < before ? end : before;
    return loop->moderated && !loop->more && end > now + SHORTEST_PAUSE_US ? end : 0;
}

/* Waits for packets until the deadline *wanted; sets it to the latest intended return. Exact to the timer, because
 * real-time priority has no timer slack. With --busy-poll or under load it polls shortly before a deadline. */
static int wait_for_events(mp_loop *loop, struct epoll_event *events, uint64_t now, uint64_t *wanted) {
    uint64_t deadline = *wanted;
    bool sparse = deadline > loop->sent_us + SPARSE_US;
    uint64_t poll_us = loop->moderated && sparse ? POLL_US : loop->shell->options.busy_poll_us;
    uint64_t pause = pause_until(loop, now, deadline, poll_us);
    if (pause > 0) {
        clock_sleep_until(loop->shell->t0_us + pause);
        *wanted = pause;
    }
    if (pause > 0 || deadline <= now + poll_us || loop->more)
        return wait_events(loop->epoll_fd, events, EVENTS, 0, NULL);
    if (deadline == LINK_NEVER)
        return wait_events(loop->epoll_fd, events, EVENTS, WAIT_FOREVER, NULL);
    *wanted -= poll_us;
    return wait_events(loop->epoll_fd, events, EVENTS, loop->shell->t0_us + *wanted, NULL);
}

static void handle(mp_loop *loop, const struct epoll_event *event, bool at_once, uint64_t seen) {
    int what = (int)(int64_t)event->data.u64;
    if (what == EVENT_STATUS) {
        loop->ended = true;
    } else if (what == EVENT_SIGNAL) {
        take_signal(loop);
    } else if (what == EVENT_MAILBOX) {
        mp_mailbox_serve(loop->shell->mailbox, loop->shell, since_t0(loop));
    } else {
        mp_direction *direction = loop->directions[what];
        take_in(loop, direction, at_once && direction->looked_us > loop->slept_us ? direction->looked_us : seen);
    }
}

static bool turn(mp_loop *loop, char error[MP_ERROR_SIZE]) {
    struct epoll_event events[EVENTS];
    uint64_t wanted = next_deadline(loop);
    uint64_t before = since_t0(loop);
    judge_load(loop, before);
    int n = wait_for_events(loop, events, before, &wanted);
    if (n < 0 && errno != EINTR)
        return mp_fail(error, "cannot wait for packets: %s", strerror(errno));
    uint64_t woken = since_t0(loop);
    /* Slept until a packet came, or was woken late, after `wanted`. */
    bool at_once = woken - before < AT_ONCE_US;
    if (!at_once)
        loop->slept_us = wanted > before && wanted < woken ? wanted : woken;
    loop->more = false;
    for (int i = 0; i < n; i++)
        handle(loop, &events[i], at_once, loop->slept_us);
    send_all_due(loop);
    keep_house(loop, since_t0(loop));
    return true;
}

/* Brings figures and logs up to the end of COMMAND. */
static void settle(mp_loop *loop) {
    loop->shell->duration_us = since_t0(loop);
    mp_machine before = loop->shell->machine;
    mp_machine now = mp_machine_read();
    loop->shell->machine = mp_machine_between(&before, &now);
    loop->shell->cpu_s = (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9 - loop->shell->cpu_s;
    for (size_t i = 0; i < loop->direction_count; i++) {
        mp_direction *direction = loop->directions[i];
        link_advance(direction->link, loop->shell->duration_us);
        mp_outputs_flush(direction);
    }
}

/* Waits until COMMAND is ready, closes its end of the socket, or has ended, which the next turn notices. */
static void wait_until_ready(mp_loop *loop) {
    struct pollfd awaited[3] = {{.fd = loop->command->ready_fd, .events = POLLIN},
                                {.fd = loop->command->status_fd, .events = POLLIN},
                                {.fd = loop->signal_fd, .events = POLLIN}};
    while (!awaited[0].revents && !awaited[1].revents)
        if (poll(awaited, 3, -1) > 0 && awaited[2].revents)
            take_signal(loop);
}

/* Starts COMMAND and the links: together, or the links when COMMAND is ready. */
static void start(mp_loop *loop, void (*on_start)(mp_shell *)) {
    mp_shell *shell = loop->shell;
    bool when_ready = loop->command->ready_fd >= 0;
    if (when_ready) {
        mp_command_start(loop->command);
        wait_until_ready(loop);
    }
    discard_input(loop);
    shell->machine = mp_machine_read();
    fix_t0(loop);
    on_start(shell);
    shell->cpu_s = (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
    if (when_ready)
        mp_command_go(loop->command);
    else
        mp_command_start(loop->command);
}

bool mp_loop_run(mp_shell *shell, mp_command *command, int signal_fd, void (*on_start)(mp_shell *), int *status,
                 char error[MP_ERROR_SIZE]) {
    mp_loop loop = {.shell = shell,
                    .command = command,
                    .epoll_fd = -1,
                    .signal_fd = signal_fd,
                    .virtual_time = mp_clock_is_virtual()};
    bool good = prepare(&loop, error);
    if (good) {
        shell->sched_fifo = become_real_time();
        shell->command_fifo = shell->sched_fifo && shell->options.real_time;
        start(&loop, on_start);
        while (good && !loop.ended)
            good = turn(&loop, error);
        settle(&loop);
        become_ordinary();
    }
    if (!good)
        mp_command_kill(command);
    *status = mp_command_finish(command, &shell->command_cpu_s);
    descriptor_close(&loop.epoll_fd);
    return good;
}
