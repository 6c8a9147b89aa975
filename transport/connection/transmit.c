/* An outgoing datagram: its path and its content. In order: the handshake, what belongs to a certain path (challenges,
 * responses, probes), data by the scheduler, acknowledgements that are due. */
#include "connection/transmit.h"

#include <stdio.h>

#include "connection/builder.h"
#include "connection/connection.h"
#include "connection/content.h"
#include "connection/datagrams.h"
#include "connection/early.h"
#include "connection/handshake.h"
#include "connection/key_update.h"
#include "connection/path_table.h"
#include "connection/room.h"
#include "connection/state.h"
#include "minmax.h"
#include "scheduler/clairvoyant.h"

static void address(xl_datagram *out, const xl_path *p, size_t len) {
    *out = (xl_datagram){.local = p->local, .remote = p->remote, .len = len};
    out->ecn = p->ecn.last_marked ? XL_IP_ECT0 : XL_IP_NOT_ECT;
}

/* ---- Handshake ---- */

static bool level_has_keys(const xl_connection *c, xl_level level) {
    return c->level[level].write && !c->level_discarded[level];
}

/* Whether a level has an acknowledgement or CRYPTO data to send now. */
static bool level_has_content(const xl_connection *c, xl_level level, bool may_send_data) {
    if (!level_has_keys(c, level))
        return false;
    if (xl_space_owes_ack(&c->space[level]))
        return true;
    return may_send_data && xl_send_pending(&c->level[level].send, UINT64_MAX);
}

/* A probe is useful if it repairs the loss, so it carries CRYPTO data if any is unacknowledged (RFC 9002 section
 * 6.2.4). Some servers accept no first packet without. */
static void put_probe(xl_builder *b) {
    xl_builder_put_crypto_again(b);
    if (!b->ack_eliciting)
        xl_content_put_ping(b);
}

/* ---- 0-RTT ---- */

static bool early_is_due(xl_connection *c, xl_content_choice *choice) {
    const xl_path *p = c->path[0];
    return xl_conn_may_write_early(c) && (p->flight.probes > 0 || xl_path_has_window(p)) &&
           xl_content_choose(c, p, choice);
}

/* pads: the packet shares its datagram with an Initial packet (RFC 9000 section 14.1). */
static size_t put_early(xl_connection *c, const xl_content_choice *choice, uint8_t *buf, size_t room, bool pads) {
    xl_builder b;
    if (!xl_builder_begin_early(&b, c, c->path[0], buf, room))
        return 0;
    xl_content_put_streams(&b, choice);
    if (pads)
        xl_builder_pad_to(&b, room);
    return xl_builder_finish(&b);
}

static size_t transmit_early(xl_connection *c, uint8_t *buf, size_t cap, xl_datagram *out) {
    xl_content_choice choice;
    if (!early_is_due(c, &choice))
        return 0;
    size_t n = put_early(c, &choice, buf, xl_min(cap, XL_MIN_DATAGRAM), false);
    address(out, c->path[0], n);
    return n;
}

#define EARLY_ROOM 128 /* behind an Initial packet; with less room no 0-RTT packet is made */

/* ---- Handshake, continued ---- */

