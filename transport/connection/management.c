/* Automatic path management (paper section 6): puts a path that is much worse than the best on standby, abandons one
 * that stays dead, and returns both to use. Each decision is in the qlog with its reason. Off unless xl_config enables
 * it. One rule is always on: towards a peer that is not libxlink, a dark path that holds the connection up is abandoned
 * (silence.c). */
#include "connection/management.h"

#include <inttypes.h>
#include <stdio.h>

#include "connection/connection.h"
#include "connection/path_status.h"
#include "connection/path_table.h"
#include "connection/paths.h"
#include "connection/silence.h"
#include "minmax.h"

#define LOOK_US        100000
#define LOSS_WINDOW_US 1000000
#define LOSS_PACKETS   20    /* windows with fewer packets are ignored */
#define RTT_MARGIN_US  50000 /* a factor alone would distinguish paths that are all fast */
#define RETURN_SHARE   75    /* percent of the limits below which a path must stay to return */
#define MAX_DOUBLINGS  5
#define DECISION_BYTES 128

uint64_t xl_conn_management_deadline(const xl_connection *c) {
    bool is_on = c->config->limits.path_management.enabled || xl_conn_has_foreign_peer(c);
    return is_on && c->multipath && c->handshake.is_confirmed && xl_conn_is_busy(c) ? c->manage_at : XL_NEVER;
}

/* Computes the share of lost packets in the latest whole window, if it has enough packets. */
static void watch_loss(xl_path *p, uint64_t now) {
    xl_path_watch *w = &p->watch;
    if (now - w->window_at < LOSS_WINDOW_US)
        return;
    uint64_t sent = p->stats.packets_sent - w->sent, lost = p->stats.packets_lost - w->lost;
    bool is_whole = w->window_at > 0 && p->state == XL_PATH_ACTIVE && sent >= LOSS_PACKETS;
    w->loss_percent = is_whole ? (unsigned)(100 * lost / sent) : 0;
    w->window_at = now;
    w->sent = p->stats.packets_sent;
    w->lost = p->stats.packets_lost;
}

/* A standby path is probed rarely, so its latest sample counts. A path in use has its smoothed RTT. */
static uint64_t rtt_of(const xl_path *p) {
    return p->state == XL_PATH_STANDBY ? p->rtt.latest : p->rtt.smoothed;
}

/* The path in use with the smallest RTT, except p; NULL: none. */
static const xl_path *best_beside(const xl_connection *c, const xl_path *p) {
    const xl_path *best = NULL;
    XL_EACH_PATH(const xl_path, q, c)
        if (q != p && q->state == XL_PATH_ACTIVE && q->validation.is_done && q->rtt.has_sample &&
            q->flight.pto_count == 0 && (!best || q->rtt.smoothed < best->rtt.smoothed))
            best = q;
    return best;
}

/* Whether p exceeds the limits relative to `best`, taken to `share` percent. Writes the reason. */
static bool is_degraded(const xl_connection *c, const xl_path *p, const xl_path *best, unsigned share,
                        char why[DECISION_BYTES]) {
    const xl_path_management *m = &c->config->limits.path_management;
    uint64_t rtt = rtt_of(p), base = best->rtt.smoothed;
    if (rtt > base + RTT_MARGIN_US && rtt * 10000 > base * m->rtt_percent * share) {
        snprintf(why, DECISION_BYTES, "standby: RTT of %" PRIu64 " ms, path %d has %" PRIu64 " ms", rtt / 1000,
                 best->index, base / 1000);
        return true;
    }
    unsigned loss = p->watch.loss_percent;
    if (loss * 100 > m->loss_percent * share && loss > 2 * best->watch.loss_percent) {
        snprintf(why, DECISION_BYTES, "standby: %u %% of the packets lost, on path %d %u %%", loss, best->index,
                 best->watch.loss_percent);
        return true;
    }
    return false;
}

/* Records when a condition began to hold. Returns whether it has held for duration_us. */
static bool has_held(bool holds, uint64_t *since, uint64_t duration_us, uint64_t now) {
    if (!holds) {
        *since = 0;
        return false;
    }
    if (*since == 0)
        *since = now;
    return now - *since >= duration_us;
}

static void judge_in_use(xl_connection *c, xl_path *p) {
    char why[DECISION_BYTES];
    const xl_path *best = best_beside(c, p);
    bool degraded = best && p->rtt.has_sample && is_degraded(c, p, best, 100, why);
    if (!has_held(degraded, &p->watch.since, c->config->limits.path_management.degraded_us, c->now))
        return;
    p->watch.since = 0;
    p->watch.stands_by = true;
    p->watch.turns++;
    xl_conn_log_path(c, p, "path_decision", why);
    xl_conn_path_ask(c, p, XL_STATUS_STANDBY, "degraded");
}

