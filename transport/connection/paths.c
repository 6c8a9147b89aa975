/* Paths: opening, validation (RFC 9000 section 8.2), multipath by connection ID (dialect `xlink`), addresses that
 * change (section 9.3). */
#include "connection/paths.h"

#include <stdlib.h>

#include "connection/acks.h"
#include "connection/connection.h"
#include "connection/migration.h"
#include "connection/own_cids.h"
#include "connection/path_table.h"
#include "connection/rebinding.h"
#include "connection/state.h"

#define CHALLENGE_TRIES_MAX 5
#define REBOUND_TRIES_MAX   3
#define CHALLENGE_BYTES     64 /* upper bound of the smallest packet with a PATH_CHALLENGE */

#define CLOSED_BY_APPLICATION "closed by the application"

/* Returns a slot that nothing refers to: closed, nothing in flight. */
static xl_path *reusable_slot(xl_connection *c) {
    for (size_t i = 1; i < c->path_count; i++) {
        xl_path *p = c->path[i];
        bool is_spare = p->state == XL_PATH_CLOSED || (!c->multipath && c->is_server && p->index != c->active);
        if (c->multipath && p->cids.has_remote && !p->statuses.is_confirmed) /* PATH_STATUS(Abandon) still needs it */
            continue;
        if (is_spare && p->flight.bytes == 0 && p->flight.eliciting == 0)
            return p;
    }
    return NULL;
}

/* Retires the path's CID, unless another path shares it: accept_path(). */
static void release_dcid(xl_connection *c, const xl_path *p) {
    if (c->multipath || !p->cids.has_remote)
        return;
    XL_EACH_PATH(xl_path, q, c)
        if (q != p && q->cids.has_remote && q->cids.remote_sequence == p->cids.remote_sequence)
            return;
    xl_cids_retire(&c->remote_cids, p->cids.remote_sequence);
}

/* Returns a new slot, which is allocated here because most connections need one or two; or one that can be used again.
 * NULL: out of memory, or no slot is left. */
static xl_path *take_slot(xl_connection *c) {
    if (c->path_count == XL_MAX_PATHS)
        return reusable_slot(c);
    xl_path *p = calloc(1, sizeof *p);
    if (p) {
        p->index = (int)c->path_count;
        c->path[c->path_count++] = p;
    }
    return p;
}

xl_path *xl_conn_path_new(xl_connection *c, const xl_addr *local, const xl_addr *remote, xl_technology technology) {
    xl_path *p = take_slot(c);
    if (!p)
        return NULL;
    const int index = p->index;
    release_dcid(c, p);
    if (p->space)
        xl_conn_forget_sent(c, p);
    if (p->owns_space) {
        xl_conn_drop_space(c, p->space);
        xl_space_free(p->space);
        free(p->space);
    }
    /* The statistics of the same pair of hosts continue. */
    bool counts_on = xl_addr_same_host(&p->local, local) && xl_addr_same_host(&p->remote, remote);
    xl_path_stats stats = p->stats;
    xl_path_init(p, index, local, remote, technology);
    xl_qlog_path_replaced(c->qlog, index);
    p->cc.group = &c->cc_group;
    p->burst_us = c->config->limits.pacing_burst_us;
    if (counts_on)
        p->stats = stats;
    p->space = &c->space[XL_LEVEL_APP];
    xl_conn_path_forget_network(c, p);
    return p;
}

static bool give_own_space(xl_connection *c, xl_path *p) {
    xl_space *s = malloc(sizeof *s);
    if (!s)
        return false;
    xl_conn_init_space(c, s);
    p->space = s;
    p->owns_space = true;
    return true;
}

/* Gives the path ID to the path. A status that the peer sent before it was open applies (RFC 10069 section 4.3). */
static void use_path_id(xl_path *p, xl_path_id *id) {
    id->is_used = true;
    p->cids.local_path_id = p->cids.remote_path_id = id->id;
    p->cids.has_local_path_id = true;
    p->statuses.has_peer = id->has_status;
    p->statuses.peer_sequence = id->status_seq;
    if (id->has_status)
        p->statuses.peer = id->status;
}

