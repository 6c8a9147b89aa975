/* Stream-priority mode (paper Fig. 4b): right after the last packet of a stream was sent, its unacknowledged packets go
 * before unsent packets of lower-priority streams. */
#include "reinjection/reinjection.h"

static xl_reinjection_scope stream_scope(const xl_reinjection_view *view) {
    return view->stream_flushed ? XL_REINJECT_STREAM : XL_REINJECT_NOTHING;
}

const xl_reinjection_ops xl_reinjection_stream = {.name = "stream", .scope = stream_scope};
