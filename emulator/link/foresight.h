/* Predicts when packets leave a link: packets inside, and hypothetical packets that enter later. For the simulator's
 * reference scheduler (docs/explanation/oracle.md). Does not change the link.
 *
 * The prediction is exact without random effects: it follows trace, delay trace, light trace, satellites (leo), radio,
 * grants and packet order, and the drops of a full droptail queue. It leaves out random loss, jitter, on/off,
 * reordering, duplication, later changes at run time, later traffic of others, and the drops of other queue
 * disciplines, which are treated as one FIFO. Wi-Fi is treated as its constant rate, without the packets in the air. A
 * link that is down delivers nothing.
 *
 * One prediction at a time: link_foresee(), then the packets inside, then any number of hypothetical packets. */
#pragma once

#include "emulator/link/link.h"

typedef struct link_foresight link_foresight;

/* The link must outlive the result. Returns NULL without memory. */
link_foresight *link_foresight_new(const emulated_link *);
void link_foresight_free(link_foresight *); /* NULL is allowed */
/* Starts a prediction. */
void link_foresee(link_foresight *);
/* Gives the next packet inside, oldest first: its IP length, and when it leaves. LINK_NEVER: the queue drops it, or
 * there are no more opportunities. A queue with several FIFOs counts as one packet. False: there are no more
 * packets. */
bool link_foresee_inside(link_foresight *, uint32_t *length, uint64_t *leaves_us);
/* Returns when a hypothetical packet of this IP length leaves, if it enters at at_us, after all packets inside and the
 * earlier hypothetical ones. at_us must not decrease within a prediction. LINK_NEVER: it is dropped, and later packets
 * are not affected. */
uint64_t link_foresee_packet(link_foresight *, uint32_t length, uint64_t at_us);
