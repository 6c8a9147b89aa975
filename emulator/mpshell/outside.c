#include "emulator/mpshell/outside.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "emulator/mpshell/outside_devices.h"
#include "emulator/mpshell/tun.h"

#define PROTOCOL        0x6d700002u /* increment it when a structure changes */
#define WAIT_LIMIT_US   15000000ull /* time for the other container to start */
#define WAIT_STEP_NS    10000000l
#define REPLY_LIMIT_S   30
#define COUNTERS_PLEASE 'c'

typedef struct {
    uint32_t protocol;
    uint32_t path_count;
    uint32_t no_offload;
    uint32_t mptcp;
    uint32_t mptcp_subflows, mptcp_addresses;
} helper_request;

typedef struct {
    uint32_t protocol;
    uint32_t path_count; /* also the number of descriptors; 0: `error` says why */
    char error[MP_ERROR_SIZE];
    mp_ends paths[MP_MAX_PATHS];
} helper_reply;

typedef struct {
    mp_device_drops drops[MP_MAX_PATHS];
} device_counters;

static int open_socket(const char *path, struct sockaddr_un *address, char error[MP_ERROR_SIZE]) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address->sun_path) {
        return mp_no_fd(error, "%s: the name of a socket has at most %zu characters", path,
                        sizeof address->sun_path - 1);
    }
    strcpy(address->sun_path, path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return fd >= 0 ? fd : mp_no_fd(error, "cannot make a Unix socket: %s", strerror(errno));
}

static ssize_t receive(int fd, void *data, size_t size) {
    ssize_t n;
    do {
        n = recv(fd, data, size, 0);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* ---- the side that lends */

/* A container's first process gets only signals that it handles. */
static void leave(int number) {
    (void)number;
    _exit(0);
}

static int await_borrower(const char *path, char error[MP_ERROR_SIZE]) {
    struct sockaddr_un address;
    struct stat there;
    int fd = open_socket(path, &address, error);
    if (fd < 0)
        return -1;
    if (lstat(path, &there) == 0 && S_ISSOCK(there.st_mode))
        unlink(path);          /* left by one that was killed */
    mode_t mask = umask(0177); /* only its owner may connect */
    int rc = bind(fd, (const struct sockaddr *)&address, sizeof address);
    umask(mask);
    if (rc != 0 || listen(fd, 1) != 0) {
        mp_fail(error, "--lend-outside %s: cannot listen: %s", path, strerror(errno));
        close(fd);
        return -1;
    }
    int borrower;
    do {
        borrower = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    } while (borrower < 0 && errno == EINTR);
    int saved = errno;
    unlink(path);
    close(fd);
    return borrower >= 0 ? borrower : mp_no_fd(error, "--lend-outside %s: %s", path, strerror(saved));
}

static bool build(mp_shell *shell, const helper_request *request, ssize_t size, char error[MP_ERROR_SIZE]) {
    if (size != (ssize_t)sizeof *request || request->protocol != PROTOCOL || request->path_count == 0 ||
        request->path_count > MP_MAX_PATHS)
        return mp_fail(error, "the request is not one of this version of mpshell; use the same build on both sides");
    shell->path_count = shell->told_count = request->path_count;
    shell->options.no_offload = request->no_offload != 0;
    shell->options.mptcp = request->mptcp != 0;
    shell->options.mptcp_subflows = request->mptcp_subflows;
    shell->options.mptcp_addresses = request->mptcp_addresses;
    return mp_outside_build(shell, error);
}

static void describe(const mp_shell *shell, helper_reply *reply) {
    reply->path_count = (uint32_t)shell->path_count;
    for (size_t k = 0; k < shell->path_count; k++)
        reply->paths[k] = shell->paths[k].ends;
}

/* Sends the reply with the devices' descriptors and closes its own: a device vanishes with its last descriptor. */
static bool hand_over(int fd, mp_shell *shell, helper_reply *reply) {
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(MP_MAX_PATHS * sizeof(int))];
    } control;
    struct iovec data = {.iov_base = reply, .iov_len = sizeof *reply};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (reply->path_count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(reply->path_count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(reply->path_count * sizeof(int));
        for (size_t k = 0; k < reply->path_count; k++)
            memcpy(CMSG_DATA(header) + k * sizeof(int), &shell->paths[k].outside_fd, sizeof(int));
    }
    ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);
    for (size_t k = 0; k < shell->path_count; k++)
        descriptor_close(&shell->paths[k].outside_fd);
    return n == (ssize_t)sizeof *reply;
}

static void serve_counters(int fd, const mp_shell *shell) {
    char what;
    while (receive(fd, &what, 1) == 1) {
        device_counters counters;
        memset(&counters, 0, sizeof counters);
        for (size_t k = 0; k < shell->path_count; k++)
            counters.drops[k] = mp_tun_drops(shell->paths[k].ends.outside_name);
        if (send(fd, &counters, sizeof counters, MSG_NOSIGNAL) != (ssize_t)sizeof counters)
            return;
    }
}

