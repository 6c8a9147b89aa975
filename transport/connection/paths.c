/* Paths: opening, validation (RFC 9000 section 8.2), multipath by connection ID (dialect `xlink`), and migration of a
 * single-path connection (RFC 9000 section 9). */
#include "connection/connection.h"

#include <stdlib.h>
#include <string.h>

#define CHALLENGE_TRIES_MAX 5
/* Silence that makes a client look for another path: three PTOs, but not more than a second unless one PTO is longer
 * (deep queues make the PTO of a path that still delivers several seconds long). */
#define MIGRATION_SILENCE_PTOS 3
#define MIGRATION_SILENCE_US   1000000

static const char *event_name(xl_path_state from, xl_path_state to) {
    if (to == XL_PATH_ACTIVE)
        return from == XL_PATH_SUSPECT ? "path_recovered" : "path_validated";
    static const char *const names[] = {"path_idle",    "path_new",     "path_validated",
                                        "path_suspect", "path_standby", "path_closed"};
    return names[to];
}

void xl_conn_path_set_state(xl_connection *c, xl_path *p, xl_path_state state, const char *why) {
    if (p->state == state)
        return;
    xl_qlog_path(c->qlog, c->now, event_name(p->state, state), p->index, p->remote_seq, &p->local, &p->remote, why);
    p->state = state;
    xl_conn_emit(c, (xl_event){.type = XL_EVENT_PATH, .path = p->index, .path_state = state});
    xl_conn_wake(c);
}

