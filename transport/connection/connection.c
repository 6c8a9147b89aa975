#include "connection/connection.h"

#include <stdlib.h>
#include <string.h>

#include "connection/acks.h"
#include "connection/cid_frames.h"
#include "connection/management.h"
#include "connection/own_cids.h"
#include "connection/path_status.h"
#include "connection/path_table.h"
#include "connection/preferred.h"
#include "connection/paths.h"
#include "connection/room.h"
#include "connection/versions.h"
#include "minmax.h"

#define SPINS_NOT_ONE_IN 16 /* RFC 9000 section 17.4 */

/* Parameters of the form 31 * N + 27 are reserved (RFC 9000 section 18.1). */
static void add_grease(xl_connection *c) {
    xl_transport_params *p = &c->local_params;
    const uint64_t drawn = xl_drbg_next(&c->random.grease);
    p->grease_quic_bit = true;
    p->reserved_id = 31 * (1 + (drawn >> 8) % (UINT64_C(1) << 24)) + 27;
    p->reserved_len = drawn % (sizeof p->reserved + 1);
    xl_drbg_bytes(&c->random.grease, p->reserved, p->reserved_len);
    c->grease = xl_drbg_next(&c->random.grease) | 1;
}

static void params_from_config(xl_connection *c) {
    const xl_config *f = c->config;
    xl_transport_params *p = &c->local_params;
    xl_transport_params_init(p);
    p->max_idle_timeout_ms = f->limits.idle_timeout_us / 1000;
    p->max_udp_payload_size = f->limits.max_udp_payload_bytes > 1500 ? f->limits.max_udp_payload_bytes : 1500;
    p->initial_max_data = f->limits.max_data;
    p->initial_max_stream_data_bidi_local = f->limits.max_stream_data;
    p->initial_max_stream_data_bidi_remote = f->limits.max_stream_data;
    p->initial_max_stream_data_uni = f->limits.max_stream_data;
    p->initial_max_streams_bidi = f->limits.max_streams_bidi;
    p->initial_max_streams_uni = f->limits.max_streams_uni;
    p->ack_delay_exponent = XL_ACK_DELAY_EXPONENT;
    p->max_ack_delay_ms = XL_MAX_ACK_DELAY_US / 1000;
    p->active_connection_id_limit = XL_MAX_PATHS;
    p->max_datagram_frame_size = f->limits.max_datagram_frame_bytes;
    p->has_min_ack_delay = f->limits.enable_ack_frequency;
    p->min_ack_delay_us = XL_MIN_ACK_DELAY_US;
    p->enable_multipath = p->has_initial_max_path_id = f->scheme.enable_multipath;
    p->initial_max_path_id = XL_PATH_IDS_MAX - 1;
    p->qoe_field = f->scheme.enable_multipath;
    if (f->limits.grease)
        add_grease(c);
}

xl_connection *xl_conn_new(const xl_config *config, const xl_connection_hooks *hooks, bool is_server,
                           const xl_connection_random *random, uint64_t now) {
    xl_connection *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->config = config;
    c->hooks = *hooks;
    c->is_server = is_server;
    c->now = now;
    c->migration.to = c->migration.preferred = c->migration.left = -1;
    c->handshake.version = c->handshake.original_version =
        config->limits.versions == XL_VERSIONS_2 ? XL_VERSION_2 : XL_VERSION_1;
    c->early.keep_until = XL_NEVER;
    c->random = *random;
    if (config->limits.spin_bit)
        c->spins = xl_drbg_next(&c->random.grease) % SPINS_NOT_ONE_IN != 0;
    for (int i = 0; i < XL_LEVEL_COUNT; i++) {
        xl_conn_init_space(c, &c->space[i]);
        xl_send_init(&c->level[i].send, XL_CRYPTO_BUFFER);
        xl_recv_init(&c->level[i].recv);
    }
    xl_cids_init(&c->local_cids);
    xl_cids_init(&c->remote_cids);
    c->idle_deadline = c->closing.deadline = c->pacer_wakeup = c->reinjection_recheck = XL_NEVER;
    c->idle_timeout_us = config->limits.idle_timeout_us;
    c->handshake.deadline = now + xl_min(config->limits.handshake_timeout_us, XL_NEVER - now);
    c->scheduler = xl_scheduler_find(config->scheme.scheduler);
    c->reinjection = xl_reinjection_find(config->scheme.reinjection);
    c->cc = xl_cc_find(config->scheme.cc);
    if (c->scheduler->init)
        c->scheduler->init(c->scheduler_state);
    c->ack_policy = (xl_ack_policy){.threshold = 1, .reordering = 1, .max_delay_us = XL_MAX_ACK_DELAY_US};
    xl_conn_qoe_configure(c);
    params_from_config(c);
    xl_flow_in_init(&c->streams.flow_in, config->limits.max_data, config->limits.most_data);
    xl_flow_out_init(&c->streams.flow_out, 0);
    xl_flow_out_init(&c->streams.opened[0], 0);
    xl_flow_out_init(&c->streams.opened[1], 0);
    c->streams.budget = (xl_budget){.pool = hooks->send_pool, .most = config->limits.connection_send_bytes};
    c->streams.max_local[0] = config->limits.max_streams_bidi;
    c->streams.max_local[1] = config->limits.max_streams_uni;
    xl_transport_params_init(&c->peer_params);
    return c;
}

