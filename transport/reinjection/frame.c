/* Video-frame-priority mode (paper Fig. 4c): after the last packet of the marked frame was sent, its unacknowledged
 * packets go before the rest of the same stream; after the stream's last packet, as in stream-priority mode. */
#include "reinjection/reinjection.h"

static xl_reinjection_scope frame_scope(const xl_reinjection_view *view) {
    if (view->stream_flushed)
        return XL_REINJECT_STREAM;
    return view->has_mark && view->frame_flushed ? XL_REINJECT_MARKED_FRAME : XL_REINJECT_NOTHING;
}

const xl_reinjection_ops xl_reinjection_frame = {.name = "frame", .scope = frame_scope, .frame_first = true};
