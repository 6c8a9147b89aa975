#include "path/path_ids.h"

#include <string.h>

#include "wire/frame.h"

static void start(xl_path_id *p, uint64_t id) {
    memset(p, 0, sizeof *p);
    p->id = id;
    p->local = &p->own_local;
    p->remote = &p->own_remote;
    p->forget_at = p->cids_blocked_sequence = XL_NEVER;
    xl_cids_init(p->local);
    xl_cids_init(p->remote);
}

void xl_path_ids_init(xl_path_ids *ids, xl_cids *local, xl_cids *remote, uint64_t peer_max) {
    *ids = (xl_path_ids){.local_max = XL_PATH_IDS_MAX - 1, .peer_max = peer_max, .blocked_max = XL_NEVER};
    for (uint64_t i = 0; i < XL_PATH_IDS_MAX; i++)
        start(&ids->at[i], i);
    ids->at[0].local = local;
    ids->at[0].remote = remote;
    ids->at[0].is_used = true;
}

xl_path_id *xl_path_ids_find(xl_path_ids *ids, uint64_t id) {
    for (size_t i = 0; i < XL_PATH_IDS_MAX; i++)
        if (ids->at[i].id == id)
            return &ids->at[i];
    return NULL;
}

uint64_t xl_path_ids_named(xl_path_ids *ids, uint64_t id, xl_path_id **out) {
    *out = xl_path_ids_find(ids, id);
    return id > ids->local_max ? XL_QERR_PROTOCOL_VIOLATION : 0;
}

xl_path_id *xl_path_ids_unused(xl_path_ids *ids) {
    xl_path_id *least = NULL;
    for (size_t i = 0; i < XL_PATH_IDS_MAX; i++) {
        xl_path_id *p = &ids->at[i];
        if (!p->is_used && !p->is_abandoned && p->id <= ids->peer_max && (!least || p->id < least->id))
            least = p;
    }
    return least;
}

xl_cid_entry *xl_path_ids_find_local(xl_path_ids *ids, const xl_cid *cid, xl_path_id **of) {
    for (size_t i = 0; i < XL_PATH_IDS_MAX; i++) {
        xl_cid_entry *e = xl_cids_find(ids->at[i].local, cid);
        if (e) {
            *of = &ids->at[i];
            return e;
        }
    }
    return NULL;
}

bool xl_path_ids_has_elsewhere(xl_path_ids *ids, uint64_t id, const xl_cid *cid) {
    for (size_t i = 0; i < XL_PATH_IDS_MAX; i++)
        if (ids->at[i].id != id && xl_cids_find(ids->at[i].remote, cid))
            return true;
    return false;
}

uint64_t xl_path_ids_raise_peer_max(xl_path_ids *ids, uint64_t initial, uint64_t maximum) {
    if (maximum > XL_PATH_ID_MAX || maximum < initial)
        return XL_QERR_PROTOCOL_VIOLATION;
    if (maximum > ids->peer_max)
        ids->peer_max = maximum;
    return 0;
}

void xl_path_id_take_status(xl_path_id *p, uint64_t sequence, uint64_t status) {
    if (p->is_abandoned || (p->has_status && sequence <= p->status_seq))
        return;
    p->has_status = true;
    p->status_seq = sequence;
    p->status = status;
}

void xl_path_ids_abandon(xl_path_id *p, uint64_t error_code) {
    if (p->is_abandoned)
        return;
    p->is_abandoned = p->abandon_pending = true;
    p->abandon_error = error_code;
    p->cids_blocked_pending = false;
    xl_cids_init(p->remote);
}

void xl_path_ids_abandon_lost(xl_path_ids *ids, uint64_t id) {
    xl_path_id *p = xl_path_ids_find(ids, id);
    if (p && p->is_abandoned)
        p->abandon_pending = !p->abandon_confirmed;
}

void xl_path_ids_repeat_abandonments(xl_path_ids *ids) {
    for (size_t i = 0; i < XL_PATH_IDS_MAX; i++)
        xl_path_ids_abandon_lost(ids, ids->at[i].id);
}

void xl_path_ids_abandon_acked(xl_path_ids *ids, uint64_t id) {
    xl_path_id *p = xl_path_ids_find(ids, id);
    if (p && p->is_abandoned) {
        p->abandon_confirmed = true;
        p->abandon_pending = false;
    }
}

void xl_path_ids_max_lost(xl_path_ids *ids, uint64_t maximum) {
    ids->max_pending |= maximum == ids->local_max;
}

void xl_path_ids_blocked_lost(xl_path_ids *ids, uint64_t maximum) {
    ids->blocked_pending |= maximum == ids->peer_max && !xl_path_ids_unused(ids);
}

void xl_path_ids_cids_blocked_lost(xl_path_ids *ids, uint64_t id, uint64_t sequence) {
    xl_path_id *p = xl_path_ids_find(ids, id);
    if (p && !p->is_abandoned && p->remote->next_sequence == sequence)
        p->cids_blocked_pending = true;
}

uint64_t xl_path_ids_deadline(const xl_path_ids *ids) {
    uint64_t at = XL_NEVER;
    for (size_t i = 0; i < XL_PATH_IDS_MAX; i++)
        if (ids->at[i].abandon_confirmed && ids->at[i].forget_at < at)
            at = ids->at[i].forget_at;
    return at;
}

void xl_path_ids_note_blocked(xl_path_ids *ids) {
    if (ids->blocked_max == ids->peer_max || ids->peer_max >= ids->local_max) /* the limit is our own */
        return;
    ids->blocked_max = ids->peer_max;
    ids->blocked_pending = true;
}

void xl_path_id_note_blocked(xl_path_id *p) {
    if (p->cids_blocked_sequence == p->remote->next_sequence || p->remote->next_sequence > XL_VARINT_MAX)
        return;
    p->cids_blocked_sequence = p->remote->next_sequence;
    p->cids_blocked_pending = true;
}

void xl_path_ids_forget(xl_path_ids *ids, xl_path_id *p) {
    bool is_last = ids->local_max == XL_PATH_ID_MAX;
    xl_cids_init(p->local); /* those of path 0 are the connection's */
    xl_cids_init(p->remote);
    if (is_last) { /* every ID was used once: no path can be opened any more */
        start(p, XL_NEVER);
        p->is_used = p->is_abandoned = p->abandon_confirmed = true;
        return;
    }
    start(p, ++ids->local_max);
    ids->max_pending = true;
}
