#include "emulator/mpshell/control.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "emulator/mpshell/netns.h"
#include "emulator/mpshell/summary.h"

#define MAX_CLIENTS 16
#define LINE_BYTES  1024u
#define MAX_EVENTS  100000u

typedef struct {
    int fd;
    size_t used;
    char line[LINE_BYTES];
} control_client;

struct mp_control {
    mp_shell *shell;
    mp_mailbox *mailbox;
    struct sockaddr_un address;
    int listen_fd;
    int stop_fd;
    pthread_t thread;
    control_client clients[MAX_CLIENTS];
};

/* Records a command for the summary. */
static void note(mp_shell *shell, uint64_t at_us, const char *command) {
    if (!shell->events)
        shell->events = json_array();
    if (json_array_size(shell->events) < MAX_EVENTS)
        json_array_append_new(shell->events, json_pack("{s:f,s:s}", "t_s", (double)at_us / 1e6, "command", command));
}

static json_t *refusal(const char *why) {
    json_t *answer = json_pack("{s:b,s:s}", "ok", 0, "error", why);
    return answer ? answer : json_pack("{s:b,s:s}", "ok", 0, "error", "the command is not UTF-8");
}

static json_t *obey(mp_control *control, char *line) {
    static mp_figures figures; /* used by one thread only */
    mp_request request = {.figures = &figures};
    char error[MP_ERROR_SIZE];
    char command[LINE_BYTES];
    strcpy(command, line);
    if (!mp_control_parse(control->shell, line, &request, error))
        return refusal(error);
    /* The links stop before the device is removed, and start after it is back, so that it refuses no packet. */
    const bool goes = request.has_interface && !request.change.is_up, returns = request.has_interface && !goes;
    if (returns && !mp_netns_set_interface(control->shell, request.path, true, error))
        return refusal(error);
    if (!mp_mailbox_ask(control->mailbox, &request))
        return refusal("the command has ended");
    if (goes && !mp_netns_set_interface(control->shell, request.path, false, error))
        return refusal(error);
    json_t *answer = json_pack("{s:b,s:f}", "ok", 1, "t_s", (double)request.done_us / 1e6);
    if (request.asks_figures) {
        json_object_set_new(answer, "t0_monotonic_us", json_integer((json_int_t)control->shell->t0_us));
        json_object_set_new(answer, "paths", mp_summary_figures(control->shell, &figures));
    } else {
        note(control->shell, request.done_us, command);
    }
    return answer;
}

static void hang_up(control_client *client) {
    descriptor_close(&client->fd);
    client->used = 0;
}

