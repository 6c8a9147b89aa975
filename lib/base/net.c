#include "base/net.h"
#include "base/error.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"

#define MPSHELL_PATHS_MOST 1000

bool net_parse_ip(const char *text, xl_addr *out) {
    *out = (xl_addr){0};
    if (inet_pton(AF_INET, text, out->ip) == 1)
        out->family = 4;
    else if (inet_pton(AF_INET6, text, out->ip) == 1)
        out->family = 6;
    return out->family != 0;
}

/* Returns the address of mpshell's path; NULL: there is no such path. */
static const char *mpshell_address(size_t index, uint8_t family, char *variable, size_t cap) {
    snprintf(variable, cap, "MPSHELL_PATH_%zu_ADDR%s", index, family == 6 ? "6" : "");
    return getenv(variable);
}

bool net_parse_local(const char *text, xl_addr *out, char *reason, size_t cap) {
    char variable[48];
    const char *ip = text;
    uint64_t index = 0;
    if (text[0] == '@') {
        if (!number_parse(text + 1, strlen(text + 1), &index) || index >= MPSHELL_PATHS_MOST)
            return error_set(reason, cap, "'%.60s': this is not a path of mpshell; write @0, @1 and so on", text);
        ip = mpshell_address((size_t)index, 4, variable, sizeof variable);
        if (!ip)
            return error_set(reason, cap, "'%s' needs $%s, which mpshell sets; give an IP address outside of mpshell",
                             text, variable);
    }
    return net_parse_ip(ip, out) || error_set(reason, cap, "'%.60s': this is not an IP address", ip);
}

size_t net_mpshell_paths(uint8_t family, xl_addr *out, size_t cap) {
    char variable[48];
    size_t n = 0;
    for (const char *ip; n < cap && (ip = mpshell_address(n, family, variable, sizeof variable)); n++)
        if (!net_parse_ip(ip, &out[n]))
            break;
    return n;
}

static bool parse_port(const char *text, uint16_t *port) {
    size_t len = strlen(text);
    if (len == 0 || len > 5 || strspn(text, "0123456789") != len)
        return false;
    unsigned long value = strtoul(text, NULL, 10);
    *port = (uint16_t)value;
    return value <= 65535;
}

bool net_parse_endpoint(const char *text, xl_addr *out) {
    char ip[64];
    const char *colon = strrchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof ip)
        return false;
    size_t len = (size_t)(colon - text);
    bool bracketed = len >= 2 && text[0] == '[' && text[len - 1] == ']';
    if (bracketed) {
        text++;
        len -= 2;
    }
    memcpy(ip, text, len);
    ip[len] = '\0';
    /* IPv6 needs brackets, IPv4 must have none. */
    return net_parse_ip(ip, out) && bracketed == (out->family == 6) && parse_port(colon + 1, &out->port);
}

bool net_read_endpoint(void *addr, const char *text, char *reason, size_t cap) {
    return net_parse_endpoint(text, addr) ||
           error_set(reason, cap, "takes ADDR:PORT with an IP address, IPv6 as [ADDR]:PORT, not '%.60s'", text);
}

bool net_read_gateway(void *addr, const char *text, char *reason, size_t cap) {
    char expanded[64];
    const char *gateway = getenv("MPSHELL_GATEWAY");
    if (text[0] != '@')
        return net_read_endpoint(addr, text, reason, cap);
    if (!gateway)
        return error_set(reason, cap,
                         "'%.60s' needs $MPSHELL_GATEWAY, which mpshell sets; give ADDR:PORT outside of mpshell", text);
    snprintf(expanded, sizeof expanded, strchr(gateway, ':') ? "[%s]%s" : "%s%s", gateway, text + 1);
    return net_read_endpoint(addr, expanded, reason, cap);
}

bool net_read_server(void *addr, const char *text, char *reason, size_t cap) {
    const xl_addr *server = addr;
    return (net_parse_endpoint(text, addr) && server->port != 0) ||
           error_set(reason, cap, "takes ADDR:PORT with an IP address and a port, not '%.60s'", text);
}

socklen_t net_to_sockaddr(const xl_addr *addr, struct sockaddr_storage *out) {
    memset(out, 0, sizeof *out);
    if (addr->family == 6) {
        struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)out;
        sin6->sin6_family = AF_INET6;
        sin6->sin6_port = htons(addr->port);
        memcpy(&sin6->sin6_addr, addr->ip, 16);
        return sizeof *sin6;
    }
    struct sockaddr_in *sin = (struct sockaddr_in *)out;
    sin->sin_family = AF_INET;
    sin->sin_port = htons(addr->port);
    memcpy(&sin->sin_addr, addr->ip, 4);
    return sizeof *sin;
}

bool net_from_sockaddr(const struct sockaddr *sa, xl_addr *out) {
    *out = (xl_addr){0};
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *sin = (const struct sockaddr_in *)sa;
        out->family = 4;
        out->port = ntohs(sin->sin_port);
        memcpy(out->ip, &sin->sin_addr, 4);
    } else if (sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)sa;
        out->family = 6;
        out->port = ntohs(sin6->sin6_port);
        memcpy(out->ip, &sin6->sin6_addr, 16);
    }
    return out->family != 0;
}

bool net_same_ip(const xl_addr *a, const xl_addr *b) {
    return a->family == b->family && memcmp(a->ip, b->ip, a->family == 6 ? 16 : 4) == 0;
}
