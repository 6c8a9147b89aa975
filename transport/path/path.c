#include "path/path.h"

#include <assert.h>
#include <string.h>

#include "crypto/crypto.h"
#include "minmax.h"

#define MAX_ACK_DELAY_US      25000 /* RFC 9000 section 18.2 */
#define ACK_RANGES_KEPT       64
#define CHALLENGE_TIMEOUT_MIN 100000 /* µs */
#define PACING_BURST_PACKETS  10     /* packets; lower bound of the burst */
#define PACING_BURST_BYTES    65507  /* upper bound, unless ten packets are more: payload of a UDP datagram over IPv4 */
#define RTT_PROBE_US          100000
#define RESPONSES_BEYOND      8

static_assert(XL_CC_GROUP_MAX >= XL_MAX_PATHS, "a group has room for every path");

void xl_space_init(xl_space *s) {
    memset(s, 0, sizeof *s);
    xl_ledger_init(&s->ledger);
    s->policy = (xl_ack_policy){.threshold = 1, .reordering = 1, .max_delay_us = MAX_ACK_DELAY_US};
    s->largest_ack_sent = s->largest_received = s->phase_first = s->before_phase = UINT64_MAX;
    s->ack_deadline = XL_NEVER;
    s->loss_time = XL_NEVER;
}

void xl_space_free(xl_space *s) {
    xl_ledger_free(&s->ledger);
    xl_ranges_free(&s->received);
}

bool xl_space_is_duplicate(const xl_space *s, uint64_t pn) {
    return pn < s->duplicate_floor || xl_ranges_contains(&s->received, pn);
}

/* Whether the peer would declare a missing packet lost if it knew of the gap, or pn is below what was reported.
 * `before`: the largest packet number before pn was added. */
static bool is_reordered(const xl_space *s, uint64_t pn, uint64_t before) {
    uint64_t most = s->policy.reordering;
    if (most <= 1)
        return most == 1 && before != UINT64_MAX && pn != before + 1;
    uint64_t reported =
        s->largest_ack_sent != UINT64_MAX && s->largest_ack_sent >= most ? s->largest_ack_sent - most + 1 : 0;
    uint64_t from = reported > s->duplicate_floor ? reported : s->duplicate_floor;
    xl_range gap;
    bool is_missing = xl_ranges_first_gap(&s->received, from, s->largest_received, &gap);
    return pn < reported || (is_missing && s->largest_received - gap.start >= most);
}

int xl_space_receive(xl_space *s, uint64_t pn, bool ack_eliciting, bool immediate, uint64_t now) {
    uint64_t before = s->largest_received;
    if (xl_ranges_add(&s->received, pn, pn + 1) != 0)
        return XL_ERR_MEMORY;
    if (s->received.count > ACK_RANGES_KEPT) {
        xl_ranges_keep_newest(&s->received, ACK_RANGES_KEPT);
        s->duplicate_floor = s->received.at[0].start;
    }
    if (s->largest_received == UINT64_MAX || pn > s->largest_received) {
        s->largest_received = pn;
        s->largest_received_at = now;
    }
    if (!ack_eliciting)
        return 0;
    s->unacked_eliciting++;
    if (immediate || s->unacked_eliciting > s->policy.threshold || is_reordered(s, pn, before))
        s->ack_now = true;
    if (s->ack_deadline == XL_NEVER)
        s->ack_deadline = now + s->policy.max_delay_us;
    return 0;
}

bool xl_space_owes_ack(const xl_space *s) {
    return s->unacked_eliciting > 0;
}

size_t xl_space_ack_ranges(const xl_space *s, xl_ack_range *out, size_t cap) {
    size_t n = 0;
    for (size_t i = s->received.count; i > 0 && n < cap; i--)
        out[n++] = (xl_ack_range){s->received.at[i - 1].start, s->received.at[i - 1].end - 1};
    return n;
}

void xl_space_ack_sent(xl_space *s) {
    s->unacked_eliciting = 0;
    s->largest_ack_sent = s->largest_received;
    s->ack_deadline = XL_NEVER;
    s->ack_now = false;
}

