#include "connection/acks.h"

#include "connection/connection.h"
#include "connection/key_update.h"
#include "connection/path_table.h"
#include "connection/records.h"
#include "connection/state.h"
#include "connection/streams.h"
#include "minmax.h"

#define FIRST_NUMBER_BELOW (UINT64_C(1) << 14)

/* A run of lost ack-eliciting packets of one path, with none acknowledged in between. */
typedef struct {
    bool has_begun;
    uint64_t began_at, newest_pn; /* sending time of the first packet; packet number of the latest */
    uint64_t longest_us;          /* from the first to the last packet of the longest run */
} loss_run;

/* What one ACK frame, or one pass of loss detection, changed. */
typedef struct {
    xl_connection *c;
    xl_space *space;
    xl_level level;
    xl_path *arrived_on; /* path on which the ACK frame arrived */
    xl_path *measured;   /* path whose ack_rtt got a sample */
    bool is_given_up;    /* the window is not reduced for these losses */
    bool any_acked[XL_MAX_PATHS];
    uint64_t flight[XL_MAX_PATHS]; /* bytes in flight when the ACK frame came */
    loss_run run[XL_MAX_PATHS];
    uint64_t lost_packets;
    bool is_out_of_phase;          /* a packet under new keys was acknowledged in one under old keys */
    uint64_t marked[XL_MAX_PATHS]; /* packets with ECT(0) that this ACK newly acknowledges, of the present network */
    uint64_t marked_in_all, newest_marked_at;
    int newest_marked_on; /* path */
} settlement;

uint64_t xl_conn_space_number(const xl_connection *c, const xl_space *s) {
    for (uint64_t i = 0; i < XL_LEVEL_COUNT; i++)
        if (s == &c->space[i])
            return i;
    XL_EACH_PATH(const xl_path, p, c)
        if (p->space == s)
            return XL_LEVEL_COUNT + p->cids.local_path_id;
    return UINT64_MAX;
}

/* Returns the packet number space with that number; NULL if its path is gone. */
static xl_space *space_at(xl_connection *c, uint64_t number) {
    if (number < XL_LEVEL_COUNT)
        return &c->space[number];
    xl_path *p = xl_conn_path_by_local_id(c, number - XL_LEVEL_COUNT);
    return p && p->owns_space ? p->space : NULL;
}

static xl_level level_of(const xl_connection *c, const xl_space *s) {
    if (s == &c->space[XL_LEVEL_INITIAL])
        return XL_LEVEL_INITIAL;
    return s == &c->space[XL_LEVEL_HANDSHAKE] ? XL_LEVEL_HANDSHAKE : XL_LEVEL_APP;
}

static xl_packet_type packet_type_of(xl_level level) {
    static const xl_packet_type types[] = {XL_PACKET_INITIAL, XL_PACKET_HANDSHAKE, XL_PACKET_1RTT};
    return types[level];
}

/* ---- Frames of acknowledged and lost packets ---- */

/* Removes the record of a STREAM frame from its unacked queue. Returns the stream; NULL: it is gone or reset. */
static xl_stream *leave_queue(xl_connection *c, xl_sent_frame *r) {
    xl_stream *s = xl_conn_stream(c, r->id);
    if (s && r->is_queued)
        xl_conn_unacked_remove(s, r);
    return s && !xl_conn_is_reset(s) ? s : NULL;
}