void xl_conn_reconfigure(xl_connection *c, uint64_t now) {
    const xl_config *f = c->config;
    const xl_scheduler_ops *scheduler = xl_scheduler_find(f->scheme.scheduler);
    xl_conn_enter(c, now);
    if (scheduler != c->scheduler) {
        c->scheduler = scheduler;
        memset(c->scheduler_state, 0, sizeof c->scheduler_state);
        if (scheduler->init)
            scheduler->init(c->scheduler_state);
    }
    c->reinjection = xl_reinjection_find(f->scheme.reinjection);
    xl_conn_qoe_configure(c);
    xl_conn_wake(c);
}

void xl_conn_destroy(xl_connection *c) {
    for (int i = 0; i < XL_LEVEL_COUNT; i++) {
        xl_conn_drop_space(c, &c->space[i]);
        xl_space_free(&c->space[i]);
        xl_keys_free(c->level[i].read);
        xl_keys_free(c->level[i].write);
        xl_send_free(&c->level[i].send);
        xl_recv_free(&c->level[i].recv);
    }
    XL_EACH_PATH(xl_path, p, c) {
        if (p->owns_space) {
            xl_conn_drop_space(c, p->space);
            xl_space_free(p->space);
            free(p->space);
        }
    }
    xl_conn_free_streams(c);
    xl_conn_free_datagrams(c);
    xl_keys_free(c->key_update.next_read);
    xl_keys_free(c->key_update.previous_read);
    xl_conn_drop_early_keys(c);
    xl_conn_drop_original_keys(c);
    xl_tls_free(c->handshake.tls);
    xl_qlog_free(c->qlog);
    xl_records_free(&c->records);
    free(c->handshake.token);
    free(c->path_ids);
    for (size_t i = 0; i < c->path_count; i++)
        free(c->path[i]);
    free(c);
}

/* Makes the CID that the peer learns from our first packets. NULL: there is none. */
static const xl_cid_entry *make_first_cid(xl_connection *c) {
    if (xl_conn_add_cid(c, &c->local_cids) != 0)
        return NULL;
    xl_cid_entry *own = &c->local_cids.at[0];
    own->in_use = true;
    xl_cids_note_announced(&c->local_cids, own);
    c->local_params.has_initial_scid = true;
    c->local_params.initial_scid = own->cid;
    return own;
}

/* NULL: out of memory. */
static xl_path *start_first_path(xl_connection *c, const xl_addr *local, const xl_addr *remote, xl_technology tech) {
    xl_path *p = xl_conn_path_new(c, local, remote, tech);
    if (!p)
        return NULL;
    p->cids.has_remote = p->cids.has_local_path_id = true; /* sequence number 0 in both directions */
    p->last_received_at = c->now;
    xl_conn_path_set_state(c, p, XL_PATH_VALIDATING, "first path");
    return p;
}

/* The peer's handshake CID has sequence number 0. */
static void set_peer_cid(xl_connection *c, const xl_cid *cid) {
    bool retired;
    xl_cids_learn(&c->remote_cids, 0, 0, cid, NULL, XL_MAX_PATHS, &retired);
    xl_cids_take_unused(&c->remote_cids);
    c->path[0]->cids.remote = *cid;
}

