#include "connection/migration.h"

#include "connection/acks.h"
#include "connection/connection.h"
#include "connection/own_cids.h"
#include "connection/path_table.h"
#include "connection/state.h"
#include "connection/streams.h"
#include "minmax.h"

/* Silence after which a client looks for another path: three PTOs, but at most a second unless one PTO is longer (deep
 * queues make the PTO of a path that still delivers several seconds long). */
#define MIGRATION_SILENCE_PTOS 3
#define MIGRATION_SILENCE_US   1000000
#define PRIMARY_ASK_US         1000000 /* interval of challenges to the first path while another one is in use */
/* Challenges to a candidate that leave the server where it is. Further ones come with a PING, which makes the server
 * follow (RFC 9000 section 9.2): before, it may lack a connection ID to answer with, and nothing reaches it on the old
 * path. */
#define PROBES_ALONE 2

#define OLD_CID_PTOS 3 /* from the peer's first packet on the new path to the end of the old CID */

static void retire_old_cid(xl_connection *c) {
    if (c->migration.has_old_cid)
        xl_cids_retire(&c->remote_cids, c->migration.old_seq);
    c->migration.has_old_cid = false;
}

/* RFC 9000 section 9.5: the CID of the old path is not used again. But a peer may drop its state of the old path with
 * its CID, and needs that state until it has validated the new path: our PATH_RESPONSE may still be lost. */
static void leave_cid(xl_connection *c, xl_path *old) {
    if (c->is_server)
        return;
    retire_old_cid(c);
    c->migration.has_old_cid = true;
    c->migration.old_seq = old->cids.remote_sequence;
    c->migration.old_cid_until = XL_NEVER;
    old->cids.has_remote = false;
}

void xl_conn_migration_followed(xl_connection *c, const xl_path *p) {
    if (c->migration.has_old_cid && c->migration.old_cid_until == XL_NEVER && p->index == c->active)
        c->migration.old_cid_until = c->now + OLD_CID_PTOS * xl_conn_max_pto(c);
}

void xl_conn_migrate_to(xl_connection *c, xl_path *p, const char *why) {
    xl_path *old = c->path[c->active];
    c->active = p->index;
    c->migration.asks_primary = false;
    c->migration.primary_ok_at = 0;
    c->migration.primary_ask_at = c->now + PRIMARY_ASK_US;
    c->migration.count++;
    xl_path_reset_congestion(p, c->cc, p->mtu, c->now);
    p->state = XL_PATH_ACTIVE;
    p->last_received_at = c->now; /* if both have the same addresses, the answer was counted for the path in use */
    xl_conn_log_path(c, p, "migrated", why);
    xl_conn_give_up_in_flight(c, old);
    old->flight.probes = 0;
    old->state = XL_PATH_NEW;
    leave_cid(c, old);
    xl_conn_issue_cids(c);
    p->flight.ping_pending = true; /* a non-probing packet makes the peer follow */
    xl_conn_emit(c, (xl_event){.type = XL_EVENT_MIGRATED, .path = p->index, .from_path = old->index});
    xl_conn_wake(c);
}

static uint64_t silence_before_probing(const xl_connection *c, const xl_path *p) {
    if (c->config->limits.probe_silence_us)
        return c->config->limits.probe_silence_us;
    uint64_t pto = xl_rtt_pto(&p->ack_rtt, xl_conn_peer_ack_delay_us(c));
    return xl_min(MIGRATION_SILENCE_PTOS * pto, xl_max(pto, MIGRATION_SILENCE_US));
}

/* disable_active_migration applies to the address of the handshake: a client that moved to the preferred one may
 * migrate (RFC 9000 section 18.2). */
static bool may_migrate(const xl_connection *c) {
    return c->config->scheme.enable_migration && !c->is_server && !c->multipath && c->handshake.is_confirmed &&
           (!c->peer_params.disable_active_migration || c->migration.left >= 0) && c->path_count > 1 &&
           c->migration.expecting_since != XL_NEVER && xl_conn_expects_data(c);
}

/* Migration by count: a probe timeout needs something in flight, and a client that only receives has nothing. So a PING
 * is sent after one PTO of silence, and the timeouts are counted from there. */
static uint64_t leave_by_count_at(const xl_connection *c, const xl_path *p, uint64_t since) {
    uint64_t pto = xl_rtt_pto(&p->ack_rtt, xl_conn_peer_ack_delay_us(c));
    if (p->flight.pto_count >= c->config->limits.migrate_ptos)
        return c->migration.retry_at ? c->migration.retry_at + pto : since;
    return p->flight.eliciting == 0 ? since + pto : XL_NEVER;
}

static uint64_t leave_at(const xl_connection *c) {
    if (c->migration.to >= 0)
        return XL_NEVER;
    const xl_path *p = c->path[c->active];
    uint64_t since = xl_max(xl_max(p->last_received_at, c->migration.expecting_since), c->migration.retry_at);
    return c->config->limits.migrate_ptos ? leave_by_count_at(c, p, since) : since + silence_before_probing(c, p);
}

static uint64_t ask_primary_at(const xl_connection *c) {
    if (!c->config->limits.migrate_back || c->active == 0 || c->migration.left == 0 || c->migration.to >= 0 ||
        c->migration.asks_primary || c->path[0]->state == XL_PATH_CLOSED)
        return XL_NEVER;
    return c->migration.primary_ask_at;
}

uint64_t xl_conn_migration_deadline(const xl_connection *c) {
    uint64_t retire = c->migration.has_old_cid ? c->migration.old_cid_until : XL_NEVER;
    return may_migrate(c) ? xl_min(retire, xl_min(leave_at(c), ask_primary_at(c))) : retire;
}