static void record_acked(xl_connection *c, xl_sent_frame *r) {
    xl_stream *s;
    xl_space *space;
    xl_path *p;
    switch ((xl_sf_kind)r->kind) {
    case XL_SF_STREAM:
        if ((s = leave_queue(c, r))) {
            xl_send_mark_acked(&s->send, r->offset, r->len, r->fin);
            xl_conn_stream_settle(c, s);
        }
        break;
    case XL_SF_CRYPTO:
        xl_send_mark_acked(&c->level[r->id].send, r->offset, r->len, false);
        break;
    case XL_SF_ACK:
        if ((space = space_at(c, r->id)))
            xl_space_ack_confirmed(space, r->offset);
        break;
    case XL_SF_RESET_STREAM:
        if ((s = xl_conn_stream(c, r->id))) {
            s->reset_acked = true;
            xl_conn_stream_settle(c, s);
        }
        break;
    case XL_SF_PATH_STATUS:
        if ((p = xl_conn_path_by_remote_id(c, r->id)) && p->statuses.own_sequence == r->offset)
            p->statuses.is_confirmed = true;
        break;
    case XL_SF_PATH_ABANDON:
        xl_path_ids_abandon_acked(c->path_ids, r->id);
        break;
    case XL_SF_NEW_CID:
        if (c->path_ids)
            c->path_ids->cid_was_acked = true;
        break;
    case XL_SF_DATAGRAM:
        xl_conn_emit(c, (xl_event){.type = XL_EVENT_DATAGRAM_ACKED, .datagram_id = r->id});
        break;
    default: /* the others only matter when they are lost */
        break;
    }
}

static void record_lost(xl_connection *c, xl_sent_frame *r) {
    xl_stream *s = NULL;
    xl_path *p;
    xl_cid_entry *e;
    xl_cids *cids;
    c->streams.control_dirty = true;
    switch ((xl_sf_kind)r->kind) {
    case XL_SF_STREAM:
        if ((s = leave_queue(c, r)))
            xl_send_mark_lost(&s->send, r->offset, r->len, r->fin);
        break;
    case XL_SF_CRYPTO:
        xl_send_mark_lost(&c->level[r->id].send, r->offset, r->len, false);
        break;
    case XL_SF_RESET_STREAM:
        if ((s = xl_conn_stream(c, r->id)))
            s->reset_pending = !s->reset_acked;
        break;
    case XL_SF_STOP_SENDING:
        if ((s = xl_conn_stream(c, r->id)))
            s->stop_pending = !s->recv_done;
        break;
    case XL_SF_MAX_DATA:
        c->streams.max_data_pending = true;
        break;
    case XL_SF_MAX_STREAM_DATA:
        if ((s = xl_conn_stream(c, r->id)))
            s->max_data_pending = !s->recv_done;
        break;
    case XL_SF_MAX_STREAMS:
        c->streams.max_pending[r->id] = true;
        break;
    case XL_SF_DATA_BLOCKED: /* pointless if the limit was raised since */
        c->streams.data_blocked_pending = r->offset == c->streams.flow_out.limit;
        break;
    case XL_SF_STREAM_DATA_BLOCKED:
        if ((s = xl_conn_stream(c, r->id)))
            s->blocked_pending = r->offset == s->send_flow.limit;
        break;
    case XL_SF_STREAMS_BLOCKED:
        c->streams.blocked_pending[r->id] = r->offset == c->streams.opened[r->id].limit;
        break;
    case XL_SF_NEW_CID:
        if ((cids = xl_conn_local_cids(c, r->offset)) && (e = xl_cids_by_sequence(cids, r->id)))
            xl_cids_note_lost(cids, e);
        break;
    case XL_SF_RETIRE_CID:
        if ((cids = xl_conn_remote_cids(c, r->offset)))
            xl_cids_retire(cids, r->id);
        break;
    case XL_SF_PATH_ABANDON:
        xl_path_ids_abandon_lost(c->path_ids, r->id);
        break;
    case XL_SF_MAX_PATH_ID:
        xl_path_ids_max_lost(c->path_ids, r->offset);
        break;
    case XL_SF_PATHS_BLOCKED:
        xl_path_ids_blocked_lost(c->path_ids, r->offset);
        break;
    case XL_SF_PATH_CIDS_BLOCKED:
        xl_path_ids_cids_blocked_lost(c->path_ids, r->id, r->offset);
        break;
    case XL_SF_HANDSHAKE_DONE:
        c->handshake.done_pending = true;
        break;
    case XL_SF_NEW_TOKEN:
        c->handshake.token_pending = true;
        break;
    case XL_SF_PATH_STATUS:
        if ((p = xl_conn_path_by_remote_id(c, r->id)) && p->statuses.own_sequence == r->offset)
            p->statuses.is_pending = true;
        break;
    case XL_SF_QOE:
        c->qoe.signal_pending |= r->id == c->qoe.signals;
        break;
    case XL_SF_DATAGRAM: /* RFC 9221 section 5.2: never sent again */
        xl_conn_emit(c, (xl_event){.type = XL_EVENT_DATAGRAM_LOST, .datagram_id = r->id});
        break;
    case XL_SF_ACK:
        break;
    }
}

