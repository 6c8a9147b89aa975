/* The job of xlink-sim: a JSON object, described in docs/reference/sim.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"
#include "base/settings.h"
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
    link_settings settings[2]; /* uplink, downlink; file names can be opened as they are */
    link_via via[2];           /* of a path: uplink, downlink */
} sim_path_job;

/* One player and the server that answers it. */
typedef struct {
    player_options options; /* files such as out_file are not used */
    server_config server;
    uint64_t start_us;
    bool own_links;
} sim_player_job;

/* What the player keeps from an earlier connection to its server. */
typedef enum { SIM_SESSION_NONE, SIM_SESSION_RESUMED, SIM_SESSION_EARLY_DATA } sim_session_kind;

struct sim_job {
    json_t *json; /* strings point into it */
    uint64_t seed, start_offset_ms, schema;
    sim_path_job paths[SIM_MAX_PATHS + LINK_BOTTLENECKS_MOST]; /* paths, then bottlenecks */
    size_t path_count, bottleneck_count;
    sim_player_job *players;
    size_t player_count;
    sim_event *events; /* in the order of their times */
    size_t event_count;
    sim_session_kind session;
    bool qlog, link_logs, keylog, captures, null_crypto;
};

/* Parses the text of a job. `name` is its name in errors; names of files are relative to `directory`. False with one
 * sentence (without full stop), which names file and member, in error[SIM_ERROR_BYTES]. Always call sim_job_free(). */
bool sim_job_parse(sim_job *, const char *text, size_t length, const char *name, const char *directory, char *error);
void sim_job_free(sim_job *);

/* Returns the address of the player's end or the server's end (`host`) of link `number`, as mpshell assigns them. */
xl_addr sim_link_addr(size_t number, uint8_t host, uint16_t port);
/* Returns the number of a path's link. Players that share the first player's links have set 0. */
size_t sim_link_number(const sim_job *, size_t set, size_t path);
/* Returns how many numbers the links of paths take; those of bottlenecks follow. */
size_t sim_path_links(const sim_job *);

/* settings_read_json() with a sentence without full stop in error[SIM_ERROR_BYTES]. */
bool sim_members_read(const setting_tables *, const json_t *object, const char *where, const char *const *also,
                      char *error);
/* Returns the members of a job, for programs in other languages: quic_settings_describe(), "links" (the rows of a
 * link), "queues" (the disciplines and their options) and "technologies". */
json_t *sim_describe_settings(void);
/* Writes a formatted sentence to error[SIM_ERROR_BYTES]. Returns false. */
#define sim_fail(error, ...) error_set(error, SIM_ERROR_BYTES, __VA_ARGS__)
