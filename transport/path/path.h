/* One path: its addresses and connection IDs, its state machine, its packet number space, and its own RTT estimate,
 * pacer and congestion controller (decoupled, paper section 3). Validation: RFC 9000 section 8.2. */
#pragma once

#include <stdalign.h>

#include "congestion/congestion.h"
#include "path/ecn.h"
#include "path/mtu.h"
#include "recovery/capacity.h"
#include "recovery/cross_traffic.h"
#include "recovery/ledger.h"
#include "recovery/pacer.h"
#include "recovery/ranges.h"
#include "recovery/rtt.h"
#include "wire/frame.h"

#define XL_PATH_RESPONSES_MAX  4
#define XL_PATH_CHALLENGES_MAX 4 /* stored beside the newest one */
#define XL_RATE_BUCKETS        8
#define XL_RATE_BUCKET_US      64000

/* When packets received are acknowledged at once (RFC 9000 section 13.2, draft-ietf-quic-ack-frequency section 6). */
typedef struct {
    uint64_t threshold;    /* number of ack-eliciting packets that may wait; initially 1 */
    uint64_t reordering;   /* reordering threshold: a gap this far below the newest packet is acknowledged at once;
                            * 0: no gap is; initially 1: every gap is */
    uint64_t max_delay_us; /* no packet waits longer */
} xl_ack_policy;

/* A packet number space: what we sent in it and what we received in it. */
typedef struct {
    xl_ledger ledger;
    xl_ranges received;
    uint64_t duplicate_floor;     /* lower packet numbers are treated as duplicates: their ranges are not stored */
    uint64_t largest_received;    /* UINT64_MAX = none */
    uint64_t largest_received_at; /* µs */
    uint64_t largest_ack_sent;    /* largest packet number in the last acknowledgement sent; UINT64_MAX = none */
    xl_ack_policy policy;
    uint64_t unacked_eliciting; /* ack-eliciting packets received since the last acknowledgement was sent */
    uint64_t ack_deadline;      /* XL_NEVER when no acknowledgement is owed */
    uint64_t loss_time;         /* when the next packet will be declared lost by time threshold */
    uint64_t
        last_eliciting_at; /* when the last ack-eliciting packet was sent, or a probe timeout of the handshake came */
    /* Packet numbers received: the smallest of the present key phase, the largest of those before; UINT64_MAX = none */
    uint64_t phase_first, before_phase;
    bool ack_now;
    xl_ecn_space ecn;
} xl_space;

void xl_space_init(xl_space *);
void xl_space_free(xl_space *);
/* Whether pn was received before, or is below duplicate_floor. */
bool xl_space_is_duplicate(const xl_space *, uint64_t pn);
/* Records a received packet and sets when it is acknowledged: at once if `immediate`, else by the space's policy. */
int xl_space_receive(xl_space *, uint64_t pn, bool ack_eliciting, bool immediate, uint64_t now);
bool xl_space_owes_ack(const xl_space *);
/* Acknowledgement ranges, descending, at most cap. */
size_t xl_space_ack_ranges(const xl_space *, xl_ack_range *out, size_t cap);
void xl_space_ack_sent(xl_space *);
/* The peer has received our acknowledgement of all packets up to `largest`, so it is not repeated. */
void xl_space_ack_confirmed(xl_space *, uint64_t largest);

/* State of automatic path management (xl_path_management). Times: 0 = unset. */
typedef struct {
    uint64_t window_at, sent, lost; /* start of the present loss window; packets sent and lost before it */
    unsigned loss_percent;          /* loss in the last window */
    uint64_t since;                 /* degraded (on standby: recovered) without a break since this time */
    unsigned turns;                 /* how often it was put on standby */
    bool stands_by;                 /* this side put it on standby */
    uint64_t reopen_at;             /* abandoned path: when to open it again */
    unsigned asked;                 /* PATH_CHALLENGEs sent during a silence that blocks the connection */
} xl_path_watch;

