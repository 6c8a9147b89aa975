#include "emulator/saturatr/window.h"

#include <string.h>

#define CEILING_PACKETS    1500.0
#define CEILING_EXTRA_S    0.25
#define FLOOR_EXTRA_S      0.05
#define BUILDING_US        20000u /* a shorter queue does not show that the link is full */
#define DECREASE           20u
#define LEAST_HEARTBEAT_US 20000u
#define RATE_SPAN_US       50000u
#define BURST_PACKETS      64.0
#define BURST_S            0.002
#define PACING_GAIN        4.0
#define SMOOTH_GAIN        1.25
#define LEAST_SMOOTH_PPS   20.0
#define LEAST_PACING_PPS   8312.0 /* 100 Mbps of 1504 bytes */
#define PACING_QUANTUM     16.0   /* packets; fewer are not worth a wake-up */
#define BELIEVABLE_PPS     1e8    /* 1.2 Tbps; limits what a hostile receiver can claim */
#define ROUND_LOSS_SHARE   10u    /* reciprocal of the share */
#define CAUTION            16u
#define ROUND_MIN_PACKETS  20u

void sat_window_init(sat_window *w, uint64_t now) {
    memset(w, 0, sizeof *w);
    w->window = SAT_WINDOW_START;
    w->base_rtt_us = SAT_NEVER;
    w->last_send_us = now;
    w->tokens = BURST_PACKETS;
    w->tokens_us = now;
}

uint64_t sat_window_in_flight(const sat_window *w) {
    return w->next_seq - w->acked_until;
}

double sat_window_best_pps(const sat_window *w) {
    double best = 0.0;
    for (size_t i = 0; i < SAT_RATE_BINS; i++)
        best = w->rate_bins_pps[i] > best ? w->rate_bins_pps[i] : best;
    return best;
}

uint64_t sat_window_queue_us(const sat_window *w) {
    return w->delay_us - w->least_delay_us;
}

bool sat_window_saturated(const sat_window *w) {
    return sat_window_queue_us(w) >= SAT_SATURATED_US || w->cautious;
}

static double base_rtt_s(const sat_window *w) {
    return (double)w->base_rtt_us / 1e6;
}

static uint64_t window_floor(const sat_window *w) {
    double packets = sat_window_best_pps(w) * (1.25 * base_rtt_s(w) + FLOOR_EXTRA_S);
    packets = packets < SAT_WINDOW_HARD_CAP ? packets : SAT_WINDOW_HARD_CAP;
    return packets > SAT_WINDOW_START ? (uint64_t)packets : SAT_WINDOW_START;
}

static uint64_t window_ceiling(const sat_window *w) {
    double packets = sat_window_best_pps(w) * (2.0 * base_rtt_s(w) + CEILING_EXTRA_S);
    packets = packets > CEILING_PACKETS ? packets : CEILING_PACKETS;
    return packets < SAT_WINDOW_HARD_CAP ? (uint64_t)packets : SAT_WINDOW_HARD_CAP;
}

static void measure_rate(sat_window *w, uint64_t received_us) {
    if (w->span_start_us == 0 || received_us < w->span_start_us) {
        w->span_start_us = received_us;
        w->span_start_packets = w->received;
        return;
    }
    uint64_t span = received_us - w->span_start_us;
    if (span < RATE_SPAN_US)
        return;
    uint64_t bin = received_us / SAT_RATE_BIN_US + 1;
    if (w->rate_bin == 0 || bin >= w->rate_bin + SAT_RATE_BINS) {
        memset(w->rate_bins_pps, 0, sizeof w->rate_bins_pps);
        w->rate_bin = bin;
    }
    while (w->rate_bin < bin)
        w->rate_bins_pps[++w->rate_bin % SAT_RATE_BINS] = 0.0;
    double pps = (double)(w->received - w->span_start_packets) * 1e6 / (double)span;
    pps = pps < BELIEVABLE_PPS ? pps : BELIEVABLE_PPS;
    double *slot = &w->rate_bins_pps[bin % SAT_RATE_BINS];
    *slot = pps > *slot ? pps : *slot;
    w->span_start_us = received_us;
    w->span_start_packets = w->received;
}

/* Once per round trip: determines whether the link's queue overflowed. */
static void judge_round(sat_window *w) {
    if (w->acked_until < w->round_end || w->acked_until - w->round_start < ROUND_MIN_PACKETS)
        return;
    uint64_t sent = w->acked_until - w->round_start;
    uint64_t arrived = w->received - w->round_received;
    uint64_t lost = sent > arrived ? sent - arrived : 0;
    w->overflow = lost * ROUND_LOSS_SHARE > sent;
    if (w->overflow) {
        w->cautious = true;
        w->full_queue_us = sat_window_queue_us(w);
        uint64_t least = window_floor(w);
        w->window = w->window > least + lost ? w->window - lost : w->window < least ? w->window : least;
    }
    w->round_start = w->acked_until;
    w->round_received = w->received;
    w->round_end = w->next_seq;
}

