/* One path: its addresses and connection IDs, its state machine, its packet number space, and its own RTT estimate,
 * pacer and congestion controller (decoupled, paper section 3). Validation: RFC 9000 section 8.2. */
#ifndef XL_PATH_PATH_H
#define XL_PATH_PATH_H

#include <stdalign.h>

#include "congestion/congestion.h"
#include "path/ecn.h"
#include "path/mtu.h"
#include "recovery/capacity.h"
#include "recovery/ledger.h"
#include "recovery/pacer.h"
#include "recovery/ranges.h"
#include "recovery/rtt.h"
#include "wire/frame.h"

#define XL_PATH_RESPONSES_MAX  4
#define XL_PATH_CHALLENGES_MAX 4 /* that are remembered beside the newest one */
#define XL_RATE_BUCKETS        8
#define XL_RATE_BUCKET_US      64000

/* When packets received are acknowledged at once (RFC 9000 section 13.2, draft-ietf-quic-ack-frequency section 6). */
typedef struct {
    uint64_t threshold;    /* so many ack-eliciting packets may wait; initially 1 */
    uint64_t reordering;   /* a missing packet so far below the newest is told; 0 = none is; initially 1: any gap */
    uint64_t max_delay_us; /* none waits longer */
} xl_ack_policy;

/* A packet number space: what we sent in it and what we received in it. */
typedef struct {
    xl_ledger ledger;
    xl_ranges received;
    uint64_t duplicate_floor;     /* packet numbers below are taken for duplicates: their ranges were forgotten */
    uint64_t largest_received;    /* UINT64_MAX = none */
    uint64_t largest_received_at; /* µs */
    uint64_t largest_told;        /* the largest number in the last acknowledgement sent; UINT64_MAX = none */
    xl_ack_policy policy;
    uint64_t unacked_eliciting; /* ack-eliciting packets received since the last acknowledgement was sent */
    uint64_t ack_deadline;      /* XL_NEVER when no acknowledgement is owed */
    uint64_t loss_time;         /* when the next packet will be declared lost by time threshold */
    /* Packet numbers received: the smallest of the present key phase, the largest of those before; UINT64_MAX = none */
    uint64_t phase_first, before_phase;
    bool ack_now;
    xl_ecn_space ecn;
} xl_space;

void xl_space_init(xl_space *);
void xl_space_free(xl_space *);
/* Whether pn was received before (or is too old to say). */
bool xl_space_is_duplicate(const xl_space *, uint64_t pn);
/* Notes a received packet and decides when to acknowledge: when `immediate`, else as the space's policy says. */
int xl_space_receive(xl_space *, uint64_t pn, bool ack_eliciting, bool immediate, uint64_t now);
bool xl_space_owes_ack(const xl_space *);
/* Acknowledgement ranges, descending, at most cap. */
size_t xl_space_ack_ranges(const xl_space *, xl_ack_range *out, size_t cap);
void xl_space_ack_sent(xl_space *);
/* The peer has our acknowledgement of everything up to `largest`: no need to repeat it. */
void xl_space_ack_confirmed(xl_space *, uint64_t largest);

/* What automatic path management keeps in mind. Times: 0 = not. */
typedef struct {
    uint64_t window_at, sent, lost; /* the window of loss: its beginning, packets by then */
    unsigned loss_percent;          /* of the last one */
    uint64_t since;                 /* degraded, or as a standby path fit, without a break since then */
    unsigned turns;                 /* how often it was put on standby */
    bool stands_by;                 /* it was we who did */
    uint64_t reopen_at;             /* abandoned: when to open it anew */
    unsigned asked;                 /* PATH_CHALLENGEs of a silence that holds the connection up */
} xl_path_watch;

