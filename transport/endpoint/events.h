/* The queue of events that the application has not asked for yet. */
#ifndef XL_ENDPOINT_EVENTS_H
#define XL_ENDPOINT_EVENTS_H

#include "endpoint/endpoint.h"

/* Without memory it is dropped. */
void xl_events_add(xl_endpoint *, const xl_event *);
/* The connection is about to be freed: its events are never given out. */
void xl_events_forget(xl_endpoint *, const xl_connection *);
bool xl_events_take(xl_endpoint *, xl_event *out);

#endif
