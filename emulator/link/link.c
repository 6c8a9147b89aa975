#include "base/error.h"
#include "emulator/link/link_internal.h"

#include <stdlib.h>
#include <string.h>

/* The random streams of a link. Losses use the seed itself. */
typedef enum {
    STREAM_LOSS_MOVES = 1,
    STREAM_ONOFF,
    STREAM_JITTER,
    STREAM_REORDER,
    STREAM_DUPLICATE,
    STREAM_QUEUE,
    STREAM_CROSS,
    STREAM_LEO,
    STREAM_LEO_LOSS,
    STREAM_GRANTS
} stream;

/* Starts a trace whose time 0 is at start_us. Leaves out opportunities before from_us. Both in us since t0. */
static void take_trace(emulated_link *link, const link_trace *trace, int64_t start_us, uint64_t from_us) {
    link->trace = trace;
    link->trace_end = link->set.once && trace->at_ms ? trace->count : LINK_NEVER;
    link->trace_start_us = start_us;
    uint64_t before = from_us - (uint64_t)start_us;
    link->first_opportunity = before == 0 ? 0 : opportunity_after(link, from_us - 1);
    link->next_opportunity = link->first_opportunity;
}

static bool is_probability(double value) {
    return value >= 0.0 && value <= 1.0;
}

static const char *find_problem(const link_config *config) {
    return !link_loss_is_valid(&config->loss)   ? "the loss"
           : !is_probability(config->reorder)   ? "reorder"
           : !is_probability(config->duplicate) ? "duplicate"
                                                : NULL;
}

static void set_up_effects(emulated_link *link, const link_config *config) {
    link->set = *config;
    link->set.queue = NULL;
    if (link->set.opportunity_bytes == 0)
        link->set.opportunity_bytes = LINK_OPPORTUNITY_BYTES;
    if (link->set.mtu_bytes == 0)
        link->set.mtu_bytes = LINK_MTU_MOST;
    link->set.light.opportunity_bytes = link->set.opportunity_bytes;
    if (link->set.rrc)
        link->set.radio.promotion_us = link->set.radio.tail_us = 0;
    link->served_us = LINK_NEVER;
    link->wake.last_us = LINK_NEVER;
    link->jitter_rng.state = link_substream(config->seed, STREAM_JITTER);
    link->reorder_rng.state = link_substream(config->seed, STREAM_REORDER);
    link->duplicate_rng.state = link_substream(config->seed, STREAM_DUPLICATE);
    link->loss.model = config->loss;
    link->loss.losses.state = config->seed;
    link->loss.moves.state = link_substream(config->seed, STREAM_LOSS_MOVES);
    link->leo_seed = link_substream(config->seed, STREAM_LEO);
    link->leo_rng.state = link_substream(config->seed, STREAM_LEO_LOSS);
    if (config->grants.sr_us > 0)
        link->grants_phase_us = link_substream(config->seed, STREAM_GRANTS) % config->grants.sr_us;
    link_onoff_init(&link->onoff, &config->onoff, link_substream(config->seed, STREAM_ONOFF));
    link_cross_init(&link->cross, &config->cross, link_substream(config->seed, STREAM_CROSS),
                    config->start_offset_ms * 1000, 0);
    link->has_cross = link_cross_is_on(&config->cross);
}

static void join_air(emulated_link *link);

emulated_link *link_new(const link_config *config, char *error, size_t error_size) {
    const char *problem = find_problem(config);
    const bool is_infinite = link_queue_is_infinite(config->queue);
    if (problem)
        return error_null(error, error_size, "%s is not a probability; give numbers from 0 to 1", problem);
    if (is_infinite && link_cross_is_on(&config->cross))
        return error_null(error, error_size, LINK_CROSS_NEEDS_LIMIT);
    emulated_link *link = calloc(1, sizeof *link);
    if (!link)
        return error_null(error, error_size, "no memory for a link");
    link->queue = link_queue_new(config->queue ? config->queue : LINK_QUEUE_DEFAULT, config->pool,
                                 link_substream(config->seed, STREAM_QUEUE), error, error_size);
    if (!link->queue) {
        free(link);
        return NULL;
    }
    link->is_infinite = is_infinite;
    set_up_effects(link, config);
    take_trace(link, config->trace, -(int64_t)(config->start_offset_ms * 1000), 0);
    if (config->air)
        join_air(link);
    return link;
}

