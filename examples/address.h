/* Parsing of the examples' command lines. An error ends the program with a sentence and status 2. */
#pragma once

#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xlink/xlink.h>

/* Parses "192.0.2.1:443"; without a port, it is 0. IPv4 only, to keep the examples short. */
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

/* The same for a server's address, which has a port. */
static inline xl_addr server_parse(const char *text) {
    const xl_addr addr = address_parse(text);
    if (addr.port == 0) {
        fprintf(stderr, "'%s' has no port; write it as 192.0.2.1:443.\n", text);
        exit(2);
    }
    return addr;
}

/* Parses a number of bytes or datagrams, at least 1. */
static inline unsigned long long number_parse(const char *text) {
    char *end;
    const unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '1' || text[0] > '9' || *end || number == ULLONG_MAX) {
        fprintf(stderr, "'%s' is not a number from 1 on.\n", text);
        exit(2);
    }
    return number;
}
