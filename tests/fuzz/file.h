/* A file with bytes of the input, for functions that take a name. It exists in memory only. */
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/input.h"

typedef struct {
    int fd;
    char name[32];
} fuzz_file;

static inline fuzz_file fuzz_file_of(const void *data, size_t len) {
    fuzz_file file = {.fd = memfd_create("input", MFD_CLOEXEC)};
    FUZZ_CHECK(file.fd >= 0 && write(file.fd, data, len) == (ssize_t)len);
    snprintf(file.name, sizeof file.name, "/proc/self/fd/%d", file.fd);
    return file;
}

static inline void fuzz_file_close(fuzz_file *file) {
    close(file->fd);
}