static void release(emulated_link *link, link_fifo *fifo) {
    for (link_packet *p = link_fifo_pop(fifo); p; p = link_fifo_pop(fifo))
        link_pool_put(link->set.pool, p);
}

void link_free(emulated_link *link) {
    if (!link)
        return;
    if (link->set.air)
        link_air_leave(link->set.air, link->set.is_downlink, link->set.pool);
    release(link, &link->delayed);
    release(link, &link->held);
    release(link, &link->delivered);
    link_pool_put(link->set.pool, link->in_transit);
    link_queue_free(link->queue);
    free(link);
}

static bool is_idle(const emulated_link *link) {
    return !link->in_transit && link->queue->packets == 0;
}

/* Whether opportunities pass unused. */
static bool is_unserved(const emulated_link *link) {
    return link->down || is_idle(link);
}

/* Returns the list whose oldest packet leaves the delay first; NULL: no packet is delayed. */
static link_fifo *next_delayed(emulated_link *link) {
    if (held_goes_first(link->held.head, link->delayed.head))
        return &link->held;
    return link->delayed.head ? &link->delayed : NULL;
}

/* Returns the packet that leaves the delay next, or NULL. */
static const link_packet *next_arriving(const emulated_link *link) {
    return held_goes_first(link->held.head, link->delayed.head) ? link->held.head : link->delayed.head;
}

static uint64_t next_arrival(const emulated_link *link) {
    const link_packet *next = next_arriving(link);
    return next ? next->due_us : LINK_NEVER;
}

/* Lets the opportunities up to and at time t pass unused. */
static void pass_opportunities(emulated_link *link, uint64_t t) {
    uint64_t end = opportunity_after(link, t);
    if (end <= link->next_opportunity)
        return;
    if (link->set.log)
        for (uint64_t k = link->next_opportunity; k < end; k++)
            link_log_line(link->set.log, opportunity_us(link, k) / 1000, LINK_LOG_OPPORTUNITY,
                          link->set.opportunity_bytes);
    link->next_opportunity = end;
}

/* Drops of the queue so far. */
typedef struct {
    uint64_t packets, bytes, cross_packets, cross_bytes;
} drops;

static drops drops_of(const link_queue *queue) {
    return (drops){queue->dropped_packets, queue->dropped_bytes, queue->dropped_cross_packets,
                   queue->dropped_cross_bytes};
}

static void log_drops(emulated_link *link, const drops *before, uint64_t t) {
    if (link->queue->dropped_packets == before->packets)
        return;
    const drops now = drops_of(link->queue);
    uint64_t cross_packets = now.cross_packets - before->cross_packets, packets = now.packets - before->packets;
    uint64_t cross_bytes = now.cross_bytes - before->cross_bytes, bytes = now.bytes - before->bytes;
    if (cross_packets > 0)
        link_log_line2(link->set.log, t / 1000, LINK_LOG_CROSS_DROP, cross_packets, cross_bytes);
    if (packets > cross_packets)
        link_log_line2(link->set.log, t / 1000, LINK_LOG_DROP, packets - cross_packets, bytes - cross_bytes);
}

static link_packet *dequeue(emulated_link *link, uint64_t t) {
    if (!link->set.log)
        return link_queue_dequeue(link->queue, t);
    const drops before = drops_of(link->queue);
    link_packet *packet = link_queue_dequeue(link->queue, t);
    log_drops(link, &before, t);
    return packet;
}

/* The packet was served completely at time t. Others' traffic ends here. */
static void complete(emulated_link *link, link_packet *packet, uint64_t t) {
    packet->due_us = link->served_us = t;
    if (!packet->is_cross) {
        link_fifo_push(&link->delivered, packet);
        return;
    }
    link->stats.cross_departed++;
    link->stats.cross_departed_bytes += link_packet_bytes(packet);
    link_log_line(link->set.log, t / 1000, LINK_LOG_CROSS_DEPARTURE, link_packet_bytes(packet));
    link_pool_put(link->set.pool, packet);
}

