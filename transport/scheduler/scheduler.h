/* Schedulers: which path carries the next packet. A table of functions each, in a file of its own. What
 * the packet carries is decided elsewhere (connection/, reinjection/): path and content are separate choices, but for
 * the redundant scheduler, which says so by `copies`. docs/reference/schedulers.md compares them. */
#ifndef XL_SCHEDULER_SCHEDULER_H
#define XL_SCHEDULER_SCHEDULER_H

#include "xlink/xlink.h"

#define XL_SCHEDULER_STATE_BYTES 256

struct xl_foreseen;

/* A path as a scheduler sees it. Only paths that may carry data are shown. */
typedef struct {
    int index;
    bool has_window; /* a full packet may be sent: the congestion window has room and, where the controller decides by
                      * rate (xl_cc_ops.pacing_rate), the pacer lets it go now */
    bool is_paced;   /* the pacer holds the next packet back for a moment */
    bool is_suspect; /* consecutive probe timeouts: no answer at present */
    bool is_standby; /* by PATH_STATUS of either side */
    bool has_rtt;
    uint64_t srtt_us, rttvar_us;
    uint64_t min_rtt_us, latest_rtt_us;
    uint64_t oldest_us; /* with `wants_oldest`: age of the oldest ack-eliciting packet in flight; 0: there is none */
    uint64_t
        queue_us; /* until all that is in flight will be acknowledged, at the path's present rate; XL_NEVER: none */
    uint64_t drain_us;      /* the same at the capacity of the path's bottleneck (recovery/capacity.h); 0: unknown */
    bool is_capacity_bound; /* which may be larger than is known */
    uint64_t window_bytes, in_flight_bytes, mtu_bytes;
    uint64_t pacing_bytes_per_s; /* 0 = not paced */
    uint64_t pto_count;          /* consecutive probe timeouts: > 0 = an acknowledgement is overdue */
    xl_technology technology;
} xl_scheduler_path;

typedef struct {
    uint64_t now;
    size_t count;
    xl_scheduler_path path[XL_MAX_PATHS];
    /* The rest is filled in for schedulers with `wants_backlog`. */
    uint64_t unsent_bytes;      /* written by the application and not sent, or lost */
    uint64_t send_window_bytes; /* what may be outstanding, from the oldest unacknowledged byte on, of the stream that
                                 * is next to send: the least of its credit, the connection's, and the send buffer */
    bool is_window_blocked;     /* more is to be sent, but the send window is used up */
    uint64_t first_bytes;       /* of unsent_bytes, those of the stream that is next to send */
} xl_scheduler_view;

typedef struct {
    /* Into view->path, most preferred first: the next packet goes on the first of them that has something to carry.
     * 0 = none: every window is full, or the scheduler would rather wait. Waiting is honoured as long as some path that
     * answers has packets in flight, so that an acknowledgement or a probe timeout asks the scheduler again; else the
     * packet goes by smallest RTT. No scheduler can make a connection stand still. */
    size_t count;
    size_t order[XL_MAX_PATHS];
    int waits_for;     /* path index of the path that it waits for, -1 none */
    uint8_t for_later; /* bit set of path indices: these carry nothing of the stream that is next to send */
    const char *why;   /* for the log, a literal; NULL = the smallest RTT */
} xl_scheduler_decision;

typedef struct {
    const char *name;
    void (*init)(void *state); /* may be NULL; state is zeroed before */
    void (*decide)(void *state, const xl_scheduler_view *view, xl_scheduler_decision *out);
    /* A packet with stream data went out on that path; may be NULL. */
    void (*sent)(void *state, int path_index, uint64_t bytes);
    bool passes_paced;  /* a path that its pacer holds back is passed over; else the choice stands until it may send */
    bool copies;        /* every path carries all of a stream: see redundant.c */
    bool wants_backlog; /* looks at unsent_bytes and what follows it */
    bool wants_oldest;  /* looks at oldest_us of paths */
    /* A reference for simulations: decides in place of decide(), from what the network will do (clairvoyant.h). NULL
     * for every scheduler of real networks. */
    void (*decide_foreseeing)(void *state, const xl_scheduler_view *view, const struct xl_foreseen *,
                              xl_scheduler_decision *out);
} xl_scheduler_ops;

/* All of them, ends with NULL: the build makes the table of what the files of this folder define as
 * `const xl_scheduler_ops xl_scheduler_NAME`. */
extern const xl_scheduler_ops *const xl_schedulers[];

const xl_scheduler_ops *xl_scheduler_find(const char *name); /* NULL when unknown */

/* ---- Shared by schedulers ---- */

/* Paths with room in the window that are to be used at all (healthy before suspect, available before standby), smallest
 * RTT first. */
size_t xl_scheduler_by_rtt(const xl_scheduler_view *, size_t order[XL_MAX_PATHS]);
/* min-RTT's decision. Returns whether there is any path. */
bool xl_scheduler_decide_by_rtt(const xl_scheduler_view *, xl_scheduler_decision *out);
/* After xl_scheduler_decide_by_rtt(): the faster path that a scheduler may consider waiting for, because its window is
 * full and acknowledgements are expected in time. NULL when the choice is the fastest already. */
const xl_scheduler_path *xl_scheduler_faster_but_full(const xl_scheduler_view *, const xl_scheduler_decision *);
/* Turns the decision into: wait for that path. */
void xl_scheduler_wait(xl_scheduler_decision *, const xl_scheduler_path *for_path, const char *why);

#endif
