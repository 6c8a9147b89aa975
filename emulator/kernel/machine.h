/* A time-travel kernel as a process of the host, from start to end. It leaves nothing behind: its memory and its first
 * root file system have no name in the host's file systems, and it ends with the process that started it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define VK_ERROR_SIZE       1024
#define vk_fail(error, ...) error_set(error, VK_ERROR_SIZE, __VA_ARGS__)

typedef struct {
    const char *kernel; /* file */
    const char *init;   /* file: vkernel-init */
    const char *seed_library;
    uint64_t seed;
    uint64_t memory_mb;
    const char *memory_folder; /* host folder of the memory's file: vk_memory_folder() */
    uint64_t clock_s;          /* clock inside when the kernel starts, since 1970 */
    uint64_t stall_s;          /* host time without progress of virtual time after which the kernel is ended */
    uint64_t limit_s;          /* host time after which the kernel is ended; 0 = no limit */
    int64_t core;              /* host core; -1 = any */
    const char *folder;        /* host folder that is writable inside */
    const char *at;            /* its place inside, in which COMMAND starts */
    const char *log;           /* file for the kernel's messages; NULL = none */
    char *const *command;      /* NULL-terminated, as environment */
    char *const *environment;
} vk_machine;

/* Returns the text of the job of the machine's init (job.h); free it. NULL: no memory. */
char *vk_job_text(const vk_machine *, size_t *length);

/* Returns the host's folder for this much memory: $TMPDIR, else /dev/shm, or /tmp if only that is suitable. */
const char *vk_memory_folder(uint64_t megabytes);

/* Runs COMMAND in a new kernel. True: COMMAND ran to its end, *status is as from waitpid(), and error[VK_ERROR_SIZE],
 * empty before, may have a remark. False with one sentence in error: it did not. SIGINT, SIGTERM and SIGHUP, which it
 * blocks, end the machine; *interrupted is the signal's number, else 0. */
bool vk_machine_run(const vk_machine *, int *status, int *interrupted, char *error);