/* The server's side of a new path: takes an unused CID in each direction (dialect `xlink`), or the peer's path ID. */
static xl_path *accept_path(xl_connection *c, uint64_t local_id, const xl_addr *local, const xl_addr *remote) {
    xl_path_id *id = c->path_ids ? xl_path_ids_find(c->path_ids, local_id) : NULL;
    xl_path *p = xl_conn_path_new(c, local, remote, XL_TECH_UNKNOWN);
    if (!p && id)
        xl_path_ids_abandon(id, XL_QERR_PATH_RESOURCE_LIMIT);
    if (!p)
        return NULL;
    p->cids.local_path_id = local_id;
    p->cids.has_local_path_id = true;
    if (id) {
        use_path_id(p, id);
        xl_conn_issue_cids(c);
    }
    p->validation.is_done = c->multipath && xl_conn_is_proven_elsewhere(c, p);
    if (c->multipath && !give_own_space(c, p)) {
        xl_conn_path_closed(c, p, XL_QERR_PATH_RESOURCE_LIMIT, "out of memory");
        return NULL;
    }
    /* With multipath a CID may still be in transit on a slower path: xl_conn_open_paths() assigns it then. */
    if (!xl_conn_take_dcid(c, p) && !c->multipath) {
        /* Without a spare CID the present one stays in use (RFC 9000 section 9.5: only the peer moved). */
        p->cids.remote = c->path[c->active]->cids.remote;
        p->cids.remote_path_id = c->path[c->active]->cids.remote_path_id;
        p->cids.remote_sequence = c->path[c->active]->cids.remote_sequence;
        p->cids.has_remote = true;
    }
    return p;
}

/* Finds a path that we opened and for which the peer has not chosen a CID of ours yet. */
static xl_path *path_without_local_cid(xl_connection *c, const xl_addr *local, const xl_addr *remote) {
    XL_EACH_PATH(xl_path, p, c)
        if (!p->cids.has_local_path_id && xl_path_is_open(p) && xl_addr_equal(&p->local, local) &&
            xl_addr_equal(&p->remote, remote))
            return p;
    return NULL;
}

static bool may_open_path(xl_connection *c, uint64_t local_id, const xl_addr *local, const xl_addr *remote) {
    if (!c->path_ids)
        return c->is_server || (c->multipath && path_without_local_cid(c, local, remote));
    const xl_path_id *id = xl_path_ids_find(c->path_ids, local_id);
    return c->is_server && id && !id->is_used && !id->is_abandoned;
}

/* Whether late packets on an abandoned path count (RFC 10069 section 3.4.3). In the dialect `xlink` they do until the
 * peer has confirmed our PATH_STATUS: if it abandoned the path on which we send that, nothing else tells us. */
static bool counts_late_packets(const xl_connection *c, const xl_path *p) {
    return (c->path_ids || !p->statuses.is_confirmed) && (p->owns_space || p->index == 0);
}

xl_path *xl_conn_path_for_packet(xl_connection *c, uint64_t local_id, const xl_addr *local, const xl_addr *remote,
                                 bool *may_open) {
    xl_path *p = c->multipath ? xl_conn_path_by_local_id(c, local_id) : xl_conn_path_by_address(c, local, remote);
    *may_open = !p && may_open_path(c, local_id, local, remote);
    if (c->multipath)
        return p && (p->state != XL_PATH_CLOSED || counts_late_packets(c, p)) ? p : NULL;
    if (p)
        return p->cids.has_remote || p->index == c->migration.left ? p : NULL;
    /* A client that moves takes another connection ID (RFC 9000 section 9.5). The same one: a NAT moved it. */
    return c->is_server && local_id == c->path[c->active]->cids.local_path_id ? c->path[c->active] : NULL;
}

