/* The job of the kernel's init, from vkernel: the file VK_JOB of the first root file system. Texts that end with NUL:
 * the folder inside on which the host's folder is mounted and in which COMMAND starts, the environment (NAME=VALUE), an
 * empty text, COMMAND and its arguments. */
#pragma once

#define VK_JOB "/job"
/* A variable of COMMAND's environment: the host's temporary folder is read-only inside; /run is the machine's. */
#define VK_TEMPORARY "TMPDIR=/run/tmp"
/* TMPDIR of the kernel's process, in which it would make its memory's file. It is that file, which vkernel opened. */
#define VK_MEMORY "/proc/self/fd/7"
/* Start of init's lines in the kernel's log. The last one is "exit N" or "signal N" of COMMAND, or "cannot " and why
 * COMMAND was not started. */
#define VK_INIT_SAYS "railyard-init: "
/* Uptime at which COMMAND starts, because programs such as ping take an uptime of 0 s as "unset". */
#define VK_UPTIME_S 10
/* The kernel's terminals for COMMAND's standard output and standard error; 0 is for its log. */
#define VK_STDOUT_TERMINAL 1
#define VK_STDERR_TERMINAL 2
