/* The player's QoE signal, client to server: in ACK_MP or in QOE_CONTROL_SIGNALS frames, and the server's use of it. */
#pragma once

#include "connection/builder.h"
#include "connection/frames.h"
#include "qlog/qlog.h"
#include "reinjection/gate.h"

typedef struct {
    xl_qoe_gate gate;     /* the peer's signal, and what follows from it */
    bool has_field;       /* both sides take the signal: in the field of ACK_MP, in `ietf` in QOE_CONTROL_SIGNALS */
    xl_qoe own;           /* our latest signal */
    bool is_fresh;        /* the next ACK_MP carries it */
    bool signal_pending;  /* a QOE_CONTROL_SIGNALS frame is to carry it */
    uint64_t signal_from; /* earliest time of that frame */
    uint64_t signals;     /* frames sent: the number of the latest */
    xl_qoe signalled;     /* signal in that frame */
} xl_qoe_exchange;

/* For a new connection, or after the endpoint's configuration has changed. */
void xl_conn_qoe_configure(xl_connection *);

/* Sender. */
const xl_qoe *xl_conn_qoe_for_ack(const xl_connection *); /* the signal for the next ACK_MP; NULL: none */
bool xl_conn_qoe_signal_is_due(const xl_connection *);
uint64_t xl_conn_qoe_deadline(const xl_connection *);
void xl_conn_put_qoe(xl_builder *);

/* Receiver. */
/* A signal in an ACK_MP that the peer made after made_after. */
void xl_conn_take_qoe(xl_connection *, const xl_qoe *, uint64_t made_after);
/* A signal in a QOE_CONTROL_SIGNALS frame. */
void xl_conn_take_qoe_signal(xl_connection *, const xl_qoe *, const xl_packet_context *);
/* Whether re-injection is allowed at present. *facts: the inputs of the decision. */
xl_qoe_decision xl_conn_ask_gate(xl_connection *, xl_qlog_gate *facts);
