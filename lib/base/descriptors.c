#include "base/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

void descriptors_raise_limit(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

int descriptors_reserve(void) {
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void descriptor_close(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}