/* A slot that nothing refers to any more: closed, nothing in flight. */
static xl_path *reusable_slot(xl_connection *c) {
    for (size_t i = 1; i < c->path_count; i++) {
        xl_path *p = &c->path[i];
        bool is_spare = p->state == XL_PATH_CLOSED || (!c->multipath && c->is_server && p->index != c->active);
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
    xl_path_init(p, index, local, remote, technology);
    p->space = &c->space[XL_LEVEL_APP];
    uint64_t mtu = c->handshake_complete ? c->config->max_udp_payload_bytes : XL_MIN_DATAGRAM;
    if (c->peer_params_seen && c->peer_params.max_udp_payload_size < mtu)
        mtu = c->peer_params.max_udp_payload_size;
    xl_path_reset_congestion(p, c->cc, mtu, c->now);
    return p;
}

void xl_conn_path_forget_last(xl_connection *c) {
    xl_path *p = &c->path[--c->path_count];
    if (p->owns_space) {
        xl_conn_drop_space(c, p->space);
        xl_space_free(p->space);
        free(p->space);
    }
    if (p->has_dcid) {
        xl_cid_entry *e = xl_cids_by_sequence(&c->remote_cids, p->remote_seq);
        if (e && p->remote_seq != c->path[c->active].remote_seq)
            e->in_use = false;
    }
    memset(p, 0, sizeof(*p));
}

xl_path *xl_conn_path_by_local_seq(xl_connection *c, uint64_t local_seq) {
    for (size_t i = 0; i < c->path_count; i++)
        if (c->path[i].has_local_seq && c->path[i].local_seq == local_seq)
            return &c->path[i];
    return NULL;
}

xl_path *xl_conn_path_by_remote_seq(xl_connection *c, uint64_t remote_seq) {
    for (size_t i = 0; i < c->path_count; i++)
        if (c->path[i].has_dcid && c->path[i].remote_seq == remote_seq)
            return &c->path[i];
    return NULL;
}

xl_path *xl_conn_path_by_address(xl_connection *c, const xl_addr *local, const xl_addr *remote) {
    for (size_t i = 0; i < c->path_count; i++) {
        xl_path *p = &c->path[i];
        if (p->state != XL_PATH_CLOSED && xl_addr_equal(&p->local, local) && xl_addr_equal(&p->remote, remote))
            return p;
    }
    return NULL;
}

static bool take_dcid(xl_connection *c, xl_path *p) {
    xl_cid_entry *e = xl_cids_take_unused(&c->remote_cids);
    if (!e)
        return false;
    p->dcid = e->cid;
    p->remote_seq = e->sequence;
    p->has_dcid = true;
    return true;
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

void xl_conn_start_challenge(xl_connection *c, xl_path *p) {
    uint8_t data[8];
    xl_random_bytes(&c->random, data, sizeof(data));
    xl_path_start_challenge(p, data);
    xl_conn_wake(c);
}

void xl_conn_start_rtt_probe(xl_connection *c, xl_path *p) {
    uint8_t data[8];
    xl_random_bytes(&c->random, data, sizeof(data));
    xl_path_start_rtt_probe(p, data);
    xl_conn_wake(c);
}

/* The server's side of a new path: an unused CID in each direction (dialect `xlink`). */
static xl_path *accept_path(xl_connection *c, uint64_t local_seq, const xl_addr *local, const xl_addr *remote) {
    xl_path *p = xl_conn_path_new(c, local, remote, XL_TECH_UNKNOWN);
    if (!p)
        return NULL;
    p->local_seq = local_seq;
    p->has_local_seq = true;
    if (c->multipath && !give_own_space(p)) {
        xl_conn_path_closed(c, p, "out of memory");
        return NULL;
    }
    /* With multipath a CID may still be on its way over a slower path: xl_conn_open_paths() gives it then. */
    if (!take_dcid(c, p) && !c->multipath) {
        /* Without a spare CID the present one serves on (RFC 9000 section 9.5 allows it when only the peer moved). */
        p->dcid = c->path[c->active].dcid;
        p->remote_seq = c->path[c->active].remote_seq;
        p->has_dcid = true;
    }
    return p;
}

xl_path *xl_conn_path_for_packet(xl_connection *c, uint64_t local_seq, const xl_addr *local, const xl_addr *remote) {
    if (!c->multipath) {
        xl_path *p = xl_conn_path_by_address(c, local, remote);
        if (p && p->has_dcid)
            return p;
        return c->is_server && !p ? accept_path(c, local_seq, local, remote) : NULL;
    }
    xl_path *p = xl_conn_path_by_local_seq(c, local_seq);
    if (p)
        return p->state == XL_PATH_CLOSED ? NULL : p;
    /* The peer chose this CID of ours for a path that we opened. */
    for (size_t i = 0; i < c->path_count; i++) {
        p = &c->path[i];
        if (!p->has_local_seq && xl_path_is_open(p) && xl_addr_equal(&p->local, local) &&
            xl_addr_equal(&p->remote, remote)) {
            p->local_seq = local_seq;
            p->has_local_seq = true;
            return p;
        }
    }
    return c->is_server ? accept_path(c, local_seq, local, remote) : NULL;
}

/* ---- Client: opening paths with multipath ---- */

static void open_path(xl_connection *c, xl_path *p) {
    if (!take_dcid(c, p))
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
    if (!c->multipath || !c->handshake_confirmed)
        return;
    for (size_t i = 1; i < c->path_count; i++) {
        xl_path *p = &c->path[i];
        if (p->has_dcid || p->state == XL_PATH_CLOSED)
            continue;
        if (!c->is_server && p->state == XL_PATH_NEW)
            open_path(c, p);
        else if (take_dcid(c, p))
            xl_conn_wake(c);
    }
}

int xl_connection_add_path(xl_connection *c, const xl_addr *local, const xl_addr *remote, xl_technology technology,
                           uint64_t now) {
    if (c->is_server || !xl_conn_is_live(c) || c->path_count >= XL_MAX_PATHS)
        return XL_ERR_PATH;
    c->now = now;
    xl_path *p = xl_conn_path_new(c, local, remote, technology);
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
    if (xl_cids_by_sequence(&c->remote_cids, p->remote_seq))
        xl_cids_retire(&c->remote_cids, p->remote_seq);
    for (size_t i = 0; i < c->path_count; i++)
        if (xl_path_may_carry_data(&c->path[i]))
            return;
    xl_conn_fail(c, XL_QERR_NO_ERROR, "the last path was closed");
}

int xl_connection_close_path(xl_connection *c, int index, uint64_t now) {
    if (!c->multipath || index < 0 || (size_t)index >= c->path_count || !xl_path_is_open(&c->path[index]))
        return XL_ERR_PATH;
    c->now = now;
    xl_conn_path_closed(c, &c->path[index], "closed by the application");
    return 0;
}

/* ---- Migration of a single-path connection ---- */

/* Moves to p: congestion window and RTT start anew (RFC 9000 section 9.4), what was in flight is sent again. */
static void migrate_to(xl_connection *c, xl_path *p, const char *why) {
    xl_path *old = &c->path[c->active];
    c->active = p->index;
    c->migrations++;
    xl_path_reset_congestion(p, c->cc, p->mtu, c->now);
    p->state = XL_PATH_ACTIVE;
    xl_qlog_path(c->qlog, c->now, "migrated", p->index, p->remote_seq, &p->local, &p->remote, why);
    xl_conn_give_up_in_flight(c, old);
    old->probes = 0;
    old->state = XL_PATH_NEW;
    if (!c->is_server) { /* RFC 9000 section 9.5: the CID of the old path is not used again */
        xl_cids_retire(&c->remote_cids, old->remote_seq);
        old->has_dcid = false;
    }
    p->ping_pending = true; /* a non-probing packet tells the peer to follow */
    xl_conn_emit(c, (xl_event){.type = XL_EVENT_MIGRATED, .path = p->index, .from_path = old->index});
    xl_conn_wake(c);
}

static uint64_t silence_before_probing(const xl_connection *c, const xl_path *p) {
    if (c->config->probe_silence_us)
        return c->config->probe_silence_us;
    uint64_t pto = xl_rtt_pto(&p->ack_rtt, xl_conn_peer_ack_delay_us(c));
    if (MIGRATION_SILENCE_PTOS * pto <= MIGRATION_SILENCE_US)
        return MIGRATION_SILENCE_PTOS * pto;
    return pto > MIGRATION_SILENCE_US ? pto : MIGRATION_SILENCE_US;
}

uint64_t xl_conn_migration_deadline(const xl_connection *c) {
    if (!c->config->enable_migration || c->is_server || c->multipath || !c->handshake_confirmed || c->path_count < 2 ||
        c->migrating_to >= 0 || c->expecting_since == XL_NEVER || !xl_conn_expects_data(c))
        return XL_NEVER;
    const xl_path *p = &c->path[c->active];
    uint64_t since = p->last_received_at > c->expecting_since ? p->last_received_at : c->expecting_since;
    if (c->migration_retry_at > since)
        since = c->migration_retry_at;
    return since + silence_before_probing(c, p);
}

static bool probe_candidate(xl_connection *c, xl_path *p) {
    if (!p->has_dcid && !take_dcid(c, p))
        return false;
    p->validated = true; /* no amplification limit towards a server that we know */
    p->challenge_tries = 0;
    c->migrating_to = p->index;
    c->migration_probe_at = c->now;
    xl_conn_path_set_state(c, p, XL_PATH_VALIDATING, "the active path is silent");
    xl_conn_start_challenge(c, p);
    return true;
}

/* The active path has been silent while data is expected: probe the next candidate in turn. */
void xl_conn_migration_timer(xl_connection *c) {
    for (size_t step = 1; step < c->path_count; step++) {
        xl_path *p = &c->path[((size_t)c->migration_last + step) % c->path_count];
        if (p->index == c->active || p->state == XL_PATH_CLOSED)
            continue;
        c->migration_last = p->index;
        if (probe_candidate(c, p))
            return;
    }
    c->migration_retry_at = c->now; /* no CID at hand: look again later */
}

static void abandon_probe(xl_connection *c, xl_path *p, const char *why) {
    c->migrating_to = -1;
    c->migration_retry_at = c->now;
    p->challenge_outstanding = p->challenge_pending = false;
    p->challenge_deadline = XL_NEVER;
    xl_conn_path_set_state(c, p, XL_PATH_NEW, why);
}

void xl_conn_path_validated(xl_connection *c, xl_path *p) {
    if (c->multipath) {
        if (p->state == XL_PATH_VALIDATING)
            xl_conn_path_set_state(c, p, XL_PATH_ACTIVE, "PATH_RESPONSE");
        xl_path_update_pacer(p, c->now);
        return;
    }
    if (c->is_server || p->index != c->migrating_to)
        return;
    if (c->path[c->active].last_received_at > c->migration_probe_at) {
        abandon_probe(c, p, "the active path answers again");
        return;
    }
    c->migrating_to = -1;
    migrate_to(c, p, "validated while the active path is silent");
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
    bool is_candidate = !c->is_server && !c->multipath && p->index == c->migrating_to;
    if (is_candidate && c->path[c->active].last_received_at > c->migration_probe_at) {
        abandon_probe(c, p, "the active path answers again");
        return;
    }
    if (p->challenge_tries < CHALLENGE_TRIES_MAX) {
        xl_conn_start_challenge(c, p);
        return;
    }
    p->challenge_tries = 0;
    if (is_candidate) {
        abandon_probe(c, p, "no answer to PATH_CHALLENGE");
    } else if (c->multipath && !c->is_server && p->state == XL_PATH_VALIDATING) {
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
    if (!c->is_server || is_probing || !is_newest)
        return;
    if (c->multipath) {
        if (xl_addr_equal(&p->remote, remote) && xl_addr_equal(&p->local, local))
            return;
        /* NAT rebinding: same CID, new address. Validate it; until then the amplification limit holds. */
        p->local = *local;
        p->remote = *remote;
        p->validated = false;
        p->received_unvalidated = p->sent_unvalidated = 0;
        p->challenge_tries = 0;
        xl_qlog_path(c->qlog, c->now, "path_rebound", p->index, p->remote_seq, local, remote, "new address");
        xl_conn_start_challenge(c, p);
        return;
    }
    if (p->index == c->active || !c->handshake_confirmed)
        return;
    migrate_to(c, p, "the peer moved");
    if (!p->validated)
        xl_conn_start_challenge(c, p);
}
