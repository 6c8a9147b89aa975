#include "recovery/rate.h"

void xl_rate_sent(xl_rate_sampler *s, xl_sent_packet *p, uint64_t in_flight_before, uint64_t now) {
    if (in_flight_before == 0)
        s->first_sent_at = s->delivered_at = now;
    p->first_sent_at = s->first_sent_at;
    p->delivered_at = s->delivered_at;
    p->delivered = s->delivered;
    p->is_app_limited = s->app_limited_until != 0;
}

/* Whether the packet was sent before the path began anew: what it remembers of delivery is obsolete. */
static bool is_from_before(const xl_rate_sampler *s, const xl_sent_packet *p) {
    return p->time_us < s->begun_at || p->delivered > s->delivered;
}

void xl_rate_acked(xl_rate_sampler *s, const xl_sent_packet *p, uint64_t now) {
    if (is_from_before(s, p))
        return;
    s->delivered += p->bytes;
    s->delivered_at = now;
    s->newly_acked += p->bytes;
    /* The packet that was sent last determines the sample. */
    if (s->has_packet && p->time_us < s->newest_sent_at)
        return;
    s->has_packet = true;
    s->newest_sent_at = p->time_us;
    s->prior_delivered = p->delivered;
    s->prior_delivered_at = p->delivered_at;
    s->is_app_limited = p->is_app_limited;
    s->send_elapsed = p->time_us - p->first_sent_at;
    s->first_sent_at = p->time_us;
}

uint64_t xl_rate_since(const xl_rate_sampler *s, const xl_sent_packet *p) {
    return is_from_before(s, p) ? 0 : s->delivered - p->delivered;
}

void xl_rate_lost(xl_rate_sampler *s, uint64_t bytes) {
    s->newly_lost += bytes;
}

bool xl_rate_take(xl_rate_sampler *s, uint64_t min_rtt_us, xl_rate_sample *out) {
    *out = (xl_rate_sample){.delivered = s->delivered,
                            .prior_delivered = s->prior_delivered,
                            .is_app_limited = s->is_app_limited,
                            .newly_acked = s->newly_acked,
                            .newly_lost = s->newly_lost};
    if (!s->has_packet)
        return false;
    uint64_t ack_elapsed = s->delivered_at - s->prior_delivered_at;
    uint64_t elapsed = s->send_elapsed > ack_elapsed ? s->send_elapsed : ack_elapsed;
    if (elapsed >= min_rtt_us && elapsed > 0)
        out->bytes_per_s = (s->delivered - s->prior_delivered) * 1000000 / elapsed;
    if (s->app_limited_until != 0 && s->delivered > s->app_limited_until)
        s->app_limited_until = 0;
    s->has_packet = false;
    s->newly_acked = s->newly_lost = 0;
    return true;
}

void xl_rate_mark_app_limited(xl_rate_sampler *s, uint64_t in_flight) {
    uint64_t until = s->delivered + in_flight;
    s->app_limited_until = until > 0 ? until : 1;
}
