/* The ledger of sent packets of one packet number space: what was sent, and what an acknowledgement or a loss means.
 * RFC 9002 section 6.1 (packet and time threshold), appendix A. Packets are kept in order of packet number in a ring;
 * acknowledged and lost ones at its head are dropped. Per packet there is no allocation in the steady state. */
#ifndef XL_RECOVERY_LEDGER_H
#define XL_RECOVERY_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XL_PACKET_THRESHOLD 3

typedef enum { XL_SENT_OUTSTANDING, XL_SENT_ACKED, XL_SENT_LOST, XL_SENT_SKIPPED } xl_sent_state;

typedef struct xl_sent_frame xl_sent_frame; /* defined by connection/: what the packet carried; opaque here */

typedef struct {
    uint64_t pn;
    uint64_t time_us;                                /* when it was sent */
    uint64_t delivered, delivered_at, first_sent_at; /* rate.h's own: the state of delivery when it was sent */
    uint32_t bytes; /* UDP payload bytes of this packet; 0 when not counted in flight */
    uint8_t state;  /* xl_sent_state */
    bool ack_eliciting, in_flight;
    bool is_app_limited;   /* rate.h's, too */
    bool is_ect0;          /* left with that ECN mark */
    bool is_mtu_probe;     /* its loss says nothing of congestion */
    bool loss_charged;     /* its loss was reported to the congestion controller */
    int8_t path;           /* index of the path that it left on */
    xl_sent_frame *frames; /* list; the ledger never frees it: settle it in the callbacks */
} xl_sent_packet;

typedef void (*xl_ledger_fn)(void *user, xl_sent_packet *);

typedef struct {
    xl_sent_packet *ring;
    size_t cap;             /* a power of two */
    uint64_t first_pn;      /* packet number of the oldest entry */
    uint64_t next_pn;       /* the next to be pushed */
    uint64_t largest_acked; /* UINT64_MAX = none */
    size_t outstanding;     /* entries in state OUTSTANDING */
    /* The rest is the ledger's own. */
    uint64_t cursor;       /* nothing below is OUTSTANDING */
    uint64_t start;        /* the first number that is sent */
    size_t skipped;        /* entries in state SKIPPED */
    uint64_t last_skipped; /* UINT64_MAX = none; outlives its entry */
} xl_ledger;

void xl_ledger_init(xl_ledger *);
/* Sends no number below pn. Before the first push. */
void xl_ledger_start_at(xl_ledger *, uint64_t pn);
void xl_ledger_free(xl_ledger *);
/* Makes the ring as small as what is in it allows; none, where nothing is. Not from within a callback. */
void xl_ledger_shrink(xl_ledger *);
/* Appends packet next_pn; NULL when out of memory. Its fields other than pn are zero (OUTSTANDING): fill them in before
 * the ledger's next call. The pointer is good until the next push. A full ring first forgets packets at its head that
 * nothing depends on (not in flight, not ack-eliciting, no frames), so that an endpoint which only acknowledges stays
 * small; a full ring of 8192 and more also forgets lost ones without frames there before it grows. */
xl_sent_packet *xl_ledger_push(xl_ledger *);
/* Appends a packet number that is never sent (RFC 9000 section 21.4, optimistic ACKs). */
int xl_ledger_skip(xl_ledger *);
xl_sent_packet *xl_ledger_find(xl_ledger *, uint64_t pn); /* NULL when dropped or never sent */

/* An acknowledged range [smallest, largest]: calls acked() for every packet of it not acknowledged before, descending
 * or ascending as is cheap. A packet in state LOST that is acknowledged after all is reported too (its state on entry
 * is still LOST: spurious loss). Returns 0, or -1 if the range names a packet never sent or skipped
 * (PROTOCOL_VIOLATION). Cost is that of the packets still in the ring, never of the range's width. Updates
 * largest_acked. */
int xl_ledger_ack(xl_ledger *, uint64_t smallest, uint64_t largest, xl_ledger_fn acked, void *user);
/* Declares lost: outstanding packets below largest_acked that are XL_PACKET_THRESHOLD behind or older than
 * loss_delay_us. Calls lost() ascending (state is already LOST). Returns the time at which the next one will be lost,
 * XL_NEVER if none. */
uint64_t xl_ledger_detect_lost(xl_ledger *, uint64_t now, uint64_t loss_delay_us, xl_ledger_fn lost, void *user);
/* Declares every outstanding packet of `path` (-1: any) lost: a path given up. */
void xl_ledger_lose_all(xl_ledger *, int path, xl_ledger_fn lost, void *user);
/* Oldest outstanding ack-eliciting packet of `path` (-1: any), for probes; NULL if none. */
xl_sent_packet *xl_ledger_oldest(xl_ledger *, int path);
/* Another path takes the place of `path`: packets that left on it are not reported any more, whatever becomes of them.
 * Calls fn for each that would have been. None of them may be in flight. */
void xl_ledger_forget_path(xl_ledger *, int path, xl_ledger_fn fn, void *user);
/* Calls fn for every packet that is outstanding or lost-but-remembered, then empties the ledger: keys discarded, end of
 * connection. */
void xl_ledger_drain(xl_ledger *, xl_ledger_fn fn, void *user);
/* Forgets lost packets older than `before_us` and settled ones at the head. Call now and then. */
void xl_ledger_trim(xl_ledger *, uint64_t before_us);
/* The same, and calls fn for every LOST packet that is forgotten: for who keeps their frames to settle a spurious loss.
 */
void xl_ledger_forget(xl_ledger *, uint64_t before_us, xl_ledger_fn fn, void *user);

#endif
