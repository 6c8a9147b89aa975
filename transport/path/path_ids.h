/* The path IDs of the dialect `ietf` (RFC 10069 section 3): which of them may be used, the connection IDs of each, and
 * how far each is abandoned. A path ID is the same in both directions and has a space of sequence numbers of its own.
 *
 * Our limit rises by one whenever an ID is forgotten, so the number of live IDs is constant:
 *
 *     { id <= local_max, not forgotten }  =  XL_PATH_IDS_MAX of them
 *
 * Any other ID up to local_max was used up and never returns (section 3.4). */
#pragma once

#include "path/cids.h"
#include "wire/frame_ietf.h"

#define XL_PATH_IDS_MAX XL_MAX_PATHS

typedef struct {
    uint64_t id;
    xl_cids *local, *remote; /* the CIDs of this ID: own_local, own_remote; of ID 0 the connection's */
    xl_cids own_local, own_remote;
    bool is_used;                   /* a path has it */
    bool is_abandoned;              /* by us: nothing is sent on it */
    bool abandon_pending;           /* PATH_ABANDON is due */
    bool abandon_confirmed;         /* our PATH_ABANDON was acknowledged */
    uint64_t abandon_error;         /* error code of our PATH_ABANDON */
    uint64_t forget_at;             /* the peer sent PATH_ABANDON: our CIDs last until then; XL_NEVER: it did not */
    bool has_status;                /* the peer sent the status of a path that is not open yet */
    uint64_t status, status_seq;    /* the latest of these */
    bool cids_blocked_pending;      /* PATH_CIDS_BLOCKED is due */
    uint64_t cids_blocked_sequence; /* sequence number in it; XL_NEVER: none was ever due */
} xl_path_id;

typedef struct {
    xl_path_id at[XL_PATH_IDS_MAX];
    uint64_t local_max, peer_max; /* largest ID that we accept, that the peer accepts */
    bool max_pending;             /* MAX_PATH_ID is due */
    bool blocked_pending;         /* PATHS_BLOCKED is due */
    uint64_t blocked_max;         /* limit in it; XL_NEVER: none was ever due */
    bool cid_was_acked;           /* the peer has received one of our CIDs, so a path may be opened */
} xl_path_ids;

/* local, remote: the CIDs of path 0, which come from the handshake. */
void xl_path_ids_init(xl_path_ids *, xl_cids *local, xl_cids *remote, uint64_t peer_max);
/* Returns NULL if the ID is above our limit or forgotten. */
xl_path_id *xl_path_ids_find(xl_path_ids *, uint64_t id);
/* Checks an ID in a frame (section 4). Returns XL_QERR_PROTOCOL_VIOLATION if it is above our limit. Else 0, and *out is
 * the ID, or NULL if it is used up and the frame is to be ignored. */
uint64_t xl_path_ids_named(xl_path_ids *, uint64_t id, xl_path_id **out);
/* Returns the smallest ID that no path has had and that both sides accept, or NULL. */
xl_path_id *xl_path_ids_unused(xl_path_ids *);
/* Finds one of our CIDs, and the path ID that it belongs to. NULL: the CID is not ours. */
xl_cid_entry *xl_path_ids_find_local(xl_path_ids *, const xl_cid *, xl_path_id **of);
/* Whether the peer issued this CID for another path ID, which section 3.2.1 forbids. */
bool xl_path_ids_has_elsewhere(xl_path_ids *, uint64_t id, const xl_cid *);
/* Takes MAX_PATH_ID. Returns 0, or XL_QERR_PROTOCOL_VIOLATION if it is above 2^32 - 1 or below the peer's transport
 * parameter (section 4.6). A value that raises nothing is ignored. */
uint64_t xl_path_ids_raise_peer_max(xl_path_ids *, uint64_t initial, uint64_t maximum);
/* Takes PATH_STATUS_* for a path that is not open yet; the latest one is kept (section 4.3). */
void xl_path_id_take_status(xl_path_id *, uint64_t sequence, uint64_t status);
/* Abandons the path on our side: the peer's CIDs are retired at once, without a frame (section 3.4), and PATH_ABANDON
 * is due. */
void xl_path_ids_abandon(xl_path_id *, uint64_t error_code);
/* Our frames were lost: each is sent again if it still applies (sections 4.2, 4.6, 4.7). */
void xl_path_ids_abandon_lost(xl_path_ids *, uint64_t id);
void xl_path_ids_repeat_abandonments(xl_path_ids *); /* each PATH_ABANDON that is not acknowledged */
void xl_path_ids_max_lost(xl_path_ids *, uint64_t maximum);
void xl_path_ids_blocked_lost(xl_path_ids *, uint64_t maximum);
void xl_path_ids_cids_blocked_lost(xl_path_ids *, uint64_t id, uint64_t sequence);
void xl_path_ids_abandon_acked(xl_path_ids *, uint64_t id);
/* When the first ID may be forgotten: both sides have abandoned it, and late packets of the peer have arrived. */
uint64_t xl_path_ids_deadline(const xl_path_ids *);
/* No path can be opened: PATHS_BLOCKED is due, once for each limit. Or an unused ID lacks a CID: PATH_CIDS_BLOCKED is
 * due, once for each sequence number. */
void xl_path_ids_note_blocked(xl_path_ids *);
void xl_path_id_note_blocked(xl_path_id *);
/* Replaces an ID that is used up by the next one. Its local CIDs must have been withdrawn. */
void xl_path_ids_forget(xl_path_ids *, xl_path_id *);