int xl_conn_start_client(xl_connection *c, const char *server_name, const xl_addr *local, const xl_addr *remote,
                         xl_technology tech, uint64_t now) {
    c->handshake.odcid.len = XL_LOCAL_CID_BYTES;
    xl_drbg_bytes(&c->random.cids, c->handshake.odcid.id, c->handshake.odcid.len);
    c->qlog = xl_qlog_open(xl_qlog_new(&c->config->log, false, &c->handshake.odcid, now), now);
    if (!make_first_cid(c))
        return XL_ERR_MEMORY;
    xl_path *p = start_first_path(c, local, remote, tech);
    if (!p)
        return XL_ERR_MEMORY;
    c->handshake.server = *remote;
    p->validation.is_done = true; /* a client chose this address itself: no limit (RFC 9000 section 8.1) */
    set_peer_cid(c, &c->handshake.odcid);
    xl_qlog_connection(c->qlog, now, "connection_started", server_name);
    xl_conn_choose_first_version(c, server_name);
    if (xl_conn_install_initial_keys(c, &c->handshake.odcid) != 0 || xl_conn_make_tls(c, server_name) != 0)
        return XL_ERR_CRYPTO;
    xl_conn_use_remembered_token(c);
    xl_conn_start_early(c);
    xl_conn_restart_idle(c, now);
    xl_conn_wake(c);
    return 0;
}

int xl_conn_start_server(xl_connection *c, const xl_packet_header *h, const xl_cid *before_retry, bool is_proven,
                         const xl_addr *local, const xl_addr *remote, uint64_t now) {
    c->handshake.version = c->handshake.original_version = h->version;
    c->handshake.odcid = before_retry ? *before_retry : h->dcid;
    c->qlog = xl_qlog_new(&c->config->log, true, &c->handshake.odcid, now);
    const xl_cid_entry *own = make_first_cid(c);
    if (!own)
        return XL_ERR_MEMORY;
    xl_transport_params *p = &c->local_params;
    p->has_original_dcid = p->has_stateless_reset_token = true;
    p->original_dcid = c->handshake.odcid;
    p->has_retry_scid = before_retry != NULL;
    p->retry_scid = h->dcid;
    memcpy(p->stateless_reset_token, own->reset_token, 16);
    if (xl_conn_offer_preferred_address(c) != 0)
        return XL_ERR_MEMORY;
    if (!start_first_path(c, local, remote, XL_TECH_UNKNOWN))
        return XL_ERR_MEMORY;
    c->path[0]->validation.is_done = is_proven; /* the token came from that address (RFC 9000 sections 8.1.2, 8.1.3) */
    c->handshake.initial_scid_peer = h->scid;
    c->handshake.has_scid_peer = true;
    set_peer_cid(c, &h->scid);
    xl_qlog_connection(c->qlog, now, "connection_started", "accepted");
    if (xl_conn_install_initial_keys(c, &h->dcid) != 0 || xl_conn_make_tls(c, NULL) != 0)
        return XL_ERR_CRYPTO;
    xl_conn_restart_idle(c, now);
    return 0;
}

/* A client that has our keys accepts no answer of a second connection (RFC 9000 section 7.2), so its first packets must
 * not make one if a slow link delivers them late. Therefore a server does not forget the connection at once: it closes
 * under the keys that it has, and answers later packets as a closing connection does. A client starts again with
 * another connection ID. */
static void give_up_handshake(xl_connection *c) {
    if (!c->is_server) {
        xl_conn_abort(c, XL_CLOSE_HANDSHAKE_TIMEOUT, "handshake timed out");
        return;
    }
    xl_conn_fail(c, XL_QERR_NO_ERROR, "handshake timed out");
    c->closing.reason = XL_CLOSE_HANDSHAKE_TIMEOUT;
}

static uint64_t pto_cap(const xl_connection *c, const xl_path *p) {
    bool is_silent = p->flight.pto_count >= XL_SUSPECT_PTOS && c->multipath && c->config->scheme.suspect;
    return is_silent || p->state == XL_PATH_SUSPECT ? XL_SUSPECT_PTO_CAP_US : 0;
}

/* The handshake's spaces belong to no path: path 0 carries them. RFC 9002 section 6.2.1: each has a timer, and
 * application data sets none before the handshake is confirmed. */
