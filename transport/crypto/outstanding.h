/* Private to this room: the tickets that a server has issued and that may still carry 0-RTT data. Each is accepted
 * once, so recorded 0-RTT data is not accepted again (RFC 8446 section 8.1, RFC 9001 section 9.2). The store is
 * bounded: a ticket that newer ones have pushed out, or that another process issued, resumes without 0-RTT. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XL_OUTSTANDING_SETS 1024
#define XL_OUTSTANDING_WAYS 4

typedef struct {
    struct {
        uint8_t id[XL_OUTSTANDING_WAYS][16]; /* hashes of tickets, the newest first; zero: unused */
    } set[XL_OUTSTANDING_SETS];
} xl_outstanding;

/* Adds a ticket. context: what 0-RTT data depends on in the ticket's connection, i.e. its application protocol. Tickets
 * contain random bytes of the server, so nobody else can choose their set. */
void xl_outstanding_add(xl_outstanding *, const uint8_t *ticket, size_t len, const char *context);
/* Whether the ticket is stored with this context. Removes it. */
bool xl_outstanding_take(xl_outstanding *, const uint8_t *ticket, size_t len, const char *context);
