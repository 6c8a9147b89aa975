/* Migration of a single-path connection (RFC 9000 section 9). */
#include "connection/connection.h"

/* Silence that makes a client look for another path: three PTOs, but not more than a second unless one PTO is longer
 * (deep queues make the PTO of a path that still delivers several seconds long). */
#define MIGRATION_SILENCE_PTOS 3
#define MIGRATION_SILENCE_US   1000000

/* Moves to p: congestion window and RTT start anew (RFC 9000 section 9.4), what was in flight is sent again. */
void xl_conn_migrate_to(xl_connection *c, xl_path *p, const char *why) {
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
    if (!p->has_dcid && !xl_conn_take_dcid(c, p))
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

static bool answers_again(const xl_connection *c) {
    return c->path[c->active].last_received_at > c->migration_probe_at;
}

void xl_conn_migration_validated(xl_connection *c, xl_path *p) {
    if (p->index != c->migrating_to)
        return;
    if (answers_again(c)) {
        abandon_probe(c, p, "the active path answers again");
        return;
    }
    c->migrating_to = -1;
    xl_conn_migrate_to(c, p, "validated while the active path is silent");
}

bool xl_conn_migration_probe_is_moot(xl_connection *c, xl_path *p) {
    if (p->index != c->migrating_to || !answers_again(c))
        return false;
    abandon_probe(c, p, "the active path answers again");
    return true;
}

bool xl_conn_migration_probe_failed(xl_connection *c, xl_path *p) {
    if (p->index != c->migrating_to)
        return false;
    abandon_probe(c, p, "no answer to PATH_CHALLENGE");
    return true;
}