static size_t transmit_handshake(xl_connection *c, uint8_t *buf, size_t cap, xl_datagram *out) {
    xl_path *p = c->path[0];
    uint64_t allowed = xl_path_amplification_left(p);
    bool may_send_data = p->flight.probes > 0 || p->flight.bytes + XL_MIN_DATAGRAM <= xl_path_window(p);
    bool wants[2] = {level_has_content(c, XL_LEVEL_INITIAL, may_send_data),
                     level_has_content(c, XL_LEVEL_HANDSHAKE, may_send_data)};
    bool probe_only = !wants[0] && !wants[1] && p->flight.probes > 0 &&
                      (level_has_keys(c, XL_LEVEL_INITIAL) || level_has_keys(c, XL_LEVEL_HANDSHAKE));
    for (int i = XL_LEVEL_INITIAL; probe_only && i <= XL_LEVEL_HANDSHAKE; i++)
        wants[i] = level_has_keys(c, (xl_level)i) && xl_builder_has_unacked_crypto(c, (xl_level)i);
    if (probe_only && !wants[0] && !wants[1])
        wants[level_has_keys(c, XL_LEVEL_HANDSHAKE)] = true;
    if (allowed < XL_MIN_DATAGRAM || (!wants[0] && !wants[1]))
        return 0;
    size_t room = xl_min(cap, XL_MIN_DATAGRAM), at = 0;
    xl_content_choice early;
    for (int level = XL_LEVEL_INITIAL; level <= XL_LEVEL_HANDSHAKE; level++) {
        xl_builder b;
        if (!wants[level] || !xl_builder_begin(&b, c, p, (xl_level)level, buf + at, room - at))
            continue;
        xl_content_put_acks(&b);
        if (may_send_data)
            xl_builder_put_crypto(&b);
        if (p->flight.probes > 0 && !b.ack_eliciting)
            put_probe(&b);
        bool is_last = level == XL_LEVEL_HANDSHAKE || !wants[XL_LEVEL_HANDSHAKE];
        bool joins =
            is_last && level == XL_LEVEL_INITIAL && xl_builder_left(&b) >= EARLY_ROOM && early_is_due(c, &early);
        if (is_last && wants[XL_LEVEL_INITIAL] && !joins)
            xl_builder_pad_to(&b, room - at); /* RFC 9000 section 14.1 */
        at += xl_builder_finish(&b);
        if (joins)
            at += put_early(c, &early, buf + at, room - at, true);
        if (level == XL_LEVEL_HANDSHAKE && !c->is_server)
            xl_conn_discard_level(c, XL_LEVEL_INITIAL); /* RFC 9001 section 4.9.1 */
    }
    address(out, p, at);
    return at;
}

/* ---- Content of a certain path ---- */

static bool is_probing_only(const xl_connection *c, const xl_path *p) {
    return !c->multipath && p->index != c->active;
}

/* RFC 9002 section 7: RTT probes and PINGs obey the window. Probes after a timeout need not. Neither need the
 * challenges that a validation repeats by its timer, nor what tests a path whose probe timeouts are unanswered, because
 * the next timeout may be far away. */
static bool may_ask(const xl_path *p) {
    return xl_path_has_window(p) || p->flight.pto_count > 0;
}

static bool path_has_own_content(const xl_connection *c, const xl_path *p) {
    if (!p->cids.has_remote || p->state == XL_PATH_CLOSED)
        return false;
    if ((p->validation.is_pending && (may_ask(p) || !p->validation.is_rtt_probe)) || xl_path_may_respond(p))
        return true;
    return !is_probing_only(c, p) && xl_path_is_open(p) &&
           (p->flight.probes > 0 || (p->flight.ping_pending && may_ask(p)));
}

static void put_validation(xl_builder *b) {
    xl_path *p = b->path;
    if (p->responses.count > 0 && !xl_path_has_window(p))
        p->responses.beyond++;
    while (p->responses.count > 0 && xl_builder_left(b) >= xl_frame_most_bytes(XL_FRAME_PATH_RESPONSE)) {
        xl_frame_put_path(&b->w, XL_FRAME_PATH_RESPONSE, p->responses.data[--p->responses.count]);
        b->ack_eliciting = true;
    }
    if (p->validation.is_pending && xl_builder_left(b) >= xl_frame_most_bytes(XL_FRAME_PATH_CHALLENGE)) {
        xl_frame_put_path(&b->w, XL_FRAME_PATH_CHALLENGE, p->validation.challenge);
        xl_path_challenge_sent(p, b->c->now);
        b->ack_eliciting = true;
    }
}

/* Probes for lost packets do not use what the search for the MTU has found: the path may have changed. */
static uint64_t mtu_for(const xl_path *p) {
    return p->flight.probes > 0 ? p->mtu_search.base : p->mtu;
}

/* If another path is healthy, the data goes there, and a PING tests this one: data on a path that has gone dark would
 * block the stream again. */
static bool leaves_probe_empty(const xl_connection *c, const xl_path *p) {
    return c->multipath && c->config->scheme.suspect && xl_conn_has_healthy_path_beside(c, p);
}

