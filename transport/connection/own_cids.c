#include "connection/own_cids.h"

#include "connection/connection.h"
#include "connection/state.h"

int xl_conn_add_cid(xl_connection *c) {
    xl_cid cid;
    uint8_t token[16];
    c->hooks.make_cid(c->hooks.user, &c->random.cids, &cid);
    c->local_cid_bytes = cid.len;
    int error = c->hooks.reset_token(c->hooks.user, &cid, token);
    if (error)
        return error;
    xl_cid_entry *e = xl_cids_issue(&c->local_cids, &cid, token);
    if (!e)
        return XL_ERR_PATH;
    return c->hooks.cid_added(c->hooks.user, &cid, c);
}

void xl_conn_issue_cids(xl_connection *c) {
    uint64_t target = c->peer_params.active_connection_id_limit;
    if (target > XL_MAX_PATHS)
        target = XL_MAX_PATHS;
    while (c->local_cids.count < target && xl_conn_add_cid(c) == 0)
        ;
    xl_conn_wake(c);
}
