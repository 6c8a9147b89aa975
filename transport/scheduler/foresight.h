/* What a simulator knows of its network's future, for the clairvoyant scheduler. Not part of the public API: outside of
 * transport/ only the simulator includes this header, and endpoint/foresight.h. */
#pragma once

#include "xlink/xlink.h"

/* A query concerns one direction, from one address to another, and begins with ask().
 * - ask() returns a handle, valid until the next query about this direction. NULL: the direction is unknown.
 * - inside() returns the datagrams in transit, oldest first: UDP payload bytes, and the time of arrival (XL_NEVER: it
 *   will be lost). false: no further one.
 * - send() returns the arrival of one more datagram that leaves at `at`, behind those in transit and those of earlier
 *   calls in this query. XL_NEVER: it would be lost, and does not delay later ones. `at` must not decrease. */
typedef struct xl_foresight {
    void *user;
    void *(*ask)(void *user, const xl_addr *from, const xl_addr *to);
    bool (*inside)(void *handle, size_t *bytes, uint64_t *arrives_at);
    uint64_t (*send)(void *handle, size_t bytes, uint64_t at);
} xl_foresight;
