#include "emulator/link/codel.h"

#include <math.h>

/* "target" is not enforced on a queue of a packet or less: that is no standing queue (maxpacket in RFC 8289). */
#define MAX_PACKET LINK_OPPORTUNITY_BYTES

struct run {
    struct link_codel *codel;
    const struct link_codel_parameters *parameters;
    struct link_fifo *fifo;
    uint64_t now;
};

/* RFC 8289, section 5.6, dodequeue(). */
static struct link_packet *take(const struct run *run, bool *ok_to_drop) {
    struct link_codel *c = run->codel;
    struct link_packet *packet = link_fifo_pop(run->fifo);
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
static uint64_t control_law(const struct run *run, uint64_t t) {
    return t + (uint64_t)((double)run->parameters->interval_us / sqrt((double)run->codel->count));
}

static struct link_packet *go_on_dropping(const struct run *run, struct link_queue *queue, struct link_packet *packet) {
    struct link_codel *c = run->codel;
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

static struct link_packet *start_dropping(const struct run *run, struct link_queue *queue, struct link_packet *packet) {
    struct link_codel *c = run->codel;
    bool ok_to_drop;
    link_queue_drop(queue, packet);
    packet = take(run, &ok_to_drop);
    c->dropping = true;
    /* Soon after the last dropping state, take up its rate of drops. */
    uint32_t delta = c->count - c->lastcount;
    bool soon = run->now < c->drop_next + 16 * run->parameters->interval_us;
    c->count = delta > 1 && soon ? delta : 1;
    c->drop_next = control_law(run, run->now);
    c->lastcount = c->count;
    return packet;
}

struct link_packet *link_codel_dequeue(struct link_codel *codel, const struct link_codel_parameters *parameters,
                                       struct link_queue *queue, struct link_fifo *fifo, uint64_t now) {
    const struct run run = {codel, parameters, fifo, now};
    bool ok_to_drop;
    struct link_packet *packet = take(&run, &ok_to_drop);
    if (codel->dropping) {
        codel->dropping = ok_to_drop;
        return go_on_dropping(&run, queue, packet);
    }
    return ok_to_drop ? start_dropping(&run, queue, packet) : packet;
}