void xl_space_ack_confirmed(xl_space *s, uint64_t largest) {
    /* Keep the whole newest range, because the next acknowledgement must contain the largest packet number. */
    uint64_t keep = s->received.count ? s->received.at[s->received.count - 1].start : 0;
    uint64_t below = largest + 1 < keep ? largest + 1 : keep;
    if (below <= s->duplicate_floor)
        return;
    xl_ranges_drop_below(&s->received, below);
    s->duplicate_floor = below;
}

void xl_path_init(xl_path *p, int index, const xl_addr *local, const xl_addr *remote, xl_technology technology) {
    memset(p, 0, sizeof *p);
    p->index = index;
    p->state = XL_PATH_NEW;
    p->technology = technology;
    p->local = *local;
    p->remote = *remote;
    p->statuses.own = XL_STATUS_AVAILABLE;
    p->statuses.peer = XL_STATUS_AVAILABLE;
    p->validation.deadline = XL_NEVER;
    xl_rtt_init(&p->rtt);
    xl_rtt_init(&p->ack_rtt);
}

static void forget_rate(xl_path *p) {
    memset(p->delivery.bytes, 0, sizeof p->delivery.bytes);
    p->delivery.sum = 0;
}

void xl_path_reset_congestion(xl_path *p, const xl_cc_ops *cc, uint64_t mtu, uint64_t now) {
    p->cc.ops = cc;
    p->mtu = mtu;
    memset(p->cc.state, 0, sizeof p->cc.state);
    p->rate = (xl_rate_sampler){.begun_at = now, .delivered_at = now, .first_sent_at = now};
    cc->init(p->cc.state, mtu, now);
    if (cc->join && p->cc.group)
        cc->join(p->cc.state, p->cc.group, (size_t)p->index);
    xl_rtt_init(&p->rtt);
    xl_rtt_init(&p->ack_rtt);
    p->outage.until = 0;
    p->rtt_sampled_at = now;
    xl_pacer_init(&p->pacer, PACING_BURST_PACKETS * mtu, now);
    forget_rate(p);
    p->delivery.bucket = 0;
    p->delivery.epoch = now;
    p->flight.pto_count = 0;
    p->delivery.capacity = (xl_capacity){0};
    p->delivery.cross = (xl_cross_traffic){0};
}

void xl_path_set_mtu(xl_path *p, uint64_t mtu, uint64_t now) {
    p->mtu = mtu;
    p->cc.ops->set_mtu(p->cc.state, mtu);
    xl_path_update_pacer(p, now);
}

void xl_path_outage_begins(xl_path *p) {
    if (p->outage.until != XL_NEVER)
        p->outage = (xl_path_outage){.until = XL_NEVER, .rtt = p->rtt, .ack_rtt = p->ack_rtt, .least_us = UINT64_MAX};
}

/* Whether a sample counts after an outage. The probes of an outage of 8 s measure 8, 7, 6, … s. If all of them counted,
 * the probe timeout would be several seconds, and a second outage would be noticed as late. So of these and the first
 * packet sent afterwards, the smallest sample counts as if it had been the only one. */
static bool counts(xl_path *p, uint64_t latest_us, uint64_t now) {
    bool was_sent_afterwards = p->outage.until <= now - latest_us;
    if (was_sent_afterwards)
        p->outage.until = 0;
    if (latest_us >= p->outage.least_us)
        return was_sent_afterwards;
    p->outage.least_us = latest_us;
    p->rtt = p->outage.rtt;
    p->ack_rtt = p->outage.ack_rtt;
    return true;
}

bool xl_path_rtt_sample(xl_path *p, uint64_t latest_us, uint64_t ack_delay_us, bool came_back_here, uint64_t now) {
    if (p->outage.until && !counts(p, latest_us, now))
        return false;
    if (!p->ack_rtt.has_sample)
        p->measured_since = now;
    xl_rtt_sample(&p->ack_rtt, latest_us, ack_delay_us);
    if (came_back_here) {
        xl_rtt_sample(&p->rtt, latest_us, ack_delay_us);
        p->rtt_sampled_at = now;
    }
    return true;
}

bool xl_path_wants_rtt_probe(const xl_path *p, uint64_t now) {
    return p->validation.is_done && !p->validation.is_outstanding && now - p->rtt_sampled_at > RTT_PROBE_US;
}

