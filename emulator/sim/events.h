/* Changes of links at set times: the member link_events of a job. */
#ifndef RAILYARD_SIM_EVENTS_H
#define RAILYARD_SIM_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "emulator/link/change.h"

struct sim;
struct sim_job;

#define SIM_MAX_EVENTS 100000

struct sim_event {
    uint64_t at_us;
    size_t path;
    bool ways[2]; /* uplink, downlink */
    struct link_change change;
    bool has_interface; /* the client's interface goes or returns with its links, as change.is_up says */
};

/* Reads the array; the job's paths are known by then. False with a sentence in error[SIM_ERROR_BYTES]; `name` stands
 * for the file. */
bool sim_events_parse(struct sim_job *, json_t *events, const char *name, char *error);
/* Sets the actor of events to the first of them. */
void sim_events_start(struct sim *);
/* Makes the changes that are due. A path's change holds for the links of all players. */
void sim_events_act(struct sim *);

#endif
