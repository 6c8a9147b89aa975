#include "emulator/saturatr/control.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"

void sat_control_init(sat_control *control, int fd) {
    control->fd = fd;
    control->used = 0;
}

void sat_control_close(sat_control *control) {
    descriptor_close(&control->fd);
    control->used = 0;
}

/* Takes the first complete line of the buffer. */
static sat_line take_line(sat_control *control, json_t **line) {
    const char *newline = memchr(control->in, '\n', control->used);
    if (!newline)
        return control->used == sizeof control->in ? SAT_LINE_BAD : SAT_LINE_NONE;
    size_t length = (size_t)(newline - control->in);
    *line = json_loadb(control->in, length, 0, NULL);
    control->used -= length + 1;
    memmove(control->in, newline + 1, control->used);
    if (!json_is_object(*line)) {
        json_decref(*line);
        return SAT_LINE_BAD;
    }
    return SAT_LINE_READ;
}

sat_line sat_control_read(sat_control *control, json_t **line) {
    sat_line found = take_line(control, line);
    if (found != SAT_LINE_NONE)
        return found;
    ssize_t n = recv(control->fd, control->in + control->used, sizeof control->in - control->used, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        return SAT_LINE_BAD;
    control->used += n > 0 ? (size_t)n : 0;
    return take_line(control, line);
}

/* Waits until the connection is readable or the deadline comes. False: the deadline had already passed. */
static bool wait_until(const sat_control *control, uint64_t deadline_us) {
    uint64_t now = clock_us();
    if (now >= deadline_us)
        return false;
    struct pollfd poll_fd = {.fd = control->fd, .events = POLLIN};
    poll(&poll_fd, 1, (int)((deadline_us - now) / 1000) + 1);
    return true;
}

sat_line sat_control_wait(sat_control *control, json_t **line, uint64_t deadline_us) {
    sat_line found = sat_control_read(control, line);
    while (found == SAT_LINE_NONE && wait_until(control, deadline_us))
        found = sat_control_read(control, line);
    return found;
}

bool sat_control_write(sat_control *control, json_t *fields) {
    char *text = !fields ? NULL : json_dumps(fields, JSON_COMPACT);
    json_decref(fields);
    if (!text)
        return false;
    size_t length = strlen(text);
    text[length] = '\n'; /* in the place of the NUL */
    ssize_t n = send(control->fd, text, length + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    free(text);
    return n == (ssize_t)(length + 1);
}

bool sat_control_octets(sat_control *control, uint8_t *out, size_t length, uint64_t deadline_us) {
    size_t have = control->used < length ? control->used : length;
    memcpy(out, control->in, have);
    control->used -= have;
    memmove(control->in, control->in + have, control->used);
    while (have < length) {
        ssize_t n = recv(control->fd, out + have, length - have, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        have += n > 0 ? (size_t)n : 0;
        if (n < 0 && !wait_until(control, deadline_us))
            return false;
    }
    return true;
}

ptrdiff_t sat_control_push(sat_control *control, const uint8_t *data, size_t length) {
    ssize_t n = send(control->fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    return n >= 0 ? n : errno == EAGAIN || errno == EINTR ? 0 : -1;
}
