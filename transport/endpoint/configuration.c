#include "endpoint/configuration.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/crypto.h"
#include "minmax.h"
#include "wire/cursor.h"

#define CONN_SEND_BYTES     ((size_t)16 << 20)
#define ALL_SEND_BYTES      ((size_t)256 << 20)
#define PACKETS_PER_KEY_MIN 64
#define MAX_STREAMS_MOST    (UINT64_C(1) << 60) /* RFC 9000 section 4.6 */

void xl_scheme_init(xl_scheme *s) {
    *s = (xl_scheme){.scheduler = "minrtt",
                     .reinjection = "none",
                     .cc = "cubic-tolerant",
                     .t_th1_us = 500000,
                     .t_th2_us = 2000000,
                     .rescue_gain_us = 50000,
                     .rescue_permille = 15,
                     .max_reinjections = 1,
                     .suspect = true,
                     .qoe_extrapolation = true,
                     .qoe_carrier = XL_QOE_IN_ACK};
}

/* The limits of which 0 selects a default that is another value: X(member, default). */
#define LIMITS_WITH_DEFAULTS(X)                                                                                        \
    X(idle_timeout_us, 30000000)                                                                                       \
    X(handshake_timeout_us, 30000000)                                                                                  \
    X(confirm_timeout_us, 10000000)                                                                                    \
    X(max_data, 16 << 20)                                                                                              \
    X(max_stream_data, 6 << 20)                                                                                        \
    X(max_streams_bidi, 100)                                                                                           \
    X(max_streams_uni, 16)                                                                                             \
    X(send_buffer_bytes, 4 << 20)                                                                                      \
    X(max_udp_payload_bytes, XL_MIN_DATAGRAM)                                                                          \
    X(path_mtu_bytes, XL_MIN_DATAGRAM)                                                                                 \
    X(max_connections, 1024)                                                                                           \
    X(retry_above, 256)                                                                                                \
    X(standby_probe_us, 1000000)                                                                                       \
    X(datagram_queue_bytes, 64 << 10)                                                                                  \
    X(path_management.rtt_percent, 400)                                                                                \
    X(path_management.loss_percent, 10)                                                                                \
    X(path_management.degraded_us, 1000000)                                                                            \
    X(path_management.recovered_us, 2000000)                                                                           \
    X(path_management.abandon_us, 10000000)                                                                            \
    X(path_management.reopen_us, 1000000)

void xl_limits_init(xl_limits *l) {
#define WITH(member, preset) .member = preset,
    *l = (xl_limits){LIMITS_WITH_DEFAULTS(WITH)};
#undef WITH
}

void xl_config_init(xl_config *c) {
    *c = (xl_config){.alpn = "h3"};
    xl_scheme_init(&c->scheme);
    xl_limits_init(&c->limits);
}

int xl_scheme_copy(const xl_scheme *scheme, bool has_foresight, xl_scheme *s) {
    const xl_scheduler_ops *scheduler = xl_scheduler_find(scheme->scheduler ? scheme->scheduler : "minrtt");
    const xl_reinjection_ops *reinjection = xl_reinjection_find(scheme->reinjection ? scheme->reinjection : "none");
    const xl_cc_ops *cc = xl_cc_find(scheme->cc ? scheme->cc : "cubic-tolerant");
    if (!scheduler || !reinjection || !cc || (scheduler->decide_foreseeing && !has_foresight))
        return XL_ERR_ARGUMENT;
    *s = *scheme;
    s->scheduler = scheduler->name;
    s->reinjection = reinjection->name;
    s->cc = cc->name;
    s->max_reinjections = s->max_reinjections ? s->max_reinjections : 1;
    return 0;
}

/* Returns the maximum of a window or buffer: `most` if it is set; else times * preset for a value at its preset; any
 * other value does not grow. */
static size_t grown(size_t most, size_t first, size_t preset, size_t times) {
    return most ? xl_max(most, first) : first == preset ? times * first : first;
}

static int copy_limits(const xl_limits *limits, xl_limits *l) {
    xl_limits defaults;
    xl_limits_init(&defaults);
    *l = *limits;
#define OR_DEFAULT(member, preset) l->member = l->member ? l->member : defaults.member;
    LIMITS_WITH_DEFAULTS(OR_DEFAULT)
#undef OR_DEFAULT
    l->most_data = grown(l->most_data, l->max_data, defaults.max_data, 4);
    l->most_stream_data = grown(l->most_stream_data, l->max_stream_data, defaults.max_stream_data, 4);
    l->most_send_bytes = grown(l->most_send_bytes, l->send_buffer_bytes, defaults.send_buffer_bytes, 2);
    if (!l->connection_send_bytes)
        l->connection_send_bytes = xl_max(CONN_SEND_BYTES, 4 * l->send_buffer_bytes);
    if (!l->endpoint_send_bytes)
        l->endpoint_send_bytes = xl_max(ALL_SEND_BYTES, 2 * l->connection_send_bytes);
    bool has_valid_size = l->max_udp_payload_bytes >= XL_MIN_DATAGRAM && l->max_udp_payload_bytes <= 65527 &&
                          l->path_mtu_bytes >= XL_MIN_DATAGRAM;
    bool has_valid_keys = l->packets_per_key == 0 || l->packets_per_key >= PACKETS_PER_KEY_MIN;
    bool fits_parameters = l->max_data <= XL_VARINT_MAX && l->max_stream_data <= XL_VARINT_MAX &&
                           l->max_streams_bidi <= MAX_STREAMS_MOST && l->max_streams_uni <= MAX_STREAMS_MOST &&
                           l->max_datagram_frame_bytes <= XL_VARINT_MAX;
    return has_valid_size && has_valid_keys && fits_parameters && l->versions <= XL_VERSIONS_BOTH ? 0 : XL_ERR_ARGUMENT;
}

int xl_endpoint_copy_config(xl_endpoint *ep, const xl_config *config) {
    ep->config = *config;
    ep->config.alpn = ep->alpn = strdup(config->alpn ? config->alpn : "h3");
    if (!ep->alpn)
        return XL_ERR_MEMORY;
    int error = xl_scheme_copy(&config->scheme, ep->foresight != NULL, &ep->config.scheme);
    if (error == 0)
        error = copy_limits(&config->limits, &ep->config.limits);
    if (error)
        return error;
    if (config->deployment && (!config->is_server || xl_deployment_check(config->deployment)))
        return XL_ERR_ARGUMENT;
    return xl_tls_is_alpn_list(ep->alpn) && config->credentials &&
                   xl_credentials_are_for(config->credentials, config->is_server)
               ? 0
               : XL_ERR_ARGUMENT;
}
