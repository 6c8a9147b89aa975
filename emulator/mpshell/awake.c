#include "emulator/mpshell/awake.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/text_file.h"
#include "emulator/mpshell/machine.h"

#define LATENCY_DEVICE   "/dev/cpu_dma_latency"
#define LOWEST_WEIGHT    "19" /* nice value of a session's scheduling group */
#define USUAL_WEIGHT     "0"
#define LOCK_INTERVAL_NS 100000000l /* interval at which a waiting spinner tries the lock */

/* The cores of this process, and their locks until the spinners have them. */
typedef struct {
    size_t count;
    size_t numbers[MP_AWAKE_MAX_CORES];
    int locks[MP_AWAKE_MAX_CORES]; /* -1: not shared */
    bool held[MP_AWAKE_MAX_CORES];
} awake_cores;

size_t mp_awake_cores(size_t *cores, size_t most) {
    cpu_set_t set;
    size_t count = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 0;
    for (size_t i = 0; i < CPU_SETSIZE && count < most; i++)
        if (CPU_ISSET(i, &set))
            cores[count++] = i;
    return count;
}

static void find_cores(awake_cores *cores) {
    cores->count = mp_awake_cores(cores->numbers, MP_AWAKE_MAX_CORES);
    for (size_t i = 0; i < cores->count; i++) {
        cores->locks[i] = -1;
        cores->held[i] = true; /* no other process can hold it */
    }
}

static void open_locks(awake_cores *cores, int folder) {
    for (size_t i = 0; i < cores->count; i++) {
        bool held;
        cores->locks[i] = mp_awake_open_core(folder, cores->numbers[i], &held);
        cores->held[i] = held || cores->locks[i] < 0;
    }
}

static void close_locks(awake_cores *cores) {
    for (size_t i = 0; i < cores->count; i++)
        descriptor_close(&cores->locks[i]);
}

static bool all_held(const awake_cores *cores) {
    for (size_t i = 0; i < cores->count; i++)
        if (!cores->held[i])
            return false;
    return true;
}

/* ---- a spinner */

/* Closes all descriptors except the lock, so that no reader of a pipe waits for a spinner. Returns the lock or -1. */
static int keep_lock_only(int lock) {
    int fd = lock >= 0 ? dup2(lock, 0) : -1;
    syscall(SYS_close_range, fd == 0 ? 1u : 0u, ~0u, 0u);
    return fd;
}

static void pause_core(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

__attribute__((noreturn)) static void spin(pid_t parent, size_t core, int lock, bool held) {
    const struct timespec interval = {.tv_sec = 0, .tv_nsec = LOCK_INTERVAL_NS};
    cpu_set_t set;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "mpshell-awake");
    setsid();
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (getppid() != parent || sched_setaffinity(0, sizeof set, &set) != 0)
        _exit(1);
    lock = keep_lock_only(lock);
    raise(SIGSTOP); /* until it is needed and has its class */
    while (!held && lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0)
        nanosleep(&interval, NULL);
    for (;;)
        pause_core();
}

/* Sets the class of a spinner and the weight of its session. The kernel shares a core between sessions before it looks
 * at the class of their processes, so a spinner's session needs the lowest weight. mpshell sets both when the spinner
 * is ready and resets them before it ends it: on a busy machine such a process would hardly run to its end. */
static bool set_class(pid_t pid, int class, const char *group_nice) {
    struct sched_param none = {.sched_priority = 0};
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/autogroup", (int)pid);
    (void)file_put(path, group_nice); /* kernels without such groups do not have the file */
    return sched_setscheduler(pid, class, &none) == 0;
}

/* Starts one spinner per core, stopped. Leaves out those that fail. */
static void start_spinners(mp_awake *awake, const awake_cores *cores) {
    pid_t self = getpid();
    for (size_t i = 0; i < cores->count; i++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0)
            spin(self, cores->numbers[i], cores->locks[i], cores->held[i]);
        while (pid > 0 && waitpid(pid, &status, WUNTRACED) < 0 && errno == EINTR) {
        }
        if (pid > 0 && WIFSTOPPED(status)) {
            if (set_class(pid, SCHED_IDLE, LOWEST_WEIGHT)) {
                awake->spinners[awake->count++] = pid;
            } else {
                kill(pid, SIGKILL);
                waitpid(pid, &status, 0);
            }
        }
    }
    awake->spinning = true;
}

