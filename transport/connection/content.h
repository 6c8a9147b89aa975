/* What the next packet on a path carries. transmit.c and the scheduler choose the path. */
#pragma once

#include "connection/builder.h"
#include "connection/reinject.h"
#include "scheduler/scheduler.h"

/* Whether packets received on p are acknowledged; also late ones on an abandoned path while its ID is remembered. */
bool xl_content_is_acknowledged(const xl_connection *, const xl_path *p);
/* The fastest path that may carry data, one in use before others; NULL: none. */
const xl_path *xl_content_best_path(const xl_connection *);
/* The path for acknowledgements of packets received on p (paper section 5.3); NULL: none is usable. */
const xl_path *xl_content_ack_path(const xl_connection *, const xl_path *p);
void xl_content_put_acks(xl_builder *);
bool xl_content_has_control(const xl_connection *);
void xl_content_put_control(xl_builder *);

/* Stream data that goes next onto a path: new, lost or re-injected. Its length is determined in the packet. */
typedef struct {
    xl_stream *stream;
    xl_send_piece piece;
    xl_copy copy;      /* without an original: not a copy */
    bool is_redundant; /* a copy by the redundant scheduler */
} xl_content_choice;

/* Makes the choice. Also logs the reasons against a re-injection, and sets the timer for another search. False: there
 * is nothing to send on this path now. */
bool xl_content_choose(xl_connection *, const xl_path *onto, xl_content_choice *);
/* Fills the packet. `first` was chosen for this path, and nothing was sent since; NULL: none was chosen. */
void xl_content_put_streams(xl_builder *, const xl_content_choice *first);
/* Whether everything that streams were given is sent and acknowledged, and the application waits for room on none. */
bool xl_content_is_settled(const xl_connection *);
/* Whether any stream has something to send, on any path. */
bool xl_content_has_unsent(const xl_connection *);
/* Whether streams have so many bytes to send, as far as flow control allows, with those that the application has
 * announced. */
bool xl_content_fills(const xl_connection *, uint64_t bytes);
/* Whether the peer, which a limit blocks, should have a higher one since a round trip: the frame that announced it may
 * be lost. */
bool xl_content_lacks_limit(const xl_connection *, const xl_flow_in *, uint64_t blocked_at);
/* Fills in what schedulers with `wants_backlog` read. */
void xl_content_fill_backlog(const xl_connection *, xl_scheduler_view *);
void xl_content_put_ping(xl_builder *);
/* Whether only acknowledgements were sent on this path for a while, so that a PING is due (RFC 9000 section 13.2.4). */
bool xl_content_wants_ping(const xl_builder *);
