#include "connection/path_table.h"

#include "connection/connection.h"
#include "connection/state.h"

xl_path *xl_conn_path_by_local_id(xl_connection *c, uint64_t local_id) {
    XL_EACH_PATH(xl_path, p, c)
        if (p->cids.has_local_path_id && p->cids.local_path_id == local_id)
            return p;
    return NULL;
}

xl_path *xl_conn_path_by_remote_id(xl_connection *c, uint64_t remote_id) {
    XL_EACH_PATH(xl_path, p, c)
        if ((c->path_ids ? p->cids.has_local_path_id : p->cids.has_remote) && p->cids.remote_path_id == remote_id)
            return p;
    return NULL;
}

static bool leads_between(const xl_path *p, const xl_addr *local, const xl_addr *remote) {
    return p->state != XL_PATH_CLOSED && xl_addr_equal(&p->local, local) && xl_addr_equal(&p->remote, remote);
}

xl_path *xl_conn_path_by_address(xl_connection *c, const xl_addr *local, const xl_addr *remote) {
    if (!c->multipath && c->path_count > 0 && leads_between(c->path[c->active], local, remote))
        return c->path[c->active];
    XL_EACH_PATH(xl_path, p, c)
        if (leads_between(p, local, remote))
            return p;
    return NULL;
}

bool xl_conn_has_healthy_path_beside(const xl_connection *c, const xl_path *p) {
    XL_EACH_PATH(const xl_path, q, c)
        if (q != p && xl_path_may_carry_data(q) && q->state != XL_PATH_SUSPECT && q->flight.pto_count < XL_SUSPECT_PTOS)
            return true;
    return false;
}

bool xl_conn_leaves_control_to_another(const xl_connection *c, const xl_path *p) {
    if (!c->multipath || c->config->scheme.suspect || p->flight.pto_count == 0)
        return false;
    XL_EACH_PATH(const xl_path, q, c)
        if (q != p && xl_path_may_carry_data(q) && q->cids.has_remote && q->flight.pto_count == 0)
            return true;
    return false;
}

/* Largest datagram that both ends accept, bytes: 1200 until the peer's transport parameters are known. */
static uint64_t largest_datagram(const xl_connection *c) {
    uint64_t ours = c->config->limits.max_udp_payload_bytes, theirs = c->peer_params.max_udp_payload_size;
    if (!c->handshake.peer_params_seen)
        return XL_MIN_DATAGRAM;
    return theirs < ours ? theirs : ours;
}

bool xl_conn_addresses_match(const xl_addr *local, const xl_addr *remote) {
    return local->family == remote->family && (local->family == 4 || local->family == 6);
}

/* UDP payload bytes that every path carries and both ends accept. */
static uint64_t sure_mtu(const xl_connection *c) {
    uint64_t known = c->config->limits.path_mtu_bytes, largest = largest_datagram(c);
    return known < largest ? known : largest;
}

void xl_conn_apply_mtu(xl_connection *c, xl_path *p) {
    if (p->mtu_search.size == p->mtu)
        return;
    xl_qlog_mtu(c->qlog, c->now, p->index, p->mtu, p->mtu_search.size);
    xl_path_set_mtu(p, p->mtu_search.size, c->now);
}

void xl_conn_restart_mtu_search(xl_connection *c, xl_path *p) {
    xl_mtu_init(&p->mtu_search, sure_mtu(c), largest_datagram(c));
    if (p->mtu_search.size != p->mtu)
        xl_path_set_mtu(p, p->mtu_search.size, c->now);
}

void xl_conn_path_forget_network(xl_connection *c, xl_path *p) {
    xl_path_reset_congestion(p, c->cc, sure_mtu(c), c->now);
    xl_conn_restart_mtu_search(c, p);
    xl_ecn_start(&p->ecn, c->config->limits.enable_ecn);
    p->ecn.since = c->now;
}

static const char *event_name(xl_path_state from, xl_path_state to) {
    if (to == XL_PATH_ACTIVE)
        return from == XL_PATH_SUSPECT ? "path_recovered" : "path_validated";
    static const char *const names[] = {"path_idle",    "path_new",     "path_validated",
                                        "path_suspect", "path_standby", "path_closed"};
    return names[to];
}

void xl_conn_log_path(xl_connection *c, const xl_path *p, const char *event, const char *why) {
    xl_qlog_path(c->qlog, c->now, event, p->index, p->cids.remote_path_id, &p->local, &p->remote, why);
}

void xl_conn_path_set_state(xl_connection *c, xl_path *p, xl_path_state state, const char *why) {
    if (p->state == state)
        return;
    xl_conn_log_path(c, p, event_name(p->state, state), why);
    p->state = state;
    p->state_since = c->now;
    xl_conn_emit(c, (xl_event){.type = XL_EVENT_PATH, .path = p->index, .path_state = state});
    xl_conn_wake(c);
}

xl_cids *xl_conn_local_cids(xl_connection *c, uint64_t path_id) {
    xl_path_id *id = c->path_ids ? xl_path_ids_find(c->path_ids, path_id) : NULL;
    return !c->path_ids ? &c->local_cids : id ? id->local : NULL;
}

xl_cids *xl_conn_remote_cids(xl_connection *c, uint64_t path_id) {
    xl_path_id *id = c->path_ids ? xl_path_ids_find(c->path_ids, path_id) : NULL;
    return !c->path_ids ? &c->remote_cids : id && !id->is_abandoned ? id->remote : NULL;
}

bool xl_conn_take_dcid(xl_connection *c, xl_path *p) {
    xl_cids *cids = xl_conn_remote_cids(c, p->cids.remote_path_id);
    xl_cid_entry *e = cids ? xl_cids_take_unused(cids) : NULL;
    if (!e)
        return false;
    p->cids.remote = e->cid;
    p->cids.remote_sequence = e->sequence;
    if (!c->path_ids)
        p->cids.remote_path_id = e->sequence;
    p->cids.has_remote = true;
    p->spin = false; /* RFC 9000 section 17.4 */
    c->hooks.tokens_changed(c->hooks.endpoint, c);
    return true;
}

bool xl_conn_change_dcid(xl_connection *c, xl_path *p) {
    const uint64_t old = p->cids.remote_sequence;
    if (!xl_conn_take_dcid(c, p))
        return false;
    xl_cids_retire(xl_conn_remote_cids(c, p->cids.remote_path_id), old);
    return true;
}

void xl_conn_start_challenge(xl_connection *c, xl_path *p) {
    uint8_t data[8];
    xl_drbg_bytes(&c->random.challenges, data, sizeof data);
    xl_path_start_challenge(p, data);
    xl_conn_wake(c);
}

void xl_conn_start_rtt_probe(xl_connection *c, xl_path *p) {
    uint8_t data[8];
    xl_drbg_bytes(&c->random.challenges, data, sizeof data);
    xl_path_start_rtt_probe(p, data);
    xl_conn_wake(c);
}