static void settle(xl_connection *c, xl_sent_packet *pkt, void (*each)(xl_connection *, xl_sent_frame *)) {
    xl_sent_frame *r = pkt->frames;
    pkt->frames = NULL;
    while (r) {
        xl_sent_frame *next = r->next;
        if (each)
            each(c, r);
        else if (r->is_queued)
            (void)leave_queue(c, r);
        xl_records_give_back(&c->records, r);
        r = next;
    }
}

static void leave_flight(xl_path *p, xl_sent_packet *pkt) {
    if (!pkt->in_flight)
        return;
    p->flight.bytes -= pkt->bytes < p->flight.bytes ? pkt->bytes : p->flight.bytes;
    if (pkt->ack_eliciting && p->flight.eliciting > 0)
        p->flight.eliciting--;
    pkt->in_flight = false;
}

/* ---- Path MTU ---- */

static void mtu_packet_acked(xl_connection *c, xl_path *p, const xl_sent_packet *pkt) {
    if (pkt->is_mtu_probe) {
        xl_mtu_probe_acked(&p->mtu_search, pkt->bytes, c->now);
        xl_conn_apply_mtu(c, p);
    } else if (pkt->ack_eliciting) {
        xl_mtu_packet_acked(&p->mtu_search, pkt->bytes, pkt->time_us);
    }
}

static void mtu_packet_lost(xl_connection *c, xl_path *p, const xl_sent_packet *pkt) {
    if (pkt->is_mtu_probe)
        xl_mtu_probe_lost(&p->mtu_search, pkt->bytes, false, c->now);
    else
        xl_mtu_packet_lost(&p->mtu_search, pkt->bytes, pkt->time_us);
    xl_conn_apply_mtu(c, p);
}

/* ---- ECN ---- */

static void note_marked(settlement *m, const xl_sent_packet *pkt) {
    if (!pkt->is_ect0)
        return;
    m->marked[pkt->path] += pkt->time_us > m->c->path[pkt->path]->ecn.since;
    m->marked_in_all++;
    if (pkt->time_us >= m->newest_marked_at) {
        m->newest_marked_at = pkt->time_us;
        m->newest_marked_on = pkt->path;
    }
}

/* A CE mark is a congestion event like a loss (RFC 9002 section 7.1). */
static void congestion_was_signalled(xl_connection *c, xl_path *p, uint64_t sent_at) {
    p->stats.ce_marks++;
    if (p->cc.ops->on_congestion)
        p->cc.ops->on_congestion(p->cc.state, sent_at, c->now);
    else
        p->cc.ops->on_loss(p->cc.state, sent_at, 0, c->now);
}

/* RFC 9000 section 13.4.2.1. An ACK that does not raise the largest number may be late, so its counts are ignored. */
static void take_ecn_counts(xl_connection *c, settlement *m, const xl_ack_frame *f, bool is_newest) {
    if (m->level != XL_LEVEL_APP || !is_newest || m->marked_in_all == 0)
        return;
    xl_ecn_counts counts = {.ect0 = f->ect0, .ect1 = f->ect1, .ce = f->ce};
    uint64_t new_ce;
    bool is_valid = xl_ecn_take_counts(&m->space->ecn, f->has_ecn ? &counts : NULL, m->marked_in_all, &new_ce);
    XL_EACH_PATH(xl_path, p, c) {
        const char *before = xl_ecn_state_name(p->ecn.state);
        if (m->marked[p->index])
            xl_ecn_validated(&p->ecn, is_valid);
        xl_qlog_ecn_state(c->qlog, c->now, p->index, before, xl_ecn_state_name(p->ecn.state));
    }
    if (new_ce > 0)
        congestion_was_signalled(c, c->path[m->newest_marked_on], m->newest_marked_at);
}

