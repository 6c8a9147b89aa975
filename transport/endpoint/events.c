#include "endpoint/events.h"

#include <stdlib.h>

static xl_queued_event *event_number(const xl_endpoint *ep, uint64_t n) {
    return &ep->event[n % ep->event_cap];
}

static bool grow_events(xl_endpoint *ep) {
    size_t cap = ep->event_cap ? 2 * ep->event_cap : 64;
    xl_queued_event *grown = malloc(cap * sizeof *grown);
    if (!grown)
        return false;
    for (uint64_t n = ep->event_head; n < ep->event_next; n++)
        grown[n % cap] = *event_number(ep, n);
    free(ep->event);
    ep->event = grown;
    ep->event_cap = cap;
    return true;
}

void xl_events_add(xl_endpoint *ep, const xl_event *e) {
    if (ep->event_next - ep->event_head == ep->event_cap && !grow_events(ep))
        return;
    *event_number(ep, ep->event_next) = (xl_queued_event){*e, e->connection->slot.last_event};
    e->connection->slot.last_event = ep->event_next++;
}

/* Also removes such events from the end of the queue, so that a flood of forged first packets does not grow it. */
void xl_events_forget(xl_endpoint *ep, const xl_connection *c) {
    for (uint64_t n = c->slot.last_event; n >= ep->event_head; n = event_number(ep, n)->previous)
        event_number(ep, n)->event.connection = NULL;
    while (ep->event_next > ep->event_head && !event_number(ep, ep->event_next - 1)->event.connection)
        ep->event_next--;
}

bool xl_events_take(xl_endpoint *ep, xl_event *out) {
    while (ep->event_head < ep->event_next) {
        const xl_queued_event *e = event_number(ep, ep->event_head++);
        if (!e->event.connection)
            continue;
        *out = e->event;
        return true;
    }
    return false;
}
