/* COMMAND and its descendants, in a PID namespace.
 *
 * mpshell's child is the init of that namespace: it starts COMMAND, passes signals on to it, collects orphans, and
 * reports how COMMAND ended. When init exits, the kernel kills all other processes of the namespace: after COMMAND's
 * end, and also when mpshell is killed, because init dies with it (PR_SET_PDEATHSIG).
 *
 * With --outside COMMAND has no PID namespace and no capabilities. Init ends the processes that COMMAND leaves. If
 * mpshell or init is killed, COMMAND dies with init, and its children with the container. */
#pragma once

#include <signal.h>

#include "emulator/mpshell/shell.h"

typedef struct {
    pid_t init;    /* process ID of init, outside */
    int go_fd;     /* a byte written to it starts COMMAND */
    int status_fd; /* yields COMMAND's wait status, or end of file if init died */
    int ready_fd;  /* with --start-when-ready: yields COMMAND's byte, and takes the answer; else -1 */
} mp_command;

/* With --real-time: COMMAND and its descendants run under SCHED_FIFO with this priority; the packet loop has 50. A
 * process that uses a core for MP_COMMAND_RTTIME_US without sleeping gets SIGXCPU, a second later SIGKILL. */
#define MP_COMMAND_PRIORITY  30
#define MP_COMMAND_RTTIME_US 3000000u

/* Environment variable with the number of COMMAND's descriptor for --start-when-ready. */
#define MP_READY_VARIABLE "MPSHELL_READY_FD"

/* Makes init in the inside network namespace; it waits for mp_command_start. original_mask: COMMAND's signal mask.
 * False with a sentence in error. */
bool mp_command_prepare(mp_command *command, mp_shell *shell, const sigset_t *original_mask, char error[MP_ERROR_SIZE]);
/* Starts COMMAND. */
void mp_command_start(mp_command *command);
/* Answers a COMMAND that has said it is ready, which then continues. */
void mp_command_go(mp_command *command);
/* Passes a signal on to COMMAND. */
void mp_command_signal(const mp_command *command, int signal);
/* Kills COMMAND and all its descendants. */
void mp_command_kill(const mp_command *command);
/* Waits until init has ended and returns COMMAND's wait status. Call it when status_fd is readable, or after
 * mp_command_kill. *cpu_s: processor time of COMMAND and of its children that were waited for. */
int mp_command_finish(mp_command *command, double *cpu_s);