/* Connection IDs and path IDs of a path. */
typedef struct {
    xl_cid remote;            /* the peer's CID that our packets carry; valid if has_remote */
    uint64_t remote_sequence; /* its sequence number */
    uint64_t local_sequence;  /* of our CID that the peer's newest packet carried */
    /* Path IDs of the packets that we send and that we receive: in the dialect `xlink` the sequence numbers of their
     * destination CIDs, in `ietf` the same number in both directions. */
    uint64_t remote_path_id, local_path_id;
    bool has_remote, has_local_path_id;
} xl_path_cids;

/* Packets in flight, and what their probe timeout depends on. */
typedef struct {
    uint64_t bytes;
    uint64_t eliciting;         /* ack-eliciting packets in flight */
    uint64_t last_eliciting_at; /* when the last ack-eliciting packet was sent, except those of last_signal_at */
    uint64_t awaited_since;     /* latest of: last acknowledgement, last probe timeout, first packet in flight */
    uint64_t last_signal_at; /* when the last packet with QoE signals alone was sent: it does not restart the timer */
    uint64_t pto_count;      /* consecutive probe timeouts */
    unsigned probes;         /* packets to send regardless of the congestion window */
    unsigned quiet_packets;  /* packets since the last ack-eliciting one: after some, a PING asks for an ACK (13.2.4) */
    uint64_t unanswered;     /* packets that are not ack-eliciting, sent since the path's last acknowledgement */
    bool ping_pending;
    bool awaits_pacer; /* data that would fill the window waits for the pacer alone */
} xl_path_flight;

/* RTT estimates in an outage: from the path's silence until the packets sent in it are settled. */
typedef struct {
    uint64_t until;      /* 0: no recent outage; XL_NEVER: silent now; else when the path answered */
    xl_rtt rtt, ack_rtt; /* estimates before the outage */
    uint64_t least_us;   /* smallest sample of a packet that was sent in the outage */
} xl_path_outage;

/* The path's congestion controller. */
typedef struct {
    const xl_cc_ops *ops;
    xl_cc_group *group;                           /* the connection's; NULL: none */
    alignas(16) uint8_t state[XL_CC_STATE_BYTES]; /* changed only through ops */
} xl_path_cc;

/* Validation of the peer's address (RFC 9000 section 8.2): see xl_path_start_challenge(). */
typedef struct {
    bool is_done;         /* the peer's address is validated */
    bool answers_early;   /* server: carries data before is_done, in answer to 0-RTT data and within the limit of
                           * section 8.1 */
    bool is_pending;      /* a PATH_CHALLENGE is to be sent */
    bool is_outstanding;  /* a PATH_CHALLENGE was sent and has no answer */
    bool was_small;       /* the limit of section 8.1 left no room to pad it: its answer proves no MTU (8.2.3) */
    bool is_rtt_probe;    /* measures the RTT of a validated path; nothing else depends on the answer */
    uint8_t challenge[8]; /* data of the newest PATH_CHALLENGE */
    /* Data of earlier PATH_CHALLENGEs of the same validation. Their answers count too (8.2.3). */
    uint8_t earlier[XL_PATH_CHALLENGES_MAX][8];
    size_t earlier_count;
    uint64_t sent_at, deadline;
    unsigned tries;
    uint64_t received_bytes, sent_bytes; /* before the address is validated: limit of amplification (8.1) */
} xl_path_validation;

/* The last validated addresses, while the path's new ones are being validated after a NAT rebinding. */
typedef struct {
    bool exists;
    bool is_asked; /* a PATH_CHALLENGE is to be sent there too */
    xl_addr local, remote;
} xl_path_proven;

/* PATH_RESPONSEs to be sent. */
typedef struct {
    uint8_t data[XL_PATH_RESPONSES_MAX][8];
    size_t count;
    unsigned beyond; /* sent without room in the window since the path's last acknowledgement */
} xl_path_responses;

/* PATH_STATUS in both directions. */
typedef struct {
    uint64_t own, own_sequence; /* the newest of this side */
    bool is_pending;            /* it is to be sent */
    bool is_confirmed;          /* the peer has acknowledged the newest */
    uint64_t standby_probed_at;
    uint64_t peer, peer_sequence; /* the peer's newest, if has_peer */
    bool has_peer;
} xl_path_statuses;

