#include "connection/early.h"

#include "connection/acks.h"
#include "connection/connection.h"
#include "connection/path_table.h"
#include "connection/state.h"
#include "connection/streams.h"

#define KEEP_PTOS 3 /* RFC 9001 section 4.9.3 */

int xl_conn_take_early_keys(void *connection, xl_keys *keys) {
    xl_connection *c = connection;
    if (c->config->null_crypto)
        xl_keys_make_null(keys);
    xl_keys_free(c->early.keys);
    c->early.keys = keys;
    return 0;
}

void xl_conn_drop_early_keys(xl_connection *c) {
    xl_keys_free(c->early.keys);
    c->early.keys = NULL;
}

/* ---- Client ---- */

void xl_conn_start_early(xl_connection *c) {
    xl_transport_params *remembered = &c->early.remembered;
    size_t len;
    const uint8_t *bytes = xl_tls_remembered(c->handshake.tls, XL_TLS_PARAMS, &len);
    if (!c->early.keys || !bytes || xl_transport_params_decode(bytes, len, true, remembered) != 0) {
        xl_conn_drop_early_keys(c);
        return;
    }
    xl_transport_params_keep_limits(remembered);
    c->peer_params = *remembered;
    xl_conn_apply_stream_limits(c);
    c->early.is_offered = true;
    xl_qlog_connection(c->qlog, c->now, "early_data", "offered");
    xl_conn_emit(c, (xl_event){.type = XL_EVENT_EARLY});
}

/* Not once the server's own parameters have arrived, because those apply to 1-RTT packets only. */
bool xl_conn_may_write_early(const xl_connection *c) {
    return c->early.is_offered && c->early.keys && !c->handshake.peer_params_seen;
}

static bool is_beyond_limits(const xl_connection *c) {
    bool is_beyond = c->streams.flow_out.used > c->streams.flow_out.limit ||
                     c->streams.opened[0].used > c->streams.opened[0].limit ||
                     c->streams.opened[1].used > c->streams.opened[1].limit;
    for (size_t i = 0; i < c->streams.count; i++)
        is_beyond |= c->streams.at[i]->send.sent > c->streams.at[i]->send_flow.limit;
    return is_beyond;
}

void xl_conn_settle_early(xl_connection *c) {
    if (c->is_server && c->early.keys)
        c->early.keep_until = c->now + KEEP_PTOS * xl_conn_max_pto(c);
    if (c->is_server || !c->early.is_offered)
        return;
    c->early.is_accepted = xl_tls_early_is_accepted(c->handshake.tls);
    xl_conn_drop_early_keys(c);
    xl_qlog_connection(c->qlog, c->now, "early_data", c->early.is_accepted ? "accepted" : "rejected");
    if (c->early.is_accepted && xl_transport_params_are_reduced(&c->peer_params, &c->early.remembered)) {
        xl_conn_fail(c, XL_QERR_PROTOCOL_VIOLATION, "the server took 0-RTT data and lowered its limits");
        return;
    }
    xl_conn_apply_stream_limits(c);
    if (c->early.is_accepted)
        return;
    /* The server has none of the data: it is sent again in 1-RTT packets, on the same streams, which are new to it. */
    xl_conn_lose_space(c, &c->space[XL_LEVEL_APP], -1);
    if (is_beyond_limits(c))
        xl_conn_fail(c, XL_QERR_NO_ERROR, "0-RTT data was rejected and is beyond the server's new limits");
}

/* ---- Server ---- */

bool xl_conn_may_answer_early(const xl_connection *c) {
    return c->is_server && c->early.is_accepted && c->level[XL_LEVEL_APP].write;
}

/* The client's address may not be proven yet. Until it is, the limit of RFC 9000 section 8.1 applies. */
void xl_conn_answer_early(xl_connection *c) {
    if (!c->is_server || !c->early.keys || c->early.is_accepted || !c->level[XL_LEVEL_APP].write)
        return;
    c->early.is_accepted = true;
    c->path[0]->validation.answers_early = true;
    xl_qlog_connection(c->qlog, c->now, "early_data", "accepted");
    xl_conn_path_set_state(c, c->path[0], XL_PATH_ACTIVE, "early data");
    xl_conn_emit(c, (xl_event){.type = XL_EVENT_EARLY});
}

void xl_conn_expire_early_keys(xl_connection *c) {
    if (c->early.keys && c->now >= c->early.keep_until)
        xl_conn_drop_early_keys(c);
}

const xl_keys *xl_conn_early_read_keys(const xl_connection *c) {
    return c->is_server ? c->early.keys : NULL;
}

void xl_connection_remember(xl_connection *c, const uint8_t *data, size_t len) {
    if (!c->is_server && c->handshake.tls)
        xl_tls_remember(c->handshake.tls, XL_TLS_APPLICATION, data, len);
}

const uint8_t *xl_connection_remembered(const xl_connection *c, size_t *len) {
    *len = 0;
    return c->handshake.tls ? xl_tls_remembered(c->handshake.tls, XL_TLS_APPLICATION, len) : NULL;
}

bool xl_connection_is_early_accepted(const xl_connection *c) {
    return c->early.is_accepted;
}