/* ---- Acknowledgement ---- */

static void on_packet_acked(void *user, xl_sent_packet *pkt) {
    settlement *m = user;
    xl_connection *c = m->c;
    xl_path *p = c->path[pkt->path];
    bool was_lost = pkt->state == XL_SENT_LOST;
    p->flight.unanswered = p->responses.beyond = 0;
    if (was_lost && pkt->loss_charged && p->cc.ops->on_spurious_loss)
        p->cc.ops->on_spurious_loss(p->cc.state, pkt->time_us, c->now);
    m->any_acked[p->index] |= pkt->ack_eliciting;
    note_marked(m, pkt);
    if (m->level == XL_LEVEL_APP)
        mtu_packet_acked(c, p, pkt);
    if (pkt->in_flight && !was_lost) {
        uint64_t flight = m->flight[p->index], window = xl_path_window(p);
        bool slow_start = window < p->cc.ops->ssthresh(p->cc.state);
        xl_cc_ack ack = {.now = c->now,
                         .bytes = pkt->bytes,
                         .sent_time = pkt->time_us,
                         .srtt_us = p->ack_rtt.smoothed,
                         .latest_rtt_us = p->ack_rtt.latest,
                         .min_rtt_us = p->ack_rtt.min,
                         /* Pacing at 1.25 windows a round trip keeps a busy flow a little below its window. */
                         .app_limited = !p->flight.awaits_pacer &&
                                        (slow_start ? 2 * flight < window : flight + flight / 4 + 2 * p->mtu < window)};
        leave_flight(p, pkt);
        xl_rate_acked(&p->rate, pkt, c->now);
        xl_path_note_acked(p, pkt->bytes, pkt->time_us, c->now);
        if (c->scheduler->wants_queues)
            xl_path_note_delay(p, pkt, c->now);
        p->cc.ops->on_ack(p->cc.state, &ack);
    }
    if (m->level == XL_LEVEL_APP && pkt->pn >= p->phase.first_pn) {
        p->phase.is_acked = true;
        m->is_out_of_phase |= c->key_update.packet_is_old;
    }
    settle(c, pkt, record_acked);
}

/* Whether the frame, of packets that were sent, newly acknowledges one that asks for an acknowledgement. */
static bool acknowledges_eliciting(xl_ledger *l, const xl_ack_frame *f) {
    for (size_t i = 0; i < f->range_count; i++)
        for (uint64_t pn = xl_max(f->ranges[i].smallest, l->first_pn); pn <= f->ranges[i].largest; pn++) {
            const xl_sent_packet *pkt = xl_ledger_find(l, pn);
            if (pkt && pkt->state == XL_SENT_OUTSTANDING && pkt->ack_eliciting)
                return true;
        }
    return false;
}

/* RFC 9002 section 5.1. */
static void sample_rtt(settlement *m, const xl_ack_frame *f) {
    xl_connection *c = m->c;
    xl_sent_packet *largest = xl_ledger_find(&m->space->ledger, f->ranges[0].largest);
    if (!largest || largest->state != XL_SENT_OUTSTANDING || largest->is_aside ||
        !(largest->ack_eliciting || acknowledges_eliciting(&m->space->ledger, f)))
        return;
    xl_path *p = c->path[largest->path];
    bool came_back_here = p == m->arrived_on;
    if (!came_back_here && !c->multipath) /* during a migration */
        return;
    uint64_t delay = 0;
    if (m->level == XL_LEVEL_APP) {
        uint64_t exponent = c->peer_params.ack_delay_exponent, limit = xl_conn_peer_ack_delay_us(c);
        delay = f->delay > (UINT64_MAX >> 20) ? limit : f->delay << exponent;
        if (c->handshake.is_confirmed && delay > limit)
            delay = limit;
    }
    if (xl_path_rtt_sample(p, c->now - largest->time_us, delay, came_back_here, c->now))
        m->measured = p;
    if (!came_back_here && xl_path_wants_rtt_probe(p, c->now))
        xl_conn_start_rtt_probe(c, p);
}

