/* A library for LD_PRELOAD: makes getrandom() a function of RAILYARD_SEED. The time-travel kernel takes its hardware
 * randomness from getrandom(), and programs inside get theirs from the kernel. Names of temporary files, which the
 * kernel's log contains, are numbered. The kernel's memory is a file that vkernel opened, because the kernel may not
 * make one itself. A terminal of the host is no terminal to the kernel, which would put it into raw mode. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "emulator/kernel/job.h"

#define NAMES 1000000u /* names of temporary files: six digits */

ssize_t getrandom(void *into, size_t length, unsigned flags);
int mkstemp64(char *name);

static uint64_t state;

/* SplitMix64. The kernel hashes the numbers, so they only need to differ for each seed and call. */
static uint64_t next(void) {
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

__attribute__((constructor)) static void start(void) {
    const char *text = getenv("RAILYARD_SEED");
    state = text ? strtoull(text, NULL, 10) : 0;
}

ssize_t getrandom(void *into, size_t length, unsigned flags) {
    (void)flags;
    for (size_t done = 0; done < length;) {
        const uint64_t word = next();
        const size_t part = length - done < sizeof word ? length - done : sizeof word;
        memcpy((uint8_t *)into + done, &word, part);
        done += part;
    }
    return (ssize_t)length;
}

int mkstemp64(char *name) {
    const size_t length = strlen(name);
    if (length < 6) {
        errno = EINVAL;
        return -1;
    }
    for (unsigned k = 0; k < NAMES; k++) {
        snprintf(name + length - 6, 7, "%06u", k);
        const int fd = open64(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* In raw mode Ctrl-C is no signal, and a line does not begin at the left edge. */
int isatty(int fd) {
    (void)fd;
    return 0;
}

/* Returns vkernel's file for an unnamed file in VK_MEMORY, the kernel's memory. */
int open64(const char *name, int flags, ...) {
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    if ((flags & O_TMPFILE) == O_TMPFILE && strcmp(name, VK_MEMORY) == 0) {
        const int memory = (int)strtol(strrchr(VK_MEMORY, '/') + 1, NULL, 10);
        return fcntl(memory, F_DUPFD_CLOEXEC, 0);
    }
    return (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

int open(const char *name, int flags, ...) __attribute__((alias("open64")));
