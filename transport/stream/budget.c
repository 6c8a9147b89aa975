#include "stream/budget.h"

#include <stdint.h>

void xl_budget_pool_init(xl_budget_pool *p, size_t most, size_t connections) {
    *p = (xl_budget_pool){.common = most / 2, .share = most / 2 / (connections ? connections : 1)};
}

static size_t beyond(size_t limit, size_t held) {
    return limit > held ? limit - held : 0;
}

/* Bytes that the pool lets the connection take. */
static size_t left_of_pool(const xl_budget *b) {
    size_t common = beyond(b->pool->common, b->pool->held), share = beyond(b->pool->share, b->held);
    return common > share ? common : share;
}

size_t xl_budget_left(const xl_budget *b) {
    if (!b->pool)
        return SIZE_MAX;
    size_t left = left_of_pool(b), own = beyond(b->most, b->held);
    return own < left ? own : left;
}

bool xl_budget_has_plenty(const xl_budget *b, size_t bytes) {
    return !b->pool ||
           (bytes <= beyond(b->most / 4 * 3, b->held) && bytes <= beyond(b->pool->common / 2, b->pool->held));
}

void xl_budget_await_pool(const xl_budget *b) {
    if (b->pool && left_of_pool(b) < beyond(b->most, b->held))
        b->pool->refused = true;
}

bool xl_budget_take(xl_budget *b, size_t bytes) {
    if (!b->pool)
        return true;
    if (bytes > xl_budget_left(b)) {
        xl_budget_await_pool(b);
        return false;
    }
    b->held += bytes;
    b->pool->held += bytes;
    return true;
}

void xl_budget_give_back(xl_budget *b, size_t bytes) {
    if (!b->pool)
        return;
    b->held -= bytes;
    b->pool->held -= bytes;
}
