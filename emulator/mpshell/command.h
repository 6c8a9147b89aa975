/* COMMAND and everything that it starts, in a PID namespace of its own.
 *
 * mpshell's child is the init of that namespace: it starts COMMAND, passes signals on to it, collects orphans, and
 * reports how COMMAND ended. When init goes, the kernel kills all that is left in the namespace: after COMMAND's end,
 * and also when mpshell is killed, for init dies with it (PR_SET_PDEATHSIG).
 *
 * With --outside there is no namespace for COMMAND alone, and COMMAND has no capability. Its init ends what it leaves;
 * if mpshell or init are killed, COMMAND dies with init, and its children with the container. */
#ifndef RAILYARD_MPSHELL_COMMAND_H
#define RAILYARD_MPSHELL_COMMAND_H

#include <signal.h>

#include "emulator/mpshell/shell.h"

typedef struct {
    pid_t init;    /* process ID of init, outside */
    int go_fd;     /* a byte written here starts COMMAND */
    int status_fd; /* COMMAND's wait status comes out of here, or end of file if init died */
    int ready_fd;  /* with --start-when-ready: COMMAND's byte comes out of here, and takes one; else -1 */
} mp_command;

/* With --real-time: COMMAND and what it starts run under SCHED_FIFO with this priority; the packet loop has 50. What
 * uses a core for so long without sleeping gets SIGXCPU, and SIGKILL a second later (RLIMIT_RTTIME). */
#define MP_COMMAND_PRIORITY  30
#define MP_COMMAND_RTTIME_US 3000000u

/* COMMAND's end of that socket: the number of a descriptor. */
#define MP_READY_VARIABLE "MPSHELL_READY_FD"

/* Makes init, in the inside network namespace and waiting for mp_command_start. original_mask is the signal mask for
 * COMMAND. False with a sentence in error. */
bool mp_command_prepare(mp_command *command, mp_shell *shell, const sigset_t *original_mask, char error[MP_ERROR_SIZE]);
/* Starts COMMAND. */
void mp_command_start(mp_command *command);
/* Lets a COMMAND that said it was ready go on. */
void mp_command_go(mp_command *command);
/* Passes a signal on to COMMAND. */
void mp_command_signal(const mp_command *command, int signal);
/* Kills COMMAND and all its descendants. */
void mp_command_kill(const mp_command *command);
/* To be called when status_fd is readable, or after mp_command_kill: waits until all processes are gone and returns
 * COMMAND's wait status. *cpu_s: processor time of COMMAND and of those of its children that were waited for. */
int mp_command_finish(mp_command *command, double *cpu_s);

#endif
