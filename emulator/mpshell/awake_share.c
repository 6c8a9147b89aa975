#include "emulator/mpshell/awake_share.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/text_file.h"

static int open_own_folder(int parent, const char *name, mode_t mode) {
    struct stat st;
    if (mkdirat(parent, name, mode) != 0 && errno != EEXIST)
        return -1;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

int mp_awake_open_folder(const char *path) {
    char above[PATH_MAX];
    const char *name = strrchr(path, '/');
    if (!name || (size_t)(name - path) >= sizeof above)
        return -1;
    snprintf(above, sizeof above, "%.*s", (int)(name - path), path);
    int parent = open_own_folder(AT_FDCWD, above, 0755);
    int fd = parent >= 0 ? open_own_folder(parent, name + 1, 0700) : -1;
    descriptor_close(&parent);
    return fd;
}

static int open_file(int folder, const char *name) {
    return openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

int mp_awake_open_core(int folder, size_t core, bool *held) {
    char name[32];
    snprintf(name, sizeof name, "cpu%zu", core);
    int fd = open_file(folder, name);
    *held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    return fd;
}

int mp_awake_open_probe(int folder) {
    int fd = open_file(folder, "probe");
    int rc;
    do {
        rc = fd >= 0 ? flock(fd, LOCK_EX) : -1; /* its holder ends within half a second */
    } while (fd >= 0 && rc != 0 && errno == EINTR);
    if (fd >= 0 && rc != 0)
        descriptor_close(&fd);
    return fd;
}

bool mp_awake_read_probe(int fd, mp_awake_probe *probe, size_t cores, uint64_t now_us) {
    char text[256];
    mp_awake_lateness *without = &probe->without;
    mp_awake_lateness *with = &probe->with;
    unsigned long long made_us;
    size_t of_cores;
    int fifo;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    if (sscanf(text, "%llu %zu %d %lf %lf %lf %lf %lf %lf", &made_us, &of_cores, &fifo, &without->p50_us,
               &without->p95_us, &without->p99_us, &with->p50_us, &with->p95_us, &with->p99_us) != 9 ||
        made_us > now_us || of_cores != cores)
        return false;
    probe->sched_fifo = fifo != 0;
    probe->age_s = (double)(now_us - made_us) / 1e6;
    probe->made = probe->age_s <= MP_AWAKE_PROBE_AGES;
    return probe->made;
}

void mp_awake_write_probe(int fd, const mp_awake_probe *probe, size_t cores, uint64_t now_us) {
    const mp_awake_lateness *without = &probe->without;
    const mp_awake_lateness *with = &probe->with;
    char text[256];
    int n = snprintf(text, sizeof text, "%llu %zu %d %.3f %.3f %.3f %.3f %.3f %.3f\n", (unsigned long long)now_us,
                     cores, probe->sched_fifo, without->p50_us, without->p95_us, without->p99_us, with->p50_us,
                     with->p95_us, with->p99_us);
    bool written = ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) == n;
    if (!written && ftruncate(fd, 0) != 0)
        perror("mpshell: cannot empty " MP_AWAKE_FOLDER "/probe"); /* a later mpshell ignores it as too old */
}

/* ---- quotas */

/* Reads a group's quota of processor time and its period, both in us, from the files of cgroup v2 or v1. */
static bool quota_of(const char *folder, double *quota, double *period) {
    char path[3 * PATH_MAX];
    char text[128];
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (file_peek(path, text, sizeof text))
        return sscanf(text, "%lf %lf", quota, period) == 2; /* "max 100000": no quota */
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!file_peek(path, text, sizeof text) || sscanf(text, "%lf", quota) != 1 || *quota < 0)
        return false;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    return file_peek(path, text, sizeof text) && sscanf(text, "%lf", period) == 1;
}

/* Whether the group or one above it has a quota below the time of `cores` cores. */
static bool quota_up_from(const char *root, char *group, size_t cores) {
    char folder[2 * PATH_MAX];
    for (;;) {
        double quota;
        double period;
        snprintf(folder, sizeof folder, "%s%s", root, group);
        if (quota_of(folder, &quota, &period) && quota < period * (double)cores)
            return true;
        char *slash = strrchr(group, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
}

static bool names_cpu(const char *controllers, size_t length) {
    const char *end = controllers + length;
    for (const char *word = controllers; word < end;) {
        const char *comma = memchr(word, ',', (size_t)(end - word));
        size_t size = (size_t)((!comma ? end : comma) - word);
        if (size == 3 && memcmp(word, "cpu", 3) == 0)
            return true;
        word += size + 1;
    }
    return false;
}

bool mp_awake_has_quota(const char *proc, const char *sys, size_t cores) {
    char path[PATH_MAX];
    char line[PATH_MAX];
    bool found = false;
    snprintf(path, sizeof path, "%s/self/cgroup", proc);
    FILE *in = fopen(path, "re");
    while (in && !found && fgets(line, sizeof line, in)) { /* ID:CONTROLLERS:GROUP */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = !controllers ? NULL : strchr(controllers + 1, ':');
        if (!group)
            continue;
        size_t length = (size_t)(group - controllers - 1);
        bool unified = length == 0;
        if (unified || names_cpu(controllers + 1, length)) {
            char root[PATH_MAX];
            snprintf(root, sizeof root, "%s%s%.*s", sys, unified ? "" : "/", (int)length, controllers + 1);
            found = quota_up_from(root, group + 1, cores);
        }
    }
    if (in)
        fclose(in);
    return found;
}