bool xl_path_wants_standby(const xl_path *p) {
    return p->statuses.own == XL_STATUS_STANDBY || p->statuses.peer == XL_STATUS_STANDBY;
}

bool xl_path_status_is_due(const xl_path *p) {
    return p->statuses.is_pending && p->cids.has_remote &&
           (p->statuses.own == XL_STATUS_ABANDON || xl_path_may_carry_data(p));
}

bool xl_path_is_open(const xl_path *p) {
    return p->state != XL_PATH_NEW && p->state != XL_PATH_CLOSED;
}

bool xl_path_may_carry_data(const xl_path *p) {
    return (p->validation.is_done || p->validation.answers_early) &&
           (p->state == XL_PATH_ACTIVE || p->state == XL_PATH_SUSPECT || p->state == XL_PATH_STANDBY);
}

uint64_t xl_path_window(const xl_path *p) {
    return p->cc.ops->window(p->cc.state);
}

bool xl_path_has_window(const xl_path *p) {
    return p->flight.bytes + p->mtu <= xl_path_window(p);
}

uint64_t xl_path_amplification_left(const xl_path *p) {
    if (p->validation.is_done)
        return UINT64_MAX;
    uint64_t allowed = 3 * p->validation.received_bytes;
    return allowed > p->validation.sent_bytes ? allowed - p->validation.sent_bytes : 0;
}

/* Sets the burst to the bytes of burst_us at this rate, at least ten packets and at most one segmented send. Example: 1
 * ms of 96 Mbit/s is ten packets of 1200 bytes. */
static void update_burst(xl_path *p, uint64_t rate, uint64_t now) {
    uint64_t bytes = xl_min(rate / 1000 * p->burst_us / 1000, PACING_BURST_BYTES / p->mtu * p->mtu);
    bytes = xl_max(bytes, PACING_BURST_PACKETS * p->mtu);
    if (bytes != p->pacer.burst)
        xl_pacer_set_burst(&p->pacer, bytes, now);
}

void xl_path_update_pacer(xl_path *p, uint64_t now) {
    uint64_t rate;
    if (p->cc.ops->pacing_rate) {
        rate = p->cc.ops->pacing_rate(p->cc.state);
    } else if (!p->ack_rtt.has_sample && !p->rtt.has_sample) {
        rate = 0;
    } else {
        uint64_t window = xl_path_window(p);
        bool slow_start = window < p->cc.ops->ssthresh(p->cc.state);
        uint64_t srtt = p->ack_rtt.smoothed ? p->ack_rtt.smoothed : 1;
        rate = (slow_start ? 2 * window : window + window / 4) * 1000000 / srtt;
    }
    xl_pacer_set_rate(&p->pacer, rate, now);
    update_burst(p, rate, now);
}

/* Returns the bytes in buckets that leave the window when `newest` becomes the newest bucket. */
static uint64_t expired_bytes(const xl_path *p, uint64_t newest) {
    uint64_t bytes = 0;
    for (uint64_t i = 1; i <= newest - p->delivery.bucket && i <= XL_RATE_BUCKETS; i++)
        bytes += p->delivery.bytes[(p->delivery.bucket + i) % XL_RATE_BUCKETS];
    return bytes;
}

static void roll_buckets(xl_path *p, uint64_t now) {
    uint64_t newest = (now - p->delivery.epoch) / XL_RATE_BUCKET_US;
    uint64_t steps = newest - p->delivery.bucket;
    p->delivery.sum -= expired_bytes(p, newest);
    for (uint64_t i = 1; i <= steps && i <= XL_RATE_BUCKETS; i++)
        p->delivery.bytes[(p->delivery.bucket + i) % XL_RATE_BUCKETS] = 0;
    p->delivery.bucket = newest;
}

void xl_path_note_sent(xl_path *p, uint64_t bytes, uint64_t now) {
    if (p->flight.bytes == 0) {
        p->delivery.busy_since = now;
        p->delivery.is_answered = false;
    }
    p->delivery.sent_total += bytes;
}

/* Whether acknowledgements of this busy period have arrived for long enough to give a rate. The smoothed RTT is no
 * measure of that time: on a path that fades it grows as fast as time passes. */
static bool has_rate(const xl_path *p, uint64_t now) {
    return p->flight.bytes > 0 && p->delivery.is_answered && now - p->delivery.answered_since >= XL_RATE_BUCKET_US;
}