/* Recently acknowledged bytes in buckets of time, which give the path's present rate. Only path.c changes it. */
typedef struct {
    uint64_t epoch;  /* when counting began */
    uint64_t bucket; /* number of the newest bucket: time since the epoch / XL_RATE_BUCKET_US */
    uint64_t bytes[XL_RATE_BUCKETS];
    uint64_t sum;            /* of bytes */
    uint64_t sent_total;     /* bytes ever put in flight */
    uint64_t busy_since;     /* bytes have been in flight without a break since then */
    uint64_t last_rate;      /* bytes/s at the end of the last busy period with a known rate; 0: none */
    bool is_answered;        /* a packet of this busy period was acknowledged */
    uint64_t answered_since; /* when the first such packet was */
    xl_capacity capacity;    /* of the bottleneck, also while the path is not filled */
    xl_cross_traffic cross;  /* at the bottleneck; kept for schedulers with wants_queues */
} xl_path_delivery;

/* The key phase of the packets sent (RFC 9001 section 6). Set by connection/key_update.c, acknowledged in acks.c. */
typedef struct {
    uint64_t first_pn; /* first packet number sent in the present key phase */
    bool is_acked;     /* a packet of that phase was acknowledged */
} xl_path_phase;

/* Lower bounds of when the peer made its packets, which order QoE signals of several paths. Set by connection/frames.c
 * and qoe.c. */
typedef struct {
    uint64_t signal_pn;           /* 1 + number of the packet with the last QOE_CONTROL_SIGNALS frame taken */
    uint64_t made_after, made_pn; /* packet made_pn and later ones were made after made_after */
} xl_path_made;

typedef struct {
    int index;
    xl_path_state state;
    uint64_t state_since;
    xl_technology technology;
    xl_addr local, remote;
    xl_path_watch watch;
    xl_path_cids cids;

    xl_space *space; /* the path's own, or the connection's when multipath is off */
    bool owns_space;
    bool spin;         /* the spin bit of the next packet (RFC 9000 section 17.4) */
    uint64_t mtu;      /* UDP payload bytes that packets may have now: mtu_search.size, 1200 during the handshake */
    xl_mtu mtu_search; /* DPLPMTUD */
    xl_ecn ecn;

    xl_rtt rtt;              /* there and back on this path: what schedulers and the choice of paths use */
    xl_rtt ack_rtt;          /* from a packet to its acknowledgement on whichever path: what timers and windows use */
    uint64_t rtt_sampled_at; /* when rtt had its last sample */
    uint64_t measured_since; /* when ack_rtt had its first sample, if it has one */
    xl_path_outage outage;
    xl_path_flight flight;
    xl_path_cc cc;
    xl_pacer pacer;
    uint64_t burst_us; /* time at the pacing rate whose bytes may leave at once, above ten packets */
    xl_rate_sampler rate;
    xl_path_delivery delivery;

    xl_path_validation validation;
    xl_path_proven proven;
    xl_path_responses responses;
    xl_path_statuses statuses;
    xl_path_phase phase;
    xl_path_made made;
    uint64_t last_received_at;
    uint64_t acked_here_at; /* when an acknowledgement of the path's packets was last sent on the path itself */

    xl_path_stats stats;
} xl_path;

void xl_path_init(xl_path *, int index, const xl_addr *local, const xl_addr *remote, xl_technology);
/* Resets RTT, pacer and window, for a new path or a migration (RFC 9000 section 9.4). */
void xl_path_reset_congestion(xl_path *, const xl_cc_ops *, uint64_t mtu, uint64_t now);
/* Sets the size of packets, for the congestion controller and the pacer too. */
void xl_path_set_mtu(xl_path *, uint64_t mtu, uint64_t now);
/* Call when the path falls silent and is probed. When it answers again, set outage.until. */
void xl_path_outage_begins(xl_path *);
/* Takes an RTT sample of latest_us from an acknowledgement. If it arrived on another path, only ack_rtt takes it: the
 * sample has this path's delay in one direction only. Of the packets sent in an outage, and the first one afterwards,
 * only the smallest sample counts, because a probe may have waited in a queue of the link until the outage ended.
 * Returns whether this sample counts. */
bool xl_path_rtt_sample(xl_path *, uint64_t latest_us, uint64_t ack_delay_us, bool came_back_here, uint64_t now);
/* Whether the path's RTT is to be measured by a PATH_CHALLENGE: acknowledgements arrive on other paths, and the last
 * sample is old. */
