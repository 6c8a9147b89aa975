#include "emulator/link/change.h"

#include "emulator/link/queue.h"

void link_change_read(link_change *change, const link_settings *given) {
    const link_config *c = &given->config;
    change->has_delay = link_settings_has(given, "delay_ms");
    change->has_loss = link_settings_has(given, "loss");
    change->has_reorder = link_settings_has(given, "reorder");
    change->has_duplicate = link_settings_has(given, "duplicate");
    change->has_cross = link_settings_has(given, "cross");
    change->delay_us = c->delay_us;
    change->loss = c->loss;
    change->mtu_bytes = c->mtu_bytes;
    change->reorder = c->reorder;
    change->reorder_us = c->reorder_us;
    change->duplicate = c->duplicate;
    change->cross_bps = c->cross.rate_bps;
}

bool link_change_suits(const link_change *change, const link_settings settings[2], const bool ways[2]) {
    for (size_t way = 0; way < 2 && change->cross_bps > 0; way++)
        if (ways[way] && link_queue_is_infinite(settings[way].config.queue))
            return false;
    return true;
}

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