static uint64_t time_for(const xl_path *p, uint64_t bytes, uint64_t now) {
    uint64_t since = now - p->delivery.epoch;
    uint64_t acked = p->delivery.sum - expired_bytes(p, since / XL_RATE_BUCKET_US);
    if (acked == 0)
        return XL_NEVER;
    /* The window is the older buckets and the elapsed part of the newest one, but not the time before the first
     * acknowledgement of this busy period. */
    uint64_t window = (XL_RATE_BUCKETS - 1) * XL_RATE_BUCKET_US + since % XL_RATE_BUCKET_US;
    uint64_t answered = now - p->delivery.answered_since;
    return bytes * (answered < window ? answered : window) / acked;
}

void xl_path_note_acked(xl_path *p, uint64_t bytes, uint64_t sent_at, uint64_t now) {
    roll_buckets(p, now);
    xl_capacity_acked(&p->delivery.capacity, bytes, sent_at, p->delivery.busy_since, now);
    if (sent_at >= p->delivery.busy_since && !p->delivery.is_answered) {
        p->delivery.is_answered = true;
        p->delivery.answered_since = now; /* the first acknowledgement begins the measurement and is not part of it */
        forget_rate(p);
        return;
    }
    p->delivery.bytes[p->delivery.bucket % XL_RATE_BUCKETS] += bytes;
    p->delivery.sum += bytes;
    uint64_t for_a_megabyte = has_rate(p, now) ? time_for(p, 1000000, now) : 0;
    if (for_a_megabyte > 0 && for_a_megabyte != XL_NEVER)
        p->delivery.last_rate = UINT64_C(1000000) * 1000000 / for_a_megabyte;
}

void xl_path_note_delay(xl_path *p, const xl_sent_packet *pkt, uint64_t now) {
    uint64_t own_bytes = xl_rate_since(&p->rate, pkt);
    if (own_bytes == 0 || !p->ack_rtt.has_sample)
        return;
    const xl_capacity *capacity = &p->delivery.capacity;
    xl_cross_traffic_acked(&p->delivery.cross, now - pkt->time_us, p->ack_rtt.min, own_bytes,
                           capacity->measured_at == now ? capacity->bytes_per_s : 0, now);
}

uint64_t xl_path_queue_time(const xl_path *p, uint64_t now) {
    if (p->flight.bytes == 0)
        return 0;
    if (has_rate(p, now))
        return time_for(p, p->flight.bytes, now);
    return p->delivery.last_rate > 0 ? p->flight.bytes * 1000000 / p->delivery.last_rate : 0;
}

uint64_t xl_path_delivery_time(const xl_path *p, uint64_t more_bytes, uint64_t now) {
    if (p->flight.bytes == 0 && p->ack_rtt.has_sample)
        return p->ack_rtt.min; /* none of our packets waits in its queue */
    if (!has_rate(p, now))
        return p->ack_rtt.smoothed;
    uint64_t by_rate = time_for(p, p->flight.bytes + more_bytes, now);
    return by_rate > p->ack_rtt.min ? by_rate : p->ack_rtt.min;
}

uint64_t xl_path_time_left(const xl_path *p, uint64_t sent_total, uint64_t sent_at, uint64_t now) {
    if (!has_rate(p, now)) {
        uint64_t age = now - sent_at;
        if (age > p->ack_rtt.smoothed + 4 * p->ack_rtt.var)
            return XL_NEVER;
        return p->ack_rtt.smoothed > age ? p->ack_rtt.smoothed - age : 0;
    }
    uint64_t settled = p->delivery.sent_total - p->flight.bytes;
    return time_for(p, sent_total > settled + p->mtu ? sent_total - settled : p->mtu, now);
}

/* Each ack-eliciting packet restarts the timer (RFC 9002 section 6.2.1). On a dead path that carries a little data
 * again and again, such as copies of requests, the timer would never fire. So packets postpone it by at most one PTO,
 * which is longer than a sender needs to fill its window. */