static void end_spinners(mp_awake *awake) {
    if (!awake->spinning)
        return;
    awake->spinning = false;
    for (size_t i = 0; i < awake->count; i++) {
        set_class(awake->spinners[i], SCHED_OTHER, USUAL_WEIGHT);
        kill(awake->spinners[i], SIGKILL);
    }
    for (size_t i = 0; i < awake->count; i++) {
        struct rusage used;
        int status;
        pid_t pid;
        do {
            pid = wait4(awake->spinners[i], &status, 0, &used);
        } while (pid < 0 && errno == EINTR);
        if (pid > 0)
            awake->cpu_s += clock_used_s(&used);
    }
}

/* ---- on and off */

static void hold_latency(mp_awake *awake) {
    const int32_t none_us = 0;
    awake->latency_fd = open(LATENCY_DEVICE, O_WRONLY | O_CLOEXEC);
    if (awake->latency_fd >= 0 && write(awake->latency_fd, &none_us, sizeof none_us) != (ssize_t)sizeof none_us)
        descriptor_close(&awake->latency_fd);
}

static void keep(void *context, bool on) {
    mp_awake *awake = context;
    if (on)
        hold_latency(awake);
    else
        descriptor_close(&awake->latency_fd);
    for (size_t i = 0; i < awake->count; i++)
        kill(awake->spinners[i], on ? SIGCONT : SIGSTOP);
}

/* Whether keeping the cores awake helps, by a probe of the last minute or a new one. While others keep them awake, this
 * cannot be measured, and taking part costs nothing more. */
static bool ask_probe(mp_awake *awake, const awake_cores *cores, int probe_fd) {
    if (probe_fd >= 0 && mp_awake_read_probe(probe_fd, &awake->probe, cores->count, clock_us()))
        return mp_awake_is_worth(&awake->probe);
    awake->probe = (mp_awake_probe){.made = false};
    if (!all_held(cores)) {
        awake->joined = true;
        return true;
    }
    mp_awake_measure(&awake->probe, keep, awake);
    if (probe_fd >= 0)
        mp_awake_write_probe(probe_fd, &awake->probe, cores->count, clock_us());
    return mp_awake_is_worth(&awake->probe);
}

void mp_awake_start(mp_awake *awake, mp_keep_awake asked) {
    awake_cores cores;
    *awake = (mp_awake){.asked = asked, .latency_fd = -1};
    if (asked == MP_KEEP_AWAKE_OFF)
        return;
    awake->virtual_time = mp_clock_is_virtual();
    if (awake->virtual_time)
        return;
    signal(SIGCHLD, SIG_DFL); /* if a caller ignores it, children cannot be waited for */
    find_cores(&cores);
    int folder = mp_awake_open_folder(MP_AWAKE_FOLDER);
    int probe_fd = folder >= 0 && asked == MP_KEEP_AWAKE_AUTO ? mp_awake_open_probe(folder) : -1;
    awake->shared = folder >= 0;
    awake->quota = mp_awake_has_quota("/proc", "/sys/fs/cgroup", cores.count);
    if (folder >= 0)
        open_locks(&cores, folder);
    if (!awake->quota)
        start_spinners(awake, &cores);
    awake->done = asked == MP_KEEP_AWAKE_ON || ask_probe(awake, &cores, probe_fd);
    close_locks(&cores); /* the spinners hold them */
    if (awake->done) {
        keep(awake, true);
        awake->latency_held = awake->latency_fd >= 0;
        awake->done = awake->latency_held || awake->count > 0;
    } else {
        end_spinners(awake);
    }
    descriptor_close(&probe_fd);
    descriptor_close(&folder);
}

void mp_awake_stop(mp_awake *awake) {
    if (awake->done) {
        descriptor_close(&awake->latency_fd);
        end_spinners(awake);
    }
}

const char *mp_awake_reason(const mp_awake *awake) {
    if (awake->asked == MP_KEEP_AWAKE_OFF)
        return "as asked";
    if (awake->virtual_time)
        return "no timer is late in virtual time";
    if (!awake->done && awake->asked == MP_KEEP_AWAKE_ON)
        return "neither " LATENCY_DEVICE " nor a spinner may be had";
    if (awake->asked == MP_KEEP_AWAKE_ON)
        return "as asked";
    if (awake->joined)
        return "another mpshell keeps them awake already";
    return awake->done ? "the probe shows that timers fire earlier" : "the probe shows no gain";
}
