/* Changes of links at set times: the member link_events of a job. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "emulator/link/settings.h"

typedef struct simulation simulation; /* sim.h */
typedef struct sim_job sim_job;       /* job.h */

#define SIM_MAX_EVENTS 100000

typedef struct {
    uint64_t at_us;
    size_t path;  /* numbers from path_count on are bottlenecks */
    bool ways[2]; /* uplink, downlink */
    link_change change;
    bool has_interface; /* removes or restores the client's interface with its links, by change.is_up */
} sim_event;

/* Reads the array, after the job's paths. name: of the file. False with a sentence in error[SIM_ERROR_BYTES]. */
bool sim_events_parse(sim_job *, json_t *events, const char *name, char *error);
/* Sets the deadline of the events' actor to the next event. */
void sim_events_plan(simulation *);
/* Makes the changes that are due. A path's change applies to the links of all players. */
void sim_events_act(simulation *);
