#include "emulator/link/link.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "emulator/link/queue.h"
#include "emulator/link/rng.h"

struct xl_link {
    const struct xl_trace *trace;
    struct xl_link_pool *pool;
    struct xl_link_log *log;
    uint64_t delay_us;
    double loss;
    struct xl_link_rng rng;
    uint64_t start_offset_ms;

    struct xl_link_fifo delayed; /* due_us = when the delay ends */
    struct xl_queue *queue;
    struct xl_link_packet *in_transit; /* out of the queue, served in part */
    uint32_t in_transit_left;          /* its bytes that are still to be served */
    struct xl_link_fifo delivered;     /* due_us = the opportunity that completed it */

    uint64_t first_opportunity; /* number of the first opportunity at or after t0 */
    uint64_t next_opportunity;  /* number of the first one that has not passed */
    struct xl_link_stats stats;
    struct xl_lateness lateness;
};

/* Opportunity number k in us since t0. Those before t0 are never asked for. */
static uint64_t opportunity_us(const struct xl_link *link, uint64_t k) {
    return (xl_trace_opportunity_ms(link->trace, k) - link->start_offset_ms) * 1000;
}

/* The number of the first opportunity after time t (us since t0). */
static uint64_t opportunity_after(const struct xl_link *link, uint64_t t) {
    return xl_trace_count_until(link->trace, t / 1000 + link->start_offset_ms);
}

struct xl_link *xl_link_new(const struct xl_link_config *config, char *error, size_t error_size) {
    if (!(config->loss >= 0.0 && config->loss <= 1.0)) {
        snprintf(error, error_size, "the loss %g is not a probability; give a number from 0 to 1", config->loss);
        return NULL;
    }
    struct xl_link *link = calloc(1, sizeof(*link));
    if (link == NULL) {
        snprintf(error, error_size, "no memory for a link");
        return NULL;
    }
    link->trace = config->trace;
    link->pool = config->pool;
    link->log = config->log;
    link->delay_us = config->delay_us;
    link->loss = config->loss;
    link->rng.state = config->seed;
    link->start_offset_ms = config->start_offset_ms;
    if (config->start_offset_ms > 0) {
        link->first_opportunity = xl_trace_count_until(config->trace, config->start_offset_ms - 1);
        link->next_opportunity = link->first_opportunity;
    }
    link->queue = xl_queue_new(config->queue, config->pool, error, error_size);
    if (link->queue == NULL) {
        free(link);
        return NULL;
    }
    return link;
}

static void release(struct xl_link *link, struct xl_link_fifo *fifo) {
    for (struct xl_link_packet *p = xl_link_fifo_pop(fifo); p != NULL; p = xl_link_fifo_pop(fifo)) {
        xl_link_pool_put(link->pool, p);
    }
}

void xl_link_free(struct xl_link *link) {
    if (link == NULL) {
        return;
    }
    release(link, &link->delayed);
    release(link, &link->delivered);
    xl_link_pool_put(link->pool, link->in_transit);
    xl_queue_free(link->queue);
    free(link);
}

static bool is_idle(const struct xl_link *link) {
    return link->in_transit == NULL && link->queue->fifo.packets == 0;
}

/* Lets the opportunities up to and at time t pass unused. */
static void pass_opportunities(struct xl_link *link, uint64_t t) {
    uint64_t end = opportunity_after(link, t);
    if (end <= link->next_opportunity) {
        return;
    }
    if (link->log != NULL) {
        for (uint64_t k = link->next_opportunity; k < end; k++) {
            xl_link_log_opportunity(link->log, opportunity_us(link, k) / 1000);
        }
    }
    link->next_opportunity = end;
}

static void log_drops(struct xl_link *link, uint64_t packets_before, uint64_t bytes_before, uint64_t t) {
    uint64_t packets = link->queue->dropped_packets - packets_before;
    if (packets > 0 && link->log != NULL) {
        xl_link_log_drop(link->log, t / 1000, packets, link->queue->dropped_bytes - bytes_before);
    }
}

static struct xl_link_packet *dequeue(struct xl_link *link, uint64_t t) {
    uint64_t packets_before = link->queue->dropped_packets;
    uint64_t bytes_before = link->queue->dropped_bytes;
    struct xl_link_packet *packet = xl_queue_dequeue(link->queue, t);
    log_drops(link, packets_before, bytes_before, t);
    return packet;
}

/* The next opportunity, at time t, serves what waits. */
static void serve_opportunity(struct xl_link *link, uint64_t t) {
    uint32_t left = XL_LINK_OPPORTUNITY_BYTES;
    if (link->log != NULL) {
        xl_link_log_opportunity(link->log, t / 1000);
    }
    link->next_opportunity++;
    while (left > 0) {
        if (link->in_transit == NULL) {
            link->in_transit = dequeue(link, t);
            if (link->in_transit == NULL) {
                break;
            }
            link->in_transit_left = xl_link_packet_bytes(link->in_transit);
        }
        uint32_t served = link->in_transit_left < left ? link->in_transit_left : left;
        link->in_transit_left -= served;
        left -= served;
        if (link->in_transit_left == 0) {
            link->in_transit->due_us = t;
            xl_link_fifo_push(&link->delivered, link->in_transit);
            link->in_transit = NULL;
        }
    }
    link->stats.opportunities_used += left < XL_LINK_OPPORTUNITY_BYTES;
}

