/* Congestion controllers. Each is a table of functions in one file. Units: bytes and microseconds. */
#pragma once

#include "recovery/rate.h"

#define XL_CC_STATE_BYTES 512 /* room for a controller's state */

typedef struct {
    uint64_t now;
    uint64_t bytes;     /* size of the acknowledged packet */
    uint64_t sent_time; /* when it was sent */
    /* latest_rtt_us is the raw sample, without the peer's ACK delay subtracted. */
    uint64_t srtt_us, latest_rtt_us, min_rtt_us;
    /* The window was not fully used when the ACK came, and not because of the pacer: it must not grow (RFC 9002 section
     * 7.8). */
    bool app_limited;
} xl_cc_ack;

/* State that the coupled controllers of a connection's paths share. The connection owns the group, zeroed at first,
 * passes it to each controller by join() and sets is_active. The controllers set the other members. */
#define XL_CC_GROUP_MAX 8 /* paths */

typedef struct {
    bool is_active;        /* the path carries data at present: the other controllers take it into account */
    bool is_coupled;       /* a controller of the path has joined */
    double window;         /* bytes */
    double rtt_s;          /* smoothed RTT; 0: no sample */
    double between_losses; /* max of bytes acknowledged since the last loss and between the last two losses */
} xl_cc_member;

typedef struct {
    xl_cc_member member[XL_CC_GROUP_MAX]; /* by path index */
} xl_cc_group;

typedef struct {
    const char *name;
    void (*init)(void *state, uint64_t mtu_bytes, uint64_t now);
    /* Sets the packet size. While the window is the initial one plus what slow start has added, the initial window is
     * recomputed (RFC 9002 section 7.2). */
    void (*set_mtu)(void *state, uint64_t mtu_bytes);
    /* Called after init: the path is `member` of this group, which outlives it. NULL: the controller is not coupled. */
    void (*join)(void *state, xl_cc_group *, size_t member);
    /* bytes_in_flight includes this packet. It equals `bytes` if the path was idle. */
    void (*on_sent)(void *state, uint64_t bytes, uint64_t bytes_in_flight, uint64_t now);
    void (*on_ack)(void *state, const xl_cc_ack *);
    /* A packet sent at sent_time was lost. The controller decides which losses are one congestion event. */
    void (*on_loss)(void *state, uint64_t sent_time, uint64_t bytes, uint64_t now);
    /* A packet sent at sent_time arrived with a CE mark. NULL: on_loss with 0 bytes is called. */
    void (*on_congestion)(void *state, uint64_t sent_time, uint64_t now);
    void (*on_persistent_congestion)(void *state, uint64_t now);
    /* Called once for each ACK frame that acknowledges packets of the path, after on_ack and on_loss. May be NULL. */
    void (*on_rate_sample)(void *state, const xl_rate_sample *);
    /* A packet that was declared lost by on_loss was acknowledged. May be NULL. */
    void (*on_spurious_loss)(void *state, uint64_t sent_time, uint64_t now);
    uint64_t (*window)(const void *state);   /* bytes */
    uint64_t (*ssthresh)(const void *state); /* bytes, UINT64_MAX = none yet */
    /* bytes per second. NULL: pacing at 1.25 * window / srtt, in slow start 2 * window / srtt. */
    uint64_t (*pacing_rate)(const void *state);
    const char *(*phase)(const void *state); /* phase for the log, a literal; may be NULL */
} xl_cc_ops;

/* All controllers; ends with NULL. The build generates the table from the definitions in this folder:
 * `const xl_cc_ops xl_cc_NAME`. */
extern const xl_cc_ops *const xl_ccs[];

/* RFC 9002 section 7.2. */
uint64_t xl_cc_initial_window(uint64_t mtu_bytes);
uint64_t xl_cc_minimum_window(uint64_t mtu_bytes);
/* Replaces the initial window for old_mtu, which is part of `window`, by that for new_mtu. */
double xl_cc_window_for_mtu(double window, uint64_t old_mtu, uint64_t new_mtu);

const xl_cc_ops *xl_cc_find(const char *name); /* NULL when unknown */
