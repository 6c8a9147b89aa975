/* Congestion controllers: a table of functions each, in a file of its own. Bytes and microseconds. */
#ifndef XL_CONGESTION_CONGESTION_H
#define XL_CONGESTION_CONGESTION_H

#include "recovery/rate.h"

#define XL_CC_STATE_BYTES 512 /* room for a controller's state */

typedef struct {
    uint64_t now;
    uint64_t bytes;           /* of this acknowledged packet */
    uint64_t sent_time;       /* when that packet left */
    uint64_t bytes_in_flight; /* before this packet is taken off */
    /* latest_rtt_us is the raw sample: now - sent_time of the packet that gave it. */
    uint64_t srtt_us, latest_rtt_us, min_rtt_us;
    bool app_limited; /* the window was not fully used: do not grow (RFC 9002 section 7.8) */
} xl_cc_ack;

/* What the coupled controllers of one connection's paths show each other. The connection owns the group, gives it to
 * each path's controller by join(), and keeps is_active; the rest is the controllers' own. Zeroed at first. */
#define XL_CC_GROUP_MAX 8 /* paths */

typedef struct {
    bool is_active;        /* its path carries data at present: others count with it */
    bool is_coupled;       /* a controller of the path joined */
    double window;         /* bytes */
    double rtt_s;          /* smoothed; 0 = none yet */
    double between_losses; /* bytes acknowledged since the last loss or between the last two, whichever is more */
} xl_cc_member;

typedef struct {
    xl_cc_member member[XL_CC_GROUP_MAX]; /* by path index */
} xl_cc_group;

typedef struct {
    const char *name;
    void (*init)(void *state, uint64_t mtu_bytes, uint64_t now);
    /* Packets are of another size from now on. The initial window is computed anew (RFC 9002 section 7.2) where the
     * window is still that and what slow start added to it. */
    void (*set_mtu)(void *state, uint64_t mtu_bytes);
    /* After init: the path is `member` of this group, which outlives it. NULL for controllers that are not coupled. */
    void (*join)(void *state, xl_cc_group *, size_t member);
    /* bytes_in_flight: with this packet; equal to bytes when the path was idle. */
    void (*on_sent)(void *state, uint64_t bytes, uint64_t bytes_in_flight, uint64_t now);
    void (*on_ack)(void *state, const xl_cc_ack *);
    /* A packet sent at sent_time was lost; the controller itself recognises what belongs to one congestion event. */
    void (*on_loss)(void *state, uint64_t sent_time, uint64_t bytes, uint64_t now);
    /* A packet sent at sent_time arrived with a CE mark. NULL: as on_loss, with 0 bytes. */
    void (*on_congestion)(void *state, uint64_t sent_time, uint64_t now);
    void (*on_persistent_congestion)(void *state, uint64_t now);
    /* Once for each ACK that acknowledged packets of the path, after on_ack and on_loss of these; may be NULL. */
    void (*on_rate_sample)(void *state, const xl_rate_sample *);
    /* A packet that on_loss was called for arrived after all; may be NULL. */
    void (*on_spurious_loss)(void *state, uint64_t sent_time, uint64_t now);
    uint64_t (*window)(const void *state);   /* bytes */
    uint64_t (*ssthresh)(const void *state); /* bytes, UINT64_MAX = none yet */
    /* bytes per second; NULL: window / srtt x 1.25 (2 in slow start) is used */
    uint64_t (*pacing_rate)(const void *state);
    const char *(*phase)(const void *state); /* for the log, a literal; may be NULL */
} xl_cc_ops;

/* All of them, ends with NULL: the build makes the table of what the files of this folder define as
 * `const xl_cc_ops xl_cc_NAME`. */
extern const xl_cc_ops *const xl_congestion_controllers[];

/* RFC 9002 section 7.2. */
uint64_t xl_cc_initial_window(uint64_t mtu_bytes);
uint64_t xl_cc_minimum_window(uint64_t mtu_bytes);
/* The initial window for packets of old_mtu, and what was added to it, as it would be for packets of new_mtu. */
double xl_cc_window_for_mtu(double window, uint64_t old_mtu, uint64_t new_mtu);

const xl_cc_ops *xl_cc_find(const char *name); /* NULL when unknown */

#endif
