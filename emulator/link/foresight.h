/* When packets will leave a link: those that are inside, and further ones that are supposed to enter it. For the
 * simulator's reference scheduler (docs/explanation/oracle.md). The link is read and not changed, and does not know of
 * this.
 *
 * The answer is exact as long as nothing random happens: trace, delay trace, light trace, radio and order of the link
 * are followed, and what a full droptail queue drops. Random loss, jitter, on/off, reordering and duplication are left
 * out: the answer is that of a link without them. So are the drops of other queue disciplines, which serve as one FIFO,
 * and changes at run time that are still to come. A link that is down delivers nothing.
 *
 * One question at a time: link_foresee(), then the packets inside, then as many supposed ones as wanted. */
#ifndef RAILYARD_LINK_FORESIGHT_H
#define RAILYARD_LINK_FORESIGHT_H

#include "emulator/link/link.h"

struct link_foresight;

/* Of this link, which must outlive it. NULL: no memory. */
struct link_foresight *link_foresight_new(const struct link *);
void link_foresight_free(struct link_foresight *); /* NULL is allowed */
/* Begins a question. */
void link_foresee(struct link_foresight *);
/* The next packet inside, oldest first: its IP length, and when it will leave; LINK_NEVER: the queue will drop it, or
 * there are no more opportunities. False: there is none left. */
bool link_foresee_inside(struct link_foresight *, uint32_t *length, uint64_t *leaves_us);
/* When a packet of this IP length would leave that entered at at_us, after all that are inside and those that were
 * supposed before. at_us does not decrease within a question. LINK_NEVER: it would be dropped, and counts for nothing.
 */
uint64_t link_foresee_packet(struct link_foresight *, uint32_t length, uint64_t at_us);

#endif
