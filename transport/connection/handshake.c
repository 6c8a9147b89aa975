#include "connection/handshake.h"

#include <stdlib.h>
#include <string.h>

#include "connection/acks.h"
#include "connection/connection.h"
#include "connection/early.h"
#include "connection/own_cids.h"
#include "connection/path_table.h"
#include "connection/paths.h"
#include "connection/preferred.h"
#include "connection/state.h"
#include "connection/versions.h"

static int on_crypto_data(void *user, xl_level level, const uint8_t *data, size_t len) {
    xl_connection *c = user;
    ssize_t taken = xl_send_write(&c->level[level].send, data, len);
    if (taken < 0 || (size_t)taken != len)
        return XL_ERR_MEMORY;
    xl_conn_wake(c);
    return 0;
}

static int on_keys(void *user, xl_level level, xl_keys *read, xl_keys *write) {
    xl_connection *c = user;
    if (c->config->null_crypto) {
        xl_keys_make_null(read);
        xl_keys_make_null(write);
    }
    if (read) {
        xl_keys_free(c->level[level].read);
        c->level[level].read = read;
    }
    if (write) {
        xl_keys_free(c->level[level].write);
        c->level[level].write = write;
    }
    return 0;
}

/* RFC 9000 section 7.3: the handshake's CIDs are authenticated by the transport parameters. */
static bool cids_are_authentic(const xl_connection *c, const xl_transport_params *p) {
    if (!p->has_initial_scid || !xl_cid_equal(&p->initial_scid, &c->handshake.initial_scid_peer))
        return false;
    if (c->is_server)
        return true;
    if (!p->has_original_dcid || !xl_cid_equal(&p->original_dcid, &c->handshake.odcid))
        return false;
    if (p->has_retry_scid != c->handshake.has_retry)
        return false;
    return !c->handshake.has_retry || xl_cid_equal(&p->retry_scid, &c->handshake.retry_scid);
}

/* ---- Dialect: a client offers both, the server answers with one ---- */

/* A server keeps only those of its parameters that belong to the dialect that it chooses. */
static int choose_dialect(xl_connection *c) {
    const xl_transport_params *theirs = &c->peer_params;
    xl_transport_params *ours = &c->local_params;
    bool both = theirs->enable_multipath && theirs->has_initial_max_path_id;
    bool is_ietf = both ? c->config->scheme.dialect == XL_DIALECT_IETF : theirs->has_initial_max_path_id;
    uint8_t params[512];
    ours->enable_multipath = ours->enable_multipath && theirs->enable_multipath && !is_ietf;
    ours->has_initial_max_path_id = ours->has_initial_max_path_id && is_ietf;
    size_t len = xl_transport_params_encode(ours, params, sizeof params);
    return len > 0 ? xl_tls_set_params(c->handshake.tls, params, len) : XL_ERR_CRYPTO;
}

/* Returns 0 or the transport error to close with. */
static uint64_t agree_on_dialect(xl_connection *c) {
    const xl_transport_params *ours = &c->local_params, *theirs = &c->peer_params;
    bool has_ietf = ours->has_initial_max_path_id && theirs->has_initial_max_path_id;
    if (has_ietf && ours->enable_multipath && theirs->enable_multipath)
        return XL_QERR_TRANSPORT_PARAMETER; /* the server has to choose one */
    if (has_ietf && c->handshake.initial_scid_peer.len == 0)
        return XL_QERR_PROTOCOL_VIOLATION; /* RFC 10069 section 2.1 */
    c->multipath = has_ietf || (ours->enable_multipath && theirs->enable_multipath);
    if (!has_ietf)
        return 0;
    c->path_ids = malloc(sizeof *c->path_ids);
    if (!c->path_ids)
        return XL_QERR_INTERNAL;
    xl_path_ids_init(c->path_ids, &c->local_cids, &c->remote_cids, theirs->initial_max_path_id);
    return 0;
}

static void apply_peer_params(xl_connection *c) {
    const xl_transport_params *p = &c->peer_params;
    uint64_t peer_idle = p->max_idle_timeout_ms * 1000;
    if (peer_idle && (c->idle_timeout_us == 0 || peer_idle < c->idle_timeout_us))
        c->idle_timeout_us = peer_idle;
    if (!c->early.is_offered) /* otherwise they apply once the handshake is complete */
        xl_conn_apply_stream_limits(c);
    c->qoe.has_field = c->multipath && p->qoe_field;
    XL_EACH_PATH(xl_path, q, c)
        xl_conn_restart_mtu_search(c, q);
    if (!c->is_server && p->has_stateless_reset_token && c->remote_cids.count > 0) {
        memcpy(c->remote_cids.at[0].reset_token, p->stateless_reset_token, 16);
        c->remote_cids.at[0].has_token = true;
    }
    bool own = c->local_params.enable_multipath || c->local_params.has_initial_max_path_id;
    xl_qlog_params(c->qlog, c->now, true, own, c->local_params.max_idle_timeout_ms, c->local_params.initial_max_data);
    xl_qlog_params(c->qlog, c->now, false, p->enable_multipath || p->has_initial_max_path_id, p->max_idle_timeout_ms,
                   p->initial_max_data);
}

