#include "congestion/coupled.h"

static xl_cc_member *own(xl_coupled *s) {
    return s->group ? &s->group->member[s->member] : &s->alone;
}

void xl_coupled_init(void *state, uint64_t mtu_bytes, uint64_t now) {
    (void)now;
    xl_coupled *s = state;
    *s = (xl_coupled){0};
    xl_reno_init(&s->reno, mtu_bytes);
    xl_coupled_publish(s);
}

void xl_coupled_set_mtu(void *state, uint64_t mtu_bytes) {
    xl_coupled *s = state;
    xl_reno_set_mtu(&s->reno, mtu_bytes);
    xl_coupled_publish(s);
}

void xl_coupled_join(void *state, xl_cc_group *group, size_t member) {
    xl_coupled *s = state;
    s->group = group;
    s->member = member;
    group->member[member] = (xl_cc_member){.is_coupled = true};
    xl_coupled_publish(s);
}

void xl_coupled_publish(xl_coupled *s) {
    xl_cc_member *m = own(s);
    m->window = s->reno.cwnd;
    m->between_losses = s->since_loss > s->before_loss ? s->since_loss : s->before_loss;
}

bool xl_coupled_on_ack(xl_coupled *s, const xl_cc_ack *ack) {
    own(s)->rtt_s = (double)ack->srtt_us / 1e6;
    s->since_loss += (double)ack->bytes;
    bool avoids = xl_reno_on_ack(&s->reno, ack);
    xl_coupled_publish(s);
    return avoids && ack->srtt_us > 0;
}

void xl_coupled_on_loss(xl_coupled *s, uint64_t sent_time, double keep, uint64_t now) {
    if (xl_reno_on_loss(&s->reno, sent_time, keep, now)) {
        s->before_loss = s->since_loss;
        s->since_loss = 0;
    }
    xl_coupled_publish(s);
}

void xl_coupled_on_loss_by_half(void *state, uint64_t sent_time, uint64_t bytes, uint64_t now) {
    (void)bytes;
    xl_coupled_on_loss(state, sent_time, 0.5, now);
}

void xl_coupled_on_persistent_congestion(void *state, uint64_t now) {
    xl_coupled *s = state;
    xl_reno_on_persistent_congestion(&s->reno, now);
    xl_coupled_publish(s);
}

size_t xl_coupled_siblings(const xl_coupled *s, const xl_cc_member *out[XL_CC_GROUP_MAX]) {
    size_t n = 0;
    out[n++] = s->group ? &s->group->member[s->member] : &s->alone;
    for (size_t i = 0; s->group && i < XL_CC_GROUP_MAX; i++) {
        const xl_cc_member *m = &s->group->member[i];
        if (i != s->member && m->is_coupled && m->is_active && m->rtt_s > 0)
            out[n++] = m;
    }
    return n;
}
