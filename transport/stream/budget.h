/* Memory of the send buffers of one connection, as a part of that of all connections of an endpoint.
 *
 * Half of the endpoint's bytes are shared. The other half is divided equally among the connections, so that connections
 * which take all that they can leave some to the others. With M the endpoint's bytes, N its largest number of
 * connections, H and h the bytes held by the endpoint and by the connection, a connection may take n more bytes if
 *
 *     h + n <= most of the connection   and   (H + n <= M / 2   or   h + n <= M / 2 / N)
 *
 * so H never exceeds M. Example: with M = 256 MiB and N = 1024, 128 MiB are shared and 128 KiB are reserved for
 * each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    size_t held;          /* bytes */
    size_t common, share; /* M / 2, M / 2 / N */
    bool refused;         /* a connection waits for bytes of others; who clears it must wake such connections */
} xl_budget_pool;

typedef struct {
    xl_budget_pool *pool; /* NULL: unlimited */
    size_t held, most;    /* bytes */
} xl_budget;

void xl_budget_pool_init(xl_budget_pool *, size_t most, size_t connections);
size_t xl_budget_left(const xl_budget *);
/* Whether these bytes are plentiful: afterwards a quarter of the connection's and half of the shared bytes are free. */
bool xl_budget_has_plenty(const xl_budget *, size_t bytes);
/* Sets pool->refused if the pool is the limit, not the connection's own maximum. In the latter case the connection's
 * own acknowledgements free bytes. */
void xl_budget_await_pool(const xl_budget *);
/* Returns false, and takes nothing, if fewer bytes are left. */
bool xl_budget_take(xl_budget *, size_t bytes);
void xl_budget_give_back(xl_budget *, size_t bytes);
