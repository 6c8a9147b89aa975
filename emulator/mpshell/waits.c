#include "emulator/mpshell/waits.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"

#define MOST_THREADS  256u
#define MOST_DEPTH    16u /* of the tree of processes */
#define LOOK_SLOTS    20u /* slots between two searches for new threads */
#define FIFO_PRIORITY 49  /* the packet loop has 50 */

typedef struct {
    pid_t tid;
    int schedstat;
    int stat;
    uint64_t waited_ns; /* run delay up to the last sample */
    bool seen;
} sampled_thread;

struct mp_waits {
    _Atomic uint64_t t0_us; /* 0: not set yet */
    atomic_bool ended;
    pthread_t thread;
    pid_t init;
    pid_t watched[MP_MAX_WATCHED];
    size_t watched_count;
    sampled_thread sampled[MOST_THREADS];
    size_t count;
    bool blocked; /* at the last sample */
    uint64_t blocked_since_us;
    mp_waits_found found;
};

static bool read_run_delay(int fd, uint64_t *waited_ns) {
    char text[96];
    unsigned long long ran;
    unsigned long long waited;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    if (sscanf(text, "%llu %llu", &ran, &waited) != 2)
        return false;
    *waited_ns = waited;
    return true;
}

/* Whether the thread is stopped, traced or in uninterruptible sleep, for example for a disk: proc_pid_stat(5). */
static bool is_blocked(int fd) {
    char text[128]; /* the thread's name has at most 64 bytes, and may have brackets */
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' && end[2] && strchr("DTt", end[2]);
}

static int open_of_thread(pid_t pid, pid_t tid, const char *file) {
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
    return open(name, O_RDONLY | O_CLOEXEC);
}

static void forget(sampled_thread *each) {
    descriptor_close(&each->schedstat);
    descriptor_close(&each->stat);
}

/* Adds a thread, or marks it as seen. A new thread's run delay counts from its start. */
static void meet(mp_waits *waits, pid_t pid, pid_t tid) {
    for (size_t i = 0; i < waits->count; i++) {
        if (waits->sampled[i].tid == tid) {
            waits->sampled[i].seen = true;
            return;
        }
    }
    if (waits->count == MOST_THREADS)
        return;
    sampled_thread met = {.tid = tid,
                          .schedstat = open_of_thread(pid, tid, "schedstat"),
                          .stat = open_of_thread(pid, tid, "stat"),
                          .seen = true};
    if (met.schedstat >= 0 && met.stat >= 0)
        waits->sampled[waits->count++] = met;
    else
        forget(&met);
}

static void look_below(mp_waits *waits, pid_t pid, bool itself, unsigned depth);

static void look_at_children(mp_waits *waits, pid_t pid, pid_t tid, unsigned depth) {
    char name[64];
    int child;
    snprintf(name, sizeof name, "/proc/%d/task/%d/children", (int)pid, (int)tid);
    FILE *children = fopen(name, "re");
    while (children && fscanf(children, "%d", &child) == 1)
        look_below(waits, (pid_t)child, true, depth);
    if (children)
        fclose(children);
}

static void look_below(mp_waits *waits, pid_t pid, bool itself, unsigned depth) {
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/task", (int)pid);
    DIR *tasks = depth < MOST_DEPTH ? opendir(name) : NULL;
    if (!tasks)
        return;
    for (const struct dirent *entry = readdir(tasks); entry; entry = readdir(tasks)) {
        pid_t tid = (pid_t)atoi(entry->d_name);
        if (tid <= 0)
            continue;
        if (itself)
            meet(waits, pid, tid);
        look_at_children(waits, pid, tid, depth + 1);
    }
    closedir(tasks);
}

static void look(mp_waits *waits) {
    for (size_t i = 0; i < waits->count; i++)
        waits->sampled[i].seen = false;
    look_below(waits, waits->init, false, 0);
    for (size_t i = 0; i < waits->watched_count; i++)
        look_below(waits, waits->watched[i], true, 0);
    for (size_t i = waits->count; i-- > 0;) {
        if (!waits->sampled[i].seen) {
            forget(&waits->sampled[i]);
            waits->sampled[i] = waits->sampled[--waits->count];
        }
    }
}

