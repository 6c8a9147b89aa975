/* Connection IDs, RFC 9000 section 5.1: those we issued (the peer puts them in its destination field) and those the
 * peer issued to us. In the dialect `xlink` the sequence number of the destination CID is the path ID. */
#ifndef XL_PATH_CIDS_H
#define XL_PATH_CIDS_H

#include "wire/packet.h"

#define XL_CIDS_MAX         12 /* per direction, issued and not retired */
#define XL_LOCAL_CID_BYTES  8
#define XL_CIDS_RETIRED_MAX 64

typedef struct {
    xl_cid cid;
    uint64_t sequence;
    uint8_t reset_token[16];
    bool has_token;
    bool in_use;    /* remote: on a path; local: a packet carried it */
    bool announced; /* local: (PATH_)NEW_CONNECTION_ID need not be sent: it was, or it is the handshake's */
    bool was_sent;  /* local: the peer may know it: it was announced once */
} xl_cid_entry;

typedef struct {
    xl_cid_entry at[XL_CIDS_MAX];
    size_t count;
    size_t unannounced;                     /* local: entries whose frame is to be sent */
    uint64_t next_sequence;                 /* local: of the next one we issue; remote: above all that came */
    uint64_t retire_prior_to;               /* remote: highest seen; local: what we ask for */
    uint64_t retire_queue[4 * XL_CIDS_MAX]; /* remote: sequence numbers whose RETIRE_CONNECTION_ID is to be sent */
    size_t retire_count;
    uint64_t retired[XL_CIDS_RETIRED_MAX]; /* remote: ring of those retired last: a late frame must not revive one */
    size_t retired_total;
} xl_cids;

void xl_cids_init(xl_cids *);
xl_cid_entry *xl_cids_find(xl_cids *, const xl_cid *);
xl_cid_entry *xl_cids_by_sequence(xl_cids *, uint64_t sequence);
/* Pointers to entries last until the next call that adds or removes one. A token may be NULL: the handshake's CID has
 * none. Local: adds one with the next sequence number, not announced; NULL when full. */
xl_cid_entry *xl_cids_issue(xl_cids *, const xl_cid *, const uint8_t token[16]);
/* Local: by a frame, or by the handshake; and the frame was lost. */
void xl_cids_note_announced(xl_cids *, xl_cid_entry *);
void xl_cids_note_lost(xl_cids *, xl_cid_entry *);
/* Local: how many the peer may use: those that it was not asked to retire. */
size_t xl_cids_active(const xl_cids *);
/* Local: one of them no packet has carried yet. */
bool xl_cids_has_spare(const xl_cids *);
/* Local: the peer may know one of them. */
bool xl_cids_any_was_sent(const xl_cids *);
/* Local: the peer retires the oldest active one (RFC 9000 section 5.1.2), if that is older than `current`, which its
 * packets carry now. False: it is not. */
bool xl_cids_ask_back(xl_cids *, uint64_t current);
/* Local: the peer retired one. Returns 0, or XL_QERR_PROTOCOL_VIOLATION for a sequence that was never sent (RFC 9000
 * section 19.16). *gone = its CID when *was_present. `announced` is not asked: it may have been cleared to send the
 * frame again after a loss that was none. */
uint64_t xl_cids_retired_by_peer(xl_cids *, uint64_t sequence, xl_cid *gone, bool *was_present);
/* Remote: NEW_CONNECTION_ID, and with sequence 0 the handshake's CID. limit: our active_connection_id_limit, at most
 * XL_CIDS_MAX. Duplicates are fine if equal. Entries below retire_prior_to are moved to the retire queue (those in_use
 * too: *in_use_retired tells the caller to switch). Returns 0, XL_QERR_PROTOCOL_VIOLATION, XL_QERR_FRAME_ENCODING
 * (retire_prior_to > sequence) or XL_QERR_CONNECTION_ID_LIMIT: too many active, or so many still to be retired that the
 * peer seems to be issuing them to grow our queue (RFC 9000 section 5.1.2). */
uint64_t xl_cids_learn(xl_cids *, uint64_t sequence, uint64_t retire_prior_to, const xl_cid *, const uint8_t token[16],
                       size_t limit, bool *in_use_retired);
/* Remote: an unused one with the smallest sequence number, marked in_use; NULL when there is none. */
xl_cid_entry *xl_cids_take_unused(xl_cids *);
/* Remote: gives up one of ours-to-use: removed, RETIRE_CONNECTION_ID queued. For one that is already gone it queues the
 * frame again: for use when the packet with the frame was lost. */
void xl_cids_retire(xl_cids *, uint64_t sequence);

#endif
