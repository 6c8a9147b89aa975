#include "emulator/mpshell/machine.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text_file.h"

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

/* The columns of /proc/stat (proc(5)); user time includes guest time. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, GUEST, GUEST_NICE, COLUMNS };

mp_machine mp_machine_parse(const char *text, double ticks) {
    mp_machine machine = {.known = false};
    double columns[COLUMNS] = {0};
    if (strncmp(text, "cpu ", 4) != 0)
        return machine;
    char *rest;
    text += 4;
    for (size_t i = 0; i < COLUMNS; i++) { /* old kernels have fewer */
        columns[i] = (double)strtoull(text, &rest, 10) / ticks;
        if (rest == text || *text == '\n')
            break;
        text = rest;
    }
    for (const char *line = strchr(text, '\n'); line && strncmp(line, "\ncpu", 4) == 0; line = strchr(line + 1, '\n'))
        machine.cores++;
    machine.busy_s = columns[USER] + columns[NICE] + columns[SYSTEM] + columns[IRQ] + columns[SOFTIRQ];
    machine.steal_s = columns[STEAL];
    machine.guest_s = columns[GUEST] + columns[GUEST_NICE];
    machine.known = machine.cores > 0;
    return machine;
}

mp_machine mp_machine_read(void) {
    size_t length;
    char *text = file_read_at("/proc/stat", SIZE_MAX, &length);
    mp_machine machine = mp_machine_parse(text ? text : "", (double)sysconf(_SC_CLK_TCK));
    free(text);
    return machine;
}

mp_machine mp_machine_between(const mp_machine *before, const mp_machine *after) {
    return (mp_machine){
        .known = before->known && after->known,
        .cores = after->cores,
        .busy_s = after->busy_s - before->busy_s,
        .steal_s = after->steal_s - before->steal_s,
        .guest_s = after->guest_s - before->guest_s,
    };
}

bool mp_clock_is_virtual(void) {
    char name[32];
    return file_peek(CLOCK_SOURCE, name, sizeof name) && strncmp(name, "time-travel", 11) == 0;
}
