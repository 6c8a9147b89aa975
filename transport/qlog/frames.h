/* The qlog form of a frame: draft-ietf-quic-qlog-quic-events, and the dialect's ack_mp, qoe_control_signals,
 * path_status. */
#pragma once

#include "qlog/json.h"
#include "wire/frame.h"

/* ack_delay_exponent: of the endpoint that sent the frame. */
void xl_qlog_put_frame(xl_json *, const xl_frame *, uint64_t ack_delay_exponent);
void xl_qlog_put_qoe(xl_json *, const xl_qoe *); /* the members, without braces */
