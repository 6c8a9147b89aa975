/* Schedulers: which path carries the next packet. A table of functions each, registered by name in scheduler.c. What
 * the packet carries is decided elsewhere (connection/, reinjection/): path and content are separate choices. */
#ifndef XL_SCHEDULER_SCHEDULER_H
#define XL_SCHEDULER_SCHEDULER_H

#include "xlink/xlink.h"

#define XL_SCHEDULER_STATE_BYTES 256

/* A path as a scheduler sees it. Only paths that may carry data are shown. */
typedef struct {
    int index;
    bool has_window; /* the congestion window has room for a full packet */
    bool is_suspect; /* consecutive probe timeouts: no answer at present */
    bool is_standby; /* by PATH_STATUS of either side */
    uint64_t srtt_us, rttvar_us;
    bool has_rtt;
    uint64_t window_bytes, in_flight_bytes, mtu_bytes;
    xl_technology technology;
} xl_scheduler_path;

typedef struct {
    uint64_t now;
    size_t count;
    xl_scheduler_path path[XL_MAX_PATHS];
} xl_scheduler_view;

typedef struct {
    const char *name;
    void (*init)(void *state); /* may be NULL; state is zeroed before */
    /* Fills order[] with indexes into view->path, most preferred first, and returns how many: the next packet goes on
     * the first of them that has something to carry. 0 = rather wait. */
    size_t (*order)(void *state, const xl_scheduler_view *view, size_t order[XL_MAX_PATHS]);
    /* A packet with stream data went out on that path; may be NULL. */
    void (*sent)(void *state, int path_index, uint64_t bytes);
} xl_scheduler_ops;

extern const xl_scheduler_ops xl_scheduler_minrtt;
extern const xl_scheduler_ops xl_scheduler_xlink;

const xl_scheduler_ops *xl_scheduler_find(const char *name); /* NULL when unknown */

/* Shared by schedulers: paths with room in the window that are to be used at all (healthy before suspect, available
 * before standby), smallest RTT first. */
size_t xl_scheduler_by_rtt(const xl_scheduler_view *, size_t order[XL_MAX_PATHS]);

#endif
