/* The ledger of sent packets of one packet number space, and the effect of acknowledgements and losses (RFC 9002
 * section 6.1, packet and time threshold; appendix A). Packets are kept in order of packet number in a ring;
 * acknowledged ones at its head are dropped. In the steady state no packet needs an allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XL_PACKET_THRESHOLD 3

typedef enum { XL_SENT_OUTSTANDING, XL_SENT_ACKED, XL_SENT_LOST, XL_SENT_SKIPPED } xl_sent_state;

typedef struct xl_sent_frame xl_sent_frame; /* defined by connection/: what the packet carried; opaque here */

typedef struct {
    uint64_t pn;
    uint64_t time_us;                                /* when it was sent */
    uint64_t delivered, delivered_at, first_sent_at; /* rate.h: delivery state when the packet was sent */
    uint32_t bytes; /* UDP payload bytes of this packet; 0 when not counted in flight */
    uint8_t state;  /* xl_sent_state */
    bool ack_eliciting, in_flight;
    bool is_app_limited;   /* rate.h */
    bool is_ect0;          /* sent with that ECN mark */
    bool is_mtu_probe;     /* its loss is no sign of congestion */
    bool is_aside;         /* sent to another address than the path's: it says nothing about the path */
    bool loss_charged;     /* its loss was reported to the congestion controller */
    int8_t path;           /* index of the path on which it was sent */
    xl_sent_frame *frames; /* list; never freed by the ledger: the callbacks settle it */
} xl_sent_packet;

typedef void (*xl_ledger_fn)(void *user, xl_sent_packet *);

typedef struct {
    xl_sent_packet *ring;
    size_t cap;             /* a power of two */
    uint64_t first_pn;      /* packet number of the oldest entry */
    uint64_t next_pn;       /* the next to be pushed */
    uint64_t largest_acked; /* UINT64_MAX = none */
    size_t outstanding;     /* entries in state OUTSTANDING */
    /* The other members are private to the ledger. */
    uint64_t cursor;       /* no packet below is OUTSTANDING */
    uint64_t start;        /* the first packet number */
    size_t skipped;        /* entries in state SKIPPED */
    uint64_t last_skipped; /* UINT64_MAX = none; outlives its entry */
} xl_ledger;

void xl_ledger_init(xl_ledger *);
/* Makes pn the first packet number. Call before the first push. */
void xl_ledger_start_at(xl_ledger *, uint64_t pn);
void xl_ledger_free(xl_ledger *);
/* Shrinks the ring to fit its entries, or frees it if there are none. Not from within a callback. */
void xl_ledger_shrink(xl_ledger *);
/* Appends packet next_pn. Returns NULL if out of memory. All fields but pn are zero (state OUTSTANDING): fill them in
 * before the ledger's next call. The pointer is valid until the next push. If the ring is full, packets at its head
 * that nothing depends on (not in flight, not ack-eliciting, no frames) are forgotten first, so that an endpoint which
 * only acknowledges stays small. If it has 8192 entries or more, lost packets without frames at its head are forgotten
 * too before it grows. */
xl_sent_packet *xl_ledger_push(xl_ledger *);
/* Appends a packet number that is never sent (RFC 9000 section 21.4, optimistic ACKs). */
int xl_ledger_skip(xl_ledger *);
xl_sent_packet *xl_ledger_find(xl_ledger *, uint64_t pn); /* NULL if dropped, skipped or never sent */

/* Processes an acknowledged range [smallest, largest]: calls acked() in ascending order for every packet in it that was
 * not acknowledged before. The state of such a packet on entry is LOST if it had been declared lost (spurious loss).
 * Returns 0, or -1 if the range contains a packet number that was skipped or never sent (PROTOCOL_VIOLATION). The cost
 * depends on the packets in the ring, not on the range's width. Updates largest_acked. */
int xl_ledger_ack(xl_ledger *, uint64_t smallest, uint64_t largest, xl_ledger_fn acked, void *user);
/* Declares lost: outstanding packets below largest_acked that are XL_PACKET_THRESHOLD behind it or at least
 * loss_delay_us old. Calls lost() in ascending order; the state is already LOST. Returns the time at which the next
 * packet will be lost, or XL_NEVER. */
uint64_t xl_ledger_detect_lost(xl_ledger *, uint64_t now, uint64_t loss_delay_us, xl_ledger_fn lost, void *user);
/* Declares lost: every outstanding packet of `path` (-1: of any path), because the path is given up. */
void xl_ledger_lose_all(xl_ledger *, int path, xl_ledger_fn lost, void *user);
/* Returns the oldest outstanding ack-eliciting packet of `path` (-1: of any path) for a probe, or NULL. */
xl_sent_packet *xl_ledger_oldest(xl_ledger *, int path);
/* Stops reporting packets that were sent on `path`, because another path takes its index. Calls fn for each that is
 * outstanding or lost. None of them may be in flight. */
void xl_ledger_forget_path(xl_ledger *, int path, xl_ledger_fn fn, void *user);
/* Calls fn for every packet that is outstanding or lost, then empties the ledger: keys discarded, end of connection. */
void xl_ledger_drain(xl_ledger *, xl_ledger_fn fn, void *user);
/* Forgets lost packets sent before `before_us`, and settled ones, at the head of the ring. Call it from time to
 * time. */
void xl_ledger_trim(xl_ledger *, uint64_t before_us);
