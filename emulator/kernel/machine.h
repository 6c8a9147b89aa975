/* One time-travel kernel as a process of the host, from its start to its end. It leaves nothing behind: its memory and
 * its first root file system have no name in the host's file systems, and it ends with the process that started it. */
#ifndef EMULATOR_KERNEL_MACHINE_H
#define EMULATOR_KERNEL_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define VK_ERROR_SIZE 1024

typedef struct {
    const char *kernel; /* file */
    const char *init;   /* file: vkernel-init */
    const char *seed_library;
    uint64_t seed;
    uint64_t memory_mb;
    const char *memory_folder; /* of the host, where that memory lies: vk_memory_folder() */
    uint64_t clock_s;          /* since 1970, of the clock inside when the kernel starts */
    uint64_t stall_s;          /* of the host's time without progress of the virtual one: then it is ended */
    uint64_t limit_s;          /* of the host's time for all; 0 = none */
    int64_t core;              /* of the host; -1 = any one */
    const char *folder;        /* of the host, writable inside */
    const char *at;            /* where it is inside, and COMMAND starts */
    const char *log;           /* file for the kernel's messages; NULL = none */
    char *const *command;      /* NULL-terminated, with the environment */
    char *const *environment;
} vk_machine;

/* The job of the machine's init (job.h) as text; free it. NULL: out of memory. */
char *vk_job_text(const vk_machine *, size_t *length);

/* The host's folder for so much memory of a machine: $TMPDIR, else /dev/shm, or /tmp where only that one is fit. */
const char *vk_memory_folder(uint64_t megabytes);

/* Runs COMMAND in a new kernel. *status as of waitpid(); a sentence in error[VK_ERROR_SIZE], empty before, is a remark
 * then. False with one sentence there: it did not run to its end. SIGINT, SIGTERM and SIGHUP, which the caller has
 * blocked, end the machine: *interrupted is the signal's number, else 0. */
bool vk_machine_run(const vk_machine *, int *status, int *interrupted, char *error);

#endif