static size_t transmit_own_content(xl_connection *c, xl_path *p, uint8_t *buf, size_t cap, xl_datagram *out) {
    xl_builder b;
    size_t room = xl_min(xl_min(cap, mtu_for(p)), xl_path_amplification_left(p));
    if (!xl_builder_begin(&b, c, p, XL_LEVEL_APP, buf, room))
        return 0;
    bool validates = p->validation.is_pending || xl_path_may_respond(p);
    if (p->validation.is_pending)
        p->validation.was_small =
            room < XL_MIN_DATAGRAM || (p->validation.was_small && p->validation.earlier_count > 0);
    if (validates)
        put_validation(&b);
    if (!is_probing_only(c, p)) {
        xl_content_put_acks(&b);
        if (p->flight.probes > 0 && xl_path_may_carry_data(p) && !leaves_probe_empty(c, p)) {
            xl_content_put_control(&b);
            xl_content_put_streams(&b, NULL);
        }
        if (!b.ack_eliciting)
            xl_content_put_ping(&b);
        p->flight.ping_pending = false;
    } else if (p->flight.ping_pending) {
        xl_content_put_ping(&b);
        p->flight.ping_pending = false;
    }
    if (validates && room >= XL_MIN_DATAGRAM)
        xl_builder_pad_to(&b, XL_MIN_DATAGRAM); /* RFC 9000 section 8.2.1: proves the path's MTU as well */
    size_t n = xl_builder_finish(&b);
    address(out, p, n);
    return n;
}

/* RFC 9000 section 9.3.3: a PATH_CHALLENGE to the address that the path had before. */
static size_t transmit_to_proven(xl_connection *c, xl_path *p, uint8_t *buf, size_t cap, xl_datagram *out) {
    xl_builder b;
    uint8_t data[8];
    if (!p->proven.is_asked || !p->cids.has_remote || p->state == XL_PATH_CLOSED ||
        !xl_builder_begin(&b, c, p, XL_LEVEL_APP, buf, xl_min(cap, XL_MIN_DATAGRAM)))
        return 0;
    p->proven.is_asked = false;
    b.is_aside = true;
    xl_drbg_bytes(&c->random.challenges, data, sizeof data);
    xl_frame_put_path(&b.w, XL_FRAME_PATH_CHALLENGE, data);
    xl_builder_pad_to(&b, XL_MIN_DATAGRAM);
    size_t n = xl_builder_finish(&b);
    *out = (xl_datagram){.local = p->proven.local, .remote = p->proven.remote, .len = n};
    return n;
}

/* Section 8.2.2: a PATH_RESPONSE to the address of its PATH_CHALLENGE, which is not its path's. */
static size_t transmit_elsewhere(xl_connection *c, uint8_t *buf, size_t cap, xl_datagram *out) {
    const xl_elsewhere e = c->elsewhere;
    xl_path *p = c->path[e.path];
    xl_builder b;
    c->elsewhere.room = 0;
    if (e.room == 0 || !p->cids.has_remote || p->state == XL_PATH_CLOSED ||
        !xl_builder_begin(&b, c, p, XL_LEVEL_APP, buf, xl_min(cap, e.room)))
        return 0;
    b.is_aside = true;
    xl_frame_put_path(&b.w, XL_FRAME_PATH_RESPONSE, e.data);
    if (e.room == XL_MIN_DATAGRAM)
        xl_builder_pad_to(&b, XL_MIN_DATAGRAM);
    size_t n = xl_builder_finish(&b);
    *out = (xl_datagram){.local = e.local, .remote = e.remote, .len = n};
    return n;
}

/* ---- Path MTU ---- */

#define PROBE_AFTER_PACKETS 4 /* of stream data: with little data, large packets save little */

static bool is_worth_mtu_probes(const xl_path *p) {
    return p->stats.stream_bytes_sent >= PROBE_AFTER_PACKETS * p->mtu;
}

static size_t mtu_probe_bytes(const xl_connection *c, const xl_path *p) {
    uint64_t size = is_worth_mtu_probes(p) ? xl_mtu_next_probe(&p->mtu_search, c->now) : 0;
    bool may_probe = size > 0 && xl_path_may_carry_data(p) && p->state != XL_PATH_SUSPECT && p->cids.has_remote &&
                     !is_probing_only(c, p) && c->handshake.is_confirmed && p->flight.pto_count == 0;
    return may_probe && p->flight.bytes + size <= xl_path_window(p) ? (size_t)size : 0;
}