xl_path *xl_conn_path_for_authentic_packet(xl_connection *c, uint64_t local_id, const xl_addr *local,
                                           const xl_addr *remote) {
    xl_path *p = c->multipath && !c->path_ids ? path_without_local_cid(c, local, remote) : NULL;
    if (!p)
        return c->is_server ? accept_path(c, local_id, local, remote) : NULL;
    p->cids.local_path_id = local_id;
    p->cids.has_local_path_id = true;
    xl_conn_open_paths(c);
    return p;
}

/* ---- Client: opening paths with multipath ---- */

/* Dialect `ietf`: takes an ID that neither side has used and for which both have issued a CID (RFC 10069 section 3). */
static bool take_path_id(xl_connection *c, xl_path *p) {
    xl_path_id *id = xl_path_ids_unused(c->path_ids);
    if (!id) {
        xl_path_ids_note_blocked(c->path_ids);
        xl_conn_wake(c);
        return false;
    }
    if (!xl_cids_any_was_sent(id->local)) /* its acknowledgement tries again */
        return false;
    if (id->remote->count == 0) {
        xl_path_id_note_blocked(id);
        xl_conn_wake(c);
        return false;
    }
    use_path_id(p, id);
    return true;
}

static void open_path(xl_connection *c, xl_path *p) {
    if ((c->path_ids && !take_path_id(c, p)) || !xl_conn_take_dcid(c, p))
        return;
    xl_conn_issue_cids(c);
    if (!give_own_space(c, p)) {
        xl_conn_fail(c, XL_QERR_INTERNAL, "out of memory");
        return;
    }
    xl_path_reset_congestion(p, c->cc, p->mtu, c->now);
    p->validation.is_done =
        true; /* our own choice of address: no amplification limit, but data still waits for ACTIVE */
    xl_conn_path_set_state(c, p, XL_PATH_VALIDATING, "opened");
    xl_conn_start_challenge(c, p);
}

/* disable_active_migration applies to the handshake's address only (RFC 9000 section 18.2, RFC 10069 section 2.2). */
static bool may_use_another_address(const xl_connection *c, const xl_path *p) {
    return !c->peer_params.disable_active_migration || !xl_addr_equal(&p->remote, &c->handshake.server);
}

void xl_conn_open_paths(xl_connection *c) {
    if (!c->multipath || !c->handshake.is_confirmed)
        return;
    for (size_t i = 1; i < c->path_count; i++) {
        xl_path *p = c->path[i];
        if (p->cids.has_remote || p->state == XL_PATH_CLOSED)
            continue;
        bool may_open = !c->is_server && may_use_another_address(c, p);
        /* In the dialect `xlink`, two paths over one pair of addresses must open one after the other. */
        if (!c->path_ids && path_without_local_cid(c, &p->local, &p->remote))
            continue;
        if (may_open && p->state == XL_PATH_NEW)
            open_path(c, p);
        else if (xl_conn_take_dcid(c, p))
            xl_conn_wake(c);
    }
}

int xl_connection_add_path(xl_connection *c, const xl_addr *local, const xl_addr *remote, xl_technology technology,
                           uint64_t now) {
    if (!xl_conn_addresses_match(local, remote))
        return XL_ERR_ARGUMENT;
    if (c->is_server || !xl_conn_is_live(c))
        return XL_ERR_PATH;
    xl_conn_enter(c, now);
    xl_path *p = xl_conn_path_new(c, local, remote, technology);
    if (!p)
        return XL_ERR_PATH;
    xl_conn_open_paths(c);
    return p->index;
}

/* Nothing more is sent on the path, not even with the CIDs that the peer issued for it. */
static void abandon_path_id(xl_connection *c, xl_path *p, uint64_t error) {
    xl_path_id *id = p->cids.has_local_path_id ? xl_path_ids_find(c->path_ids, p->cids.local_path_id) : NULL;
    if (id)
        xl_path_ids_abandon(id, error);
    p->cids.has_remote = p->statuses.is_pending = false;
    p->space->ack_now |= xl_space_owes_ack(p->space);
}