typedef struct {
    int index;
    xl_path_state state;
    uint64_t state_since;
    xl_path_watch watch;
    xl_technology technology;
    xl_addr local, remote;

    xl_cid dcid;            /* the peer's CID that our packets carry */
    uint64_t dcid_sequence; /* its sequence number */
    /* Path IDs of the packets that we send and that we receive: in the dialect `xlink` the sequence numbers of their
     * destination CIDs, in `ietf` the same number in both directions. */
    uint64_t remote_id, local_id;
    uint64_t local_cid_sequence; /* of our CID that the peer's newest packet carried */
    bool has_dcid, has_local_id;

    xl_space *space; /* the path's own, or the connection's when multipath is off */
    bool owns_space;

    xl_rtt rtt;     /* of the path: there and back on it. What schedulers and the choice of paths look at */
    xl_rtt ack_rtt; /* from a packet to its acknowledgement, on whichever path that came back. For timers and windows */
    uint64_t rtt_sampled_at; /* when rtt had its last sample */
    xl_pacer pacer;
    const xl_cc_ops *cc;
    xl_cc_group *cc_group; /* the connection's; NULL = none */
    xl_rate_sampler rate;
    alignas(16) uint8_t cc_state[XL_CC_STATE_BYTES];
    uint64_t mtu;      /* UDP payload bytes that packets may have now: mtu_search.size, 1200 during the handshake */
    xl_mtu mtu_search; /* DPLPMTUD */
    xl_ecn ecn;
    uint64_t bytes_in_flight;
    uint64_t last_eliciting_at; /* when the last ack-eliciting packet left, but for those of `last_signal_at` */
    uint64_t last_signal_at; /* when the last packet left that has QoE signals alone: it does not restart the timer */
    uint64_t eliciting_in_flight; /* packets */
    uint64_t pto_count;           /* consecutive */
    unsigned probes;              /* packets to send regardless of the congestion window */
    unsigned quiet_packets; /* packets since the last ack-eliciting one: now and then a PING asks for an ACK (13.2.4) */
    bool ping_pending;
    uint64_t unanswered; /* packets that are not ack-eliciting, sent since one of the path's was last acknowledged */

    bool validated;     /* the peer's address is proven */
    bool answers_early; /* server: carries data before, in answer to 0-RTT data and within the limit of section 8.1 */
    bool spin;          /* the spin bit of the next packet (RFC 9000 section 17.4) */
    bool has_proven;    /* not this one, but an earlier one is: a NAT rebinding that is being validated */
    xl_addr proven_local, proven_remote;
    bool asks_proven; /* a PATH_CHALLENGE is to go there too */
    bool challenge_pending, challenge_outstanding;
    bool challenge_was_small; /* the allowance (8.1) left no room to pad it: its answer proves no MTU (8.2.3) */
    bool challenge_is_probe;  /* it measures the RTT of a path that is validated: nothing hangs on the answer */
    uint8_t challenge[8];     /* of the newest PATH_CHALLENGE */
    /* Of the same validation: their answers count, too (8.2.3). */
    uint8_t earlier_challenges[XL_PATH_CHALLENGES_MAX][8];
    size_t earlier_challenge_count;
    uint64_t challenge_sent_at, challenge_deadline;
    unsigned challenge_tries;
    uint8_t responses[XL_PATH_RESPONSES_MAX][8];
    size_t response_count;
    unsigned responses_beyond; /* sent without room in the window since the path's last acknowledgement */
    uint64_t received_unvalidated, sent_unvalidated; /* bytes, anti-amplification (8.1) */

    uint64_t status, status_seq;           /* ours, of PATH_STATUS */
    bool status_pending, status_confirmed; /* to be sent; the peer has the newest */
    uint64_t standby_probed_at;
    uint64_t peer_status, peer_status_seq;
    bool peer_status_seen;

    /* Recently acknowledged bytes, in buckets of time: how fast the path delivers at present. */
    uint64_t rate_epoch;  /* when counting began */
    uint64_t rate_bucket; /* number of the newest bucket: time since the epoch / XL_RATE_BUCKET_US */
    uint64_t rate_bytes[XL_RATE_BUCKETS];
    uint64_t rate_sum;       /* of rate_bytes */
    uint64_t sent_total;     /* bytes ever put in flight */
    uint64_t busy_since;     /* bytes have been in flight without a break since then */
    uint64_t last_rate;      /* bytes a second, at the end of the last time it could be told; 0 never */
    bool is_answered;        /* a packet of this busy period was acknowledged, */
    uint64_t answered_since; /* for the first time then */
    xl_capacity capacity;    /* of the bottleneck, also while the path is not filled */

    uint64_t phase_from;  /* first packet number sent in the present key phase */
    bool phase_was_acked; /* one of that phase was acknowledged */

    uint64_t last_received_at;
    uint64_t signal_pn;             /* 1 + number of the packet that the last QOE_CONTROL_SIGNALS frame taken was in */
    uint64_t heard_after, heard_in; /* whoever made packet heard_in, or a later one, did so after heard_after */
    uint64_t acked_here_at;         /* when an acknowledgement of it last went out on itself */

    xl_path_stats stats;
} xl_path;

