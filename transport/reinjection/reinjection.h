/* Re-injection: which unacknowledged data may be sent a second time, on another path, and when (paper section 5.1).
 * A mode is a table of functions in a file of its own. */
#pragma once

#include "xlink/xlink.h"

/* State of a stream when the sender chooses the content of the next packet and has reached the stream in order of
 * priority. */
typedef struct {
    bool stream_flushed; /* no data of the stream can be sent or waits for retransmission: its last packet was sent, or
                          * the last one that a full send buffer or flow control allows */
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
    /* What may be copied now, before data of a later stream (or the rest of this one) is sent. */
    xl_reinjection_scope (*scope)(const xl_reinjection_view *);
    bool frame_first; /* of the packets in flight on a path, those of the marked frame are copied first */
} xl_reinjection_ops;

/* All modes; ends with NULL. The build generates the table from the definitions in this folder:
 * `const xl_reinjection_ops xl_reinjection_NAME`. */
extern const xl_reinjection_ops *const xl_reinjection_modes[];
extern const xl_reinjection_ops xl_reinjection_none; /* nothing is sent twice */

const xl_reinjection_ops *xl_reinjection_find(const char *name); /* NULL when unknown */

/* Whether a copy sent now is worth its bytes:
 *
 *     copy_us * 5/4 + min_gain_us < original_us
 *
 * Times until the acknowledgement in µs; XL_NEVER: the path returns nothing at present. The paper copies every
 * unacknowledged packet; with deep queues, where most of a chunk is in flight when its last packet leaves, that would
 * send a large part of the chunk twice (xl_scheme.reinjection_unconditional does). */
bool xl_reinjection_pays(uint64_t original_us, uint64_t copy_us, uint64_t min_gain_us);
