/* The queue of events that the application has not polled yet. */
#pragma once

#include "endpoint/endpoint.h"

/* Drops the event if there is no memory. */
void xl_events_add(xl_endpoint *, const xl_event *);
/* The connection is about to be freed: its events will not be returned. */
void xl_events_forget(xl_endpoint *, const xl_connection *);
bool xl_events_take(xl_endpoint *, xl_event *out);
