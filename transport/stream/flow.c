#include "stream/flow.h"

#include "minmax.h"
#include "wire/cursor.h"
#include "xlink/xlink.h"

static uint64_t wanted_limit(const xl_flow_in *f) {
    return f->consumed > XL_VARINT_MAX - f->window ? XL_VARINT_MAX : f->consumed + f->window;
}

void xl_flow_in_init(xl_flow_in *f, uint64_t window, uint64_t most) {
    window = xl_min(window, XL_VARINT_MAX);
    *f = (xl_flow_in){.window = window, .most = xl_max(window, most), .raised = XL_NEVER, .limit = window};
}

bool xl_flow_in_should_update(const xl_flow_in *f) {
    uint64_t wanted = wanted_limit(f);
    return wanted > f->limit && wanted - f->limit >= f->window / 2;
}

/* A limit that is announced again after a loss says nothing about the rate. */
static void grow(xl_flow_in *f, uint64_t now, uint64_t rtt_us) {
    if (!xl_flow_in_should_update(f))
        return;
    if (f->raised != XL_NEVER && now - f->raised < 2 * rtt_us)
        f->window = xl_min(2 * f->window, f->most);
    f->raised = now;
}

uint64_t xl_flow_in_update(xl_flow_in *f, uint64_t now, uint64_t rtt_us) {
    grow(f, now, rtt_us);
    f->limit = xl_max(f->limit, wanted_limit(f));
    return f->limit;
}

void xl_flow_out_init(xl_flow_out *f, uint64_t limit) {
    *f = (xl_flow_out){.limit = limit, .blocked_at = UINT64_MAX};
}

bool xl_flow_out_raise(xl_flow_out *f, uint64_t limit) {
    if (limit <= f->limit)
        return false;
    f->limit = limit;
    return true;
}

uint64_t xl_flow_out_left(const xl_flow_out *f) {
    return f->limit > f->used ? f->limit - f->used : 0;
}

bool xl_flow_out_take_blocked(xl_flow_out *f) {
    if (xl_flow_out_left(f) > 0 || f->blocked_at == f->limit)
        return false;
    f->blocked_at = f->limit;
    return true;
}
