#include "emulator/mpshell/clock.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

bool mp_clock_is_virtual(void) {
    char name[32] = "";
    const int fd = open(CLOCK_SOURCE, O_RDONLY | O_CLOEXEC);
    const bool found = fd >= 0 && read(fd, name, sizeof name - 1) > 0 && strncmp(name, "time-travel", 11) == 0;
    if (fd >= 0)
        close(fd);
    return found;
}
