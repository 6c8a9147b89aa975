/* Schedulers choose the path of the next packet. Each is a table of functions in one file. The packet's content is
 * chosen separately (connection/, reinjection/), except by the redundant scheduler, which sets `copies`.
 * docs/reference/schedulers.md compares them. */
#pragma once

#include "xlink/xlink.h"

#define XL_SCHEDULER_STATE_BYTES 256

struct xl_foreseen;

/* What a scheduler knows of a path. The view has only paths that may carry data. */
typedef struct {
    int index;
    bool has_window; /* a full packet may be sent: the congestion window has room and, if the controller sets a rate
                      * (xl_cc_ops.pacing_rate), the pacer allows it now */
    bool is_paced;   /* the pacer delays the next packet */
    bool is_suspect; /* two consecutive probe timeouts, and no acknowledgement since */
    bool is_standby; /* at least one side requested standby by PATH_STATUS */
    uint64_t srtt_us;
    /* The members below are not set for schedulers with `reads_srtt_alone`. */
    bool has_rtt;
    uint64_t rttvar_us;
    uint64_t min_rtt_us, latest_rtt_us;
    uint64_t window_bytes, in_flight_bytes, mtu_bytes;
    uint64_t pacing_bytes_per_s; /* 0 = not paced */
    uint64_t pto_count;          /* consecutive probe timeouts: > 0 = an acknowledgement is overdue */
    xl_technology technology;
    /* The members below are set for schedulers with `wants_queues`. */
    uint64_t oldest_us;     /* age of the oldest ack-eliciting packet in flight; 0: none */
    uint64_t queue_us;      /* time until all bytes in flight are acknowledged at the present rate; XL_NEVER: rate 0 */
    uint64_t drain_us;      /* the same at the capacity of the path's bottleneck (recovery/capacity.h); 0: unknown */
    uint64_t cross_us;      /* estimated delay by others' packets at the bottleneck (recovery/cross_traffic.h); 0: none,
                             * or unknown */
    bool is_capacity_bound; /* the capacity is a lower bound */
} xl_scheduler_path;

typedef struct {
    uint64_t now;
    size_t count;
    xl_scheduler_path path[XL_MAX_PATHS];
    /* The members below are set for schedulers with `wants_backlog`. "The next stream" is the one that sends next. */
    uint64_t unsent_bytes;      /* bytes that the application has written and that are unsent or lost */
    uint64_t send_window_bytes; /* bytes of the next stream that may be outstanding, from the oldest unacknowledged one:
                                 * the least of its credit, the connection's, and the send buffer */
    bool is_window_blocked;     /* there is more to send, and the send window is used up */
    uint64_t first_bytes;       /* unsent bytes of the next stream */
} xl_scheduler_view;

typedef struct {
    /* Indices into view->path (not path indices), most preferred first. The next packet is sent on the first of them
     * that has a window and content; an index that the view does not have ends the connection. Before decide() count is
     * 0, waits_for is -1, and why is NULL. count = 0: every window is full, or the scheduler waits. It may wait while a
     * path that is not suspect has packets in flight, because an acknowledgement or a probe timeout then calls it
     * again. Otherwise the packet is sent on the path with the smallest RTT, so that no scheduler can stall a
     * connection. */
    size_t count;
    size_t order[XL_MAX_PATHS];
    int waits_for;     /* index of the path that the scheduler waits for; -1: none */
    uint8_t for_later; /* bit set of path indices: these paths carry nothing of the next stream */
    const char *why;   /* reason for the log, a literal; NULL: smallest RTT */
} xl_scheduler_decision;

typedef struct {
    const char *name;
    void (*init)(void *state); /* may be NULL; state is zeroed before */
    void (*decide)(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out);
    /* A packet with stream data was sent on that path. May be NULL. */
    void (*sent)(void *state, int path_index, uint64_t bytes);
    bool passes_paced;     /* skips a path whose pacer delays the packet; otherwise the packet waits for that path */
    bool copies;           /* every path carries all data of a stream: see redundant.c */
    bool reads_srtt_alone; /* reads no member of a path after srtt_us; the view is then cheaper to make */
    bool wants_backlog;    /* reads unsent_bytes and the members after it */
    bool wants_queues;     /* reads oldest_us of paths and the members after it */
    /* The simulator's reference: replaces decide() and knows the future of the network (clairvoyant.h). NULL for
     * schedulers of real networks. */
    void (*decide_foreseeing)(void *state, const xl_scheduler_view *view, const struct xl_foreseen *,
                              xl_scheduler_decision *out);
} xl_scheduler_ops;

/* All schedulers; ends with NULL. The build generates the table from the definitions in this folder:
 * `const xl_scheduler_ops xl_scheduler_NAME`. */
extern const xl_scheduler_ops *const xl_schedulers[];

const xl_scheduler_ops *xl_scheduler_find(const char *name); /* NULL when unknown */

/* ---- Shared by schedulers ---- */

/* The usable paths with has_window, smallest RTT first. Suspect paths count only if there is no healthy one, standby
 * paths only if there is no available one. Returns their number. */
size_t xl_scheduler_by_rtt(const xl_scheduler_view *, size_t order[XL_MAX_PATHS]);
/* The decision of minrtt. Returns whether there is a path. */
bool xl_scheduler_decide_by_rtt(const xl_scheduler_view *, xl_scheduler_decision *out);
void xl_scheduler_minrtt_decide(void *state, const xl_scheduler_view *, xl_scheduler_decision *out);
/* After xl_scheduler_decide_by_rtt(): a path with a smaller RTT and a full window that a scheduler may wait for,
 * because acknowledgements are due. NULL: the decision is the fastest path already. */
const xl_scheduler_path *xl_scheduler_faster_but_full(const xl_scheduler_view *, const xl_scheduler_decision *);
/* Changes the decision to waiting for that path. */
void xl_scheduler_wait(xl_scheduler_decision *, const xl_scheduler_path *for_path, const char *why);