/* Serves the queue with the next opportunity, which is at time t. */
static void serve_opportunity(emulated_link *link, uint64_t t) {
    uint32_t left = link->set.opportunity_bytes;
    link_log_line(link->set.log, t / 1000, LINK_LOG_OPPORTUNITY, left);
    link->next_opportunity++;
    while (left > 0) {
        if (!link->in_transit) {
            link->in_transit = dequeue(link, t);
            if (!link->in_transit)
                break;
            link->in_transit_left = link_packet_bytes(link->in_transit);
        }
        link_serve(&left, &link->in_transit_left);
        if (link->in_transit_left == 0) {
            complete(link, link->in_transit, t);
            link->in_transit = NULL;
        }
    }
    link->stats.opportunities_used += left < link->set.opportunity_bytes;
}

static void join_queue(emulated_link *link, link_packet *packet, uint64_t t) {
    if (!link->set.log) {
        link_queue_enqueue(link->queue, packet, t);
        return;
    }
    const drops before = drops_of(link->queue);
    link_queue_enqueue(link->queue, packet, t);
    log_drops(link, &before, t);
}

/* The packet arrives at the queue, or bypasses it. */
static void arrive(emulated_link *link, link_packet *packet, uint64_t t) {
    packet->arrival_us = t;
    link_log_line(link->set.log, t / 1000, LINK_LOG_ARRIVAL, link_packet_bytes(packet));
    if (packet->direct && is_idle(link) && link->served_us != t) {
        link_fifo_push(&link->delivered, packet);
        return;
    }
    join_queue(link, packet, t);
}

/* The next packet of others' traffic arrives at time t. It is dropped while the link is off or down. */
static void arrive_cross(emulated_link *link, uint64_t t) {
    bool is_on = link_onoff_advance(&link->onoff, t) && !link->down;
    link_packet *packet = is_on ? link_pool_get(link->set.pool) : NULL;
    link_cross_take(&link->cross);
    link->stats.cross_packets++;
    if (!packet) {
        link->stats.cross_drops++;
        return;
    }
    link_cross_fill(&link->cross, packet);
    packet->is_cross = true;
    packet->arrival_us = t;
    link_log_line(link->set.log, t / 1000, LINK_LOG_CROSS_ARRIVAL, link_packet_bytes(packet));
    join_queue(link, packet, t);
}

/* Returns a second copy; NULL: none is wanted, or there is no memory. */
static link_packet *duplicate(emulated_link *link, const link_packet *packet, bool wanted) {
    link_packet *copy = wanted ? link_pool_get(link->set.pool) : NULL;
    if (copy) {
        copy->length = packet->length;
        copy->direct = packet->direct;
        copy->due_us = packet->due_us;
        copy->route = packet->route;
        copy->hop = packet->hop;
        memcpy(copy->data, packet->data, packet->length);
        link->stats.duplicates++;
    }
    return copy;
}

/* Whether a packet that reaches the queue at t is lost in the burst after a boundary (leo.h). */
static bool is_lost_at_boundary(emulated_link *link, uint64_t t) {
    double loss =
        link->set.leo.burst_us > 0 ? link_leo_loss(&link->set.leo, t + link->set.start_offset_ms * 1000) : 0.0;
    return loss > 0.0 && link_rng_uniform(&link->leo_rng) < loss;
}

/* The next packet leaves the delay: random loss, on/off, duplication, then the queue. Each effect draws for every
 * packet, so that the outcome of one does not change the draws of another. */
static void end_delay(emulated_link *link) {
    link_packet *packet = link_fifo_pop(next_delayed(link));
    uint64_t t = packet->due_us;
    bool is_lost = link_loss_next(&link->loss);
    is_lost = is_lost_at_boundary(link, t) || is_lost;
    bool twice = link->set.duplicate > 0.0 && link_rng_uniform(&link->duplicate_rng) < link->set.duplicate;
    bool is_on = link_onoff_advance(&link->onoff, t) && !link->down;
    if (is_lost || !is_on) {
        link->stats.off_losses += !is_on;
        link->stats.random_losses += is_on;
        link_pool_put(link->set.pool, packet);
        return;
    }
    link_packet *copy = duplicate(link, packet, twice);
    arrive(link, packet, t);
    if (copy)
        arrive(link, copy, t);
}

/* ---- service by an air ---- */

static link_packet *take_for_air(void *user, uint64_t t) {
    return dequeue(user, t);
}

static bool waits_for_air(const void *user) {
    return ((const emulated_link *)user)->queue->packets > 0;
}

