/* The machine: its processor time, as the kernel counts it, and whether its time is virtual. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Seconds of processor time over all cores, since the machine's start or over an interval. */
typedef struct {
    bool known;
    size_t cores;
    double busy_s;  /* in processes and the kernel of this machine */
    double steal_s; /* taken by the host of this virtual machine */
    double guest_s; /* of busy_s, in virtual machines on this one */
} mp_machine;

/* Parses the text of /proc/stat. ticks: clock ticks per second. */
mp_machine mp_machine_parse(const char *text, double ticks);
/* Returns the counts up to now. */
mp_machine mp_machine_read(void);
/* Returns `after` minus `before`. */
mp_machine mp_machine_between(const mp_machine *before, const mp_machine *after);

/* Whether this kernel's time jumps while no process runs (vkernel). */
bool mp_clock_is_virtual(void);
