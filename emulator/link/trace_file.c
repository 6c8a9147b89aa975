/* The one file of this folder that touches the file system: reads traces for those who drive the links. */
#include "emulator/link/delay_trace.h"
#include "emulator/link/light.h"
#include "emulator/link/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const char *path, const char *what, char *error, size_t error_size) {
    snprintf(error, error_size, "%s: cannot read the trace: %s", path, what);
    return -1;
}

/* Reads to the end of the file; the size that stat gave is only a first guess, so pipes work too. */
static int read_all(int fd, char **data, size_t *length, size_t guess) {
    size_t capacity = guess + 2;
    size_t used = 0;
    char *buffer = malloc(capacity);
    while (buffer) {
        ssize_t n = read(fd, buffer + used, capacity - used - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (n < 0)
                break;
            buffer[used] = '\0';
            *data = buffer;
            *length = used;
            return 0;
        }
        used += (size_t)n;
        if (used + 1 == capacity) {
            char *grown = realloc(buffer, capacity * 2);
            if (!grown)
                break;
            buffer = grown;
            capacity *= 2;
        }
    }
    int saved = !buffer ? ENOMEM : errno;
    free(buffer);
    errno = saved;
    return -1;
}

int link_trace_read_file(const char *path, char **data, size_t *length, char *error, size_t error_size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail(path, strerror(errno), error, error_size);
    struct stat st;
    if (fstat(fd, &st) != 0) {
        int saved = errno;
        close(fd);
        return fail(path, strerror(saved), error, error_size);
    }
    size_t guess = S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size : 4096;
    int rc = read_all(fd, data, length, guess);
    int saved = errno;
    close(fd);
    return rc == 0 ? 0 : fail(path, strerror(saved), error, error_size);
}

typedef int parse_fn(void *into, const char *name, const char *text, size_t length, char *error, size_t error_size);

static int load(parse_fn *parse, void *into, const char *path, char *error, size_t error_size) {
    char *data;
    size_t length;
    if (link_trace_read_file(path, &data, &length, error, error_size) != 0)
        return -1;
    int rc = parse(into, path, data, length, error, error_size);
    free(data);
    return rc;
}

static int parse_delay(void *into, const char *name, const char *text, size_t length, char *error, size_t error_size) {
    return link_delay_trace_parse(into, name, text, length, error, error_size);
}

static int parse_light(void *into, const char *name, const char *text, size_t length, char *error, size_t error_size) {
    return link_light_trace_parse(into, name, text, length, error, error_size);
}

static int parse_size(void *into, const char *name, const char *text, size_t length, char *error, size_t error_size) {
    return link_size_latency_parse(into, name, text, length, error, error_size);
}

int link_delay_trace_load(struct link_delay_trace *trace, const char *path, char *error, size_t error_size) {
    return load(parse_delay, trace, path, error, error_size);
}

int link_light_trace_load(struct link_light_trace *trace, const char *path, char *error, size_t error_size) {
    return load(parse_light, trace, path, error, error_size);
}

int link_size_latency_load(struct link_size_latency *latency, const char *path, char *error, size_t error_size) {
    return load(parse_size, latency, path, error, error_size);
}
