/* Bytes that the send buffers of one connection may take, as part of what all connections of an endpoint may take.
 *
 * Half of the endpoint's bytes are anybody's; of the other half each connection has an equal share for certain, so that
 * some connections which hold all they can do not leave the others without. With M the most of the endpoint, N its most
 * connections, H and h what endpoint and connection hold, a connection may take n more bytes if
 *
 *     h + n <= most of the connection   and   (H + n <= M / 2   or   h + n <= M / 2 / N)
 *
 * so H never exceeds M. With M = 256 MiB and N = 1024: 128 MiB for anybody, 128 KiB for each for certain. */
#ifndef XL_STREAM_BUDGET_H
#define XL_STREAM_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    size_t held;          /* bytes */
    size_t common, share; /* M / 2, M / 2 / N */
    bool refused;         /* a connection waits for bytes of others; whoever clears it tells them when there are */
} xl_budget_pool;

typedef struct {
    xl_budget_pool *pool; /* NULL: without an end */
    size_t held, most;    /* bytes */
} xl_budget;

void xl_budget_pool_init(xl_budget_pool *, size_t most, size_t connections);
size_t xl_budget_left(const xl_budget *);
/* Whether there is so much that nobody will miss it: a quarter of the connection's and half of anybody's stay free. */
bool xl_budget_has_plenty(const xl_budget *, size_t bytes);
/* Sets pool->refused where the pool, not the connection's own most, is what holds it back: bytes of its own come back
 * with its own acknowledgements. */
void xl_budget_await_pool(const xl_budget *);
/* False: there is not so much left, and nothing was taken. */
bool xl_budget_take(xl_budget *, size_t bytes);
void xl_budget_give_back(xl_budget *, size_t bytes);

#endif
