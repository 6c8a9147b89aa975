#include "emulator/link/codel.h"

#include <math.h>

/* A queue of at most one packet is no standing queue: its delay may exceed `target` (maxpacket in RFC 8289). */
#define MAX_PACKET LINK_OPPORTUNITY_BYTES

typedef struct {
    link_codel *codel;
    const link_codel_parameters *parameters;
    link_fifo *fifo;
    uint64_t now;
} codel_run;

/* RFC 8289, section 5.6, dodequeue(). */
static link_packet *take(const codel_run *run, bool *ok_to_drop) {
    link_codel *c = run->codel;
    link_packet *packet = link_fifo_pop(run->fifo);
    *ok_to_drop = false;
    if (!packet || run->now - packet->arrival_us < run->parameters->target_us || run->fifo->bytes <= MAX_PACKET)
        c->first_above_time = 0;
    else if (c->first_above_time == 0)
        c->first_above_time = run->now + run->parameters->interval_us;
    else
        *ok_to_drop = run->now >= c->first_above_time;
    return packet;
}

/* Section 5.5: the interval between drops falls with the square root of their number. */
static uint64_t control_law(const codel_run *run, uint64_t t) {
    return t + (uint64_t)((double)run->parameters->interval_us / sqrt((double)run->codel->count));
}

static link_packet *go_on_dropping(const codel_run *run, link_queue *queue, link_packet *packet) {
    link_codel *c = run->codel;
    bool ok_to_drop;
    while (c->dropping && run->now >= c->drop_next) {
        link_queue_drop(queue, packet);
        c->count++;
        packet = take(run, &ok_to_drop);
        c->dropping = ok_to_drop;
        if (ok_to_drop)
            c->drop_next = control_law(run, c->drop_next);
    }
    return packet;
}

static link_packet *start_dropping(const codel_run *run, link_queue *queue, link_packet *packet) {
    link_codel *c = run->codel;
    bool ok_to_drop;
    link_queue_drop(queue, packet);
    packet = take(run, &ok_to_drop);
    c->dropping = true;
    /* Soon after the last dropping state, continue at its rate of drops. */
    uint32_t delta = c->count - c->lastcount;
    bool soon = run->now < c->drop_next + 16 * run->parameters->interval_us;
    c->count = delta > 1 && soon ? delta : 1;
    c->drop_next = control_law(run, run->now);
    c->lastcount = c->count;
    return packet;
}

link_packet *link_codel_dequeue(link_codel *codel, const link_codel_parameters *parameters, link_queue *queue,
                                link_fifo *fifo, uint64_t now) {
    const codel_run run = {codel, parameters, fifo, now};
    bool ok_to_drop;
    link_packet *packet = take(&run, &ok_to_drop);
    if (codel->dropping) {
        codel->dropping = ok_to_drop;
        return go_on_dropping(&run, queue, packet);
    }
    return ok_to_drop ? start_dropping(&run, queue, packet) : packet;
}
