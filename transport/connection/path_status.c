/* PATH_STATUS: what each side requests for a path (draft-liu-multipath-quic section 6, paper section 6), and probes of
 * standby paths. A path is on standby while either side requests it; each withdraws only its own request. */
#include "connection/path_status.h"

#include "connection/connection.h"
#include "connection/path_table.h"
#include "connection/paths.h"
#include "connection/state.h"
#include "connection/streams.h"
#include "minmax.h"

/* Adapts the state of an answering path to what both sides request. */
static void apply_status(xl_connection *c, xl_path *p, const char *why) {
    if (p->state == XL_PATH_ACTIVE && xl_path_wants_standby(p))
        xl_conn_path_set_state(c, p, XL_PATH_STANDBY, why);
    else if (p->state == XL_PATH_STANDBY && !xl_path_wants_standby(p))
        xl_conn_path_set_state(c, p, XL_PATH_ACTIVE, why);
}

void xl_conn_path_ask(xl_connection *c, xl_path *p, xl_path_status status, const char *why) {
    if (p->statuses.own == (uint64_t)status)
        return;
    p->statuses.own = status;
    p->statuses.own_sequence++;
    p->statuses.is_confirmed = false;
    p->statuses.is_pending = true;
    apply_status(c, p, why);
    xl_conn_wake(c);
}

int xl_connection_set_path_status(xl_connection *c, int index, xl_path_status status, uint64_t now) {
    if (status == XL_STATUS_ABANDON)
        return xl_connection_close_path(c, index, now);
    if (status != XL_STATUS_STANDBY && status != XL_STATUS_AVAILABLE)
        return XL_ERR_ARGUMENT;
    if (!c->multipath || !xl_conn_is_live(c) || index < 0 || (size_t)index >= c->path_count ||
        c->path[index]->statuses.own == XL_STATUS_ABANDON)
        return XL_ERR_PATH;
    xl_conn_enter(c, now);
    xl_conn_path_ask(c, c->path[index], status,
                     status == XL_STATUS_STANDBY ? "standby by the application" : "available by the application");
    return 0;
}

uint64_t xl_conn_take_path_status(xl_connection *c, const xl_frame *f) {
    xl_path_id *id = NULL;
    uint64_t error = c->path_ids ? xl_path_ids_named(c->path_ids, f->path_status.path_id, &id) : 0;
    if (error)
        return error;
    if (id && !id->is_used) {
        xl_path_id_take_status(id, f->path_status.sequence, f->path_status.status);
        return 0;
    }
    xl_path *p = xl_conn_path_by_local_id(c, f->path_status.path_id);
    if (!p || p->state == XL_PATH_CLOSED)
        return 0; /* already gone on our side */
    if (p->statuses.has_peer && f->path_status.sequence <= p->statuses.peer_sequence)
        return 0;
    p->statuses.has_peer = true;
    p->statuses.peer_sequence = f->path_status.sequence;
    p->statuses.peer = f->path_status.status;
    if (f->path_status.status == XL_STATUS_ABANDON)
        xl_conn_path_closed(c, p, XL_QERR_NO_ERROR, "abandoned by the peer");
    else
        apply_status(c, p,
                     f->path_status.status == XL_STATUS_STANDBY ? "standby by the peer" : "available by the peer");
    return 0;
}

/* ---- Probes of standby paths ---- */

bool xl_conn_is_busy(const xl_connection *c) {
    XL_EACH_PATH(const xl_path, p, c)
        if (p->state != XL_PATH_STANDBY && p->flight.eliciting > 0)
            return true;
    return xl_conn_expects_data(c);
}

static uint64_t probe_at(const xl_connection *c, const xl_path *p) {
    uint64_t last = xl_max(p->last_received_at, p->flight.last_eliciting_at);
    return xl_max(last, p->statuses.standby_probed_at) + c->config->limits.standby_probe_us;
}

uint64_t xl_conn_standby_deadline(const xl_connection *c) {
    uint64_t at = XL_NEVER;
    XL_EACH_PATH(const xl_path, p, c)
        if (p->state == XL_PATH_STANDBY && p->flight.eliciting == 0 && probe_at(c, p) < at)
            at = probe_at(c, p);
    return at == XL_NEVER || xl_conn_is_busy(c) ? at : XL_NEVER;
}

void xl_conn_standby_timer(xl_connection *c) {
    XL_EACH_PATH(xl_path, p, c) {
        if (p->state != XL_PATH_STANDBY || probe_at(c, p) > c->now)
            continue;
        p->flight.ping_pending = true;
        p->statuses.standby_probed_at = c->now;
    }
}
