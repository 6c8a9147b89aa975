#include "emulator/link/foresight.h"

#include <stdlib.h>

#include "emulator/link/link_internal.h"

/* A packet that waits in the queue until its service begins. */
typedef struct {
    uint64_t begins_us;
    uint32_t bytes;
} waiting_packet;

struct link_foresight {
    const emulated_link *link;
    /* Packets of the link that are still to be predicted. */
    const link_packet *delivered, *queued, *delayed, *held;
    bool in_transit;
    bool is_apart; /* the discipline has several FIFOs: its packets count as one */
    /* The next opportunity with free bytes, and their number. */
    uint64_t opportunity;
    uint32_t left;
    uint64_t delay_ends_us; /* of the last packet, so that order is kept */
    link_wake wake;
    link_rrc rrc; /* the path's, if it has one; later packets of the other direction are unknown */
    link_grants_state grants;
    link_burst burst;   /* with a light trace */
    uint64_t served_us; /* when the predicted packets leave the queue; LINK_NEVER: there are none */
    /* The packets in the queue, if it has a known limit. A ring. */
    waiting_packet *waiting;
    size_t first, count, capacity;
    uint64_t waiting_bytes;
};

link_foresight *link_foresight_new(const emulated_link *link) {
    link_foresight *f = calloc(1, sizeof *f);
    if (f)
        f->link = link;
    return f;
}

void link_foresight_free(link_foresight *f) {
    if (f)
        free(f->waiting);
    free(f);
}

void link_foresee(link_foresight *f) {
    const emulated_link *link = f->link;
    f->delivered = link->delivered.head;
    f->in_transit = link->in_transit != NULL;
    f->is_apart = link->queue->packets > 0 && link->queue->packets != link->queue->fifo.packets;
    f->queued = f->is_apart ? NULL : link->queue->fifo.head;
    f->delayed = link->delayed.head;
    f->held = link->held.head;
    f->opportunity = link->next_opportunity;
    f->left = link->set.opportunity_bytes;
    f->delay_ends_us = link->delayed.tail ? link->delayed.tail->due_us : 0;
    f->wake = link->wake;
    if (link->set.rrc)
        f->rrc = *link->set.rrc;
    f->grants = link->grants;
    f->burst = link->burst;
    f->served_us = link->served_us;
    f->first = f->count = 0;
    f->waiting_bytes = 0;
}

/* ---- the queue ---- */

static bool grow(link_foresight *f) {
    size_t capacity = f->capacity == 0 ? 256 : 2 * f->capacity;
    waiting_packet *larger = malloc(capacity * sizeof *larger);
    if (!larger)
        return false;
    for (size_t i = 0; i < f->count; i++)
        larger[i] = f->waiting[(f->first + i) % f->capacity];
    free(f->waiting);
    f->waiting = larger;
    f->first = 0;
    f->capacity = capacity;
    return true;
}

/* Leaves the packet out if there is no memory: the queue then seems shorter than it is. */
static void push_waiting(link_foresight *f, uint64_t begins_us, uint32_t bytes) {
    if (f->count == f->capacity && !grow(f))
        return;
    f->waiting[(f->first + f->count++) % f->capacity] = (waiting_packet){begins_us, bytes};
    f->waiting_bytes += bytes;
}

/* Whether the queue keeps the packet. Opportunities come before arrivals of the same time. */
static bool has_room(link_foresight *f, uint64_t arrives_us, uint32_t bytes) {
    const link_queue *queue = f->link->queue;
    while (f->count > 0 && f->waiting[f->first].begins_us <= arrives_us) {
        f->waiting_bytes -= f->waiting[f->first].bytes;
        f->first = (f->first + 1) % f->capacity;
        f->count--;
    }
    return queue->discipline->keeps(queue, f->count + 1, f->waiting_bytes + bytes);
}

/* ---- service ---- */

