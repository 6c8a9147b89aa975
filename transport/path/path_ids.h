/* The path IDs of the dialect `ietf` (RFC 10069 section 3): which of them may be used, the connection IDs of each, and
 * how far each is abandoned. A path ID is the same in both directions and has a space of sequence numbers of its own.
 *
 * Our limit rises by one whenever an ID is forgotten, so there are always so many at hand:
 *
 *     { id <= local_max, not forgotten }  =  XL_PATH_IDS_MAX of them
 *
 * Whatever is not among them and not above local_max was used up: it never comes back (section 3.4). */
#ifndef XL_PATH_PATH_IDS_H
#define XL_PATH_PATH_IDS_H

#include "path/cids.h"
#include "wire/frame_ietf.h"

#define XL_PATH_IDS_MAX XL_MAX_PATHS

typedef struct {
    uint64_t id;
    xl_cids *local, *remote;        /* of this ID; of ID 0 the connection's */
    xl_cids own_local, own_remote;  /* what they point to otherwise */
    bool is_used;                   /* a path has it */
    bool is_abandoned;              /* by us: nothing is sent on it any more */
    bool abandon_pending;           /* PATH_ABANDON is to be sent, */
    bool abandon_confirmed;         /* was acknowledged */
    uint64_t abandon_error;         /* what it says */
    uint64_t forget_at;             /* the peer's PATH_ABANDON came: our CIDs last until then; XL_NEVER: it did not */
    bool has_status;                /* the peer spoke of a path that is not open yet, */
    uint64_t status, status_seq;    /* and said this last */
    bool cids_blocked_pending;      /* PATH_CIDS_BLOCKED is to be sent, */
    uint64_t cids_blocked_sequence; /* with this number; XL_NEVER: it never was */
} xl_path_id;

typedef struct {
    xl_path_id at[XL_PATH_IDS_MAX];
    uint64_t local_max, peer_max; /* the greatest ID that we, that the peer is willing to accept */
    bool max_pending;             /* MAX_PATH_ID is to be sent */
    bool blocked_pending;         /* PATHS_BLOCKED is to be sent, */
    uint64_t blocked_max;         /* with this limit; XL_NEVER: it never was */
    bool cid_was_acked;           /* the peer got one of ours, so a path may be opened */
} xl_path_ids;

/* local, remote: the CIDs of path 0, which the handshake made. */
void xl_path_ids_init(xl_path_ids *, xl_cids *local, xl_cids *remote, uint64_t peer_max);
/* NULL: above our limit, or forgotten. */
xl_path_id *xl_path_ids_find(xl_path_ids *, uint64_t id);
/* What a frame that names this ID is worth (section 4): XL_QERR_PROTOCOL_VIOLATION above our limit; else 0, and the ID,
 * or NULL where it is used up and the frame is to be ignored. */
uint64_t xl_path_ids_named(xl_path_ids *, uint64_t id, xl_path_id **out);
/* The smallest ID that no path has had and that both sides accept; NULL: there is none. */
xl_path_id *xl_path_ids_unused(xl_path_ids *);
/* One of our CIDs, and whose it is; NULL: not one of ours. */
xl_cid_entry *xl_path_ids_find_local(xl_path_ids *, const xl_cid *, xl_path_id **of);
/* Whether the peer issued this CID for another path ID: each is for one (section 3.2.1). */
bool xl_path_ids_has_elsewhere(xl_path_ids *, uint64_t id, const xl_cid *);
/* MAX_PATH_ID: 0, or XL_QERR_PROTOCOL_VIOLATION for more than 32 bits or less than the peer's transport parameter said
 * (section 4.6). One that raises nothing is ignored. */
uint64_t xl_path_ids_raise_peer_max(xl_path_ids *, uint64_t initial, uint64_t maximum);
/* PATH_STATUS_* for a path that is not open yet: the newest is kept (section 4.3). */
void xl_path_id_take_status(xl_path_id *, uint64_t sequence, uint64_t status);
/* We give the path up: the peer's CIDs are retired at once, without a frame (section 3.4). PATH_ABANDON follows. */
void xl_path_ids_abandon(xl_path_id *, uint64_t error_code);
/* Frames of ours were lost: sent again where they still say something (sections 4.2, 4.6, 4.7). */
void xl_path_ids_abandon_lost(xl_path_ids *, uint64_t id);
void xl_path_ids_repeat_abandonments(xl_path_ids *); /* each PATH_ABANDON that is not acknowledged */
void xl_path_ids_max_lost(xl_path_ids *, uint64_t maximum);
void xl_path_ids_blocked_lost(xl_path_ids *, uint64_t maximum);
void xl_path_ids_cids_blocked_lost(xl_path_ids *, uint64_t id, uint64_t sequence);
void xl_path_ids_abandon_acked(xl_path_ids *, uint64_t id);
/* When the first ID may be forgotten: both sides gave it up, and the peer's late packets have come. */
uint64_t xl_path_ids_deadline(const xl_path_ids *);
/* No path can be opened: PATHS_BLOCKED, once for each limit. Or `unused` lacks a CID: PATH_CIDS_BLOCKED, once for each
 * number that is waited for. */
void xl_path_ids_note_blocked(xl_path_ids *);
void xl_path_id_note_blocked(xl_path_id *);
/* The ID is used up: its place is the next one's. Its local CIDs must have been withdrawn. */
void xl_path_ids_forget(xl_path_ids *, xl_path_id *);

#endif
