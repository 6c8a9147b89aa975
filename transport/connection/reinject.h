/* Re-injection in a connection (paper section 5.1): chooses which of a stream's packets in flight on other paths is
 * sent again on this path, if any. */
#pragma once

#include "connection/streams.h"
#include "path/path.h"
#include "qlog/qlog.h"
#include "reinjection/reinjection.h"

typedef struct {
    xl_sent_frame *original;
    const char *why; /* the gate's reason */
    xl_qlog_race race;
} xl_copy;

/* What the connection's mode allows to be copied of this stream now. is_held_up: the stream has more to send, but must
 * wait until some of it is acknowledged or read. */
xl_reinjection_scope xl_conn_copy_scope(const xl_connection *, const xl_stream *, bool connection_has_unsent,
                                        bool is_held_up);
/* False: nothing is to be copied onto this path. The qlog gets the reason if it has changed. */
bool xl_conn_choose_copy(xl_connection *, xl_stream *, const xl_path *onto, xl_reinjection_scope, xl_copy *out);
/* [offset, offset + len) of the original was sent on that path. */
void xl_conn_copy_sent(xl_connection *, xl_stream *, const xl_copy *, const xl_path *onto, uint64_t offset, size_t len);
