#include "emulator/mpshell/clock.h"

#include <string.h>

#include "base/text_file.h"

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

bool mp_clock_is_virtual(void) {
    char name[32];
    return file_peek(CLOCK_SOURCE, name, sizeof name) && strncmp(name, "time-travel", 11) == 0;
}