static size_t transmit_mtu_probe(xl_connection *c, xl_path *p, uint8_t *buf, size_t cap, xl_datagram *out) {
    xl_builder b;
    size_t size = mtu_probe_bytes(c, p);
    if (size == 0 || cap < size || !xl_builder_begin(&b, c, p, XL_LEVEL_APP, buf, size))
        return 0;
    b.is_mtu_probe = true;
    xl_content_put_ping(&b);
    xl_builder_pad_to(&b, size);
    size_t n = xl_builder_finish(&b);
    if (n)
        xl_mtu_probe_sent(&p->mtu_search, n);
    address(out, p, n);
    out->is_mtu_probe = true;
    return n;
}

/* Whether any path has content of its own. Runs for every packet, and most have none: one look at each path. */
static bool any_path_has_own(const xl_connection *c) {
    if (c->elsewhere.room > 0)
        return true;
    XL_EACH_PATH(const xl_path, p, c)
        if (p->validation.is_pending || p->responses.count > 0 || p->flight.probes > 0 || p->flight.ping_pending ||
            p->proven.is_asked || (xl_mtu_next_probe(&p->mtu_search, c->now) > 0 && is_worth_mtu_probes(p)))
            return true;
    return false;
}

static size_t transmit_on_certain_path(xl_connection *c, uint8_t *buf, size_t cap, xl_datagram *out) {
    size_t n;
    XL_EACH_PATH(xl_path, p, c)
        if (path_has_own_content(c, p) && (n = transmit_own_content(c, p, buf, cap, out)))
            return n;
    if ((n = transmit_elsewhere(c, buf, cap, out)))
        return n;
    XL_EACH_PATH(xl_path, p, c)
        if ((n = transmit_to_proven(c, p, buf, cap, out)))
            return n;
    XL_EACH_PATH(xl_path, p, c)
        if ((n = transmit_mtu_probe(c, p, buf, cap, out)))
            return n;
    return 0;
}

/* ---- Data ---- */

/* Whether a full packet may be sent. A controller that sets a rate leaves its window wide open, so its pacer counts
 * too. */
static bool has_room(const xl_path *p, bool is_paced) {
    return xl_path_has_window(p) && !(is_paced && p->cc.ops->pacing_rate);
}

/* If a path has its own packet number space, the oldest packet is the first in it: no search. */
static uint64_t oldest_age(const xl_connection *c, const xl_path *p) {
    bool any = c->multipath && p->flight.eliciting > 0;
    const xl_sent_packet *oldest = any ? xl_ledger_oldest(&p->space->ledger, p->index) : NULL;
    return oldest ? c->now - oldest->time_us : 0;
}

static void view_queue(const xl_connection *c, const xl_path *p, xl_scheduler_path *view) {
    view->oldest_us = oldest_age(c, p);
    view->queue_us = xl_path_queue_time(p, c->now);
    view->drain_us = xl_capacity_time(&p->delivery.capacity, p->flight.bytes);
    view->cross_us = xl_cross_traffic_delay(&p->delivery.cross, c->now);
    view->is_capacity_bound = p->delivery.capacity.is_bound;
}

static void view_measures(const xl_connection *c, const xl_path *p, xl_scheduler_path *view) {
    view->has_rtt = p->rtt.has_sample;
    view->rttvar_us = p->rtt.var;
    view->min_rtt_us = p->rtt.has_sample ? p->rtt.min : XL_INITIAL_RTT_US;
    view->latest_rtt_us = p->rtt.latest;
    view->window_bytes = xl_path_window(p);
    view->in_flight_bytes = p->flight.bytes;
    view->mtu_bytes = p->mtu;
    view->pacing_bytes_per_s = p->pacer.rate;
    view->pto_count = p->flight.pto_count;
    view->technology = p->technology;
    view->oldest_us = view->queue_us = view->drain_us = view->cross_us = 0;
    view->is_capacity_bound = false;
    if (c->scheduler->wants_queues)
        view_queue(c, p, view);
}