/* Returns the run delay of all threads since the last sample, in ns. *blocked: whether one of them is blocked now. */
static uint64_t sample_ns(mp_waits *waits, bool *blocked) {
    uint64_t sum_ns = 0;
    *blocked = false;
    for (size_t i = 0; i < waits->count; i++) {
        sampled_thread *each = &waits->sampled[i];
        uint64_t now_ns;
        if (!read_run_delay(each->schedstat, &now_ns))
            continue; /* the thread has ended */
        waits->found.known = true;
        sum_ns += now_ns - each->waited_ns;
        each->waited_ns = now_ns;
        *blocked = *blocked || is_blocked(each->stat);
    }
    return sum_ns;
}

/* Records successive blocked slots as one wait, in the slot in which it began. at_us: since t0. */
static void end_block(mp_waits *waits, uint64_t at_us) {
    mp_series_add(&waits->found.series, waits->blocked_since_us, at_us - waits->blocked_since_us);
    waits->found.blocked_s += (double)(at_us - waits->blocked_since_us) / 1e6;
    waits->blocked = false;
}

static void record(mp_waits *waits, uint64_t slot_us, uint64_t waited_ns, bool blocked) {
    if (waited_ns > 0)
        mp_series_add(&waits->found.series, slot_us, waited_ns / 1000u);
    waits->found.run_delay_s += (double)waited_ns / 1e9;
    if (blocked && !waits->blocked)
        waits->blocked_since_us = slot_us;
    else if (!blocked && waits->blocked)
        end_block(waits, slot_us);
    waits->blocked = blocked;
}

static void *watch(void *context) {
    mp_waits *waits = context;
    struct sched_param parameters = {.sched_priority = FIFO_PRIORITY};
    prctl(PR_SET_NAME, "mpshell-waits");
    sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters);
    uint64_t due = clock_us();
    bool begun = false;
    for (unsigned turn = 1; !atomic_load(&waits->ended); turn++) {
        if (turn % LOOK_SLOTS == 0)
            look(waits);
        due = clock_us() > due + MP_SLOT_US ? clock_us() : due + MP_SLOT_US;
        clock_sleep_until(due);
        uint64_t t0 = atomic_load(&waits->t0_us);
        if (t0 > 0 && !begun)
            look(waits);
        bool blocked;
        uint64_t waited_ns = sample_ns(waits, &blocked);
        if (!begun)
            waited_ns = 0; /* waits before the links started delayed nothing */
        begun = t0 > 0;
        if (t0 > 0 && due > t0 + MP_SLOT_US)
            record(waits, due - t0 - MP_SLOT_US, waited_ns, blocked);
    }
    if (waits->blocked)
        end_block(waits, due - atomic_load(&waits->t0_us));
    return NULL;
}

mp_waits *mp_waits_start(pid_t init, const pid_t *watched, size_t count) {
    mp_waits *waits = calloc(1, sizeof *waits);
    if (!waits)
        return NULL;
    waits->init = init;
    waits->watched_count = count < MP_MAX_WATCHED ? count : MP_MAX_WATCHED;
    memcpy(waits->watched, watched, waits->watched_count * sizeof watched[0]);
    look(waits);
    sample_ns(waits, &(bool){false}); /* earlier waits do not count */
    if (pthread_create(&waits->thread, NULL, watch, waits) != 0) {
        free(waits);
        return NULL;
    }
    return waits;
}

void mp_waits_begin(mp_waits *waits, uint64_t t0_us) {
    if (waits)
        atomic_store(&waits->t0_us, t0_us);
}

void mp_waits_stop(mp_waits *waits, mp_waits_found *found) {
    *found = (mp_waits_found){.known = false};
    if (!waits)
        return;
    atomic_store(&waits->ended, true);
    pthread_join(waits->thread, NULL);
    *found = waits->found;
    for (size_t i = 0; i < waits->count; i++)
        forget(&waits->sampled[i]);
    free(waits);
}
