/* Towards peers that are not libxlink (dialect `ietf`): does a path that has fallen silent hold the connection up? */
#ifndef XL_CONNECTION_SILENCE_H
#define XL_CONNECTION_SILENCE_H

#include "path/path.h"

typedef struct {
    uint64_t looked_at, stream_bytes; /* of the last look: when, and stream bytes received by then */
    uint64_t received_at;             /* stream data came last, or none was awaited */
    uint64_t acked_at;                /* something was acknowledged last, or no probe timeouts waited for it */
    uint64_t unheard_at;              /* no path was heard last */
} xl_silence;

/* The peer is another implementation, which may leave on a dark path what was lost there. */
bool xl_conn_has_foreign_peer(const xl_connection *);
/* To be called every 100 ms while the connection is in use: notes what has come. */
void xl_conn_silence_look(xl_connection *);
/* Stream data is awaited, and some came not long ago: a peer that repairs a dark path by itself is at work. */
bool xl_conn_is_being_repaired(const xl_connection *);
/* Nothing has come for a while that is awaited, p is silent, did not answer PATH_CHALLENGE, and another path is heard.
 * Asks p where it has not been asked. */
bool xl_conn_path_is_in_the_way(xl_connection *, xl_path *p);
/* When a path in the way was abandoned: the news of it, and its data, leave on the paths that are heard. Their windows
 * may be full of what the peer acknowledged on that one, and their next probe timeouts far away. */
void xl_conn_probe_heard_paths(xl_connection *);

#endif