/* The oldest delayed packet comes out of the delay: random loss, then the queue. */
static void end_delay(struct xl_link *link) {
    struct xl_link_packet *packet = xl_link_fifo_pop(&link->delayed);
    uint64_t t = packet->due_us;
    if (link->loss > 0.0 && xl_link_rng_uniform(&link->rng) < link->loss) {
        link->stats.random_losses++;
        xl_link_pool_put(link->pool, packet);
        return;
    }
    packet->arrival_us = t;
    if (link->log != NULL) {
        xl_link_log_arrival(link->log, t / 1000, xl_link_packet_bytes(packet));
    }
    uint64_t packets_before = link->queue->dropped_packets;
    uint64_t bytes_before = link->queue->dropped_bytes;
    xl_queue_enqueue(link->queue, packet, t);
    log_drops(link, packets_before, bytes_before, t);
}

/* Events in the order of their time; at the same time opportunities come before arrivals, so that a packet never uses
 * an opportunity of the millisecond in which it arrives. */
void xl_link_advance(struct xl_link *link, uint64_t now) {
    for (;;) {
        uint64_t arrival = link->delayed.head == NULL ? XL_LINK_NEVER : link->delayed.head->due_us;
        uint64_t horizon = arrival < now ? arrival : now;
        if (is_idle(link)) {
            pass_opportunities(link, horizon);
        } else {
            uint64_t opportunity = opportunity_us(link, link->next_opportunity);
            if (opportunity <= horizon) {
                serve_opportunity(link, opportunity);
                continue;
            }
        }
        if (arrival > now) {
            return;
        }
        end_delay(link);
    }
}

void xl_link_enqueue(struct xl_link *link, struct xl_link_packet *packet, uint64_t now) {
    link->stats.arrived_packets++;
    link->stats.arrived_bytes += xl_link_packet_bytes(packet);
    if (xl_link_packet_bytes(packet) > XL_LINK_OPPORTUNITY_BYTES) {
        link->stats.oversize_drops++;
        xl_link_pool_put(link->pool, packet);
        return;
    }
    /* First what is older, so that the queue's limit holds while nobody asks for deliveries (a long outage). */
    xl_link_advance(link, now);
    packet->due_us = now + link->delay_us;
    xl_link_fifo_push(&link->delayed, packet);
}

void xl_link_refuse(struct xl_link *link, uint32_t length) {
    link->stats.arrived_packets++;
    link->stats.arrived_bytes += (uint64_t)length + XL_LINK_HEADER_BYTES;
    link->stats.memory_drops++;
}

uint64_t xl_link_next_deadline(const struct xl_link *link) {
    if (link->delivered.head != NULL) {
        return link->delivered.head->due_us;
    }
    if (!is_idle(link)) {
        return opportunity_us(link, link->next_opportunity);
    }
    if (link->delayed.head == NULL) {
        return XL_LINK_NEVER;
    }
    uint64_t k = opportunity_after(link, link->delayed.head->due_us);
    return opportunity_us(link, k);
}

struct xl_link_packet *xl_link_pull(struct xl_link *link) {
    return xl_link_fifo_pop(&link->delivered);
}

void xl_link_departed(struct xl_link *link, struct xl_link_packet *packet, uint64_t now) {
    uint32_t bytes = xl_link_packet_bytes(packet);
    link->stats.departed_packets++;
    link->stats.departed_bytes += bytes;
    xl_lateness_record(&link->lateness, now > packet->due_us ? now - packet->due_us : 0);
    if (link->log != NULL) {
        xl_link_log_departure(link->log, now / 1000, bytes, now / 1000 - packet->arrival_us / 1000);
    }
    xl_link_pool_put(link->pool, packet);
}

void xl_link_count_missed(struct xl_link *link, uint64_t since, uint64_t now) {
    if (since < now && is_idle(link) && link->delayed.head == NULL) {
        link->stats.missed +=
            opportunity_after(link, now + link->delay_us) - opportunity_after(link, since + link->delay_us);
    }
}

struct xl_link_stats xl_link_stats(const struct xl_link *link) {
    struct xl_link_stats stats = link->stats;
    stats.opportunities = link->next_opportunity - link->first_opportunity;
    stats.queue_drops = link->queue->dropped_packets;
    stats.inside_packets = link->delayed.packets + link->queue->fifo.packets + link->delivered.packets +
                           (link->in_transit != NULL ? 1 : 0);
    return stats;
}

const struct xl_lateness *xl_link_lateness(const struct xl_link *link) {
    return &link->lateness;
}

const char *xl_link_queue_description(const struct xl_link *link) {
    return link->queue->description;
}
