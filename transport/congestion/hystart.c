#include "congestion/hystart.h"

/* RFC 9406 section 4.3. */
#define MIN_RTT_THRESH_US  4000
#define MAX_RTT_THRESH_US  16000
#define MIN_RTT_DIVISOR    8
#define N_RTT_SAMPLE       8
#define CSS_GROWTH_DIVISOR 4
#define CSS_ROUNDS         5

void xl_hystart_init(xl_hystart *h) {
    *h = (xl_hystart){.last_min_us = UINT64_MAX, .current_min_us = UINT64_MAX};
}

static void begin_round(xl_hystart *h, uint64_t now) {
    h->started = true;
    h->round_start = now;
    h->last_min_us = h->current_min_us;
    h->current_min_us = UINT64_MAX;
    h->samples = 0;
}

static void take_sample(xl_hystart *h, uint64_t now, uint64_t rtt_us) {
    if (rtt_us == 0 || (h->samples > 0 && h->last_sample == now))
        return;
    h->last_sample = now;
    h->samples++;
    if (rtt_us < h->current_min_us)
        h->current_min_us = rtt_us;
}

uint64_t xl_hystart_threshold(uint64_t rtt_us) {
    uint64_t threshold = rtt_us / MIN_RTT_DIVISOR;
    if (threshold > MAX_RTT_THRESH_US)
        return MAX_RTT_THRESH_US;
    return threshold > MIN_RTT_THRESH_US ? threshold : MIN_RTT_THRESH_US;
}

static bool delay_rose(const xl_hystart *h) {
    if (h->samples < N_RTT_SAMPLE || h->last_min_us == UINT64_MAX)
        return false;
    return h->current_min_us >= h->last_min_us + xl_hystart_threshold(h->last_min_us);
}

bool xl_hystart_on_ack(xl_hystart *h, uint64_t now, uint64_t sent_time, uint64_t rtt_us) {
    if (!h->started || sent_time >= h->round_start) {
        bool is_first = !h->started;
        begin_round(h, now);
        /* The round in which Conservative Slow Start was entered counts, although only a part of it was spent there. */
        if (!is_first && h->in_css && ++h->css_rounds >= CSS_ROUNDS)
            return true;
    }
    take_sample(h, now, rtt_us);
    if (!h->in_css && delay_rose(h)) {
        h->in_css = true;
        h->css_rounds = 0;
        h->baseline_us = h->current_min_us;
    } else if (h->in_css && h->samples >= N_RTT_SAMPLE && h->current_min_us < h->baseline_us) {
        h->in_css = false; /* it was jitter */
    }
    return false;
}

uint64_t xl_hystart_growth(const xl_hystart *h, uint64_t bytes) {
    return h->in_css ? bytes / CSS_GROWTH_DIVISOR : bytes;
}
