/* Re-injection: which unacknowledged data may be sent a second time, on another path, and when (paper section 5.1).
 * A mode is a table of functions, registered by name in reinjection.c. */
#ifndef XL_REINJECTION_REINJECTION_H
#define XL_REINJECTION_REINJECTION_H

#include "xlink/xlink.h"

/* What a mode looks at when the sender is about to choose the content of the next packet and has come to this stream in
 * order of priority. */
typedef struct {
    bool stream_flushed; /* the stream's last packet was sent: nothing of it is unsent or waits for retransmission */
    bool has_mark;       /* a video frame is marked in the stream */
    bool frame_flushed;  /* all of the marked frame was sent */
    bool connection_has_unsent; /* some stream has unsent data that flow control lets through */
} xl_reinjection_view;

typedef enum {
    XL_REINJECT_NOTHING,
    XL_REINJECT_MARKED_FRAME, /* unacknowledged packets of the marked range, before the rest of the stream */
    XL_REINJECT_STREAM,       /* all unacknowledged packets of the stream */
} xl_reinjection_scope;

typedef struct {
    const char *name;
    /* What may be duplicated now, before anything of a later stream (or of the rest of this one) is sent. */
    xl_reinjection_scope (*scope)(const xl_reinjection_view *);
} xl_reinjection_ops;

extern const xl_reinjection_ops xl_reinjection_none, xl_reinjection_appending, xl_reinjection_stream,
    xl_reinjection_frame;

const xl_reinjection_ops *xl_reinjection_find(const char *name); /* NULL when unknown */

/* Whether a copy sent now is worth its bytes: yes where the original, if it does arrive, is expected later than the
 * copy, by a margin of a quarter and min_gain_us. Times to acknowledgement in µs, XL_NEVER = the path returns nothing
 * at present. The paper copies every unacknowledged packet; with deep queues, where most of a chunk is in flight when
 * its last packet leaves, that would send a large part of the chunk twice (xl_scheme.reinjection_unconditional does).
 */
bool xl_reinjection_pays(uint64_t original_us, uint64_t copy_us, uint64_t min_gain_us);

/* Double-threshold control (paper section 5.2.2, Algorithm 1). */
typedef struct {
    bool enabled;     /* false: the gate is always open */
    bool extrapolate; /* play-time left shrinks as time passes since the signal came */
    uint64_t t_th1_us, t_th2_us;
    bool has_signal;
    xl_qoe signal;
    uint64_t signal_at; /* when it arrived */
    uint64_t signal_made_after;
} xl_qoe_gate;

typedef struct {
    bool on;
    uint64_t play_time_left_us; /* UINT64_MAX = no signal yet */
    const char *why;
} xl_qoe_decision;

void xl_qoe_gate_init(xl_qoe_gate *, bool enabled, uint64_t t_th1_us, uint64_t t_th2_us);
/* made_after: no earlier than that the peer can have made it. Signals travel on all paths, so an old one may arrive
 * after a newer one; of two the one whose made_after is later counts. False: this one is the older. */
bool xl_qoe_gate_signal(xl_qoe_gate *, const xl_qoe *, uint64_t made_after, uint64_t now);
/* Play-time left of a signal: the smaller of cached_frames / fps and cached_bytes / bps, µs. A rate of 0 gives no
 * estimate from that pair; both 0: UINT64_MAX. */
uint64_t xl_qoe_play_time_left(const xl_qoe *);
/* deliver_time_max_us: Equation 1, the largest RTT + variation of the paths that have unacknowledged packets. The
 * signal is extrapolated to `now`. Before the first signal the player has nothing: the gate is open. */
xl_qoe_decision xl_qoe_gate_decide(const xl_qoe_gate *, uint64_t deliver_time_max_us, uint64_t now);

#endif