void xl_conn_path_closed(xl_connection *c, xl_path *p, uint64_t error, const char *why) {
    if (p->state == XL_PATH_CLOSED)
        return;
    xl_conn_give_up_in_flight(c, p);
    xl_conn_path_set_state(c, p, XL_PATH_CLOSED, why);
    p->validation.deadline = XL_NEVER;
    p->validation.is_pending = p->validation.is_outstanding = p->validation.was_small = false;
    p->flight.probes = 0;
    p->responses.count = 0;
    p->statuses.own = XL_STATUS_ABANDON;
    p->statuses.own_sequence++;
    p->statuses.is_confirmed = false;
    p->statuses.is_pending = c->multipath;
    if (c->path_ids)
        abandon_path_id(c, p, error);
    else if (p->cids.has_remote && xl_cids_by_sequence(&c->remote_cids, p->cids.remote_sequence))
        xl_cids_retire(&c->remote_cids, p->cids.remote_sequence);
    xl_conn_open_paths(c);
    XL_EACH_PATH(xl_path, q, c)
        if (xl_path_may_carry_data(q) || (xl_path_is_open(q) && q->proven.exists))
            return;
    xl_conn_fail(c, XL_QERR_NO_ERROR, "the last path was closed");
}

/* In the dialect `xlink`, a client that has received nothing on a path cannot tell which of its paths we name. */
static bool is_unknown_to_client(const xl_connection *c, const xl_path *p) {
    return c->is_server && !c->path_ids && p->index > 0 && p->state == XL_PATH_VALIDATING;
}

int xl_connection_close_path(xl_connection *c, int index, uint64_t now) {
    if (!c->multipath || index < 0 || (size_t)index >= c->path_count || !xl_path_is_open(c->path[index]))
        return XL_ERR_PATH;
    xl_conn_enter(c, now);
    xl_path *p = c->path[index];
    if (is_unknown_to_client(c, p)) {
        p->statuses.own = XL_STATUS_ABANDON; /* xl_conn_path_validated() closes it */
        p->statuses.is_pending = false;
    } else {
        xl_conn_path_closed(c, p, XL_QERR_APPLICATION_ABANDON_PATH, CLOSED_BY_APPLICATION);
    }
    return 0;
}

int xl_connection_move_path(xl_connection *c, int index, const xl_addr *local, uint64_t now) {
    if (c->is_server || !c->path_ids || index < 0 || (size_t)index >= c->path_count ||
        !xl_path_may_carry_data(c->path[index]) || !c->handshake.is_confirmed ||
        !may_use_another_address(c, c->path[index]))
        return XL_ERR_PATH;
    xl_conn_enter(c, now);
    xl_path *p = c->path[index];
    if (!xl_conn_change_dcid(c, p)) {
        xl_path_id_note_blocked(xl_path_ids_find(c->path_ids, p->cids.remote_path_id));
        return XL_ERR_PATH;
    }
    p->local = *local;
    xl_conn_give_up_in_flight(c, p);
    xl_conn_path_forget_network(c, p);
    p->validation.tries = 0;
    xl_conn_log_path(c, p, "path_rebound", "moved");
    xl_conn_start_challenge(c, p);
    return 0;
}

void xl_conn_path_validated(xl_connection *c, xl_path *p) {
    if (c->multipath) {
        xl_conn_prove_others(c, p);
        if (p->state == XL_PATH_VALIDATING && p->statuses.own == XL_STATUS_ABANDON)
            xl_conn_path_closed(c, p, XL_QERR_APPLICATION_ABANDON_PATH, CLOSED_BY_APPLICATION);
        else if (p->state == XL_PATH_VALIDATING)
            xl_conn_path_set_state(c, p, xl_path_wants_standby(p) ? XL_PATH_STANDBY : XL_PATH_ACTIVE, "PATH_RESPONSE");
        xl_path_update_pacer(p, c->now);
        return;
    }
    if (!c->is_server)
        xl_conn_migration_validated(c, p);
}

