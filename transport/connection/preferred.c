#include "connection/preferred.h"

#include <string.h>

#include "connection/acks.h"
#include "connection/connection.h"
#include "connection/migration.h"
#include "connection/own_cids.h"
#include "connection/path_table.h"
#include "connection/paths.h"
#include "connection/state.h"

#define PREFERRED_CID_SEQUENCE 1 /* RFC 9000 section 5.1.1 */

/* ---- Server ---- */

int xl_conn_offer_preferred_address(xl_connection *c) {
    xl_preferred_address *offer = &c->local_params.preferred_address;
    const xl_addr *v4 = &c->config->preferred_address_v4, *v6 = &c->config->preferred_address_v6;
    if (v4->family != 4 && v6->family != 6)
        return 0;
    int error = xl_conn_add_cid(c, &c->local_cids);
    if (error)
        return error;
    xl_cid_entry *e = &c->local_cids.at[c->local_cids.count - 1];
    xl_cids_note_announced(&c->local_cids, e);
    *offer = (xl_preferred_address){.v4 = *v4, .v6 = *v6, .cid = e->cid};
    memcpy(offer->reset_token, e->reset_token, sizeof offer->reset_token);
    c->local_params.has_preferred_address = true;
    return 0;
}

/* ---- Client ---- */

uint64_t xl_conn_learn_preferred_address(xl_connection *c) {
    const xl_preferred_address *offer = &c->peer_params.preferred_address;
    bool retired;
    if (!c->peer_params.has_preferred_address)
        return 0;
    if (c->handshake.initial_scid_peer.len == 0)
        return XL_QERR_TRANSPORT_PARAMETER; /* section 18.2 */
    return xl_cids_learn(&c->remote_cids, PREFERRED_CID_SEQUENCE, 0, &offer->cid, offer->reset_token, XL_MAX_PATHS,
                         &retired)
               ? XL_QERR_TRANSPORT_PARAMETER
               : 0;
}

/* RFC 10069 section 3: with path IDs this is a migration of path 0, which keeps its ID. The path carries no data until
 * the address answers, and returns to the old address if it does not. */
static void move_first_path(xl_connection *c, const xl_addr *to) {
    xl_path *p = c->path[0];
    if (!xl_path_may_carry_data(p) || !xl_conn_change_dcid(c, p))
        return;
    p->proven = (xl_path_proven){.exists = true, .local = p->local, .remote = p->remote};
    p->remote = *to;
    p->validation.is_done = false;
    p->validation.received_bytes = UINT64_MAX / 4; /* the server named the address: no limit (section 8) */
    p->validation.sent_bytes = 0;
    p->validation.tries = 0;
    xl_conn_give_up_in_flight(c, p);
    xl_conn_path_forget_network(c, p);
    xl_conn_log_path(c, p, "path_rebound", "preferred address");
    xl_conn_start_challenge(c, p);
}

void xl_conn_follow_preferred_address(xl_connection *c) {
    const xl_preferred_address *offer = &c->peer_params.preferred_address;
    if (c->is_server || !c->peer_params.has_preferred_address)
        return;
    uint8_t family = c->path[c->active]->remote.family;
    const xl_addr *to = family == offer->v4.family ? &offer->v4 : family == offer->v6.family ? &offer->v6 : NULL;
    if (!to || xl_addr_equal(to, &c->path[c->active]->remote))
        return;
    if (c->path_ids) {
        move_first_path(c, to);
    } else if (!c->multipath) {
        const xl_path *now = c->path[c->active];
        xl_path *p = xl_conn_path_new(c, &now->local, to, now->technology);
        if (p)
            xl_conn_migrate_to_preferred(c, p);
    }
}
