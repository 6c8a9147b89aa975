/* Private to this room: the tickets that a server has issued and that may still carry 0-RTT data. Each is taken once,
 * so 0-RTT data that was recorded and is sent again is not accepted (RFC 8446 section 8.1, RFC 9001 section 9.2). The
 * store is bounded: a ticket that newer ones have pushed out, or that another process issued, resumes without 0-RTT. */
#ifndef XL_CRYPTO_OUTSTANDING_H
#define XL_CRYPTO_OUTSTANDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XL_OUTSTANDING_SETS 1024
#define XL_OUTSTANDING_WAYS 4

typedef struct {
    struct {
        uint8_t id[XL_OUTSTANDING_WAYS][16]; /* hashes of tickets, the newest first; zero: none */
    } set[XL_OUTSTANDING_SETS];
} xl_outstanding;

/* context: what the ticket's connection agreed on and 0-RTT data depends on, its application protocol. Tickets hold
 * random bytes of the server: nobody else chooses where they come to lie. */
void xl_outstanding_add(xl_outstanding *, const uint8_t *ticket, size_t len, const char *context);
/* Whether it is there, with the same context; it is not there any more then. */
bool xl_outstanding_take(xl_outstanding *, const uint8_t *ticket, size_t len, const char *context);

#endif
