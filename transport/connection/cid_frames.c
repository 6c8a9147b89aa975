#include "connection/cid_frames.h"

#include "connection/connection.h"
#include "connection/own_cids.h"
#include "connection/path_table.h"
#include "connection/paths.h"
#include "connection/state.h"

#define RETAIN_PTOS 3 /* a path ID is kept this long after the peer's PATH_ABANDON (RFC 10069 section 3.4) */

/* ---- Frames that are due ---- */

static bool is_due(const xl_path_id *p) {
    return p->abandon_pending || p->cids_blocked_pending || p->remote->retire_count > 0 ||
           (!p->is_abandoned && p->local->unannounced > 0);
}

bool xl_cid_frames_are_due(const xl_connection *c) {
    const xl_path_ids *ids = c->path_ids;
    if (!c->handshake.is_complete)
        return c->remote_cids.retire_count > 0;
    if (!ids)
        return c->remote_cids.retire_count > 0 || c->local_cids.unannounced > 0;
    for (size_t i = 0; i < XL_PATH_IDS_MAX; i++)
        if (is_due(&ids->at[i]))
            return true;
    return ids->max_pending || ids->blocked_pending;
}

/* ---- Writing ---- */

static void put_new_cids(xl_builder *b, xl_cids *cids, const xl_path_id *path) {
    const uint64_t type = path ? XL_FRAME_PATH_NEW_CONNECTION_ID : XL_FRAME_NEW_CONNECTION_ID;
    uint64_t path_id = path ? path->id : 0;
    for (size_t i = 0; i < cids->count && cids->unannounced > 0; i++) {
        xl_cid_entry *e = &cids->at[i];
        uint64_t prior_to = e->sequence < cids->retire_prior_to ? e->sequence : cids->retire_prior_to;
        if (e->announced || !xl_builder_reserve(b, type, XL_SF_NEW_CID, e->sequence, path_id))
            continue;
        xl_frame_put_new_cid(&b->w, type, path_id, e->sequence, prior_to, &e->cid, e->reset_token);
        xl_cids_note_announced(cids, e);
    }
}

static void put_retirements(xl_builder *b, xl_cids *cids, const xl_path_id *path) {
    const uint64_t type = path ? XL_FRAME_PATH_RETIRE_CONNECTION_ID : XL_FRAME_RETIRE_CONNECTION_ID;
    uint64_t path_id = path ? path->id : 0;
    while (cids->retire_count > 0) {
        uint64_t sequence = cids->retire_queue[cids->retire_count - 1];
        if (!xl_builder_reserve(b, type, XL_SF_RETIRE_CID, sequence, path_id))
            return;
        cids->retire_count--;
        XL_FRAME_PUT(&b->w, type, path_id, sequence);
    }
}

static void put_of_path_id(xl_builder *b, xl_path_id *p) {
    if (p->abandon_pending && xl_builder_reserve(b, XL_FRAME_PATH_ABANDON, XL_SF_PATH_ABANDON, p->id, 0)) {
        XL_FRAME_PUT(&b->w, XL_FRAME_PATH_ABANDON, p->id, p->abandon_error);
        p->abandon_pending = false;
    }
    if (p->is_abandoned)
        return;
    put_new_cids(b, p->local, p);
    put_retirements(b, p->remote, p);
    uint64_t next = p->remote->next_sequence;
    if (p->cids_blocked_sequence != next) /* one was issued since */
        p->cids_blocked_pending = false;
    if (p->cids_blocked_pending &&
        xl_builder_reserve(b, XL_FRAME_PATH_CIDS_BLOCKED, XL_SF_PATH_CIDS_BLOCKED, p->id, next)) {
        XL_FRAME_PUT(&b->w, XL_FRAME_PATH_CIDS_BLOCKED, p->id, next);
        p->cids_blocked_pending = false;
    }
}

