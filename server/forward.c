#include "server/forward.h"

#include <sys/socket.h>
#include <sys/uio.h>

bool forward_open(int *inbox, int *outbox) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    *inbox = ends[0];
    *outbox = ends[1];
    return true;
}

bool forward_send(int outbox, const xl_datagram *head, const uint8_t *data) {
    xl_datagram copy = *head;
    struct iovec parts[] = {{&copy, sizeof copy}, {(void *)(uintptr_t)data, head->len}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    return sendmsg(outbox, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

bool forward_receive(int inbox, xl_datagram *head, uint8_t data[FORWARD_DATAGRAM_MAX]) {
    struct iovec parts[] = {{head, sizeof *head}, {data, FORWARD_DATAGRAM_MAX}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t n = recvmsg(inbox, &message, MSG_DONTWAIT);
    if (n < (ssize_t)sizeof *head || (size_t)n - sizeof *head != head->len)
        return false;
    head->forwarded = true;
    return true;
}