/* Returns the growth of a window that has built up a queue. */
static uint64_t growth(sat_window *w, uint64_t packets) {
    if (!w->cautious)
        return packets;
    w->credit += packets;
    uint64_t grown = w->credit / CAUTION;
    w->credit %= CAUTION;
    return grown;
}

static void grow_to(sat_window *w, uint64_t packets, uint64_t ceiling) {
    uint64_t grown = w->window + packets;
    w->window = w->window >= ceiling ? w->window : grown < ceiling ? grown : ceiling;
}

/* Whether the queue is too short to show that the link is full. */
static bool is_hungry(const sat_window *w) {
    uint64_t queue = sat_window_queue_us(w);
    return queue < BUILDING_US && (!w->cautious || queue < w->full_queue_us / 4);
}

static void adapt(sat_window *w, uint64_t packets) {
    if (is_hungry(w)) {
        w->cautious = false;
        grow_to(w, w->overflow ? 0 : 2 * packets, SAT_WINDOW_HARD_CAP);
    } else if (w->rtt_us < SAT_LOWER_RTT_US && !w->overflow) {
        grow_to(w, growth(w, packets), window_ceiling(w));
    } else if (w->rtt_us > SAT_UPPER_RTT_US) {
        uint64_t least = window_floor(w);
        uint64_t less = packets * DECREASE;
        w->window = w->window > least + less ? w->window - less : w->window < least ? w->window : least;
    }
}

void sat_window_on_ack(sat_window *w, uint64_t highest, uint64_t received, uint64_t echo_us, uint64_t received_us,
                       uint64_t now) {
    if (highest >= w->next_seq || highest + 1 < w->acked_until || received <= w->received || echo_us > now)
        return; /* invalid, or overtaken by a later one */
    uint64_t under_way = sat_window_in_flight(w);
    uint64_t packets = received - w->received;
    w->delay_us = received_us - echo_us;
    if (w->received == 0 || (int64_t)(w->delay_us - w->least_delay_us) < 0)
        w->least_delay_us = w->delay_us;
    w->acked_until = highest + 1;
    w->received = received;
    w->rtt_us = now - echo_us;
    w->base_rtt_us = w->rtt_us < w->base_rtt_us ? w->rtt_us : w->base_rtt_us;
    measure_rate(w, received_us);
    judge_round(w);
    adapt(w, packets < under_way ? packets : under_way);
}

static double pacing_pps(const sat_window *w) {
    if (w->smooth && sat_window_saturated(w)) {
        double best = SMOOTH_GAIN * sat_window_best_pps(w);
        return best > LEAST_SMOOTH_PPS ? best : LEAST_SMOOTH_PPS;
    }
    double pps = PACING_GAIN * sat_window_best_pps(w);
    return pps > LEAST_PACING_PPS ? pps : LEAST_PACING_PPS;
}

static uint64_t room(const sat_window *w) {
    uint64_t in_flight = sat_window_in_flight(w);
    return w->window > in_flight ? w->window - in_flight : 0;
}

static uint64_t heartbeat_us(const sat_window *w) {
    uint64_t soon = 2 * w->rtt_us > LEAST_HEARTBEAT_US ? 2 * w->rtt_us : LEAST_HEARTBEAT_US;
    return w->cautious && soon < SAT_HEARTBEAT_US ? soon : SAT_HEARTBEAT_US;
}

uint64_t sat_window_allowance(sat_window *w, uint64_t now) {
    double pps = pacing_pps(w);
    double depth = pps * BURST_S > BURST_PACKETS ? pps * BURST_S : BURST_PACKETS;
    w->tokens += pps * (double)(now - w->tokens_us) / 1e6;
    w->tokens = w->tokens > depth ? depth : w->tokens;
    w->tokens_us = now;
    uint64_t packets = room(w);
    if (packets > (uint64_t)w->tokens)
        packets = w->tokens < PACING_QUANTUM ? 0 : (uint64_t)w->tokens;
    return packets == 0 && now - w->last_send_us >= heartbeat_us(w) ? 1 : packets;
}

void sat_window_on_sent(sat_window *w, uint64_t packets, uint64_t now) {
    w->next_seq += packets;
    w->tokens -= (double)packets;
    w->last_send_us = now;
}

uint64_t sat_window_next(const sat_window *w, uint64_t now) {
    if (room(w) == 0)
        return w->last_send_us + heartbeat_us(w);
    double missing = PACING_QUANTUM - w->tokens;
    return missing <= 0.0 ? now : now + 1 + (uint64_t)(missing * 1e6 / pacing_pps(w));
}
