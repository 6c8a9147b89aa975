/* What the next packet on a path carries. Choosing the path is transmit.c's and the scheduler's business. */
#ifndef XL_CONNECTION_CONTENT_H
#define XL_CONNECTION_CONTENT_H

#include "connection/builder.h"
#include "connection/reinject.h"
#include "scheduler/scheduler.h"

/* Whether packets received on p are acknowledged: also late ones on an abandoned path, while its ID is remembered. */
bool xl_content_is_acknowledged(const xl_connection *, const xl_path *p);
/* The path on which acknowledgements of packets received on p go back (paper section 5.3); NULL: none is usable. */
const xl_path *xl_content_ack_path(const xl_connection *, const xl_path *p);
void xl_content_put_acks(xl_builder *);
bool xl_content_has_control(const xl_connection *);
void xl_content_put_control(xl_builder *);

/* Which stream data goes next onto a path: new data, lost data or a re-injection. Its length is known in the packet. */
typedef struct {
    xl_stream *stream;
    xl_send_piece piece;
    xl_copy copy;      /* without an original: this is none */
    bool is_redundant; /* a copy by the redundant scheduler */
} xl_content_choice;

/* Makes the choice: it logs the reasons against a re-injection, and sets the timer that looks for one again. False:
 * there is nothing to send on this path now. */
bool xl_content_choose(xl_connection *, const xl_path *onto, xl_content_choice *);
/* Fills the packet, with `first` first, which was chosen for its path since anything was sent; NULL: nothing was. */
void xl_content_put_streams(xl_builder *, const xl_content_choice *first);
/* Whether all that streams were given is sent and acknowledged, and the application waits for room on none. */
bool xl_content_is_settled(const xl_connection *);
/* Whether any stream has something to send, on whatever path. */
bool xl_content_has_unsent(const xl_connection *);
/* What schedulers with `wants_backlog` look at. */
void xl_content_fill_backlog(const xl_connection *, xl_scheduler_view *);
void xl_content_put_ping(xl_builder *);
/* Only acknowledgements went out on this path for a while: ask for one in return (RFC 9000 section 13.2.4). */
bool xl_content_wants_ping(const xl_builder *);

#endif
