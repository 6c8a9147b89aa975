/* "192.0.2.1:443" as an xl_addr; the port may be missing (0). IPv4 only, to keep the examples short. */
#ifndef EXAMPLES_ADDRESS_H
#define EXAMPLES_ADDRESS_H

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xlink/xlink.h>

static inline xl_addr address_parse(const char *text) {
    xl_addr addr = {.family = 4};
    char host[INET_ADDRSTRLEN] = "";
    const char *colon = strchr(text, ':');
    const size_t len = colon ? (size_t)(colon - text) : strlen(text);
    const unsigned long port = colon ? strtoul(colon + 1, NULL, 10) : 0;
    snprintf(host, sizeof host, "%.*s", (int)len, text);
    if (len >= sizeof host || port > UINT16_MAX || inet_pton(AF_INET, host, addr.ip) != 1) {
        fprintf(stderr, "'%s' is not an address; write it as 192.0.2.1:443.\n", text);
        exit(2);
    }
    addr.port = (uint16_t)port;
    return addr;
}

#endif
