/* The job of xlink-sim: a JSON object, described in docs/reference/sim.md. */
#ifndef RAILYARD_SIM_JOB_H
#define RAILYARD_SIM_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "emulator/link/route.h"
#include "emulator/link/settings.h"
#include "emulator/sim/events.h"
#include "player/options.h"
#include "server/server.h"
#include "xlink/xlink.h"

#define SIM_NAME_BYTES  16
#define SIM_MAX_PATHS   XL_MAX_PATHS
#define SIM_MAX_PLAYERS 256
#define SIM_ERROR_BYTES 1024
#define SIM_SERVER_PORT 4433
#define SIM_CLIENT_PORT 40000
#define SIM_SERVER_HOST 1 /* last byte of an address */
#define SIM_CLIENT_HOST 2

/* A path, or a bottleneck. */
typedef struct {
    char name[SIM_NAME_BYTES];
    xl_technology technology;
    link_settings settings[2]; /* of the uplink, of the downlink; files are to be opened as they are named */
    link_via via[2];           /* of a path */
} sim_path_job;

/* One player and the server that answers it. */
typedef struct {
    player_options options; /* out_file and the like are not used */
    server_config server;
    uint64_t start_us;
    bool own_links;
} sim_player_job;

/* What the player has of an earlier connection to its server. */
typedef enum { SIM_SESSION_NONE, SIM_SESSION_RESUMED, SIM_SESSION_EARLY_DATA } sim_session_kind;

struct sim_job {
    json_t *json; /* what strings point into */
    uint64_t seed, start_offset_ms, schema;
    sim_path_job paths[SIM_MAX_PATHS];
    size_t path_count;
    sim_path_job bottlenecks[LINK_BOTTLENECKS_MOST];
    size_t bottleneck_count;
    sim_player_job *players;
    size_t player_count;
    sim_event *events; /* in the order of their times */
    size_t event_count;
    sim_session_kind session;
    bool qlog, link_logs, keylog, captures, null_crypto;
};

/* Takes the text of a job; `name` stands for it in errors, relative traces start at `directory`. False with one
 * sentence (without full stop), which names the file and the member, in error[SIM_ERROR_BYTES]. sim_job_free() in
 * either case. */
bool sim_job_parse(sim_job *, const char *text, size_t length, const char *name, const char *directory, char *error);
void sim_job_free(sim_job *);

/* Address of the player's end or the server's end (`host`) of link `number`, as mpshell gives them out. */
xl_addr sim_link_addr(size_t number, uint8_t host, uint16_t port);
/* The number of a path's link: players that share the links of the first have set 0. */
size_t sim_link_number(const sim_job *, size_t set, size_t path);
/* How many numbers the links of paths have; those of bottlenecks follow. */
size_t sim_path_links(const sim_job *);

#endif