void xl_conn_log_metrics(xl_connection *c, xl_path *p) {
    if (!c->qlog)
        return;
    if (p->cc.ops->phase)
        xl_qlog_congestion_state(c->qlog, c->now, p->index, p->cc.ops->phase(p->cc.state));
    xl_qlog_metrics m = {.srtt_us = p->rtt.smoothed,
                         .latest_rtt_us = p->rtt.latest,
                         .min_rtt_us = p->rtt.min,
                         .rttvar_us = p->rtt.var,
                         .cwnd_bytes = xl_path_window(p),
                         .ssthresh_bytes = p->cc.ops->ssthresh(p->cc.state),
                         .bytes_in_flight = p->flight.bytes,
                         .pacing_bps = p->pacer.rate * 8,
                         .pto_count = p->flight.pto_count};
    xl_qlog_metrics_updated(c->qlog, c->now, p->index, &m);
}

/* The path is suspect: its data goes to other paths, and from now on one probe at a time tests it. */
static void suspect(xl_connection *c, xl_path *p) {
    xl_conn_path_set_state(c, p, XL_PATH_SUSPECT, "consecutive PTOs");
    p->flight.probes = 1;
    xl_conn_give_up_in_flight(c, p);
}

/* Whether data is in flight on the path. While no path answers, the probes of suspect paths carry data. */
static bool has_data_in_flight(const xl_path *p) {
    for (uint64_t pn = p->space->ledger.first_pn; p->flight.bytes > 0 && pn < p->space->ledger.next_pn; pn++) {
        const xl_sent_packet *pkt = xl_ledger_find(&p->space->ledger, pn);
        if (pkt && pkt->state == XL_SENT_OUTSTANDING && pkt->path == p->index && pkt->frames)
            return true;
    }
    return false;
}

/* The path has answered, so it is healthy. Other paths that still do not answer can now be given up. */
static void path_answered(xl_connection *c, xl_path *p) {
    bool was_silent = p->flight.pto_count >= XL_SUSPECT_PTOS;
    p->flight.pto_count = 0;
    c->silence.acked_at = c->now;
    if (p->outage.until == XL_NEVER) {
        p->outage.until = c->now;
        p->flight.ping_pending = true; /* its answer measures the path's present RTT and shows what was lost before */
    }
    XL_EACH_PATH(xl_path, q, c)
        if (was_silent && q != p && q->state == XL_PATH_SUSPECT && has_data_in_flight(q))
            suspect(c, q);
    if (p->state != XL_PATH_SUSPECT)
        return;
    xl_conn_path_set_state(c, p, xl_path_wants_standby(p) ? XL_PATH_STANDBY : XL_PATH_ACTIVE, "answers again");
    XL_EACH_PATH(xl_path, q, c)
        if (q != p && q->state == XL_PATH_ACTIVE && q->flight.pto_count >= XL_SUSPECT_PTOS)
            suspect(c, q); /* with nothing in flight, no probe timeout would test it again */
}

static void take_rate_sample(const settlement *m, xl_path *p) {
    const xl_connection *c = m->c;
    xl_rate_sample sample;
    if (!xl_rate_take(&p->rate, p->ack_rtt.has_sample ? p->ack_rtt.min : 0, &sample) || !p->cc.ops->on_rate_sample)
        return;
    sample.now = c->now;
    sample.in_flight = p->flight.bytes;
    sample.rtt_us = m->measured == p ? p->ack_rtt.latest : 0;
    p->cc.ops->on_rate_sample(p->cc.state, &sample);
}

static void detect_losses(settlement *m);

