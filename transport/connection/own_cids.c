#include "connection/own_cids.h"

#include "connection/connection.h"
#include "connection/path_table.h"
#include "connection/state.h"

int xl_conn_add_cid(xl_connection *c, xl_cids *to) {
    xl_cid cid;
    uint8_t token[16];
    c->hooks.make_cid(c->hooks.endpoint, &c->random.cids, &cid);
    c->local_cid_bytes = cid.len;
    int error = c->hooks.reset_token(c->hooks.endpoint, &cid, token);
    if (error)
        return error;
    xl_cid_entry *e = xl_cids_issue(to, &cid, token);
    if (!e)
        return XL_ERR_PATH;
    return c->hooks.cid_added(c->hooks.endpoint, &cid, c);
}

static bool may_add(const xl_connection *c, const xl_cids *cids) {
    return cids->count < XL_CIDS_MAX && xl_cids_active(cids) < c->peer_params.active_connection_id_limit;
}

static void fill(xl_connection *c, xl_cids *cids, size_t wanted) {
    while (xl_cids_active(cids) < wanted && may_add(c, cids) && xl_conn_add_cid(c, cids) == 0)
        ;
}

/* A peer that takes a new CID whenever an address changes, and retires none, would run out of them. So it gets another
 * one when it takes the last, and must retire the oldest once it has as many as it wants (RFC 9000 section 5.1.1). */
static void keep_spare(xl_connection *c, xl_cids *cids, uint64_t current) {
    if (xl_cids_has_spare(cids) || cids->count == XL_CIDS_MAX)
        return;
    if (may_add(c, cids) || xl_cids_ask_back(cids, current))
        xl_conn_add_cid(c, cids);
}

static void issue_for_path_id(xl_connection *c, xl_path_id *id) {
    if (id->is_abandoned || id->id > c->path_ids->peer_max)
        return;
    fill(c, id->local, id->is_used ? 2 : 1);
    const xl_path *p = id->is_used ? xl_conn_path_by_local_id(c, id->id) : NULL;
    if (p)
        keep_spare(c, id->local, p->cids.local_sequence);
}

void xl_conn_issue_cids(xl_connection *c) {
    for (size_t i = 0; c->path_ids && i < XL_PATH_IDS_MAX; i++)
        issue_for_path_id(c, &c->path_ids->at[i]);
    if (!c->path_ids)
        fill(c, &c->local_cids, XL_MAX_PATHS);
    if (!c->multipath)
        keep_spare(c, &c->local_cids, c->path[c->active]->cids.local_sequence);
    xl_conn_wake(c);
}

void xl_conn_own_cid_seen(xl_connection *c, uint64_t local_id, uint64_t sequence) {
    xl_cids *cids = xl_conn_local_cids(c, local_id);
    xl_cid_entry *e = cids ? xl_cids_by_sequence(cids, sequence) : NULL;
    if (!e || e->in_use)
        return;
    e->in_use = true;
    xl_conn_issue_cids(c);
}

void xl_conn_withdraw_cids(xl_connection *c, xl_cids *cids) {
    for (size_t i = 0; i < cids->count; i++)
        c->hooks.cid_removed(c->hooks.endpoint, &cids->at[i].cid);
    xl_cids_init(cids);
}
