#include "connection/own_cids.h"

#include "connection/connection.h"
#include "connection/state.h"

int xl_conn_add_cid(xl_connection *c, xl_cids *to) {
    xl_cid cid;
    uint8_t token[16];
    c->hooks.make_cid(c->hooks.user, &c->random.cids, &cid);
    c->local_cid_bytes = cid.len;
    int error = c->hooks.reset_token(c->hooks.user, &cid, token);
    if (error)
        return error;
    xl_cid_entry *e = xl_cids_issue(to, &cid, token);
    if (!e)
        return XL_ERR_PATH;
    return c->hooks.cid_added(c->hooks.user, &cid, c);
}

static void fill(xl_connection *c, xl_cids *cids, uint64_t wanted) {
    uint64_t limit = c->peer_params.active_connection_id_limit;
    while (cids->count < wanted && cids->count < limit && xl_conn_add_cid(c, cids) == 0)
        ;
}

void xl_conn_issue_cids(xl_connection *c) {
    for (size_t i = 0; c->path_ids && i < XL_PATH_IDS_MAX; i++) {
        xl_path_id *p = &c->path_ids->at[i];
        if (!p->is_abandoned && p->id <= c->path_ids->peer_max)
            fill(c, p->local, p->is_used ? 2 : 1);
    }
    if (!c->path_ids)
        fill(c, &c->local_cids, XL_MAX_PATHS);
    xl_conn_wake(c);
}

void xl_conn_withdraw_cids(xl_connection *c, xl_cids *cids) {
    for (size_t i = 0; i < cids->count; i++)
        c->hooks.cid_removed(c->hooks.user, &cids->at[i].cid);
    xl_cids_init(cids);
}