static int on_peer_params(void *user, const uint8_t *data, size_t len) {
    xl_connection *c = user;
    uint64_t error = xl_transport_params_decode(data, len, !c->is_server, &c->peer_params);
    if (error == 0 && !cids_are_authentic(c, &c->peer_params))
        error = XL_QERR_TRANSPORT_PARAMETER;
    if (error == 0)
        error = xl_conn_agree_on_version(c);
    if (error == 0 && c->is_server && choose_dialect(c) != 0)
        error = XL_QERR_INTERNAL;
    if (error == 0)
        error = agree_on_dialect(c);
    if (error == 0)
        error = xl_conn_learn_preferred_address(c);
    if (error) {
        xl_conn_fail(c, error, "bad transport parameters");
        return XL_ERR_CRYPTO;
    }
    c->handshake.peer_params_seen = true;
    xl_qlog_set_peer_ack_delay_exponent(c->qlog, c->peer_params.ack_delay_exponent);
    apply_peer_params(c);
    return 0;
}

static void on_keylog(void *user, const char *line) {
    const xl_connection *c = user;
    c->config->log.keylog(c->config->log.user, line);
}

int xl_conn_make_tls(xl_connection *c, const char *server_name) {
    uint8_t params[512];
    xl_conn_put_version_information(c);
    size_t len = xl_transport_params_encode(&c->local_params, params, sizeof params);
    xl_tls_callbacks callbacks = {.user = c,
                                  .crypto_data = on_crypto_data,
                                  .keys = on_keys,
                                  .peer_params = on_peer_params,
                                  .early_keys = xl_conn_take_early_keys};
    if (len == 0)
        return XL_ERR_CRYPTO;
    if (c->config->log.keylog)
        callbacks.keylog = on_keylog;
    c->handshake.tls = xl_tls_new(c->handshake.version, c->is_server, c->config->credentials, server_name,
                                  c->config->alpn, params, len, &callbacks);
    if (!c->handshake.tls)
        return XL_ERR_CRYPTO;
    return c->is_server ? 0 : xl_tls_start(c->handshake.tls);
}

void xl_conn_use_remembered_token(xl_connection *c) {
    size_t len;
    const uint8_t *token = xl_tls_remembered(c->handshake.tls, XL_TLS_TOKEN, &len);
    uint8_t *copy = token && len > 0 ? malloc(len) : NULL;
    if (!copy)
        return;
    memcpy(copy, token, len);
    c->handshake.token = copy;
    c->handshake.token_len = len;
}

int xl_conn_install_initial_keys(xl_connection *c, const xl_cid *dcid) {
    xl_level_state *l = &c->level[XL_LEVEL_INITIAL];
    c->handshake.initial_dcid = *dcid;
    xl_keys_free(l->read);
    xl_keys_free(l->write);
    l->read = xl_conn_make_initial_keys(c, c->handshake.version, &l->write);
    return l->read ? 0 : XL_ERR_CRYPTO;
}

void xl_conn_confirm_handshake(xl_connection *c) {
    if (c->handshake.is_confirmed)
        return;
    c->handshake.is_confirmed = true;
    c->handshake.deadline = XL_NEVER;
    c->handshake.address_validated_by_peer = true;
    xl_conn_discard_level(c, XL_LEVEL_HANDSHAKE);
    xl_conn_follow_preferred_address(c);
    xl_conn_open_paths(c);
}

void xl_conn_offer_token(xl_connection *c, const xl_path *p) {
    xl_handshake *h = &c->handshake;
    bool is_next_start = p->index == (c->multipath ? 0 : c->active);
    if (!c->is_server || !h->is_complete || !c->config->limits.issue_tokens || !is_next_start ||
        xl_addr_same_host(&h->token_for, &p->remote))
        return;
    h->token_for = p->remote;
    h->token_pending = true;
    xl_conn_wake(c);
}

static void on_complete(xl_connection *c) {
    c->handshake.is_complete = true;
    xl_conn_settle_early(c);
    if (!xl_conn_is_live(c))
        return;
    xl_path *p = c->path[0];
    if (p->state == XL_PATH_VALIDATING) {
        p->validation.is_done = true;
        xl_conn_path_set_state(c, p, XL_PATH_ACTIVE, "handshake");
    }
    c->state = XL_CONN_OPEN;
    xl_qlog_connection(c->qlog, c->now, "handshake_complete", xl_tls_alpn(c->handshake.tls));
    xl_conn_emit(c, (xl_event){.type = XL_EVENT_CONNECTED});
    xl_conn_issue_cids(c); /* a client too, so that the server has them before the first new path is opened */
    if (c->is_server) {
        p->validation.answers_early = false;
        c->handshake.done_pending = true;
        xl_conn_offer_token(c, p);
        xl_conn_confirm_handshake(c);
    }
}

