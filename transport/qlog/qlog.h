/* qlog (draft-ietf-quic-qlog-main-schema), JSON-SEQ (RFC 7464), with the multipath fields: the data of every event of a
 * path has "path", its index, and "path_id", the latest ID on the wire that the log knows. Text is buffered and passed
 * to the sink in pieces of about 16 KB that end with a record. A record has a bounded size: strings are cut after 1 KB,
 * and a packet whose frames exceed 16 KB of text says how many it left out ("frames_omitted"). All functions accept a
 * NULL xl_qlog (logging is off); strings may be NULL. Times and RTTs are milliseconds, as qlog requires; common_fields
 * also has the reference time as "reference_monotonic_us". */
#pragma once

#include "wire/frame.h"

typedef struct xl_qlog xl_qlog;

/* Returns NULL if log->qlog_open is NULL. now is the reference time (µs): event times are relative to it, in ms. The
 * sink is not opened yet: up to 16 KB of records are kept, and the number of further ones is logged as
 * xlink:events_omitted. */
xl_qlog *xl_qlog_new(const xl_log *log, bool is_server, const xl_cid *odcid, uint64_t now);
/* Opens the sink, once. Returns the log, or NULL if there is no sink; the log is then freed. */
xl_qlog *xl_qlog_open(xl_qlog *, uint64_t now);
void xl_qlog_free(xl_qlog *); /* flushes and closes the sink; a log without a sink is discarded */

/* Sets the peer's ack_delay_exponent, for the ACKs received; 3 before. Our own is assumed to be 3. */
void xl_qlog_set_peer_ack_delay_exponent(xl_qlog *, uint64_t exponent);

/* quic:packet_sent / packet_received, built frame by frame: begin, frames, end. path: index, path_id: wire ID.
 * Other events may be logged in between: the packet's record follows them. */
void xl_qlog_packet_begin(xl_qlog *, uint64_t now, bool sent, xl_packet_type, uint64_t pn, size_t packet_bytes,
                          int path, uint64_t path_id);
void xl_qlog_frame(xl_qlog *, const xl_frame *); /* of a parsed frame; pointers to stream data are not needed */
void xl_qlog_packet_end(xl_qlog *);
/* path < 0: the packet belongs to no path. */
void xl_qlog_packet_dropped(xl_qlog *, uint64_t now, size_t bytes, const char *trigger, int path);

/* quic:recovery_metrics_updated: writes only what has changed since the last call for this path. UINT64_MAX: unknown
 * (or an infinite ssthresh), not written. */
typedef struct {
    uint64_t srtt_us, latest_rtt_us, min_rtt_us, rttvar_us, cwnd_bytes, ssthresh_bytes, bytes_in_flight, pacing_bps;
    uint64_t pto_count;
} xl_qlog_metrics;
void xl_qlog_metrics_updated(xl_qlog *, uint64_t now, int path, const xl_qlog_metrics *);
/* quic:congestion_state_updated: the phase of a controller that names its phases. Written when it changes. */
void xl_qlog_congestion_state(xl_qlog *, uint64_t now, int path, const char *phase);
/* trigger: as in the draft; NULL: the packet's path was given up. */
void xl_qlog_packet_lost(xl_qlog *, uint64_t now, xl_packet_type, uint64_t pn, int path, const char *trigger);

/* multipath: events of a path. name is "path_new", "path_validated", "path_suspect", "path_recovered", "path_standby",
 * "path_closed" or "migrated". */
void xl_qlog_path(xl_qlog *, uint64_t now, const char *name, int path, uint64_t path_id, const xl_addr *local,
                  const xl_addr *remote, const char *why);
/* quic:ecn_state_updated of a path; nothing is written if both are the same. */
void xl_qlog_ecn_state(xl_qlog *, uint64_t now, int path, const char *before, const char *after);
/* quic:mtu_updated: UDP payload bytes that packets on the path may have. */
void xl_qlog_mtu(xl_qlog *, uint64_t now, int path, uint64_t old_bytes, uint64_t new_bytes);
/* multipath:path_selected: why a packet with data or control frames was sent on this path. The bit sets of path indices
 * say what kept it off the paths with a smaller RTT. Written when the reason changes for the path. */
typedef struct {
    int path;
    const char *scheduler;
    const char *rule; /* the scheduler's own reason, NULL: smallest RTT */
    uint64_t srtt_us;
    uint32_t no_window;        /* full congestion windows */
    uint32_t set_aside;        /* suspect, or on standby */
    uint32_t nothing_to_carry; /* preferred, but nothing may go there now */
    uint32_t not_preferred;    /* the scheduler's own order */
} xl_qlog_selection;
void xl_qlog_path_selected(xl_qlog *, uint64_t now, const xl_qlog_selection *);
/* multipath:scheduler_waits: the scheduler leaves paths with a window unused and waits for this one. < 0: for no
 * particular path, and nothing is written. Written once until a path is selected again. */
void xl_qlog_scheduler_waits(xl_qlog *, uint64_t now, const char *scheduler, int for_path, const char *why);
/* The double-threshold decision and its inputs (paper section 5.2.2). Times: UINT64_MAX = unknown. */
typedef struct {
    bool on;
    const char *why;
    uint64_t play_time_left_us, t_th1_us, t_th2_us, deliver_time_max_us;
} xl_qlog_gate;
/* Expected times until original and copy are acknowledged; UINT64_MAX: the path returns nothing at present. */
typedef struct {
    uint64_t original_us, copy_us;
} xl_qlog_race;
/* xlink:reinjection: one copy: its bytes, its two paths, its number among the copies of the original, why the gate was
 * open, and which of original and copy is expected first. */
void xl_qlog_reinjection(xl_qlog *, uint64_t now, uint64_t stream_id, uint64_t offset, size_t len, int from_path,
                         int to_path, unsigned copy, const char *why, const xl_qlog_race *);
/* xlink:reinjection_refused: a stream's packets could be copied onto that path and are not. gate and race may be NULL.
 * Written when the reason changes, or after something was copied. */
void xl_qlog_reinjection_refused(xl_qlog *, uint64_t now, uint64_t stream_id, int to_path, const char *why,
                                 const xl_qlog_gate *gate, const xl_qlog_race *race);
/* xlink:qoe_gate: written when the decision or its reason changes. */
void xl_qlog_qoe_gate(xl_qlog *, uint64_t now, const xl_qlog_gate *);
/* The stream has ended: forgets its reasons. */
void xl_qlog_stream_gone(xl_qlog *, uint64_t stream_id);
/* The index now belongs to another path. */
void xl_qlog_path_replaced(xl_qlog *, int path);
void xl_qlog_qoe_received(xl_qlog *, uint64_t now, const xl_qoe *);
/* xlink:NAME with the free text "detail"; quic:connection_closed with "reason", quic:key_updated with "trigger". */
void xl_qlog_connection(xl_qlog *, uint64_t now, const char *name, const char *detail);
/* An event of the application: name with its namespace, data a JSON object. Nothing is written if data is longer than
 * 15 KB. */
void xl_qlog_application(xl_qlog *, uint64_t now, const char *name, const char *data);
void xl_qlog_params(xl_qlog *, uint64_t now, bool local, bool multipath, uint64_t max_idle_ms, uint64_t max_data);