/* Serves the next `bytes` of the queue. Returns when the last of them leaves; *begins_us: when the first does. */
static uint64_t serve(link_foresight *f, uint32_t bytes, uint64_t *begins_us) {
    *begins_us = opportunity_us(f->link, f->opportunity);
    link_serve(&f->left, &bytes);
    while (bytes > 0) {
        f->opportunity++;
        f->left = f->link->set.opportunity_bytes;
        link_serve(&f->left, &bytes);
    }
    uint64_t ends_us = opportunity_us(f->link, f->opportunity);
    f->served_us = ends_us;
    if (f->left == 0) {
        f->opportunity++;
        f->left = f->link->set.opportunity_bytes;
    }
    return f->link->down ? LINK_NEVER : ends_us;
}

/* Returns when a packet that reaches the queue at arrives_us leaves it, or passes by it; LINK_NEVER: it is dropped. */
static uint64_t arrive(link_foresight *f, uint64_t arrives_us, uint32_t bytes, bool direct) {
    bool is_limited = f->link->queue->discipline->keeps != NULL;
    uint64_t begins_us;
    if (f->link->down)
        return LINK_NEVER;
    if (direct && (f->served_us == LINK_NEVER || f->served_us < arrives_us))
        return arrives_us;
    if (is_limited && !has_room(f, arrives_us, bytes))
        return LINK_NEVER;
    if (opportunity_us(f->link, f->opportunity) <= arrives_us) { /* it has passed by then */
        f->opportunity = opportunity_after(f->link, arrives_us);
        f->left = f->link->set.opportunity_bytes;
    }
    uint64_t ends_us = serve(f, bytes, &begins_us);
    if (is_limited && begins_us > arrives_us)
        push_waiting(f, begins_us, bytes);
    return ends_us;
}

static const link_packet *pop_delayed(link_foresight *f) {
    const link_packet **list = held_goes_first(f->held, f->delayed) ? &f->held : &f->delayed, *p = *list;
    if (p)
        *list = p->next;
    return p;
}

/* Serves all packets of a discipline with several FIFOs as one. */
static void serve_apart(link_foresight *f, uint32_t *length, uint64_t *leaves_us) {
    uint64_t begins_us;
    *length = (uint32_t)f->link->queue->bytes;
    *leaves_us = serve(f, *length, &begins_us);
    f->is_apart = false;
}

bool link_foresee_inside(link_foresight *f, uint32_t *length, uint64_t *leaves_us) {
    const emulated_link *link = f->link;
    const link_packet *p = f->delivered;
    uint64_t begins_us;
    if (p) {
        f->delivered = p->next;
        *leaves_us = p->due_us;
    } else if (f->in_transit) {
        f->in_transit = false;
        p = link->in_transit;
        *leaves_us = serve(f, link->in_transit_left, &begins_us);
    } else if (f->is_apart) {
        serve_apart(f, length, leaves_us);
        return true;
    } else if (f->queued) {
        p = f->queued;
        f->queued = p->next;
        *leaves_us = serve(f, link_packet_bytes(p), &begins_us);
        if (link->queue->discipline->keeps)
            push_waiting(f, begins_us, link_packet_bytes(p));
    } else {
        p = pop_delayed(f);
        if (!p)
            return false;
        *leaves_us = arrive(f, p->due_us, link_packet_bytes(p), p->direct);
    }
    *length = p->length;
    return true;
}

uint64_t link_foresee_packet(link_foresight *f, uint32_t length, uint64_t at_us) {
    uint32_t inside;
    uint64_t leaves_us;
    while (link_foresee_inside(f, &inside, &leaves_us))
        ;
    uint32_t bytes = length + LINK_HEADER_BYTES;
    bool direct;
    if (length > f->link->set.mtu_bytes)
        return LINK_NEVER;
    uint64_t due = at_us + next_delay(f->link, &f->burst, at_us, bytes, &direct);
    due += wait_for_radio(f->link, &f->wake, f->link->set.rrc ? &f->rrc : NULL, &f->grants, at_us, bytes);
    direct = direct && due >= f->delay_ends_us;
    f->delay_ends_us = due > f->delay_ends_us ? due : f->delay_ends_us;
    return arrive(f, f->delay_ends_us, bytes, direct);
}