void xl_conn_path_timer(xl_connection *c, xl_path *p) {
    p->validation.deadline = XL_NEVER;
    if (!p->validation.is_outstanding)
        return;
    if (p->validation.is_rtt_probe) { /* the probe or its answer was lost; the next acknowledgement on another path
                                       * starts another probe */
        p->validation.is_outstanding = p->validation.is_pending = false;
        p->validation.tries = 0;
        return;
    }
    if (xl_conn_migration_unanswered(c, p))
        return;
    /* A rebound path has an address to return to, and perhaps no allowance left to challenge the new one again. */
    bool rebound = p->proven.exists, was_left = c->is_server && !c->multipath && p->index != c->active;
    unsigned most = rebound || was_left ? REBOUND_TRIES_MAX : CHALLENGE_TRIES_MAX;
    if (p->validation.tries < most && (!rebound || xl_path_amplification_left(p) >= CHALLENGE_BYTES)) {
        p->proven.is_asked = rebound && !xl_addr_equal(&p->proven.remote, &p->remote);
        xl_conn_start_challenge(c, p);
        return;
    }
    p->validation.tries = 0;
    if (xl_conn_migration_probe_failed(c, p) || xl_conn_path_rebind_failed(c, p))
        return;
    if (c->multipath && !c->is_server && p->state == XL_PATH_VALIDATING) {
        /* The path was dark when it was opened. Its radio may come back: keep asking, at the longest interval. */
        p->validation.tries = CHALLENGE_TRIES_MAX - 1;
        xl_conn_start_challenge(c, p);
    } else if (c->multipath && p->state == XL_PATH_VALIDATING) {
        p->validation.is_outstanding = p->validation.is_pending = false; /* until a packet arrives on it */
    } else if (c->multipath) {
        xl_conn_path_closed(c, p, XL_QERR_PATH_UNSTABLE_OR_POOR, "validation failed");
    } else {
        p->validation.is_outstanding = false;
    }
}

void xl_conn_path_packet_seen(xl_connection *c, const xl_packet_context *ctx, bool is_probing) {
    const xl_addr *local = &ctx->datagram->local, *remote = &ctx->datagram->remote;
    xl_path *p = ctx->path;
    if (p->state == XL_PATH_CLOSED)
        return;
    bool has_new_cid = ctx->cid_sequence != p->cids.local_sequence;
    if (ctx->is_newest)
        p->cids.local_sequence = ctx->cid_sequence;
    if (c->multipath && c->is_server && p->state == XL_PATH_NEW) {
        xl_conn_path_set_state(c, p, XL_PATH_VALIDATING, "opened by the peer");
        xl_conn_start_challenge(c, p);
    }
    if (!c->is_server && !is_probing)
        xl_conn_migration_followed(c, p);
    if (!c->is_server || !ctx->is_newest)
        return;
    /* RFC 10069 section 3.1.2: with path IDs any packet from another address moves its path. */
    if (is_probing && !c->path_ids)
        return;
    bool moved = !xl_addr_equal(&p->remote, remote) || !xl_addr_equal(&p->local, local);
    if (moved && (c->multipath || (p->index == c->active && c->handshake.is_confirmed)))
        xl_conn_path_rebind(c, p, local, remote);
    if (moved && c->path_ids && has_new_cid && p->cids.has_remote) /* the peer itself moved, not a NAT (section 9.5) */
        xl_conn_change_dcid(c, p);
    bool is_unproven = c->multipath ? p->state == XL_PATH_VALIDATING : p->index == c->active && !p->validation.is_done;
    if (is_unproven && !p->validation.is_outstanding && c->handshake.is_confirmed) /* it answers again */
        xl_conn_start_challenge(c, p);
    if (c->multipath || p->index == c->active || !c->handshake.is_confirmed)
        return;
    xl_path *left = c->path[c->active];
    xl_conn_migrate_to(c, p, "the peer moved");
    if (!p->validation.is_done)
        xl_conn_start_challenge(c, p);
    /* RFC 9000 section 9.3.3: challenges also the address that the peer seems to have left. */
    if (!xl_addr_equal(&left->remote, &p->remote)) {
        left->validation.tries = 0;
        xl_conn_start_challenge(c, left);
    }
}
