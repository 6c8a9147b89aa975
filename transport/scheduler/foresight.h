/* What a simulator knows of its network's future; the clairvoyant scheduler asks for it. Not of the public API: of
 * other rooms the simulator alone includes this header, and endpoint/foresight.h. */
#ifndef XL_SCHEDULER_FORESIGHT_H
#define XL_SCHEDULER_FORESIGHT_H

#include "xlink/xlink.h"

/* A question is about one way, from an address to another: it begins with ask(), which returns a handle, valid until
 * the next question about this way; NULL: the way is unknown. Then inside() gives the datagrams that are under way
 * already, oldest first: UDP payload bytes, and when each will arrive, XL_NEVER: it will not; false: there is none
 * left. send() says when one more would arrive that leaves at `at`, behind these and all that were supposed before in
 * this question; XL_NEVER: it would not, and counts for nothing. `at` does not decrease. */
typedef struct xl_foresight {
    void *user;
    void *(*ask)(void *user, const xl_addr *from, const xl_addr *to);
    bool (*inside)(void *handle, size_t *bytes, uint64_t *arrives_at);
    uint64_t (*send)(void *handle, size_t bytes, uint64_t at);
} xl_foresight;

#endif
