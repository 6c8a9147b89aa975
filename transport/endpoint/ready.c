#include "endpoint/ready.h"

void xl_ready_add(xl_endpoint *ep, xl_connection *c) {
    if (c->slot.is_ready)
        return;
    c->slot.is_ready = true;
    c->slot.ready_next = NULL;
    c->slot.ready_prev = ep->ready_tail;
    if (ep->ready_tail)
        ep->ready_tail->slot.ready_next = c;
    else
        ep->ready_head = c;
    ep->ready_tail = c;
}

void xl_ready_remove(xl_endpoint *ep, xl_connection *c) {
    if (!c->slot.is_ready)
        return;
    if (c->slot.ready_prev)
        c->slot.ready_prev->slot.ready_next = c->slot.ready_next;
    else
        ep->ready_head = c->slot.ready_next;
    if (c->slot.ready_next)
        c->slot.ready_next->slot.ready_prev = c->slot.ready_prev;
    else
        ep->ready_tail = c->slot.ready_prev;
    c->slot.is_ready = false;
}

xl_connection *xl_ready_take(xl_endpoint *ep) {
    xl_connection *c = ep->ready_head;
    if (!c)
        return NULL;
    ep->ready_head = c->slot.ready_next;
    if (ep->ready_head)
        ep->ready_head->slot.ready_prev = NULL;
    else
        ep->ready_tail = NULL;
    c->slot.is_ready = false;
    return c;
}