uint64_t xl_conn_take_ack(xl_connection *c, xl_space *space, xl_path *arrived_on, const xl_ack_frame *f) {
    const xl_level level = level_of(c, space);
    settlement m = {.c = c, .space = space, .level = level, .arrived_on = arrived_on};
    XL_EACH_PATH(const xl_path, p, c) {
        c->cc_group.member[p->index].is_active = p->state == XL_PATH_ACTIVE;
        m.flight[p->index] = p->flight.bytes;
    }
    uint64_t largest = space->ledger.largest_acked;
    bool is_newest = f->range_count > 0 && (largest == UINT64_MAX || f->ranges[0].largest > largest);
    sample_rtt(&m, f);
    for (size_t i = 0; i < f->range_count; i++)
        if (xl_ledger_ack(&space->ledger, f->ranges[i].smallest, f->ranges[i].largest, on_packet_acked, &m) != 0)
            return XL_QERR_PROTOCOL_VIOLATION;
    take_ecn_counts(c, &m, f, is_newest);
    if (level == XL_LEVEL_HANDSHAKE)
        c->handshake.address_validated_by_peer = true;
    XL_EACH_PATH(xl_path, p, c) {
        if (!m.any_acked[p->index])
            continue;
        if (p->flight.last_signal_at > p->flight.last_eliciting_at)
            p->flight.last_eliciting_at = p->flight.last_signal_at;
        p->flight.awaited_since = c->now;
        if (c->is_server || c->handshake.address_validated_by_peer)
            path_answered(c, p);
    }
    if (m.is_out_of_phase) /* the peer has received our new keys' packets and did not follow (RFC 9001 section 6.2) */
        return XL_QERR_KEY_UPDATE;
    if (level == XL_LEVEL_APP)
        xl_conn_phase_was_acked(c);
    detect_losses(&m);
    XL_EACH_PATH(xl_path, p, c) {
        if (!m.any_acked[p->index])
            continue;
        take_rate_sample(&m, p);
        xl_path_update_pacer(p, c->now);
        xl_conn_log_metrics(c, p);
    }
    uint64_t memory = 3 * xl_conn_max_pto(c);
    xl_ledger_trim(&space->ledger, c->now > memory ? c->now - memory : 0);
    xl_conn_wake(c);
    return 0;
}

/* ---- Loss ---- */

static bool was_any_acked(xl_space *space, const xl_path *p, uint64_t after, uint64_t before) {
    for (uint64_t pn = after + 1; pn < before; pn++) {
        const xl_sent_packet *pkt = xl_ledger_find(&space->ledger, pn);
        if (pkt && pkt->state == XL_SENT_ACKED && pkt->path == p->index)
            return true;
    }
    return false;
}

/* Extends a run of losses, which come in order of packet number. A run begins after the first RTT sample (RFC 9002
 * section 7.6.2), because probe timeouts before it do not show congestion. */
static void extend_run(settlement *m, const xl_path *p, const xl_sent_packet *pkt) {
    loss_run *run = &m->run[p->index];
    if (!run->has_begun || run->began_at <= p->measured_since || was_any_acked(m->space, p, run->newest_pn, pkt->pn))
        run->began_at = pkt->time_us;
    run->has_begun = true;
    run->newest_pn = pkt->pn;
    if (pkt->time_us - run->began_at > run->longest_us)
        run->longest_us = pkt->time_us - run->began_at;
}

static void count_given_up(xl_connection *c, const xl_sent_packet *pkt) {
    for (const xl_sent_frame *r = pkt->frames; r; r = r->next)
        if (r->kind == XL_SF_STREAM)
            c->stats.given_up_bytes += r->len;
}

/* The reason in qlog's terms (RFC 9002 sections 6.1.1, 6.1.2, 6.2.4); NULL: its path is given up. */
static const char *loss_trigger(const settlement *m, const xl_path *p, const xl_sent_packet *pkt) {
    if (m->is_given_up)
        return p->state == XL_PATH_SUSPECT ? "pto_expired" : NULL;
    bool is_far = m->space->ledger.largest_acked - pkt->pn >= XL_PACKET_THRESHOLD;
    return is_far ? "reordering_threshold" : "time_threshold";
}