bool mp_outside_lend(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    static helper_reply reply;
    helper_request request;
    signal(SIGTERM, leave);
    signal(SIGINT, leave);
    int fd = await_borrower(shell->options.lend_outside, error);
    if (fd < 0)
        return false;
    ssize_t size = receive(fd, &request, sizeof request);
    reply.protocol = PROTOCOL;
    const bool good = build(shell, &request, size, error);
    if (good)
        describe(shell, &reply);
    else
        memcpy(reply.error, error, sizeof reply.error);
    if (hand_over(fd, shell, &reply) && good)
        serve_counters(fd, shell);
    close(fd);
    return good;
}

/* ---- the side that borrows */

static int connect_lender(const char *path, char error[MP_ERROR_SIZE]) {
    struct sockaddr_un address;
    struct timeval limit = {.tv_sec = REPLY_LIMIT_S};
    struct timespec step = {.tv_nsec = WAIT_STEP_NS};
    uint64_t until = clock_us() + WAIT_LIMIT_US;
    sigset_t ends; /* signals that are blocked at this time */
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    int fd = open_socket(path, &address, error);
    if (fd < 0)
        return -1;
    while (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        const bool may_come = errno == ENOENT || errno == ECONNREFUSED || errno == EINTR;
        const int saved = errno;
        if (!may_come || clock_us() > until || sigtimedwait(&ends, NULL, &step) > 0) {
            mp_fail(error, "--outside %s: no mpshell --lend-outside answers there: %s", path, strerror(saved));
            close(fd);
            return -1;
        }
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

/* Takes up to `count` descriptors out of a message; closes further ones, which another program may have sent. */
static size_t take_descriptors(struct msghdr *message, int *into, size_t count) {
    size_t taken = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < (header->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
            if (taken < count)
                into[taken++] = fd;
            else
                close(fd);
        }
    }
    return taken;
}

static bool receive_reply(int fd, helper_reply *reply, int descriptors[MP_MAX_PATHS], size_t *count) {
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(MP_MAX_PATHS * sizeof(int))];
    } control;
    struct iovec data = {.iov_base = reply, .iov_len = sizeof *reply};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n;
    do {
        n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    *count = n > 0 ? take_descriptors(&message, descriptors, MP_MAX_PATHS) : 0;
    return n == (ssize_t)sizeof *reply && reply->protocol == PROTOCOL;
}

static void take_path(mp_path *path, const mp_ends *lent) {
    path->ends = *lent;
    path->ends.outside_name[MP_NAME_SIZE - 1] = '\0';
    path->ends.inside_address[MP_ADDRESS_SIZE - 1] = path->ends.outside_address[MP_ADDRESS_SIZE - 1] = '\0';
    path->ends.inside_address6[MP_ADDRESS6_SIZE - 1] = path->ends.outside_address6[MP_ADDRESS6_SIZE - 1] = '\0';
}

bool mp_outside_borrow(mp_shell *shell, char error[MP_ERROR_SIZE]) {
    static helper_reply reply;
    int descriptors[MP_MAX_PATHS];
    size_t count = 0;
    const helper_request request = {.protocol = PROTOCOL,
                                    .path_count = (uint32_t)shell->path_count,
                                    .no_offload = shell->options.no_offload,
                                    .mptcp = shell->options.mptcp,
                                    .mptcp_subflows = (uint32_t)shell->options.mptcp_subflows,
                                    .mptcp_addresses = (uint32_t)shell->options.mptcp_addresses};
    shell->lender = connect_lender(shell->options.outside, error);
    if (shell->lender < 0)
        return false;
    bool good = send(shell->lender, &request, sizeof request, MSG_NOSIGNAL) == (ssize_t)sizeof request &&
                receive_reply(shell->lender, &reply, descriptors, &count);
    reply.error[sizeof reply.error - 1] = '\0';
    if (!good) {
        mp_fail(error, "--outside %s: the other side did not answer; use the same build on both sides",
                shell->options.outside);
    } else if (reply.path_count != shell->path_count || count != shell->path_count) {
        good = mp_fail(error, "on the other side of --outside: %.900s",
                       reply.error[0] != '\0' ? reply.error : "a reply without devices");
    }
    for (size_t k = 0; k < count; k++) {
        if (!good) {
            close(descriptors[k]);
            continue;
        }
        take_path(&shell->paths[k], &reply.paths[k]);
        shell->paths[k].outside_fd = descriptors[k];
    }
    return good;
}

void mp_outside_count_drops(mp_shell *shell) {
    device_counters counters;
    const char what = COUNTERS_PLEASE;
    if (send(shell->lender, &what, 1, MSG_NOSIGNAL) != 1 ||
        receive(shell->lender, &counters, sizeof counters) != (ssize_t)sizeof counters) {
        fprintf(stderr, "mpshell: mpshell --lend-outside has ended; drops of its devices are not counted\n");
        return;
    }
    for (size_t k = 0; k < shell->path_count; k++)
        shell->paths[k].outside_drops = counters.drops[k];
}