static void make_view(const xl_connection *c, xl_scheduler_view *view) {
    view->now = c->now;
    view->count = 0;
    view->is_window_blocked = false;
    view->unsent_bytes = view->send_window_bytes = view->first_bytes = 0;
    XL_EACH_PATH(const xl_path, p, c) {
        if (!xl_path_may_carry_data(p) || !p->cids.has_remote || is_probing_only(c, p))
            continue;
        bool is_paced = xl_pacer_delays(&p->pacer, c->now);
        xl_scheduler_path *v = &view->path[view->count++];
        v->index = p->index;
        v->has_window = has_room(p, is_paced);
        v->is_paced = is_paced;
        v->is_suspect = p->state == XL_PATH_SUSPECT;
        v->is_standby = xl_path_wants_standby(p);
        v->srtt_us = p->rtt.has_sample ? p->rtt.smoothed : XL_INITIAL_RTT_US;
        if (!c->scheduler->reads_srtt_alone)
            view_measures(c, p, v);
    }
    if (c->scheduler->wants_backlog)
        xl_content_fill_backlog(c, view);
}

/* first: stream data that was chosen already, because there is nothing else to send; NULL: none. */
static size_t transmit_data_on(xl_connection *c, xl_path *p, bool streams, const xl_content_choice *first, uint8_t *buf,
                               size_t cap, xl_datagram *out) {
    xl_builder b;
    size_t room = xl_min(xl_min(cap, p->mtu), xl_path_amplification_left(p));
    if (!xl_builder_begin(&b, c, p, XL_LEVEL_APP, buf, room))
        return 0;
    xl_content_put_acks(&b);
    if (!first || !c->handshake.is_complete)
        xl_content_put_control(&b);
    if (streams && !first)
        xl_conn_put_datagrams(&b);
    if (streams)
        xl_content_put_streams(&b, first);
    size_t n = xl_builder_finish(&b);
    if (n && b.has_stream_data && c->scheduler->sent)
        c->scheduler->sent(c->scheduler_state, p->index, n);
    address(out, p, n);
    return n;
}

/* Whether an acknowledgement or a probe timeout is certain to come, which asks the scheduler again. A scheduler that
 * knows the future also knows whether a silent path will answer. */
static bool may_wait(const xl_connection *c, const xl_scheduler_view *view) {
    for (size_t i = 0; i < view->count; i++) {
        const xl_path *p = c->path[view->path[i].index];
        if (c->scheduler->decide_foreseeing && p->flight.eliciting > 0)
            return true;
        if (!view->path[i].is_suspect && p->flight.pto_count == 0 && p->flight.eliciting > 0)
            return true;
    }
    return false;
}

static bool is_faster(const xl_scheduler_path *a, const xl_scheduler_path *b) {
    return a->srtt_us != b->srtt_us ? a->srtt_us < b->srtt_us : a->index < b->index;
}

/* Logs why this path was chosen: what kept the data off each path with a smaller RTT. Written if the reason has changed
 * since the path was last chosen. */
static void log_selection(xl_connection *c, const xl_scheduler_view *view, size_t chosen) {
    const xl_scheduler_decision *d = &c->decision;
    const xl_scheduler_path *p = &view->path[d->order[chosen]];
    uint32_t nothing = 0;
    if (!c->qlog || !c->multipath)
        return;
    for (size_t i = 0; i < chosen; i++)
        nothing |= 1u << view->path[d->order[i]].index;
    xl_qlog_selection s = {.path = p->index, .scheduler = c->scheduler->name, .srtt_us = p->srtt_us, .rule = d->why};
    for (size_t i = 0; i < view->count; i++) {
        const xl_scheduler_path *q = &view->path[i];
        uint32_t bit = 1u << q->index;
        if (q == p || !is_faster(q, p))
            continue;
        if (nothing & bit)
            s.nothing_to_carry |= bit;
        else if (q->is_suspect || q->is_standby)
            s.set_aside |= bit;
        else if (!q->has_window)
            s.no_window |= bit;
        else
            s.not_preferred |= bit;
    }
    xl_qlog_path_selected(c->qlog, c->now, &s);
}