static void on_packet_lost(void *user, xl_sent_packet *pkt) {
    settlement *m = user;
    xl_connection *c = m->c;
    xl_path *p = c->path[pkt->path];
    bool counted = pkt->in_flight;
    leave_flight(p, pkt);
    if (counted)
        xl_rate_lost(&p->rate, pkt->bytes);
    p->stats.packets_lost++;
    m->lost_packets++;
    xl_qlog_packet_lost(c->qlog, c->now, packet_type_of(m->level), pkt->pn, p->index, loss_trigger(m, p, pkt));
    if (m->level == XL_LEVEL_APP && (!m->is_given_up || pkt->is_mtu_probe))
        mtu_packet_lost(c, p, pkt);
    bool counts = !m->is_given_up && !pkt->is_mtu_probe; /* RFC 9000 section 14.4 */
    if (pkt->ack_eliciting && counts)
        extend_run(m, p, pkt);
    pkt->loss_charged = counted && counts;
    if (pkt->loss_charged)
        p->cc.ops->on_loss(p->cc.state, pkt->time_us, pkt->bytes, c->now);
    if (m->is_given_up)
        count_given_up(c, pkt);
    settle(c, pkt, record_lost);
}

/* RFC 9002 section 7.6: persistent congestion, if everything sent over more than the persistent duration was lost. */
static void check_persistent(xl_connection *c, const settlement *m, xl_path *p) {
    if (!p->ack_rtt.has_sample ||
        m->run[p->index].longest_us <= xl_rtt_persistent(&p->ack_rtt, xl_conn_peer_ack_delay_us(c)))
        return;
    xl_rtt_restart_min(&p->rtt);
    xl_rtt_restart_min(&p->ack_rtt);
    p->cc.ops->on_persistent_congestion(p->cc.state, c->now);
    xl_path_update_pacer(p, c->now);
}

static xl_path *path_of_space(xl_connection *c, const xl_space *space) {
    XL_EACH_PATH(xl_path, p, c)
        if (p->owns_space && p->space == space)
            return p;
    return c->multipath || level_of(c, space) != XL_LEVEL_APP ? c->path[0] : c->path[c->active];
}

static void detect_losses(settlement *m) {
    xl_connection *c = m->c;
    xl_space *space = m->space;
    uint64_t delay = xl_rtt_loss_delay(&path_of_space(c, space)->ack_rtt);
    space->loss_time = xl_ledger_detect_lost(&space->ledger, c->now, delay, on_packet_lost, m);
    if (m->lost_packets == 0)
        return;
    XL_EACH_PATH(xl_path, p, c) {
        check_persistent(c, m, p);
        if (m->run[p->index].has_begun)
            xl_conn_log_metrics(c, p);
    }
    xl_conn_wake(c);
}

void xl_conn_detect_losses(xl_connection *c, xl_space *space) {
    settlement m = {.c = c, .space = space, .level = level_of(c, space)};
    detect_losses(&m);
}

void xl_conn_lose_space(xl_connection *c, xl_space *space, int path) {
    settlement m = {.c = c, .space = space, .level = level_of(c, space), .is_given_up = true};
    xl_ledger_lose_all(&space->ledger, path, on_packet_lost, &m);
    xl_conn_wake(c);
}

void xl_conn_give_up_in_flight(xl_connection *c, xl_path *p) {
    for (int i = 0; i < XL_LEVEL_COUNT; i++)
        xl_conn_lose_space(c, &c->space[i], p->index);
    if (p->owns_space) {
        xl_conn_lose_space(c, p->space, p->index);
        p->space->loss_time = XL_NEVER;
    }
}

static void on_packet_dropped(void *user, xl_sent_packet *pkt) {
    xl_connection *c = user;
    leave_flight(c->path[pkt->path], pkt);
    settle(c, pkt, NULL);
}

void xl_conn_init_space(xl_connection *c, xl_space *space) {
    xl_space_init(space);
    if (c->config->random_packet_numbers)
        xl_ledger_start_at(&space->ledger, xl_drbg_next(&c->random.first_numbers) % FIRST_NUMBER_BELOW);
}

void xl_conn_drop_space(xl_connection *c, xl_space *space) {
    xl_ledger_drain(&space->ledger, on_packet_dropped, c);
}

