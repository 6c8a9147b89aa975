#include "xlink/xlink.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

bool xl_addr_same_host(const xl_addr *a, const xl_addr *b) {
    size_t n = a->family == 4 ? 4 : a->family == 6 ? 16 : 0;
    return a->family == b->family && memcmp(a->ip, b->ip, n) == 0;
}

size_t xl_addr_client_bytes(const xl_addr *a) {
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (a->family == 4)
        return 4;
    return memcmp(a->ip, mapped, sizeof mapped) == 0 ? 16 : 8;
}

bool xl_addr_same_client(const xl_addr *a, const xl_addr *b) {
    size_t n = xl_addr_client_bytes(a);
    return a->family == b->family && n == xl_addr_client_bytes(b) && memcmp(a->ip, b->ip, n) == 0;
}

bool xl_addr_equal(const xl_addr *a, const xl_addr *b) {
    if (a->port != b->port)
        return false;
    return a->family == 4 && b->family == 4 ? memcmp(a->ip, b->ip, 4) == 0 : xl_addr_same_host(a, b);
}

const char *xl_addr_format(const xl_addr *addr, char *buf, size_t cap) {
    char ip[INET6_ADDRSTRLEN] = "";
    if (addr->family == 4 && inet_ntop(AF_INET, addr->ip, ip, sizeof ip))
        snprintf(buf, cap, "%s:%u", ip, (unsigned)addr->port);
    else if (addr->family == 6 && inet_ntop(AF_INET6, addr->ip, ip, sizeof ip))
        snprintf(buf, cap, "[%s]:%u", ip, (unsigned)addr->port);
    else
        snprintf(buf, cap, "unset");
    return buf;
}
