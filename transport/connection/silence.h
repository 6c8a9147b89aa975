/* Peers that are not libxlink (dialect `ietf`): whether a path that has fallen silent holds the connection up. */
#pragma once

#include "path/path.h"

typedef struct {
    uint64_t looked_at, stream_bytes; /* time of the last look, and stream bytes received by then */
    uint64_t received_at;             /* last time that stream data arrived, or none was awaited */
    uint64_t acked_at;                /* last time that something was acknowledged, or no probe timeout waited for it */
    uint64_t unheard_at;              /* last time that no path was heard */
} xl_silence;

/* Whether the peer is another implementation, which may not retransmit what was lost on a dark path. */
bool xl_conn_has_foreign_peer(const xl_connection *);
/* Call it every 100 ms while the connection is in use: records what has arrived. */
void xl_conn_silence_look(xl_connection *);
/* Whether stream data is awaited, and some arrived recently: a peer that repairs a dark path by itself is at work. */
bool xl_conn_is_being_repaired(const xl_connection *);
/* Whether nothing that is awaited has arrived for a while, p is silent and did not answer PATH_CHALLENGEs, and another
 * path is heard. Challenges p if that was not done yet. */
bool xl_conn_path_is_in_the_way(xl_connection *, xl_path *p);
/* Call it after a path in the way was abandoned: the abandonment, and the path's data, are sent on the paths that are
 * heard. Their windows may be full of packets whose acknowledgements went to the abandoned path, and their next probe
 * timeouts may be far away. */
void xl_conn_probe_heard_paths(xl_connection *);