static uint64_t handshake_pto_at(xl_connection *c, const xl_path *p) {
    uint64_t at = XL_NEVER;
    for (int i = XL_LEVEL_INITIAL; i < XL_LEVEL_APP; i++) {
        const uint64_t since = c->space[i].last_eliciting_at;
        if (xl_ledger_oldest(&c->space[i].ledger, -1))
            at = xl_min(at, xl_min(xl_path_pto_after(p, since, 0, pto_cap(c, p)), since + XL_HANDSHAKE_PTO_CAP_US));
    }
    /* RFC 9002 section 6.2.2.1: a client probes until it knows that the server is not blocked by amplification. */
    if (at == XL_NEVER && !c->is_server && p->index == 0 && !c->handshake.address_validated_by_peer) {
        const uint64_t since = p->flight.last_eliciting_at ? p->flight.last_eliciting_at : c->now;
        const uint64_t shift = p->flight.pto_count < 20 ? p->flight.pto_count : 20;
        at = since + xl_min(xl_rtt_pto(&p->ack_rtt, 0) << shift, XL_HANDSHAKE_PTO_CAP_US);
    }
    return at;
}

/* RFC 9002 section 6.2.1: while the timer for losses is set, that for probes is not. */
static bool awaits_loss(const xl_connection *c, const xl_path *p) {
    bool any = p->space->loss_time != XL_NEVER;
    for (int i = XL_LEVEL_INITIAL; !c->handshake.is_confirmed && i < XL_LEVEL_APP; i++)
        any |= c->space[i].loss_time != XL_NEVER;
    return any;
}

static uint64_t path_pto_at(xl_connection *c, const xl_path *p) {
    if ((c->handshake.is_confirmed && p->flight.eliciting == 0) || !xl_path_is_open(p) || awaits_loss(c, p))
        return XL_NEVER;
    if (c->is_server && xl_path_amplification_left(p) < XL_MIN_DATAGRAM)
        return XL_NEVER; /* 6.2.2.1: not while blocked by the limit */
    return c->handshake.is_confirmed ? xl_path_pto_at(p, xl_conn_peer_ack_delay_us(c), pto_cap(c, p))
                                     : handshake_pto_at(c, p);
}

static uint64_t space_deadline(const xl_space *s) {
    return xl_min(s->loss_time, s->ack_deadline);
}

/* The earliest deadline, except that of the pacers. */
static uint64_t earliest_deadline(xl_connection *c) {
    uint64_t at = xl_min(c->idle_deadline, c->handshake.deadline);
    at = xl_min(xl_min(at, c->reinjection_recheck), xl_conn_qoe_deadline(c));
    for (int i = 0; i < XL_LEVEL_COUNT; i++)
        if (!c->level_discarded[i])
            at = xl_min(at, space_deadline(&c->space[i]));
    XL_EACH_PATH(const xl_path, p, c) {
        if (p->owns_space)
            at = xl_min(at, space_deadline(p->space));
        if (p->flight.eliciting > 0 || !c->handshake.is_confirmed)
            at = xl_min(at, path_pto_at(c, p));
        at = xl_min(at, p->validation.deadline);
    }
    if (c->key_update.previous_read)
        at = xl_min(at, c->key_update.previous_read_until);
    at = xl_min(at, xl_min(xl_conn_standby_deadline(c), xl_conn_management_deadline(c)));
    at = xl_min(at, xl_conn_path_ids_deadline(c));
    return xl_min(at, xl_conn_migration_deadline(c));
}

uint64_t xl_conn_next_timeout(xl_connection *c) {
    if (c->state == XL_CONN_CLOSED)
        return XL_NEVER;
    if (!xl_conn_is_live(c))
        return c->closing.deadline;
    c->deadline = earliest_deadline(c);
    return xl_min(c->deadline, c->pacer_wakeup);
}

static void space_timer(xl_connection *c, xl_space *s) {
    if (s->loss_time <= c->now)
        xl_conn_detect_losses(c, s);
    if (s->ack_deadline <= c->now) {
        s->ack_now = true;
        s->ack_deadline = XL_NEVER;
    }
}