static void deliver_from_air(void *user, link_packet *packet, uint64_t t) {
    complete(user, packet, t);
}

static void give_up_in_air(void *user, link_packet *packet, uint64_t t) {
    emulated_link *link = user;
    if (packet->is_cross) {
        link->stats.cross_drops++;
        link_log_line2(link->set.log, t / 1000, LINK_LOG_CROSS_DROP, 1, link_packet_bytes(packet));
    } else {
        link->stats.retry_drops++;
        link_log_line2(link->set.log, t / 1000, LINK_LOG_DROP, 1, link_packet_bytes(packet));
    }
    link_pool_put(link->set.pool, packet);
}

static void log_transmission(void *user, uint64_t t, uint64_t bytes) {
    const emulated_link *link = user;
    link_log_line(link->set.log, t / 1000, LINK_LOG_OPPORTUNITY, bytes);
}

static void join_air(emulated_link *link) {
    const link_air_user user = {link, take_for_air, waits_for_air, deliver_from_air, give_up_in_air, log_transmission};
    link_air_join(link->set.air, link->set.is_downlink, &user);
}

/* Returns when the next packet reaches the queue, up to `now`; LINK_NEVER: none does. */
static uint64_t next_to_queue(emulated_link *link, uint64_t now, bool *is_cross) {
    uint64_t arrival = next_arrival(link), horizon = arrival < now ? arrival : now;
    uint64_t cross = link->has_cross ? link_cross_next(&link->cross, horizon) : LINK_NEVER;
    *is_cross = cross != LINK_NEVER;
    return *is_cross ? cross : arrival <= now ? arrival : LINK_NEVER;
}

/* Advances both directions, event by event. At the same time, transmissions come before arrivals, and the uplink's
 * arrivals before the downlink's. */
static void advance_with_air(emulated_link *link, uint64_t now) {
    link_air *air = link->set.air;
    emulated_link *other = link_air_other(air, link->set.is_downlink), *up = link->set.is_downlink ? other : link;
    emulated_link *down = link->set.is_downlink ? link : other;
    for (;;) {
        bool up_is_cross = false, down_is_cross = false;
        uint64_t to_up = up ? next_to_queue(up, now, &up_is_cross) : LINK_NEVER;
        uint64_t to_down = down ? next_to_queue(down, now, &down_is_cross) : LINK_NEVER;
        bool is_down = to_down < to_up;
        uint64_t first = is_down ? to_down : to_up, event = link_air_next(air);
        if (event <= now && event <= first) {
            link_air_step(air);
            continue;
        }
        if (first == LINK_NEVER)
            return;
        if (is_down ? down_is_cross : up_is_cross)
            arrive_cross(is_down ? down : up, first);
        else
            end_delay(is_down ? down : up);
        if (waits_for_air(is_down ? down : up))
            link_air_wake(air, is_down, first);
    }
}

/* Handles events in the order of their time. At the same time, opportunities come before arrivals, so that a packet
 * never uses an opportunity of the millisecond in which it arrives. */
void link_advance(emulated_link *link, uint64_t now) {
    if (link->set.air) {
        advance_with_air(link, now);
        return;
    }
    for (;;) {
        uint64_t arrival = next_arrival(link);
        uint64_t horizon = arrival < now ? arrival : now;
        uint64_t cross = link->has_cross ? link_cross_next(&link->cross, horizon) : LINK_NEVER;
        horizon = cross < horizon ? cross : horizon;
        if (is_unserved(link)) {
            pass_opportunities(link, horizon);
        } else {
            uint64_t opportunity = opportunity_us(link, link->next_opportunity);
            if (opportunity <= horizon) {
                serve_opportunity(link, opportunity);
                continue;
            }
        }
        if (cross != LINK_NEVER)
            arrive_cross(link, cross);
        else if (arrival > now)
            return;
        else
            end_delay(link);
    }
}

/* Draws the delay of a packet that enters now. */
static uint64_t draw_delay(emulated_link *link, link_packet *packet, uint64_t now) {
    uint64_t delay = next_delay(link, &link->burst, now, link_packet_bytes(packet), &packet->direct);
    delay += wait_for_radio(link, &link->wake, link->set.rrc, &link->grants, now, link_packet_bytes(packet));
    if (link->set.jitter_us > 0) {
        delay += (uint64_t)(link_rng_uniform(&link->jitter_rng) * (double)(2 * link->set.jitter_us + 1));
        delay = delay > link->set.jitter_us ? delay - link->set.jitter_us : 0;
    }
    return delay;
}

