/* Paths: opening, validation (RFC 9000 section 8.2), multipath by connection ID (dialect `xlink`), addresses that
 * change under way (section 9.3). */
#include "connection/paths.h"

#include <stdlib.h>
#include <string.h>

#include "connection/acks.h"
#include "connection/connection.h"
#include "connection/migration.h"
#include "connection/path_table.h"
#include "connection/rebinding.h"
#include "connection/state.h"

#define CHALLENGE_TRIES_MAX 5
#define REBOUND_TRIES_MAX   3
#define CHALLENGE_BYTES     64 /* what the smallest packet with a PATH_CHALLENGE may take */

/* A slot that nothing refers to any more: closed, nothing in flight. */
static xl_path *reusable_slot(xl_connection *c) {
    for (size_t i = 1; i < c->path_count; i++) {
        xl_path *p = &c->path[i];
        bool is_spare = p->state == XL_PATH_CLOSED || (!c->multipath && c->is_server && p->index != c->active);
        if (c->multipath && p->has_dcid && !p->status_confirmed) /* PATH_STATUS(Abandon) still needs it */
            continue;
        if (is_spare && p->bytes_in_flight == 0 && p->eliciting_in_flight == 0)
            return p;
    }
    return NULL;
}

xl_path *xl_conn_path_new(xl_connection *c, const xl_addr *local, const xl_addr *remote, xl_technology technology) {
    xl_path *p;
    if (c->path_count < XL_MAX_PATHS)
        p = &c->path[c->path_count++];
    else if (!(p = reusable_slot(c)))
        return NULL;
    int index = (int)(p - c->path);
    if (p->owns_space) {
        xl_conn_drop_space(c, p->space);
        xl_space_free(p->space);
        free(p->space);
    }
    /* What was counted on the same pair of hosts goes on. */
    bool counts_on = xl_addr_same_host(&p->local, local) && xl_addr_same_host(&p->remote, remote);
    xl_path_stats stats = p->stats;
    xl_path_init(p, index, local, remote, technology);
    p->cc_group = &c->cc_group;
    if (counts_on)
        p->stats = stats;
    p->space = &c->space[XL_LEVEL_APP];
    xl_path_reset_congestion(p, c->cc, xl_conn_mtu(c), c->now);
    xl_conn_restart_mtu_search(c, p);
    return p;
}

static bool give_own_space(xl_path *p) {
    xl_space *s = malloc(sizeof(*s));
    if (!s)
        return false;
    xl_space_init(s);
    p->space = s;
    p->owns_space = true;
    return true;
}

/* The server's side of a new path: an unused CID in each direction (dialect `xlink`). */
static xl_path *accept_path(xl_connection *c, uint64_t local_id, const xl_addr *local, const xl_addr *remote) {
    xl_path *p = xl_conn_path_new(c, local, remote, XL_TECH_UNKNOWN);
    if (!p)
        return NULL;
    p->local_id = local_id;
    p->has_local_id = true;
    if (c->multipath && !give_own_space(p)) {
        xl_conn_path_closed(c, p, "out of memory");
        return NULL;
    }
    /* With multipath a CID may still be on its way over a slower path: xl_conn_open_paths() gives it then. */
    if (!xl_conn_take_dcid(c, p) && !c->multipath) {
        /* Without a spare CID the present one serves on (RFC 9000 section 9.5 allows it when only the peer moved). */
        p->dcid = c->path[c->active].dcid;
        p->remote_id = c->path[c->active].remote_id;
        p->has_dcid = true;
    }
    return p;
}

/* A path that we opened and for which the peer has not chosen a CID of ours yet. */
static xl_path *path_without_local_cid(xl_connection *c, const xl_addr *local, const xl_addr *remote) {
    for (size_t i = 0; i < c->path_count; i++) {
        xl_path *p = &c->path[i];
        if (!p->has_local_id && xl_path_is_open(p) && xl_addr_equal(&p->local, local) &&
            xl_addr_equal(&p->remote, remote))
            return p;
    }
    return NULL;
}

xl_path *xl_conn_path_for_packet(xl_connection *c, uint64_t local_id, const xl_addr *local, const xl_addr *remote,
                                 bool *may_open) {
    xl_path *p = c->multipath ? xl_conn_path_by_local_id(c, local_id) : xl_conn_path_by_address(c, local, remote);
    *may_open = !p && (c->is_server || (c->multipath && path_without_local_cid(c, local, remote)));
    if (c->multipath)
        return p && p->state != XL_PATH_CLOSED ? p : NULL;
    if (p)
        return p->has_dcid ? p : NULL;
    /* A client that moves takes another connection ID (RFC 9000 section 9.5): the same one means that a NAT moved it.
     */
    return c->is_server && local_id == c->path[c->active].local_id ? &c->path[c->active] : NULL;
}

xl_path *xl_conn_path_for_authentic_packet(xl_connection *c, uint64_t local_id, const xl_addr *local,
                                           const xl_addr *remote) {
    xl_path *p = c->multipath ? path_without_local_cid(c, local, remote) : NULL;
    if (!p)
        return c->is_server ? accept_path(c, local_id, local, remote) : NULL;
    p->local_id = local_id;
    p->has_local_id = true;
    return p;
}

/* ---- Client: opening paths with multipath ---- */

static void open_path(xl_connection *c, xl_path *p) {
    if (!xl_conn_take_dcid(c, p))
        return;
    if (!give_own_space(p)) {
        xl_conn_fail(c, XL_QERR_INTERNAL, "out of memory");
        return;
    }
    xl_path_reset_congestion(p, c->cc, p->mtu, c->now);
    p->validated = true; /* our own choice of address: no amplification limit; data waits for ACTIVE all the same */
    xl_conn_path_set_state(c, p, XL_PATH_VALIDATING, "opened");
    xl_conn_start_challenge(c, p);
}

