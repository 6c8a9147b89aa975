/* What the machine's processors did, by the kernel's count. */
#ifndef RAILYARD_MPSHELL_MACHINE_H
#define RAILYARD_MPSHELL_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

/* Seconds of processor time over all cores, since the machine's start or over a time. */
typedef struct {
    bool known;
    size_t cores;
    double busy_s;  /* in any process or in the kernel of this machine */
    double steal_s; /* taken by the host of this virtual machine */
    double guest_s; /* of busy_s, in virtual machines on this one */
} mp_machine;

/* Reads the text of /proc/stat; ticks: clock ticks a second. */
mp_machine mp_machine_parse(const char *text, double ticks);
/* The counts up to now. */
mp_machine mp_machine_read(void);
/* What was added between the two. */
mp_machine mp_machine_between(const mp_machine *before, const mp_machine *after);

#endif