/* Returns false for a client that does not read its answers; it is disconnected. */
static bool send_answer(control_client *client, json_t *answer) {
    char *text = json_dumps(answer, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(answer);
    size_t length = text ? strlen(text) : 0;
    bool sent = false;
    if (text) {
        text[length] = '\n';
        sent = send(client->fd, text, length + 1, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)length + 1;
    }
    free(text);
    return sent;
}

/* Carries out the complete lines in the buffer. */
static void take_lines(mp_control *control, control_client *client) {
    char *newline = memchr(client->line, '\n', client->used);
    while (newline) {
        size_t length = (size_t)(newline - client->line);
        bool text = !memchr(client->line, '\0', length);
        *newline = '\0';
        if (!send_answer(client, text ? obey(control, client->line) : refusal("the command has a NUL byte"))) {
            hang_up(client);
            return;
        }
        client->used -= length + 1;
        memmove(client->line, newline + 1, client->used);
        newline = memchr(client->line, '\n', client->used);
    }
    if (client->used == LINE_BYTES) {
        send_answer(client, refusal("the command is longer than 1023 bytes"));
        hang_up(client);
    }
}

static void hear(mp_control *control, control_client *client) {
    ssize_t n = recv(client->fd, client->line + client->used, LINE_BYTES - client->used, MSG_DONTWAIT);
    if (n > 0) {
        client->used += (size_t)n;
        take_lines(control, client);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        hang_up(client);
    }
}

static void welcome(mp_control *control) {
    int fd = accept4(control->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    for (size_t i = 0; fd >= 0 && i < MAX_CLIENTS; i++) {
        if (control->clients[i].fd < 0) {
            control->clients[i].fd = fd;
            return;
        }
    }
    descriptor_close(&fd);
}

static void *serve(void *context) {
    mp_control *control = context;
    struct pollfd polled[MAX_CLIENTS + 2];
    /* A client may load only traces that its user may read. */
    if (control->shell->user.given && !mp_user_open_files_as(&control->shell->user)) {
        fprintf(stderr, "mpshell: the control socket takes no commands: cannot give up rights: %s\n", strerror(errno));
        descriptor_close(&control->listen_fd);
        return NULL;
    }
    for (;;) {
        polled[0] = (struct pollfd){.fd = control->stop_fd, .events = POLLIN};
        polled[1] = (struct pollfd){.fd = control->listen_fd, .events = POLLIN};
        for (size_t i = 0; i < MAX_CLIENTS; i++)
            polled[2 + i] = (struct pollfd){.fd = control->clients[i].fd, .events = POLLIN};
        if (poll(polled, MAX_CLIENTS + 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (polled[0].revents != 0)
            return NULL;
        for (size_t i = 0; i < MAX_CLIENTS; i++)
            if (polled[2 + i].revents != 0)
                hear(control, &control->clients[i]);
        if (polled[1].revents != 0)
            welcome(control);
    }
}

/* Removes a socket that nobody listens on: an mpshell that was killed left it. */
static bool clear_place(const struct sockaddr_un *address, char error[MP_ERROR_SIZE]) {
    struct stat st;
    if (lstat(address->sun_path, &st) != 0)
        return true;
    if (!S_ISSOCK(st.st_mode))
        return mp_fail(error, "--control %s: the file exists and is not a socket", address->sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = fd < 0 ? -1 : connect(fd, (const struct sockaddr *)address, sizeof *address);
    bool dead = rc != 0 && errno == ECONNREFUSED;
    descriptor_close(&fd);
    return (dead && unlink(address->sun_path) == 0) ||
           mp_fail(error, "--control %s: another program listens there", address->sun_path);
}

static bool listen_at(mp_control *control, const char *path, char error[MP_ERROR_SIZE]) {
    control->address.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof control->address.sun_path)
        return mp_fail(error, "--control %s: a socket's path has at most 107 bytes", path);
    strcpy(control->address.sun_path, path);
    if (!clear_place(&control->address, error))
        return false;
    control->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    control->stop_fd = eventfd(0, EFD_CLOEXEC);
    mode_t before = umask(0177);
    int rc = bind(control->listen_fd, (const struct sockaddr *)&control->address, sizeof control->address);
    int saved = errno;
    umask(before);
    if (rc != 0 || control->stop_fd < 0 || listen(control->listen_fd, SOMAXCONN) != 0)
        return mp_fail(error, "--control %s: cannot listen: %s", path, strerror(rc != 0 ? saved : errno));
    return true;
}

/* Lets COMMAND's user connect. Checks and changes the socket through one descriptor, so that nobody can replace it. */
static bool give_to_user(const mp_control *control, const mp_user *user, char error[MP_ERROR_SIZE]) {
    const char *path = control->address.sun_path;
    struct stat st;
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    const bool good = fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_nlink == 1 &&
                      fchownat(fd, "", user->uid, user->gid, AT_EMPTY_PATH) == 0;
    if (!good) {
        mp_fail(error, "--control %s: cannot give it to user %s: %s", path, user->name, strerror(errno));
        unlink(path);
    }
    descriptor_close(&fd);
    return good;
}

static void release(mp_control *control) {
    descriptor_close(&control->listen_fd);
    descriptor_close(&control->stop_fd);
    free(control);
}

mp_control *mp_control_start(const char *path, mp_shell *shell, mp_mailbox *mailbox, char error[MP_ERROR_SIZE]) {
    mp_control *control = calloc(1, sizeof *control);
    if (!control)
        return mp_null(error, "no memory");
    control->shell = shell;
    control->mailbox = mailbox;
    control->listen_fd = control->stop_fd = -1;
    for (size_t i = 0; i < MAX_CLIENTS; i++)
        control->clients[i].fd = -1;
    bool good = listen_at(control, path, error);
    if (good && shell->user.given)
        good = give_to_user(control, &shell->user, error);
    const int problem = good ? pthread_create(&control->thread, NULL, serve, control) : 0;
    if (problem != 0) {
        unlink(path);
        good = mp_fail(error, "cannot start a thread: %s", strerror(problem));
    }
    if (!good) {
        release(control);
        return NULL;
    }
    return control;
}

void mp_control_stop(mp_control *control) {
    uint64_t one = 1;
    if (!control)
        return;
    if (write(control->stop_fd, &one, sizeof one) == (ssize_t)sizeof one)
        pthread_join(control->thread, NULL);
    unlink(control->address.sun_path);
    for (size_t i = 0; i < MAX_CLIENTS; i++)
        if (control->clients[i].fd >= 0)
            hang_up(&control->clients[i]);
    release(control);
}
