/* Connection IDs, RFC 9000 section 5.1: those that we issued, which the peer's packets carry, and those that the peer
 * issued to us. In the dialect `xlink` the sequence number of the destination CID is the path ID. */
#pragma once

#include "wire/packet.h"

#define XL_CIDS_MAX         12 /* per direction, issued and not retired */
#define XL_LOCAL_CID_BYTES  8
#define XL_CIDS_RETIRED_MAX 64

typedef struct {
    xl_cid cid;
    uint64_t sequence;
    uint8_t reset_token[16];
    bool has_token;
    bool in_use;    /* remote: a path uses it; local: a packet carried it */
    bool announced; /* local: no (PATH_)NEW_CONNECTION_ID is due: it was sent, or the handshake gave the CID */
    bool was_sent;  /* local: the peer may know the CID, because it was announced once */
} xl_cid_entry;

typedef struct {
    xl_cid_entry at[XL_CIDS_MAX];
    size_t count;
    size_t unannounced;                     /* local: entries whose frame is due */
    uint64_t next_sequence;                 /* local: of the next CID that we issue; remote: above all received */
    uint64_t retire_prior_to;               /* remote: largest received; local: the one that we request */
    uint64_t retire_queue[4 * XL_CIDS_MAX]; /* remote: sequence numbers whose RETIRE_CONNECTION_ID is due */
    size_t retire_count;
    uint64_t retired[XL_CIDS_RETIRED_MAX]; /* remote: ring of the last ones retired, which a late frame must not
                                            * revive */
    size_t retired_total;
} xl_cids;

void xl_cids_init(xl_cids *);
xl_cid_entry *xl_cids_find(xl_cids *, const xl_cid *);
xl_cid_entry *xl_cids_by_sequence(xl_cids *, uint64_t sequence);
/* Pointers to entries are valid until the next call that adds or removes one. A token may be NULL: the handshake's CID
 * has none. Local: adds a CID with the next sequence number, not yet announced. Returns NULL if there is no room. */
xl_cid_entry *xl_cids_issue(xl_cids *, const xl_cid *, const uint8_t token[16]);
/* Local: the CID was announced, by a frame or by the handshake; that frame was lost. */
void xl_cids_note_announced(xl_cids *, xl_cid_entry *);
void xl_cids_note_lost(xl_cids *, xl_cid_entry *);
/* Local: number of CIDs that the peer may use, because it was not asked to retire them. */
size_t xl_cids_active(const xl_cids *);
/* Local: whether one of these is unused: no packet has carried it. */
bool xl_cids_has_spare(const xl_cids *);
/* Local: whether the peer may know any of our CIDs. */
bool xl_cids_any_was_sent(const xl_cids *);
/* Local: requests the retirement of the oldest active CID (RFC 9000 section 5.1.2) if it is older than `current`, which
 * the peer's packets carry now. Returns whether it did. */
bool xl_cids_ask_back(xl_cids *, uint64_t current);
/* Local: the peer retired a CID. Returns 0, or XL_QERR_PROTOCOL_VIOLATION for a sequence number that was never sent
 * (RFC 9000 section 19.16). If *was_present, *gone is the CID. `announced` is not checked: it may have been cleared to
 * repeat the frame after a spurious loss. */
uint64_t xl_cids_retired_by_peer(xl_cids *, uint64_t sequence, xl_cid *gone, bool *was_present);
/* Remote: takes a NEW_CONNECTION_ID frame, or with sequence 0 the handshake's CID. limit: our
 * active_connection_id_limit, at most XL_CIDS_MAX. Equal duplicates are ignored. Entries below retire_prior_to move to
 * the retire queue; *in_use_retired: one of them was in use, and its path needs another CID. Returns 0,
 * XL_QERR_PROTOCOL_VIOLATION, XL_QERR_FRAME_ENCODING (retire_prior_to > sequence) or XL_QERR_CONNECTION_ID_LIMIT: too
 * many CIDs are active, or the retire queue would overflow, as if the peer issued CIDs to fill it (RFC 9000 section
 * 5.1.2). */
uint64_t xl_cids_learn(xl_cids *, uint64_t sequence, uint64_t retire_prior_to, const xl_cid *, const uint8_t token[16],
                       size_t limit, bool *in_use_retired);
/* Remote: returns the unused CID with the smallest sequence number and marks it in_use. NULL: there is none. */
xl_cid_entry *xl_cids_take_unused(xl_cids *);
/* Remote: removes a CID and queues its RETIRE_CONNECTION_ID. If the CID is gone already, queues the frame again, for a
 * frame that was lost. */
void xl_cids_retire(xl_cids *, uint64_t sequence);
