#include "path/ecn.h"

#define TESTING_PACKETS 10

void xl_ecn_start(xl_ecn *e, bool enabled) {
    *e = (xl_ecn){.state = enabled ? XL_ECN_TESTING : XL_ECN_OFF};
}

bool xl_ecn_mark(xl_ecn *e, uint64_t pto_count) {
    /* The path may drop marked packets, but a probe must get through. */
    if (e->state == XL_ECN_TESTING && (pto_count > 0 || e->marked == TESTING_PACKETS))
        e->state = XL_ECN_UNKNOWN;
    e->last_marked = e->state == XL_ECN_TESTING || e->state == XL_ECN_CAPABLE;
    e->marked += e->last_marked && e->state == XL_ECN_TESTING;
    return e->last_marked;
}

void xl_ecn_validated(xl_ecn *e, bool is_valid) {
    if (e->state != XL_ECN_OFF && e->state != XL_ECN_FAILED)
        e->state = is_valid ? XL_ECN_CAPABLE : XL_ECN_FAILED;
}

void xl_ecn_count(xl_ecn_space *s, uint8_t ip_field) {
    s->received.ect0 += ip_field == XL_IP_ECT0;
    s->received.ect1 += ip_field == XL_IP_ECT1;
    s->received.ce += ip_field == XL_IP_CE;
}

bool xl_ecn_take_counts(xl_ecn_space *s, const xl_ecn_counts *now, uint64_t newly_acked, uint64_t *new_ce) {
    const xl_ecn_counts *old = &s->reported;
    *new_ce = 0;
    if (!now)
        return newly_acked == 0;
    /* We never send ECT(1). Counts above what we sent are those of a network or peer that changes or invents marks. */
    if (now->ect0 < old->ect0 || now->ce < old->ce || now->ect1 > 0 || now->ect0 > s->sent ||
        now->ce > s->sent - now->ect0)
        return false;
    uint64_t more = now->ect0 - old->ect0 + now->ce - old->ce;
    if (more < newly_acked)
        return false;
    *new_ce = now->ce - old->ce;
    s->reported = *now;
    return true;
}

const char *xl_ecn_state_name(xl_ecn_state state) {
    static const char *const names[] = {"off", "testing", "unknown", "capable", "failed"};
    return names[state];
}