/* Handles deadlines that have passed. False: the connection ends. */
static bool meet_deadlines(xl_connection *c) {
    uint64_t now = c->now;
    if (now >= c->idle_deadline || now >= c->handshake.deadline) {
        if (c->handshake.is_confirmed)
            xl_conn_abort(c, XL_CLOSE_IDLE_TIMEOUT, "idle timeout");
        else
            give_up_handshake(c);
        return false;
    }
    if (c->reinjection_recheck <= now)
        c->reinjection_recheck = XL_NEVER; /* the next transmit searches */
    for (int i = 0; i < XL_LEVEL_COUNT; i++)
        space_timer(c, &c->space[i]);
    XL_EACH_PATH(xl_path, p, c) {
        if (p->owns_space)
            space_timer(c, p->space);
        if (path_pto_at(c, p) <= now)
            xl_conn_probe_timeout(c, p);
        if (p->validation.deadline <= now)
            xl_conn_path_timer(c, p);
    }
    if (xl_conn_standby_deadline(c) <= now)
        xl_conn_standby_timer(c);
    if (xl_conn_management_deadline(c) <= now)
        xl_conn_management_timer(c);
    if (xl_conn_path_ids_deadline(c) <= now)
        xl_conn_path_ids_timer(c);
    xl_conn_migration_timer(c);
    xl_conn_forget_previous_keys(c);
    return true;
}

void xl_conn_handle_timeout(xl_connection *c, uint64_t now) {
    xl_conn_enter(c, now);
    if (c->state == XL_CONN_CLOSED)
        return;
    if (!xl_conn_is_live(c)) {
        if (now >= c->closing.deadline)
            xl_conn_end_closing(c);
        return;
    }
    if (c->pacer_wakeup <= now)
        c->pacer_wakeup = XL_NEVER;
    if (c->deadline <= now && !meet_deadlines(c)) /* most timeouts are of pacers alone */
        return;
    xl_conn_offer_room(c);
    xl_conn_wake(c);
}

void xl_connection_set_user(xl_connection *c, void *user) {
    c->user = user;
}

void *xl_connection_user(const xl_connection *c) {
    return c->user;
}

bool xl_connection_is_multipath(const xl_connection *c) {
    return c->multipath;
}

xl_dialect xl_connection_dialect(const xl_connection *c) {
    return c->path_ids ? XL_DIALECT_IETF : XL_DIALECT_XLINK;
}

bool xl_connection_is_confirmed(const xl_connection *c) {
    return c->handshake.is_confirmed;
}

bool xl_connection_has_qlog(const xl_connection *c) {
    return c->qlog;
}

void xl_connection_log(const xl_connection *c, const char *name, const char *data, uint64_t now) {
    xl_qlog_application(c->qlog, now, name, data);
}

bool xl_connection_is_resumed(const xl_connection *c) {
    return c->handshake.is_complete && xl_tls_is_resumed(c->handshake.tls);
}

const char *xl_connection_alpn(const xl_connection *c) {
    return c->handshake.tls ? xl_tls_alpn(c->handshake.tls) : "";
}

uint64_t xl_connection_grease(const xl_connection *c) {
    return c->grease;
}

void xl_connection_ping(xl_connection *c, uint64_t now) {
    if (!xl_conn_is_live(c) || !c->handshake.is_confirmed)
        return;
    xl_conn_enter(c, now);
    XL_EACH_PATH(xl_path, p, c)
        p->flight.ping_pending |=
            xl_path_is_open(p) && p->validation.is_done && (c->multipath || p->index == c->active);
    xl_conn_wake(c);
}

void xl_connection_get_stats(const xl_connection *c, xl_connection_stats *out) {
    *out = c->stats;
    out->migrations = c->migration.count;
    out->path_count = c->path_count;
    out->multipath = c->multipath;
}

int xl_connection_path_stats(const xl_connection *c, size_t index, xl_path_stats *out) {
    if (index >= c->path_count)
        return XL_ERR_PATH;
    const xl_path *p = c->path[index];
    *out = p->stats;
    out->index = p->index;
    out->path_id = p->cids.remote_path_id;
    out->state = p->state;
    out->status = (xl_path_status)p->statuses.own;
    out->peer_status = (xl_path_status)p->statuses.peer;
    out->technology = p->technology;
    out->local = p->local;
    out->remote = p->remote;
    out->srtt_us = p->rtt.has_sample ? p->rtt.smoothed : 0;
    out->min_rtt_us = p->rtt.has_sample ? p->rtt.min : 0;
    out->rttvar_us = p->rtt.has_sample ? p->rtt.var : 0;
    out->cwnd_bytes = xl_path_window(p);
    out->bytes_in_flight = p->flight.bytes;
    out->mtu_bytes = p->mtu;
    return 0;
}

const char *xl_path_state_name(xl_path_state s) {
    static const char *const names[] = {"new", "validating", "active", "suspect", "standby", "closed"};
    return names[s];
}