uint64_t xl_path_pto_after(const xl_path *p, uint64_t last_eliciting_at, uint64_t max_ack_delay_us, uint64_t cap_us) {
    if (p->flight.eliciting == 0)
        return XL_NEVER;
    uint64_t shift = p->flight.pto_count < 20 ? p->flight.pto_count : 20;
    uint64_t pto = xl_rtt_pto(&p->ack_rtt, max_ack_delay_us), interval = pto << shift;
    if (cap_us && interval > cap_us && p->flight.pto_count > 0)
        interval = cap_us;
    return xl_min(last_eliciting_at, p->flight.awaited_since + pto) + interval;
}

uint64_t xl_path_pto_at(const xl_path *p, uint64_t max_ack_delay_us, uint64_t cap_us) {
    return xl_path_pto_after(p, p->flight.last_eliciting_at, max_ack_delay_us, cap_us);
}

/* Keeps the challenge: on a path with a long RTT its answer arrives after the challenge was repeated. */
static void keep_challenge(xl_path *p) {
    if (p->validation.earlier_count == XL_PATH_CHALLENGES_MAX) {
        memmove(p->validation.earlier[0], p->validation.earlier[1],
                sizeof p->validation.earlier[0] * (XL_PATH_CHALLENGES_MAX - 1));
        p->validation.earlier_count--;
    }
    memcpy(p->validation.earlier[p->validation.earlier_count++], p->validation.challenge, 8);
}

static bool answers_challenge(const xl_path *p, const uint8_t data[8]) {
    bool found = xl_is_equal(p->validation.challenge, data, 8);
    for (size_t i = 0; i < p->validation.earlier_count; i++)
        found |= xl_is_equal(p->validation.earlier[i], data, 8);
    return found;
}

void xl_path_start_challenge(xl_path *p, const uint8_t data[8]) {
    if (p->validation.tries == 0 || p->validation.is_rtt_probe)
        p->validation.earlier_count = 0;
    else
        keep_challenge(p);
    memcpy(p->validation.challenge, data, 8);
    p->validation.is_pending = true;
    p->validation.is_outstanding = true;
    p->validation.is_rtt_probe = false;
}

void xl_path_start_rtt_probe(xl_path *p, const uint8_t data[8]) {
    p->validation.tries = 0;
    xl_path_start_challenge(p, data);
    p->validation.is_rtt_probe = true;
}

void xl_path_challenge_sent(xl_path *p, uint64_t now) {
    uint64_t wait = 3 * (p->rtt.has_sample ? p->rtt.smoothed : XL_INITIAL_RTT_US / 3);
    if (wait < CHALLENGE_TIMEOUT_MIN)
        wait = CHALLENGE_TIMEOUT_MIN;
    unsigned shift = p->validation.tries < 3 ? p->validation.tries : 3;
    p->validation.is_pending = false;
    p->validation.sent_at = now;
    p->validation.deadline = now + (wait << shift);
    p->validation.tries++;
}

bool xl_path_take_response(xl_path *p, const uint8_t data[8], uint64_t now) {
    if (!p->validation.is_outstanding || !answers_challenge(p, data))
        return false;
    p->validation.is_outstanding = p->validation.is_pending = false;
    p->validation.deadline = XL_NEVER;
    p->validation.is_done = true;
    p->proven.exists = p->proven.is_asked = false;
    if (p->validation.tries == 1 && now > p->validation.sent_at) {
        const uint64_t rtt = now - p->validation.sent_at;
        if (!p->rtt.has_sample || p->validation.is_rtt_probe)
            xl_rtt_sample(&p->rtt, rtt, 0);
        if (!p->ack_rtt.has_sample)
            xl_rtt_start_at(&p->ack_rtt, rtt);
        p->rtt_sampled_at = now;
    }
    p->validation.tries = 0;
    return true;
}

void xl_path_queue_response(xl_path *p, const uint8_t data[8]) {
    /* Of a flood of challenges only the newest are answered, which bounds memory. */
    if (p->responses.count == XL_PATH_RESPONSES_MAX) {
        memmove(p->responses.data[0], p->responses.data[1], sizeof p->responses.data[0] * (XL_PATH_RESPONSES_MAX - 1));
        p->responses.count--;
    }
    memcpy(p->responses.data[p->responses.count++], data, 8);
}

bool xl_path_may_respond(const xl_path *p) {
    return p->responses.count > 0 && (xl_path_has_window(p) || p->responses.beyond < RESPONSES_BEYOND);
}