static void put_limits(xl_builder *b, xl_path_ids *ids) {
    if (ids->max_pending && xl_builder_reserve(b, XL_FRAME_MAX_PATH_ID, XL_SF_MAX_PATH_ID, 0, ids->local_max)) {
        XL_FRAME_PUT(&b->w, XL_FRAME_MAX_PATH_ID, 0, ids->local_max);
        ids->max_pending = false;
    }
    if (ids->blocked_max != ids->peer_max) /* raised since */
        ids->blocked_pending = false;
    if (ids->blocked_pending && xl_builder_reserve(b, XL_FRAME_PATHS_BLOCKED, XL_SF_PATHS_BLOCKED, 0, ids->peer_max)) {
        XL_FRAME_PUT(&b->w, XL_FRAME_PATHS_BLOCKED, 0, ids->peer_max);
        ids->blocked_pending = false;
    }
}

void xl_cid_frames_put(xl_builder *b) {
    xl_connection *c = b->c;
    if (!c->path_ids) {
        if (c->handshake.is_complete)
            put_new_cids(b, &c->local_cids, NULL);
        put_retirements(b, &c->remote_cids, NULL);
        return;
    }
    if (!c->handshake.is_complete)
        return;
    put_limits(b, c->path_ids);
    for (size_t i = 0; i < XL_PATH_IDS_MAX; i++)
        put_of_path_id(b, &c->path_ids->at[i]);
}

/* ---- Receiving ---- */

/* A path whose connection ID the peer retires takes another one. In the dialect `xlink` the CID identifies the path, so
 * the path ends with it. In `ietf` a path may wait for another one. */
static void replace_dcid(xl_connection *c, xl_path *p) {
    bool was_left = c->is_server && !c->multipath && p->index != c->active && !p->validation.is_outstanding;
    if (was_left) { /* a client that returns there gets another one then */
        p->cids.has_remote = p->validation.is_pending = false;
        p->responses.count = 0;
        xl_conn_path_set_state(c, p, XL_PATH_CLOSED, "its connection ID was retired");
        return;
    }
    const bool is_bound = c->multipath && !c->path_ids;
    if (!is_bound && xl_conn_take_dcid(c, p))
        return;
    if (c->path_ids) {
        p->cids.has_remote = false;
        xl_path_id_note_blocked(xl_path_ids_find(c->path_ids, p->cids.remote_path_id));
    } else {
        xl_conn_path_closed(c, p, XL_QERR_NO_ERROR, "its connection ID was retired");
    }
}

uint64_t xl_conn_take_new_cid(xl_connection *c, const xl_frame *f) {
    bool in_use_retired = false;
    uint64_t path_id = f->new_cid.path_id;
    xl_cids *cids = &c->remote_cids;
    if (c->remote_cids.at[0].cid.len == 0 && c->remote_cids.count)
        return XL_QERR_PROTOCOL_VIOLATION; /* the peer uses a zero-length CID (19.15) */
    if (c->multipath && !c->path_ids && f->new_cid.sequence > UINT32_MAX)
        return XL_QERR_MP_PROTOCOL_VIOLATION; /* two paths would share nonces */
    if (c->path_ids) {
        xl_path_id *id;
        uint64_t error = xl_path_ids_named(c->path_ids, path_id, &id);
        if (error || !id || id->is_abandoned)
            return error;
        if (xl_path_ids_has_elsewhere(c->path_ids, path_id, &f->new_cid.cid))
            return XL_QERR_PROTOCOL_VIOLATION;
        cids = id->remote;
    }
    uint64_t error = xl_cids_learn(cids, f->new_cid.sequence, f->new_cid.retire_prior_to, &f->new_cid.cid,
                                   f->new_cid.reset_token, XL_MAX_PATHS, &in_use_retired);
    if (error)
        return error;
    XL_EACH_PATH(xl_path, p, c) {
        bool is_other = c->path_ids && p->cids.remote_path_id != path_id;
        if (in_use_retired && p->cids.has_remote && !is_other && !xl_cids_by_sequence(cids, p->cids.remote_sequence))
            replace_dcid(c, p);
    }
    xl_conn_open_paths(c);
    return 0;
}