bool xl_path_wants_rtt_probe(const xl_path *, uint64_t now);
bool xl_path_wants_standby(const xl_path *); /* at least one side requests standby */
/* Whether a PATH_STATUS waits and may be sent: the peer knows the path. */
bool xl_path_status_is_due(const xl_path *);
bool xl_path_is_open(const xl_path *);        /* may carry packets: VALIDATING, ACTIVE, SUSPECT, STANDBY */
bool xl_path_may_carry_data(const xl_path *); /* ACTIVE, SUSPECT or STANDBY, and validated */
uint64_t xl_path_window(const xl_path *);
bool xl_path_has_window(const xl_path *); /* room for one more full packet */
/* Bytes that may still be sent before the peer's address is validated. */
uint64_t xl_path_amplification_left(const xl_path *);
void xl_path_update_pacer(xl_path *, uint64_t now);
/* Estimates when bytes are acknowledged: bytes in flight / rate of acknowledged bytes (Little's law). Unlike the
 * smoothed RTT this estimate rises at once when the path's rate falls, because it needs no new acknowledgement. At the
 * start of a busy period, before the rate is known, it is the smoothed RTT. */
void xl_path_note_sent(xl_path *, uint64_t bytes, uint64_t now); /* call before they are added to flight.bytes */
void xl_path_note_acked(xl_path *, uint64_t bytes, uint64_t sent_at, uint64_t now);
/* Takes the packet's delay as a sample of cross traffic. Call after xl_rate_acked() and xl_path_note_acked(). */
void xl_path_note_delay(xl_path *, const xl_sent_packet *, uint64_t now);
/* Time until a packet of more_bytes sent now is acknowledged, µs; XL_NEVER: no acknowledgements arrive at present. */
uint64_t xl_path_delivery_time(const xl_path *, uint64_t more_bytes, uint64_t now);
/* Time until all bytes in flight are acknowledged, at the present rate or that of the last busy period, µs. */
uint64_t xl_path_queue_time(const xl_path *, uint64_t now);
/* Time until a packet in flight is acknowledged, µs. sent_total: delivery.sent_total after the packet was sent, at
 * sent_at. */
uint64_t xl_path_time_left(const xl_path *, uint64_t sent_total, uint64_t sent_at, uint64_t now);

/* When the probe timeout fires, XL_NEVER when nothing is in flight. cap_us limits the backed-off interval, 0 = no
 * limit. */
uint64_t xl_path_pto_at(const xl_path *, uint64_t max_ack_delay_us, uint64_t cap_us);
/* The same for one of several packet number spaces, whose last ack-eliciting packet was sent at last_eliciting_at. */
uint64_t xl_path_pto_after(const xl_path *, uint64_t last_eliciting_at, uint64_t max_ack_delay_us, uint64_t cap_us);

/* Starts a validation, or repeats its PATH_CHALLENGE, with these 8 random bytes. */
void xl_path_start_challenge(xl_path *, const uint8_t data[8]);
/* The same to measure the RTT: a PATH_RESPONSE always returns on the path of its PATH_CHALLENGE. */
void xl_path_start_rtt_probe(xl_path *, const uint8_t data[8]);
void xl_path_challenge_sent(xl_path *, uint64_t now);
/* Takes a PATH_RESPONSE. True: it answers a PATH_CHALLENGE of this validation, and the path is now validated. If the
 * path has no RTT sample and the challenge was sent once, the answer is the first of `rtt`. Timers and windows begin
 * with it, but do not count it as a sample (RFC 9002 section 6.2.2). */
bool xl_path_take_response(xl_path *, const uint8_t data[8], uint64_t now);
void xl_path_queue_response(xl_path *, const uint8_t data[8]);
/* Whether a PATH_RESPONSE waits and may be sent: within the congestion window (RFC 9002 section 7), or as one of a few
 * beyond it, so that a path with a full window does not look slow or closed to the peer. Further challenges are
 * answered as acknowledgements arrive, because a padded response is many times as large as a challenge. */
bool xl_path_may_respond(const xl_path *);