/* Whatever waits for a CID of the peer gets one: a client's registered paths, and paths that the peer opened. */
void xl_conn_open_paths(xl_connection *c) {
    if (!c->multipath || !c->handshake.is_confirmed)
        return;
    for (size_t i = 1; i < c->path_count; i++) {
        xl_path *p = &c->path[i];
        if (p->has_dcid || p->state == XL_PATH_CLOSED)
            continue;
        bool may_open = !c->is_server && !c->peer_params.disable_active_migration;
        if (may_open && p->state == XL_PATH_NEW)
            open_path(c, p);
        else if (xl_conn_take_dcid(c, p))
            xl_conn_wake(c);
    }
}

int xl_connection_add_path(xl_connection *c, const xl_addr *local, const xl_addr *remote, xl_technology technology,
                           uint64_t now) {
    if (c->is_server || !xl_conn_is_live(c))
        return XL_ERR_PATH;
    xl_conn_enter(c, now);
    xl_path *p = xl_conn_path_new(c, local, remote, technology);
    if (!p)
        return XL_ERR_PATH;
    xl_conn_open_paths(c);
    return p->index;
}

void xl_conn_path_closed(xl_connection *c, xl_path *p, const char *why) {
    if (p->state == XL_PATH_CLOSED)
        return;
    xl_conn_give_up_in_flight(c, p);
    xl_conn_path_set_state(c, p, XL_PATH_CLOSED, why);
    p->challenge_deadline = XL_NEVER;
    p->challenge_pending = p->challenge_outstanding = false;
    p->probes = 0;
    p->response_count = 0;
    p->status = XL_STATUS_ABANDON;
    p->status_seq++;
    p->status_pending = c->multipath;
    if (p->has_dcid && xl_cids_by_sequence(&c->remote_cids, p->remote_id))
        xl_cids_retire(&c->remote_cids, p->remote_id);
    for (size_t i = 0; i < c->path_count; i++)
        if (xl_path_may_carry_data(&c->path[i]) || (xl_path_is_open(&c->path[i]) && c->path[i].has_proven))
            return;
    xl_conn_fail(c, XL_QERR_NO_ERROR, "the last path was closed");
}

int xl_connection_close_path(xl_connection *c, int index, uint64_t now) {
    if (!c->multipath || index < 0 || (size_t)index >= c->path_count || !xl_path_is_open(&c->path[index]))
        return XL_ERR_PATH;
    xl_conn_enter(c, now);
    xl_conn_path_closed(c, &c->path[index], "closed by the application");
    return 0;
}

void xl_conn_path_validated(xl_connection *c, xl_path *p) {
    if (c->multipath) {
        if (p->state == XL_PATH_VALIDATING)
            xl_conn_path_set_state(c, p, xl_path_wants_standby(p) ? XL_PATH_STANDBY : XL_PATH_ACTIVE, "PATH_RESPONSE");
        xl_path_update_pacer(p, c->now);
        return;
    }
    if (!c->is_server)
        xl_conn_migration_validated(c, p);
}

/* The challenge was not answered in time: again, or give the path up. */
void xl_conn_path_timer(xl_connection *c, xl_path *p) {
    p->challenge_deadline = XL_NEVER;
    if (!p->challenge_outstanding)
        return;
    if (p->challenge_is_probe) { /* lost, or its answer: the next acknowledgement from elsewhere asks again */
        p->challenge_outstanding = p->challenge_pending = false;
        p->challenge_tries = 0;
        return;
    }
    if (xl_conn_migration_unanswered(c, p))
        return;
    /* A rebound path has an address to return to, and perhaps no allowance left to ask the new one again. */
    bool rebound = p->has_proven;
    unsigned most = rebound ? REBOUND_TRIES_MAX : CHALLENGE_TRIES_MAX;
    if (p->challenge_tries < most && (!rebound || xl_path_amplification_left(p) >= CHALLENGE_BYTES)) {
        xl_conn_start_challenge(c, p);
        return;
    }
    p->challenge_tries = 0;
    if (xl_conn_migration_probe_failed(c, p) || xl_conn_path_rebind_failed(c, p))
        return;
    if (c->multipath && !c->is_server && p->state == XL_PATH_VALIDATING) {
        /* The path was dark when it was opened. Its radio may come back: keep asking, at the longest interval. */
        p->challenge_tries = CHALLENGE_TRIES_MAX - 1;
        xl_conn_start_challenge(c, p);
    } else if (c->multipath) {
        xl_conn_path_closed(c, p, "validation failed");
    } else {
        p->challenge_outstanding = false;
    }
}

void xl_conn_path_packet_seen(xl_connection *c, xl_path *p, bool is_probing, bool is_newest, const xl_addr *local,
                              const xl_addr *remote) {
    if (c->multipath && c->is_server && p->state == XL_PATH_NEW) {
        xl_conn_path_set_state(c, p, XL_PATH_VALIDATING, "opened by the peer");
        xl_conn_start_challenge(c, p);
    }
    if (!c->is_server && !is_probing)
        xl_conn_migration_followed(c, p);
    if (!c->is_server || is_probing || !is_newest)
        return;
    bool moved = !xl_addr_equal(&p->remote, remote) || !xl_addr_equal(&p->local, local);
    if (moved && (c->multipath || (p->index == c->active && c->handshake.is_confirmed)))
        xl_conn_path_rebind(c, p, local, remote);
    if (c->multipath)
        return;
    if (p->index == c->active || !c->handshake.is_confirmed)
        return;
    xl_conn_migrate_to(c, p, "the peer moved");
    if (!p->validated)
        xl_conn_start_challenge(c, p);
}