static void wake_no_later_than(xl_connection *c, uint64_t at) {
    if (at < c->pacer_wakeup)
        c->pacer_wakeup = at;
}

/* Whether there is content that any path may carry. */
static bool has_other_than_streams(const xl_connection *c) {
    return xl_content_has_control(c) || c->datagrams.out.head;
}

/* Sets a wake-up for paths that only their pacer holds back, because no acknowledgement will wake them. */
static void await_pacers(xl_connection *c, const xl_scheduler_view *view) {
    xl_content_choice unused;
    for (size_t i = 0; i < view->count; i++) {
        xl_path *p = c->path[view->path[i].index];
        if (view->path[i].is_paced && !view->path[i].has_window && xl_path_has_window(p) &&
            (has_other_than_streams(c) || xl_content_choose(c, p, &unused)))
            wake_no_later_than(c, xl_pacer_next(&p->pacer, c->now));
    }
}

/* The scheduler waits. Control frames, which wait for no path, are sent all the same. */
static size_t transmit_while_waiting(xl_connection *c, const xl_scheduler_view *view, uint8_t *buf, size_t cap,
                                     xl_datagram *out) {
    size_t order[XL_MAX_PATHS];
    if (xl_scheduler_by_rtt(view, order) == 0)
        return 0;
    xl_path *p = c->path[view->path[order[0]].index];
    if (xl_content_has_unsent(c))
        xl_qlog_scheduler_waits(c->qlog, c->now, c->scheduler->name, c->decision.waits_for, c->decision.why);
    return xl_content_has_control(c) ? transmit_data_on(c, p, false, NULL, buf, cap, out) : 0;
}

/* Marks the paths that could send and do not, because there is nothing to send or the scheduler prefers another path.
 * Their rate is then not the limit. */
static void mark_app_limited(xl_connection *c, const xl_scheduler_view *view) {
    for (size_t i = 0; i < view->count; i++) {
        xl_path *p = c->path[view->path[i].index];
        if (view->path[i].has_window && !view->path[i].is_paced)
            xl_rate_mark_app_limited(&p->rate, p->flight.bytes);
    }
}

static void decide_foreseeing(xl_connection *c, const xl_scheduler_view *view, xl_scheduler_decision *out) {
    xl_foreseen known = {.network = c->hooks.foresight};
    for (size_t i = 0; i < view->count; i++) {
        const xl_path *p = c->path[view->path[i].index];
        known.path[i] = (xl_foreseen_path){&p->local, &p->remote, &p->pacer, p->cc.ops->ssthresh(p->cc.state)};
    }
    c->scheduler->decide_foreseeing(c->scheduler_state, view, &known, out);
}

static bool refuse_decision(xl_connection *c, const char *member, size_t value, size_t paths) {
    char words[sizeof c->closing.words];
    snprintf(words, sizeof words, "scheduler %s: %s is %zu, but the view has %zu path%s", c->scheduler->name, member,
             value, paths, paths == 1 ? "" : "s");
    xl_conn_fail(c, XL_QERR_INTERNAL, words);
    return false;
}

/* Removes paths whose window is full: the congestion controller decides, whatever the scheduler prefers. False: the
 * decision names a path that the view does not have, and the connection has failed. */
static bool leave_out_full_paths(xl_connection *c, const xl_scheduler_view *view, xl_scheduler_decision *d) {
    size_t kept = 0;
    if (d->count > XL_MAX_PATHS)
        return refuse_decision(c, "count", d->count, view->count);
    for (size_t i = 0; i < d->count; i++) {
        size_t at = d->order[i];
        if (at >= view->count)
            return refuse_decision(c, "a member of order", at, view->count);
        if (view->path[at].has_window)
            d->order[kept++] = at;
    }
    d->count = kept;
    return true;
}

