#include "base/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

#define MAX_TEXT_BYTES ((size_t)1024 * 1024)
#define FIRST_BYTES    4096

static char *read_on(int fd, char *text, size_t cap, size_t most, size_t *length) {
    for (size_t used = 0;;) {
        if (used + 1 == cap) {
            char *grown = realloc(text, cap * 2);
            if (!grown) {
                free(text);
                return NULL;
            }
            text = grown;
            cap *= 2;
        }
        const ssize_t n = read(fd, text + used, cap - used - 1);
        if (n < 0 && errno == EINTR)
            continue;
        used += n > 0 ? (size_t)n : 0;
        if (n < 0 || used > most) {
            const int error = n < 0 ? errno : EFBIG;
            free(text);
            errno = error;
            return NULL;
        }
        if (n == 0) {
            text[used] = '\0';
            *length = used;
            return text;
        }
    }
}

char *file_read(int fd, size_t most, size_t *length) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return NULL;
    /* The expected size, with room for the read that finds the end. */
    size_t cap = S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size + 2 : FIRST_BYTES;
    if (S_ISREG(st.st_mode) && (size_t)st.st_size > most) {
        errno = EFBIG;
        return NULL;
    }
    char *text = malloc(cap);
    return text ? read_on(fd, text, cap, most, length) : NULL;
}

static char *read_and_close(int fd, size_t most, size_t *length) {
    if (fd < 0)
        return NULL;
    char *text = file_read(fd, most, length);
    const int error = errno;
    close(fd);
    errno = error;
    return text;
}

/* Without O_NONBLOCK, open() would wait for a pipe's writer. */
static int open_regular(const char *name) {
    struct stat st;
    const int fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || S_ISREG(st.st_mode))
        return fd;
    close(fd);
    errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    return -1;
}

char *file_read_at(const char *name, size_t most, size_t *length) {
    return read_and_close(open_regular(name), most, length);
}

const char *file_problem(int error) {
    return error == EINVAL ? "it is no regular file" : strerror(error);
}

bool file_peek(const char *name, char *text, size_t size) {
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

bool file_put(const char *name, const char *text) {
    const int fd = open(name, O_WRONLY | O_CLOEXEC);
    const bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return good;
}

bool file_write(int fd, const void *data, size_t length) {
    const char *at = data;
    while (length > 0) {
        const ssize_t n = write(fd, at, length);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

char *text_file_read(const char *file, char *error, size_t error_cap) {
    size_t length;
    char *text = read_and_close(open(file, O_RDONLY | O_CLOEXEC), MAX_TEXT_BYTES, &length);
    if (!text)
        error_set(error, error_cap, "cannot read %s: %s", file,
                  errno == EFBIG ? "it has more than a mebibyte" : strerror(errno));
    return text;
}