/* A path returns later each time that it was put on standby. */
static void judge_standby(xl_connection *c, xl_path *p) {
    char why[DECISION_BYTES];
    const xl_path *best = best_beside(c, p);
    unsigned doublings = p->watch.turns - 1 < MAX_DOUBLINGS ? p->watch.turns - 1 : MAX_DOUBLINGS;
    uint64_t needed = c->config->limits.path_management.recovered_us << doublings;
    bool fit = !best || !is_degraded(c, p, best, RETURN_SHARE, why);
    if (!has_held(fit && p->flight.pto_count == 0, &p->watch.since, needed, c->now))
        return;
    p->watch.since = 0;
    p->watch.stands_by = false;
    snprintf(why, sizeof why, "available: fit for %" PRIu64 " ms, RTT of %" PRIu64 " ms", needed / 1000,
             rtt_of(p) / 1000);
    xl_conn_log_path(c, p, "path_decision", why);
    xl_conn_path_ask(c, p, XL_STATUS_AVAILABLE, "recovered");
}

static void abandon(xl_connection *c, xl_path *p, const char *reason, uint64_t since) {
    char why[DECISION_BYTES];
    snprintf(why, sizeof why, "abandon: %s for %" PRIu64 " ms", reason, (c->now - since) / 1000);
    xl_conn_log_path(c, p, "path_decision", why);
    p->watch.reopen_at = c->is_server ? 0 : c->now + c->config->limits.path_management.reopen_us;
    xl_conn_path_closed(c, p, XL_QERR_PATH_UNSTABLE_OR_POOR, "dead for too long");
}

/* Only a client abandons: the interfaces are its own, and only it can open a path again. */
static void judge_dead(xl_connection *c, xl_path *p) {
    if (!c->is_server && c->now - p->state_since >= c->config->limits.path_management.abandon_us &&
        xl_conn_has_healthy_path_beside(c, p) && !(xl_conn_has_foreign_peer(c) && xl_conn_is_being_repaired(c)))
        abandon(c, p, "no answer", p->state_since);
}

/* On either side: a peer that sends acknowledgements on a dark path continues until the path is abandoned. */
static void judge_silent(xl_connection *c, xl_path *p) {
    if (!xl_conn_path_is_in_the_way(c, p))
        return;
    abandon(c, p, "silent, and nothing comes elsewhere,", p->last_received_at);
    xl_conn_probe_heard_paths(c);
}

static void reopen(xl_connection *c, xl_path *p) {
    xl_addr local = p->local, remote = p->remote; /* the new path may take the place of p */
    p->watch.reopen_at = 0;
    xl_conn_log_path(c, p, "path_decision", "open anew: perhaps it is back");
    if (xl_connection_add_path(c, &local, &remote, p->technology, c->now) < 0)
        p->watch.reopen_at = c->now + c->config->limits.path_management.reopen_us; /* no slot yet */
}

/* A side that only receives does not notice that a path is dark, so it probes a path that has fallen silent. */
static void ask_silent(xl_connection *c, xl_path *p) {
    uint64_t last = xl_max(p->last_received_at, p->statuses.standby_probed_at);
    if (c->is_server || p->flight.eliciting > 0 || c->now - last < c->config->limits.standby_probe_us)
        return;
    p->statuses.standby_probed_at = c->now;
    p->flight.ping_pending = true;
}

static void manage(xl_connection *c, xl_path *p) {
    watch_loss(p, c->now);
    if (p->state == XL_PATH_ACTIVE && p->validation.is_done) {
        ask_silent(c, p);
        judge_in_use(c, p);
    } else if (p->state == XL_PATH_STANDBY && p->watch.stands_by && p->statuses.own == XL_STATUS_STANDBY) {
        judge_standby(c, p);
    } else if (p->state == XL_PATH_SUSPECT) {
        judge_dead(c, p);
    }
}

void xl_conn_management_timer(xl_connection *c) {
    bool is_foreign = xl_conn_has_foreign_peer(c);
    c->manage_at = c->now + LOOK_US;
    if (is_foreign)
        xl_conn_silence_look(c);
    size_t count = c->path_count;
    for (size_t i = 0; i < count; i++) {
        xl_path *p = c->path[i];
        if (is_foreign)
            judge_silent(c, p);
        if (c->config->limits.path_management.enabled)
            manage(c, p);
        if (p->state == XL_PATH_CLOSED && p->watch.reopen_at && p->watch.reopen_at <= c->now)
            reopen(c, p);
    }
}