void xl_path_init(xl_path *, int index, const xl_addr *local, const xl_addr *remote, xl_technology);
/* Fresh RTT, pacer, window: a new path, or a migration (RFC 9000 section 9.4). */
void xl_path_reset_congestion(xl_path *, const xl_cc_ops *, uint64_t mtu, uint64_t now);
/* The size of its packets: to the window, its growth and the pacer too. */
void xl_path_set_mtu(xl_path *, uint64_t mtu, uint64_t now);
/* An acknowledgement that took latest_us came back, on the path itself or on another one. An acknowledgement from
 * elsewhere says nothing of this path's RTT: it would be the way there on one path and the way back on another. */
void xl_path_rtt_sample(xl_path *, uint64_t latest_us, uint64_t ack_delay_us, bool came_back_here, uint64_t now);
/* Acknowledgements come back elsewhere and the path's RTT was not measured for a while: time to ask for it. */
bool xl_path_wants_rtt_probe(const xl_path *, uint64_t now);
bool xl_path_wants_standby(const xl_path *); /* asked for by one side at least */
/* PATH_STATUS may go out: the peer knows the path by now. */
bool xl_path_status_is_due(const xl_path *);
bool xl_path_is_open(const xl_path *);        /* may carry anything: VALIDATING, ACTIVE, SUSPECT, STANDBY */
bool xl_path_may_carry_data(const xl_path *); /* ACTIVE, SUSPECT, STANDBY, and validated */
uint64_t xl_path_window(const xl_path *);
bool xl_path_has_window(const xl_path *); /* room for one more full packet */
/* Bytes that may still be sent before the peer's address is validated. */
uint64_t xl_path_amplification_left(const xl_path *);
void xl_path_update_pacer(xl_path *, uint64_t now);
/* Delivery, as seen by the sender. Bytes ahead divided by the rate at which acknowledgements come in is the time until
 * they are acknowledged (Little's law). Unlike the smoothed RTT this rises at once when the path fades, because it
 * needs no packet to come back. Until answers to the present busy period have come for a while the smoothed RTT has to
 * do. */
void xl_path_note_sent(xl_path *, uint64_t bytes, uint64_t now); /* before they are added to bytes_in_flight */
void xl_path_note_acked(xl_path *, uint64_t bytes, uint64_t sent_at, uint64_t now);
/* Until a packet of more_bytes sent now will be acknowledged, µs; XL_NEVER: nothing comes back at present. */
uint64_t xl_path_delivery_time(const xl_path *, uint64_t more_bytes, uint64_t now);
/* Until all that is in flight is acknowledged, by the path's rate, or by the one that it had when it was busy last. */
uint64_t xl_path_queue_time(const xl_path *, uint64_t now);
/* Until a packet in flight will be: sent_total is the path's when it had left, sent_at when that was. */
uint64_t xl_path_time_left(const xl_path *, uint64_t sent_total, uint64_t sent_at, uint64_t now);

/* When the probe timeout fires, XL_NEVER when nothing is in flight. cap_us limits the backed-off interval, 0 = no
 * limit. */
uint64_t xl_path_pto_at(const xl_path *, uint64_t max_ack_delay_us, uint64_t cap_us);

/* PATH_CHALLENGE: begins (or repeats) with these 8 random bytes. */
void xl_path_start_challenge(xl_path *, const uint8_t data[8]);
/* The same to measure the RTT: a PATH_RESPONSE always returns on the path of its PATH_CHALLENGE. */
void xl_path_start_rtt_probe(xl_path *, const uint8_t data[8]);
void xl_path_challenge_sent(xl_path *, uint64_t now);
/* True if this PATH_RESPONSE answers our challenge, or one that the challenge repeats; the path is validated then and,
 * without a sample yet and if the challenge was not repeated, gets one. */
bool xl_path_take_response(xl_path *, const uint8_t data[8], uint64_t now);
void xl_path_queue_response(xl_path *, const uint8_t data[8]);
/* A PATH_RESPONSE waits and may go out: within the congestion window (RFC 9002 section 7), and a few beyond it, because
 * a full window must not make the path look slower, or dead, to an honest peer. Challenges that come in numbers are
 * answered as acknowledgements come in: each answer is padded to many times the size of what asked for it. */
bool xl_path_may_respond(const xl_path *);

#endif
