#include "recovery/rtt.h"

#include "minmax.h"

#define PERSISTENT_THRESHOLD 3

void xl_rtt_init(xl_rtt *r) {
    *r = (xl_rtt){0};
    xl_rtt_start_at(r, XL_INITIAL_RTT_US);
}

void xl_rtt_start_at(xl_rtt *r, uint64_t initial_us) {
    r->smoothed = initial_us;
    r->var = initial_us / 2;
}

void xl_rtt_sample(xl_rtt *r, uint64_t latest_us, uint64_t ack_delay_us) {
    r->latest = latest_us;
    if (!r->has_sample) {
        r->has_sample = true;
        r->min = r->smoothed = latest_us;
        r->var = latest_us / 2;
        return;
    }
    if (latest_us < r->min)
        r->min = latest_us;
    /* Ignore a reported delay that would push the sample below the minimum. */
    uint64_t adjusted = latest_us;
    if (latest_us >= r->min && latest_us - r->min >= ack_delay_us)
        adjusted -= ack_delay_us;
    uint64_t deviation = r->smoothed > adjusted ? r->smoothed - adjusted : adjusted - r->smoothed;
    r->var = (3 * r->var + deviation) / 4;
    r->smoothed = (7 * r->smoothed + adjusted) / 8;
}

void xl_rtt_restart_min(xl_rtt *r) {
    r->min = r->latest;
}

uint64_t xl_rtt_pto(const xl_rtt *r, uint64_t max_ack_delay_us) {
    return r->smoothed + xl_max(4 * r->var, XL_GRANULARITY_US) + max_ack_delay_us;
}

uint64_t xl_rtt_loss_delay(const xl_rtt *r) {
    uint64_t rtt = xl_max(r->smoothed, r->latest);
    return xl_max(rtt + rtt / 8, XL_GRANULARITY_US);
}

uint64_t xl_rtt_persistent(const xl_rtt *r, uint64_t max_ack_delay_us) {
    return PERSISTENT_THRESHOLD * xl_rtt_pto(r, max_ack_delay_us);
}