void xl_conn_forget_sent(xl_connection *c, const xl_path *p) {
    for (int i = 0; i < XL_LEVEL_COUNT; i++)
        xl_ledger_forget_path(&c->space[i].ledger, p->index, on_packet_dropped, c);
}

/* ---- Probe timeout, RFC 9002 section 6.2 ---- */

/* Queues what the packet carried again, without declaring it lost. */
static void requeue(xl_connection *c, const xl_sent_packet *pkt, bool control_only) {
    for (xl_sent_frame *r = pkt->frames; r; r = r->next) {
        xl_stream *s;
        bool is_control = r->kind != XL_SF_STREAM && r->kind != XL_SF_CRYPTO;
        if (is_control && r->kind != XL_SF_ACK && r->kind != XL_SF_DATAGRAM)
            record_lost(c, r);
        else if (control_only)
            continue;
        else if (r->kind == XL_SF_CRYPTO)
            xl_send_mark_lost(&c->level[r->id].send, r->offset, r->len, false);
        else if (r->kind == XL_SF_STREAM && (s = xl_conn_stream(c, r->id)) && !xl_conn_is_reset(s))
            xl_send_mark_lost(&s->send, r->offset, r->len, r->fin);
    }
}

static void requeue_oldest(xl_connection *c, xl_space *space, int path) {
    const xl_sent_packet *pkt = xl_ledger_oldest(&space->ledger, path);
    if (pkt)
        requeue(c, pkt, false);
}

static void requeue_control(xl_connection *c, const xl_path *p) {
    for (uint64_t pn = p->space->ledger.first_pn; pn < p->space->ledger.next_pn; pn++) {
        const xl_sent_packet *pkt = xl_ledger_find(&p->space->ledger, pn);
        if (pkt && pkt->state == XL_SENT_OUTSTANDING && pkt->path == p->index)
            requeue(c, pkt, true);
    }
}

/* A peer that has abandoned the path of the probe acknowledges nothing on it, so no packet is declared lost there.
 * Therefore every probe repeats our abandonments, without which the peer would not end such a connection. */
static void requeue_abandonments(xl_connection *c) {
    if (c->path_ids)
        xl_path_ids_repeat_abandonments(c->path_ids);
    if (c->path_ids || !c->multipath)
        return;
    XL_EACH_PATH(xl_path, p, c)
        if (p->state == XL_PATH_CLOSED && !p->statuses.is_confirmed)
            p->statuses.is_pending = true;
}

void xl_conn_probe_timeout(xl_connection *c, xl_path *p) {
    p->flight.pto_count++;
    p->stats.pto_count++;
    /* A client's probes in the handshake wait in the queue of a dark link, and everything that follows waits behind
     * them. So there is only one after the first timeout. */
    p->flight.probes = !c->handshake.is_confirmed && !c->is_server && p->flight.pto_count > 1 ? 1 : 2;
    /* The timer restarts here, in case the probe itself is delayed. */
    p->flight.last_eliciting_at = p->flight.awaited_since = c->now;
    for (int i = XL_LEVEL_INITIAL; !c->handshake.is_confirmed && i < XL_LEVEL_APP; i++) {
        c->space[i].last_eliciting_at = c->now;
        requeue_oldest(c, &c->space[i], p->index);
    }
    requeue_oldest(c, p->space, p->index);
    requeue_abandonments(c);
    if (xl_conn_leaves_control_to_another(c, p))
        requeue_control(c, p);
    bool is_silent = c->multipath && c->config->scheme.suspect && p->flight.pto_count >= XL_SUSPECT_PTOS &&
                     xl_path_may_carry_data(p);
    if (is_silent)
        xl_path_outage_begins(p);
    if (is_silent && p->state != XL_PATH_SUSPECT && xl_conn_has_healthy_path_beside(c, p)) {
        suspect(c, p);
        p->cc.ops->on_persistent_congestion(p->cc.state, c->now);
    }
    if (p->state == XL_PATH_SUSPECT)
        p->flight.probes = 1;
    xl_conn_log_metrics(c, p);
    xl_conn_wake(c);
}
