/* Changes of links at set times: the member link_events of a job. */
#ifndef RAILYARD_SIM_EVENTS_H
#define RAILYARD_SIM_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "emulator/link/change.h"

typedef struct simulation simulation; /* sim.h */
typedef struct sim_job sim_job;       /* job.h */

#define SIM_MAX_EVENTS 100000

typedef struct {
    uint64_t at_us;
    size_t path;  /* from the number of paths on: bottlenecks */
    bool ways[2]; /* uplink, downlink */
    link_change change;
    bool has_interface; /* the client's interface goes or returns with its links, as change.is_up says */
} sim_event;

/* Reads the array; the job's paths are known by then. False with a sentence in error[SIM_ERROR_BYTES]; `name` stands
 * for the file. */
bool sim_events_parse(sim_job *, json_t *events, const char *name, char *error);
/* Sets the actor of events to the next of them. */
void sim_events_plan(simulation *);
/* Makes the changes that are due. A path's change holds for the links of all players. */
void sim_events_act(simulation *);

#endif