static size_t transmit_by_scheduler(xl_connection *c, const xl_scheduler_view *view, uint8_t *buf, size_t cap,
                                    xl_datagram *out) {
    xl_scheduler_decision *d = &c->decision;
    d->count = 0;
    d->waits_for = -1;
    d->for_later = 0;
    d->why = NULL;
    if (c->scheduler->decide_foreseeing)
        decide_foreseeing(c, view, d);
    else
        c->scheduler->decide(c->scheduler_state, view, d);
    if (!leave_out_full_paths(c, view, d))
        return 0;
    if (d->count == 0 && !may_wait(c, view) && xl_scheduler_decide_by_rtt(view, d))
        d->why = "nothing to wait for";
    bool control = d->count > 0 && has_other_than_streams(c);
    for (size_t i = 0; i < d->count; i++) {
        const xl_scheduler_path *v = &view->path[d->order[i]];
        xl_path *p = c->path[v->index];
        xl_content_choice choice;
        if (!control && !xl_content_choose(c, p, &choice))
            continue;
        /* The scheduler's choice stands while its pacer delays the packet: using the next path now would make it a
         * scheduler of idle pacers rather than of small RTTs. Schedulers of that kind set passes_paced. */
        if (v->is_paced) {
            p->flight.awaits_pacer =
                xl_content_fills(c, xl_path_window(p) - p->flight.bytes) || xl_conn_has_more_for(c, p);
            wake_no_later_than(c, xl_pacer_next(&p->pacer, c->now));
            if (c->scheduler->passes_paced)
                continue;
            return 0;
        }
        size_t sent = transmit_data_on(c, p, true, control ? NULL : &choice, buf, cap, out);
        if (sent) {
            log_selection(c, view, i);
            return sent;
        }
    }
    await_pacers(c, view);
    return d->count == 0 ? transmit_while_waiting(c, view, buf, cap, out) : 0;
}

/* Whether the scheduler need not be asked: a receiver has nothing to send after most packets. A controller that
 * measures rates, and a scheduler that knows the future, are asked all the same. */
static bool has_nothing_to_schedule(const xl_connection *c) {
    return !c->cc->on_rate_sample && !c->scheduler->decide_foreseeing && xl_content_is_settled(c) &&
           !has_other_than_streams(c);
}

static size_t transmit_data(xl_connection *c, uint8_t *buf, size_t cap, xl_datagram *out) {
    xl_scheduler_view view;
    XL_EACH_PATH(xl_path, p, c)
        p->flight.awaits_pacer = false;
    if (has_nothing_to_schedule(c))
        return 0;
    make_view(c, &view);
    if (view.count == 0)
        return 0;
    size_t n = transmit_by_scheduler(c, &view, buf, cap, out);
    if (n == 0 && c->cc->on_rate_sample)
        mark_app_limited(c, &view);
    return n;
}

/* ---- Acknowledgements alone ---- */

static bool owes_ack_now(const xl_connection *c, const xl_path *p) {
    return p->space->ack_now && xl_content_is_acknowledged(c, p);
}

static bool owes_any_ack_now(const xl_connection *c) {
    XL_EACH_PATH(const xl_path, p, c)
        if (owes_ack_now(c, p))
            return true;
    return false;
}

/* Sends an acknowledgement. Sets has_sent_all if nothing follows: what goes before acknowledgements had nothing to
 * send, and this packet did not change that. */
static size_t transmit_ack(xl_connection *c, xl_path *of, uint8_t *buf, size_t cap, xl_datagram *out) {
    const xl_path *by = xl_content_ack_path(c, of);
    xl_builder b;
    if (!by)
        return 0;
    xl_path *p = c->path[by->index];
    if (!p->cids.has_remote || is_probing_only(c, p))
        return 0;
    size_t room = xl_min(xl_min(cap, p->mtu), xl_path_amplification_left(p));
    if (!xl_builder_begin(&b, c, p, XL_LEVEL_APP, buf, room))
        return 0;
    xl_content_put_acks(&b);
    if (!xl_builder_is_empty(&b) && xl_content_wants_ping(&b) && xl_path_may_carry_data(p) && may_ask(p))
        xl_content_put_ping(&b);
    bool changes_nothing = !b.ack_eliciting;
    size_t n = xl_builder_finish(&b);
    address(out, p, n);
    c->has_sent_all = changes_nothing && has_nothing_to_schedule(c) && !owes_any_ack_now(c);
    return n;
}

