/* What vkernel tells the init of its kernel: the file JOB of the first root file system. Texts, each ended by NUL: the
 * folder inside at which the host's folder is mounted and COMMAND starts, the environment (NAME=VALUE), an empty text,
 * COMMAND and its arguments. */
#ifndef EMULATOR_KERNEL_JOB_H
#define EMULATOR_KERNEL_JOB_H

#define VK_JOB "/job"
/* A variable of COMMAND's environment: the host's folder cannot be written inside, /run is the machine's own. */
#define VK_TEMPORARY "TMPDIR=/run/tmp"
/* What the kernel's process takes for the folder of its memory's file, and is that file: vkernel opened it. */
#define VK_MEMORY "/proc/self/fd/7"
/* How init's lines in the kernel's log begin. The last of them says how it ended: "exit N" or "signal N" of COMMAND,
 * or "cannot " and why COMMAND was not started. */
#define VK_INIT_SAYS "railyard-init: "
/* COMMAND starts so long after the kernel: programs such as ping take an uptime of 0 s for "unset". */
#define VK_UPTIME_S 10
/* The kernel's terminals for COMMAND's standard output and standard error; 0 is for its log. */
#define VK_STDOUT_TERMINAL 1
#define VK_STDERR_TERMINAL 2

#endif
