/* Transport parameters: RFC 9000 section 18, enable_multipath of the dialect `xlink`, initial_max_path_id of `ietf`
 * (RFC 10069 section 2.1), and the private parameter that negotiates the player's signal: in `xlink` the QoE field of
 * ACK_MP, in `ietf` QOE_CONTROL_SIGNALS. */
#pragma once

#include "wire/packet.h"

#define XL_TP_MAX_DATAGRAM_FRAME  0x20       /* RFC 9221 section 3 */
#define XL_TP_MIN_ACK_DELAY       0xff04de1b /* draft-ietf-quic-ack-frequency section 3 */
#define XL_TP_ENABLE_MULTIPATH    0xbaba
#define XL_TP_INITIAL_MAX_PATH_ID 0x3e
#define XL_TP_VERSION_INFORMATION 0x11
#define XL_TP_GREASE_QUIC_BIT     0x2ab2
#define XL_TP_QOE_FIELD           0x2e3a71c5 /* private; value: varint 1 */

/* Longer timeouts are reduced to this one, 146,000 years, so that in µs, and added to a time, they fit 64 bits. */
#define XL_IDLE_TIMEOUT_MAX_MS (XL_VARINT_MAX / 1000)

/* RFC 9000 section 18.2. Family 0: no address. */
typedef struct {
    xl_addr v4, v6;
    xl_cid cid;
    uint8_t reset_token[16];
} xl_preferred_address;

typedef struct {
    bool has_original_dcid, has_initial_scid, has_retry_scid, has_stateless_reset_token, has_preferred_address;
    xl_cid original_dcid, initial_scid, retry_scid;
    uint8_t stateless_reset_token[16];
    xl_preferred_address preferred_address;
    uint64_t max_idle_timeout_ms;  /* decoded: XL_IDLE_TIMEOUT_MAX_MS at most */
    uint64_t max_udp_payload_size; /* 65527 when absent */
    uint64_t initial_max_data;
    uint64_t initial_max_stream_data_bidi_local, initial_max_stream_data_bidi_remote, initial_max_stream_data_uni;
    uint64_t initial_max_streams_bidi, initial_max_streams_uni;
    uint64_t ack_delay_exponent; /* 3 when absent */
    uint64_t max_ack_delay_ms;   /* 25 when absent */
    bool disable_active_migration;
    uint64_t active_connection_id_limit; /* 2 when absent */
    uint64_t max_datagram_frame_size;    /* 0 when absent: no DATAGRAM frames */
    bool has_min_ack_delay;              /* the sender understands ACK_FREQUENCY and IMMEDIATE_ACK */
    uint64_t min_ack_delay_us;           /* not above max_ack_delay */
    bool enable_multipath;
    bool has_initial_max_path_id;
    uint64_t initial_max_path_id; /* at most 2^32 - 1 */
    bool qoe_field;
    /* RFC 9368 section 3. Sent: the versions of `versions`. */
    bool has_version_information;
    uint32_t chosen_version;
    xl_versions versions; /* sent */
    bool has_v1, has_v2;  /* received: among the available versions */
    bool grease_quic_bit; /* RFC 9287 */
    uint64_t reserved_id; /* sent: ID of a reserved parameter (RFC 9000 section 18.1); 0: none */
    uint8_t reserved[16]; /* its value */
    size_t reserved_len;
} xl_transport_params;

void xl_transport_params_init(xl_transport_params *); /* sets the values of absent parameters */
/* Resets all but the limits, which a client remembers for 0-RTT data (RFC 9000 section 7.4.1). */
void xl_transport_params_keep_limits(xl_transport_params *);
/* Whether any of these limits is lower than before. */
bool xl_transport_params_are_reduced(const xl_transport_params *now, const xl_transport_params *before);
/* Returns the length, 0 if cap is too small. Parameters at their default are left out. */
size_t xl_transport_params_encode(const xl_transport_params *, uint8_t *buf, size_t cap);
/* from_server: the peer is a server, and may send its parameters. Returns 0 or XL_QERR_TRANSPORT_PARAMETER: duplicates,
 * bad lengths, values out of range (18.2), a server-only parameter from a client. Unknown parameters are skipped. */
uint64_t xl_transport_params_decode(const uint8_t *data, size_t len, bool from_server, xl_transport_params *out);