/* The alerts of RFC 8446 section 6.2 that a client sends when it refuses a certificate. */
static const char *failure_of_tls(uint8_t alert) {
    switch (alert) {
    case 42: /* bad_certificate */
        return "the server's certificate is not for this name, or not for servers";
    case 45: /* certificate_expired */
        return "the server's certificate has expired, or is not valid yet";
    case 48: /* unknown_ca */
        return "the server's certificate is of no trusted CA";
    default:
        return "TLS handshake failed";
    }
}

void xl_conn_crypto_received(xl_connection *c, xl_level level) {
    uint8_t buf[2048];
    bool fin;
    size_t n;
    while (xl_conn_is_live(c) && (n = xl_recv_read(&c->level[level].recv, buf, sizeof buf, &fin)) > 0) {
        if (xl_tls_receive(c->handshake.tls, level, buf, n) != 0) {
            const uint8_t alert = xl_tls_alert(c->handshake.tls);
            bool is_violation = xl_tls_is_violation(c->handshake.tls);
            xl_conn_fail(c, is_violation ? XL_QERR_PROTOCOL_VIOLATION : XL_QERR_CRYPTO_BASE + alert,
                         is_violation ? "a TLS message that QUIC forbids" : failure_of_tls(alert));
            return;
        }
    }
    if (xl_conn_is_live(c))
        xl_conn_answer_early(c);
    if (!xl_conn_is_live(c) || c->handshake.is_complete || !xl_tls_is_complete(c->handshake.tls))
        return;
    if (!c->handshake.peer_params_seen) {
        xl_conn_fail(c, XL_QERR_CRYPTO_BASE + 109, "no transport parameters"); /* missing_extension */
        return;
    }
    on_complete(c);
}

void xl_conn_discard_level(xl_connection *c, xl_level level) {
    if (c->level_discarded[level])
        return;
    c->level_discarded[level] = true;
    xl_keys_free(c->level[level].read);
    xl_keys_free(c->level[level].write);
    c->level[level].read = c->level[level].write = NULL;
    if (level == XL_LEVEL_INITIAL)
        xl_conn_drop_original_keys(c);
    xl_conn_drop_space(c, &c->space[level]);
    xl_space_ack_sent(&c->space[level]);
    c->space[level].loss_time = XL_NEVER;
    c->path[0]->flight.pto_count = 0;
}

void xl_conn_release_levels(xl_connection *c) {
    for (int i = XL_LEVEL_INITIAL; i < XL_LEVEL_APP; i++) {
        if (!c->level_discarded[i] || !c->space[i].ledger.ring)
            continue;
        xl_ledger_shrink(&c->space[i].ledger);
        xl_ranges_free(&c->space[i].received);
        xl_recv_discard(&c->level[i].recv);
        xl_send_abandon(&c->level[i].send);
    }
}

/* RFC 9000 section 17.2.5, RFC 9001 section 5.8. Only the first Retry counts, and only before any other packet. */
void xl_conn_retry(xl_connection *c, const xl_packet_header *h, const uint8_t *packet, size_t len) {
    uint8_t tag[16];
    if (c->is_server || c->handshake.has_retry || c->handshake.has_scid_peer || c->state != XL_CONN_HANDSHAKE ||
        len < 16 || h->version != c->handshake.version)
        return;
    if (h->token_len == 0 || xl_cid_equal(&h->scid, &c->handshake.odcid))
        return;
    if (xl_retry_tag(c->handshake.version, &c->handshake.odcid, packet, len - 16, tag) != 0 ||
        memcmp(tag, packet + len - 16, 16) != 0)
        return;
    uint8_t *token = malloc(h->token_len);
    if (!token)
        return;
    memcpy(token, h->token, h->token_len);
    free(c->handshake.token);
    c->handshake.token = token;
    c->handshake.token_len = h->token_len;
    c->handshake.has_retry = true;
    c->handshake.retry_scid = h->scid;
    c->path[0]->cids.remote = h->scid;
    c->remote_cids.at[0].cid = h->scid;
    if (xl_conn_install_initial_keys(c, &h->scid) != 0) {
        xl_conn_abort(c, XL_CLOSE_INTERNAL, "no keys for a Retry");
        return;
    }
    xl_conn_give_up_in_flight(c, c->path[0]);
    c->path[0]->flight.pto_count = 0; /* RFC 9002 section 6.3: loss recovery begins anew */
    xl_qlog_connection(c->qlog, c->now, "retry_received", "");
    xl_conn_wake(c);
}