/* Whether anything happens up to `now` except opportunities that pass unused, which can be counted later. */
static bool is_behind(const emulated_link *link, uint64_t now) {
    return link->set.air || link->has_cross || next_arrival(link) <= now ||
           (!is_unserved(link) && opportunity_us(link, link->next_opportunity) <= now);
}

bool link_enqueue(emulated_link *link, link_packet *packet, uint64_t now) {
    link->stats.arrived_packets++;
    link->stats.arrived_bytes += link_packet_bytes(packet);
    if (packet->length > link->set.mtu_bytes) {
        link->stats.oversize_drops++;
        link_pool_put(link->set.pool, packet);
        return false;
    }
    if (link->set.nat && link->set.is_downlink && !link_nat_in(link->set.nat, packet, now)) {
        link->stats.nat_drops++;
        link_pool_put(link->set.pool, packet);
        return false;
    }
    /* Older events first, so that the queue's limit holds even if the driver asks for no deliveries (a long outage). */
    bool moves = is_behind(link, now);
    if (moves)
        link_advance(link, now);
    bool apart = link->set.reorder > 0.0 && link_rng_uniform(&link->reorder_rng) < link->set.reorder;
    link_fifo *fifo = apart ? &link->held : &link->delayed;
    link->stats.reordered += apart;
    packet->due_us = now + draw_delay(link, packet, now) + (apart ? link->set.reorder_us : 0);
    if (fifo->tail && fifo->tail->due_us > packet->due_us) {
        packet->due_us = fifo->tail->due_us;
        packet->direct = false;
    }
    link_fifo_push(fifo, packet);
    return moves || next_arriving(link) == packet;
}

void link_refuse(emulated_link *link, uint32_t length) {
    link->stats.arrived_packets++;
    link->stats.arrived_bytes += (uint64_t)length + LINK_HEADER_BYTES;
    link->stats.memory_drops++;
}

/* Whether a packet that is not others' traffic is in the queue, or served in part. */
static bool someone_waits(const emulated_link *link) {
    return (link->in_transit && !link->in_transit->is_cross) || link->queue->packets > link->queue->cross_packets;
}

/* Lower bound of the next delivery: the next event of the medium or of the delay. */
static uint64_t next_with_air(const emulated_link *link) {
    uint64_t arrival = link->down ? LINK_NEVER : next_arrival(link);
    uint64_t event =
        link_air_has_work(link->set.air, link->set.is_downlink) ? link_air_next(link->set.air) : LINK_NEVER;
    return arrival < event ? arrival : event;
}

uint64_t link_next_deadline(const emulated_link *link) {
    if (link->delivered.head)
        return link->delivered.head->due_us;
    if (link->set.air)
        return next_with_air(link);
    if (link->down)
        return LINK_NEVER;
    if (someone_waits(link))
        return opportunity_us(link, link->next_opportunity);
    const link_packet *next = next_arriving(link);
    if (!next)
        return LINK_NEVER;
    return next->direct ? next->due_us : opportunity_us(link, opportunity_after(link, next->due_us));
}

link_packet *link_pull(emulated_link *link) {
    link_packet *packet = link_fifo_pop(&link->delivered);
    if (packet && link->set.nat && !link->set.is_downlink)
        link_nat_out(link->set.nat, packet, packet->due_us);
    return packet;
}

void link_passed(emulated_link *link, link_packet *packet, uint64_t now) {
    uint32_t bytes = link_packet_bytes(packet);
    link->stats.departed_packets++;
    link->stats.departed_bytes += bytes;
    link->stats.queueing_us = now - packet->arrival_us;
    link_lateness_record(&link->lateness, now > packet->due_us ? now - packet->due_us : 0);
    link_log_line2(link->set.log, now / 1000, LINK_LOG_DEPARTURE, bytes, now / 1000 - packet->arrival_us / 1000);
}

void link_departed(emulated_link *link, link_packet *packet, uint64_t now) {
    link_passed(link, packet, now);
    link_pool_put(link->set.pool, packet);
}