static bool challenge_candidate(xl_connection *c, xl_path *p, const char *why) {
    if (!p->cids.has_remote && !xl_conn_take_dcid(c, p)) {
        retire_old_cid(c); /* to get another one */
        return false;
    }
    p->validation.is_done = true; /* no amplification limit towards a known server */
    p->validation.tries = 0;
    p->flight.ping_pending = false;
    xl_conn_path_set_state(c, p, XL_PATH_VALIDATING, why);
    xl_conn_start_challenge(c, p);
    return true;
}

static void forget_challenge(xl_connection *c, xl_path *p, const char *why) {
    p->validation.is_outstanding = p->validation.is_pending = false;
    p->validation.deadline = XL_NEVER;
    xl_conn_path_set_state(c, p, XL_PATH_NEW, why);
}

/* ---- The path in use is silent: the other candidates are probed in turn ---- */

static bool probe_candidate(xl_connection *c, xl_path *p) {
    if (!challenge_candidate(c, p, "the active path is silent"))
        return false;
    c->migration.asks_primary = false;
    c->migration.to = p->index;
    c->migration.probe_bytes = c->stats.stream_bytes_received;
    return true;
}

static void probe_next(xl_connection *c) {
    for (size_t step = 1; step <= c->path_count; step++) { /* the last one again, if it is the only one */
        xl_path *p = c->path[((size_t)c->migration.last + step) % c->path_count];
        if (p->index == c->active || p->index == c->migration.left || p->state == XL_PATH_CLOSED)
            continue;
        c->migration.last = p->index;
        if (probe_candidate(c, p))
            return;
    }
    c->migration.retry_at = c->now; /* no CID is available: try again later */
}

static void abandon_probe(xl_connection *c, xl_path *p, const char *why) {
    c->migration.to = -1;
    c->migration.retry_at = c->now;
    forget_challenge(c, p, why);
}

/* Whether the awaited data arrives again. Acknowledgements do not show that: if nothing of ours arrives on the active
 * path, the peer still acknowledges there the challenge that came on the other one. */
static bool answers_again(const xl_connection *c) {
    return c->stats.stream_bytes_received > c->migration.probe_bytes;
}

/* ---- Back to the first path ---- */

static void ask_primary(xl_connection *c) {
    c->migration.primary_ask_at = c->now + PRIMARY_ASK_US;
    c->migration.asks_primary = challenge_candidate(c, c->path[0], "is the primary path back?");
}

static void primary_answered(xl_connection *c) {
    c->migration.asks_primary = false;
    if (c->migration.primary_ok_at == 0 || c->now - c->migration.primary_ok_at > 3 * PRIMARY_ASK_US)
        c->migration.primary_ok_since = c->now;
    c->migration.primary_ok_at = c->now;
    if (c->now - c->migration.primary_ok_since < c->config->limits.migrate_back_us)
        return;
    c->migration.primary_ok_at = 0;
    xl_conn_migrate_to(c, c->path[0], "the primary path is back");
}

/* ---- The server's preferred address ---- */

/* Candidates that were registered with the server's old address now lead to the new one. */
static void settle_at_preferred(xl_connection *c, xl_path *p) {
    const xl_path *old = c->path[c->active];
    c->migration.preferred = -1;
    c->migration.left = old->index;
    XL_EACH_PATH(xl_path, q, c)
        if (q->index != old->index && xl_addr_equal(&q->remote, &old->remote))
            q->remote = p->remote;
    xl_conn_migrate_to(c, p, "the server's preferred address");
}

void xl_conn_migrate_to_preferred(xl_connection *c, xl_path *p) {
    if (challenge_candidate(c, p, "the server's preferred address"))
        c->migration.preferred = p->index;
}

/* ---- Timers and answers ---- */

void xl_conn_migration_timer(xl_connection *c) {
    xl_path *p = c->path[c->active];
    if (c->migration.has_old_cid && c->migration.old_cid_until <= c->now)
        retire_old_cid(c);
    if (!may_migrate(c) || xl_min(leave_at(c), ask_primary_at(c)) > c->now)
        return;
    if (leave_at(c) > c->now)
        ask_primary(c);
    else if (c->config->limits.migrate_ptos && p->flight.pto_count < c->config->limits.migrate_ptos)
        p->flight.ping_pending = true;
    else
        probe_next(c);
}

void xl_conn_migration_validated(xl_connection *c, xl_path *p) {
    if (c->migration.asks_primary && p->index == 0) {
        primary_answered(c);
        return;
    }
    if (p->index == c->migration.preferred) {
        settle_at_preferred(c, p);
        return;
    }
    if (p->index != c->migration.to)
        return;
    if (answers_again(c)) {
        abandon_probe(c, p, "the active path answers again");
        return;
    }
    c->migration.to = -1;
    xl_conn_migrate_to(c, p, "validated while the active path is silent");
}

bool xl_conn_migration_unanswered(xl_connection *c, xl_path *p) {
    if (c->migration.asks_primary && p->index == 0) {
        c->migration.asks_primary = false;
        c->migration.primary_ok_at = 0;
        forget_challenge(c, p, "no answer to PATH_CHALLENGE");
        return true;
    }
    if (p->index != c->migration.to)
        return false;
    if (!answers_again(c)) {
        p->flight.ping_pending = p->validation.tries >= PROBES_ALONE;
        return false;
    }
    abandon_probe(c, p, "the active path answers again");
    return true;
}

bool xl_conn_migration_probe_failed(xl_connection *c, xl_path *p) {
    if (p->index == c->migration.preferred) {
        c->migration.preferred = -1;
        forget_challenge(c, p, "no answer to PATH_CHALLENGE");
        return true;
    }
    if (p->index != c->migration.to)
        return false;
    abandon_probe(c, p, "no answer to PATH_CHALLENGE");
    return true;
}
