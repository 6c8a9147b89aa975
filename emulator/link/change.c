#include "emulator/link/change.h"

void link_change_apply(emulated_link *link, const link_change *change, uint64_t now) {
    if (change->has_state)
        link_set_up(link, change->is_up, now);
    if (change->has_delay)
        link_set_delay(link, change->delay_us, now);
    if (change->has_loss)
        (void)link_set_loss(link, &change->loss, now);
    if (change->rate_bps != 0)
        (void)link_set_rate(link, change->rate_bps, now);
    if (change->trace)
        link_set_trace(link, change->trace, now);
    if (change->mtu_bytes != 0)
        link_set_mtu(link, (uint32_t)change->mtu_bytes, now);
    if (change->has_reorder)
        link_set_reorder(link, change->reorder, change->reorder_us, now);
    if (change->has_duplicate)
        link_set_duplicate(link, change->duplicate, now);
    if (change->has_cross)
        (void)link_set_cross(link, change->cross_bps, now);
    if (change->rebinds)
        link_rebind(link, now);
}