uint64_t xl_conn_take_retire_cid(xl_connection *c, const xl_frame *f) {
    xl_cid gone;
    bool was_present;
    xl_cids *cids = &c->local_cids;
    if (c->path_ids) {
        xl_path_id *id;
        uint64_t error = xl_path_ids_named(c->path_ids, f->retire_cid.path_id, &id);
        if (error || !id)
            return error;
        cids = id->local;
    }
    uint64_t error = xl_cids_retired_by_peer(cids, f->retire_cid.sequence, &gone, &was_present);
    if (error || !was_present)
        return error;
    c->hooks.cid_removed(c->hooks.endpoint, &gone);
    xl_path *p = c->multipath && !c->path_ids ? xl_conn_path_by_local_id(c, f->retire_cid.sequence) : NULL;
    if (p && p->state != XL_PATH_CLOSED)
        xl_conn_path_closed(c, p, XL_QERR_NO_ERROR, "the peer retired its connection ID");
    xl_conn_issue_cids(c);
    return 0;
}

/* Section 3.4: we answer with PATH_ABANDON. The peer's packets in transit still find their connection ID for a
 * while. */
static void take_abandon(xl_connection *c, xl_path_id *id) {
    xl_path *p = xl_conn_path_by_local_id(c, id->id);
    if (id->forget_at == XL_NEVER)
        id->forget_at = c->now + RETAIN_PTOS * xl_conn_max_pto(c);
    if (p && p->state != XL_PATH_CLOSED)
        xl_conn_path_closed(c, p, XL_QERR_NO_ERROR, "abandoned by the peer");
    else
        xl_path_ids_abandon(id, XL_QERR_NO_ERROR);
    xl_conn_wake(c);
}

/* Sections 4.6, 4.7. */
static uint64_t take_limit(xl_connection *c, const xl_frame *f) {
    xl_path_ids *ids = c->path_ids;
    if (f->type == XL_FRAME_PATHS_BLOCKED)
        return f->max.maximum > ids->local_max ? XL_QERR_PROTOCOL_VIOLATION : 0;
    uint64_t error = xl_path_ids_raise_peer_max(ids, c->peer_params.initial_max_path_id, f->max.maximum);
    if (error)
        return error;
    xl_conn_issue_cids(c);
    xl_conn_open_paths(c);
    return 0;
}

uint64_t xl_conn_take_path_id_frame(xl_connection *c, const xl_frame *f) {
    if (f->type == XL_FRAME_MAX_PATH_ID || f->type == XL_FRAME_PATHS_BLOCKED)
        return take_limit(c, f);
    bool abandons = f->type == XL_FRAME_PATH_ABANDON;
    xl_path_id *id;
    uint64_t error =
        xl_path_ids_named(c->path_ids, abandons ? f->path_abandon.path_id : f->path_cids_blocked.path_id, &id);
    if (error || !id)
        return error;
    if (abandons)
        take_abandon(c, id);
    else if (f->path_cids_blocked.next_sequence > id->local->next_sequence)
        return XL_QERR_PROTOCOL_VIOLATION;
    return 0;
}

/* ---- Time ---- */

uint64_t xl_conn_path_ids_deadline(const xl_connection *c) {
    return c->path_ids ? xl_path_ids_deadline(c->path_ids) : XL_NEVER;
}

void xl_conn_path_ids_timer(xl_connection *c) {
    for (size_t i = 0; i < XL_PATH_IDS_MAX; i++) {
        xl_path_id *p = &c->path_ids->at[i];
        if (!p->abandon_confirmed || p->forget_at > c->now)
            continue;
        xl_conn_withdraw_cids(c, p->local);
        xl_path_ids_forget(c->path_ids, p);
    }
    xl_conn_issue_cids(c);
    xl_conn_open_paths(c);
}