void link_count_missed(emulated_link *link, uint64_t since, uint64_t now) {
    if (since < now && !link->down && !link->set.air && is_idle(link) && next_arrival(link) == LINK_NEVER) {
        uint64_t delay = delay_at(link, now);
        link->stats.missed += opportunity_after(link, now + delay) - opportunity_after(link, since + delay);
    }
}

bool link_is_up(const emulated_link *link) {
    return !link->down;
}

static void set_up(emulated_link *link, bool up, uint64_t now) {
    link->down = !up;
    if (link->set.air)
        link_air_set_up(link->set.air, link->set.is_downlink, up, now);
}

/* `trace` may be the memory of the old trace, with another rate in it. */
static void set_trace(emulated_link *link, const link_trace *trace, uint64_t begun_us, uint64_t now) {
    link->passed_before += link->next_opportunity - link->first_opportunity;
    take_trace(link, trace, (int64_t)(now - begun_us), now);
}

static void set_rate(emulated_link *link, uint64_t rate_bps, uint64_t now) {
    if (link->set.air) {
        link_air_set_rate(link->set.air, link->set.is_downlink, rate_bps);
        return;
    }
    uint64_t begun_us =
        link->trace->at_ms ? 0 : link_trace_begun_us(link->trace, now - (uint64_t)link->trace_start_us, rate_bps);
    link->constant = link_trace_constant(rate_bps);
    set_trace(link, &link->constant, begun_us, now);
}

static void set_cross(emulated_link *link, uint64_t rate_bps, uint64_t now) {
    link_cross set = link->set.cross;
    set.rate_bps = rate_bps;
    set.profile = NULL;
    link->set.cross = set;
    link->has_cross = rate_bps > 0;
    link_cross_init(&link->cross, &set, link_rng_next(&link->cross.rng), 0, now);
}

void link_change_apply(emulated_link *link, const link_change *change, uint64_t now) {
    link_config *set = &link->set;
    link_advance(link, now); /* by the old settings */
    if (change->has_state)
        set_up(link, change->is_up, now);
    if (change->has_delay) {
        set->delay_us = change->delay_us;
        set->delay_trace = NULL;
        set->light.trace = NULL;
    }
    if (change->has_loss) {
        link->loss.model = change->loss;
        link->loss.is_bad = false;
    }
    if (change->rate_bps != 0)
        set_rate(link, change->rate_bps, now);
    if (change->trace && !set->air)
        set_trace(link, change->trace, 0, now);
    else if (change->trace && !change->trace->at_ms)
        set_rate(link, change->trace->rate_bps, now);
    if (change->mtu_bytes != 0)
        set->mtu_bytes = (uint32_t)change->mtu_bytes;
    if (change->has_reorder) {
        set->reorder = change->reorder;
        set->reorder_us = change->reorder_us;
    }
    if (change->has_duplicate)
        set->duplicate = change->duplicate;
    if (change->has_cross)
        set_cross(link, change->cross_bps, now);
    if (change->rebinds && set->nat)
        link_nat_rebind(set->nat);
}

link_stats link_get_stats(const emulated_link *link) {
    link_stats stats = link->stats;
    stats.opportunities = link->passed_before + link->next_opportunity - link->first_opportunity;
    stats.queue_drops = link->queue->dropped_packets - link->queue->dropped_cross_packets;
    stats.cross_drops += link->queue->dropped_cross_packets;
    stats.cross_inside = link->queue->cross_packets + (link->in_transit && link->in_transit->is_cross);
    stats.nat_mappings = link->set.nat && !link->set.is_downlink ? link_nat_mappings(link->set.nat) : 0;
    if (link->set.air) {
        stats.air = link_air_get_stats(link->set.air, link->set.is_downlink);
        stats.opportunities = stats.air.transmissions;
        stats.opportunities_used = stats.air.used;
        stats.cross_inside += stats.air.inside_cross;
    }
    stats.queued_packets = link->queue->packets;
    stats.queued_bytes = link->queue->bytes;
    stats.inside_packets = link->delayed.packets + link->held.packets + link->queue->packets + link->delivered.packets +
                           (link->in_transit ? 1 : 0) + stats.air.inside_packets - stats.cross_inside;
    return stats;
}

const link_lateness *link_get_lateness(const emulated_link *link) {
    return &link->lateness;
}

const char *link_queue_description(const emulated_link *link) {
    return link->queue->description;
}