static size_t transmit_acks(xl_connection *c, uint8_t *buf, size_t cap, xl_datagram *out) {
    XL_EACH_PATH(xl_path, p, c) {
        size_t n = owes_ack_now(c, p) ? transmit_ack(c, p, buf, cap, out) : 0;
        if (n)
            return n;
    }
    return 0;
}

/* ---- Close ---- */

/* The last path was closed. The peer may still have the path open on which it was heard last. */
static xl_path *last_heard_path(xl_connection *c) {
    xl_path *last = c->path[0];
    for (size_t i = 1; i < c->path_count; i++) {
        xl_path *p = c->path[i];
        if (p->state == XL_PATH_CLOSED && p->validation.is_done && p->cids.remote.len > 0 &&
            p->last_received_at > last->last_received_at)
            last = p;
    }
    return last;
}

static xl_path *path_for_close(xl_connection *c) {
    const xl_path *best = c->multipath ? xl_content_best_path(c) : c->path[c->active];
    return best ? c->path[best->index] : last_heard_path(c);
}

static size_t put_close(xl_connection *c, xl_path *p, xl_level level, uint8_t *buf, size_t room, bool pad) {
    xl_builder b;
    if (!level_has_keys(c, level) || !xl_builder_begin(&b, c, p, level, buf, room))
        return 0;
    /* RFC 9000 section 10.2.3: an application close must not be visible at the handshake's levels. */
    bool application = c->closing.is_application && level == XL_LEVEL_APP;
    bool masked = c->closing.is_application && !application;
    xl_frame_put_close(&b.w, application, masked ? 0x0c : c->closing.code, c->closing.frame_type,
                       masked ? "" : c->closing.words);
    if (pad)
        xl_builder_pad_to(&b, room);
    return xl_builder_finish(&b);
}

static size_t transmit_close(xl_connection *c, uint8_t *buf, size_t cap, xl_datagram *out) {
    c->closing.is_pending = false;
    xl_path *p = path_for_close(c);
    size_t room = xl_min(xl_min(cap, p->mtu), xl_path_amplification_left(p)), n = 0;
    if (room < 64)
        return 0;
    if (c->handshake.is_complete) {
        /* Before it is confirmed the peer may lack the keys of 1-RTT packets (section 10.2.3). */
        n = c->handshake.is_confirmed ? 0 : put_close(c, p, XL_LEVEL_HANDSHAKE, buf, room, false);
        n += room - n >= 64 ? put_close(c, p, XL_LEVEL_APP, buf + n, room - n, false) : 0;
    } else {
        bool handshake = level_has_keys(c, XL_LEVEL_HANDSHAKE);
        n = put_close(c, p, XL_LEVEL_INITIAL, buf, room, !handshake);
        if (handshake && room - n >= 64)
            n += put_close(c, p, XL_LEVEL_HANDSHAKE, buf + n, room - n, n > 0);
    }
    address(out, p, n);
    return n;
}

size_t xl_conn_transmit(xl_connection *c, uint8_t *buf, size_t cap, xl_datagram *out, uint64_t now) {
    xl_conn_enter(c, now);
    if (xl_conn_prepare_keys(c) != 0) {
        xl_conn_abort(c, XL_CLOSE_INTERNAL, "out of memory");
        return 0;
    }
    if (c->state == XL_CONN_CLOSING)
        return c->closing.is_pending ? transmit_close(c, buf, cap, out) : 0;
    if (!xl_conn_is_live(c))
        return 0;
    c->pacer_wakeup = XL_NEVER;
    c->has_sent_all = false;
    if (c->migration.expecting_since == XL_NEVER)
        c->migration.expecting_since = now;
    size_t n = c->handshake.is_confirmed ? 0 : transmit_handshake(c, buf, cap, out);
    if (n == 0 && !c->handshake.is_complete)
        n = transmit_early(c, buf, cap, out);
    if (n || !(c->handshake.is_complete || xl_conn_may_answer_early(c)))
        return n;
    if (any_path_has_own(c) && (n = transmit_on_certain_path(c, buf, cap, out)))
        return n;
    if ((n = transmit_data(c, buf, cap, out)))
        return n;
    if (c->state == XL_CONN_CLOSING) /* the scheduler's decision was invalid */
        return transmit_close(c, buf, cap, out);
    return transmit_acks(c, buf, cap, out);
}
