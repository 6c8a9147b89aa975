/* The state of a simulation while it runs.
 *
 * Actors have deadlines (timers.h). Their numbers are: first the links' directions, then the servers, the players, and
 * the changes of links. At each moment the links deliver due packets; then the servers that received something or whose
 * timer is due act, then the players, each in the order of their numbers; then links change. Time is microseconds since
 * the start of the simulation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/foresight.h"
#include "emulator/link/link.h"
#include "emulator/link/route.h"
#include "emulator/sim/job.h"
#include "emulator/sim/timers.h"
#include "base/jsonl.h"
#include "player/http3_client.h"
#include "player/session.h"
#include "server/catalogue.h"
#include "server/http3_service.h"
#include "transport/scheduler/foresight.h"
#include "xlink/log_files.h"
#include "xlink/xlink.h"

typedef struct {
    const char *file; /* as in the job; for a constant rate its text, whose hash is in sha256 */
    char sha256[65];
    bool is_kept; /* owned by the process; outlives the run */
    link_trace trace;
} sim_trace;

/* One direction of a link. */
typedef struct {
    const sim_trace *trace;
    link_parts parts;
    emulated_link *link;
    link_foresight *foresight; /* NULL before the first question */
    link_log *log;             /* NULL without logs */
    void *log_file;            /* FILE * */
    void *capture;             /* FILE *: at the end that sends in this direction; NULL without captures */
    size_t actor;
    bool to_server;
} sim_direction;

typedef struct {
    xl_endpoint *endpoint;
    catalogue *videos;
    http3_service *http3;
    size_t actor;
} sim_server;

typedef enum { SIM_PLAYER_WAITS, SIM_PLAYER_PLAYS, SIM_PLAYER_IS_OVER } sim_player_state;

typedef struct {
    simulation *sim;
    const sim_player_job *job;
    size_t index, actor;
    sim_player_state state;
    jsonl *log;
    player_session session;
    http3_client *client; /* NULL unless it plays */
    /* By path of the job: the interface is down; it has refused a packet; the path was abandoned for that. */
    bool is_down[SIM_MAX_PATHS], is_refused[SIM_MAX_PATHS], is_gone[SIM_MAX_PATHS];
    int status; /* exit status once it is over */
    sim_server server;
} sim_player;

/* TLS session of the job's player, for the client's credentials. */
typedef struct {
    uint8_t bytes[XL_SESSION_MAX_BYTES];
    size_t len;
} sim_session;

struct simulation {
    const sim_job *job;
    char directory[3072]; /* outputs */
    uint64_t now;
    sim_timers timers;
    link_pool *pool;
    sim_trace traces[2 * (SIM_MAX_PATHS + LINK_BOTTLENECKS_MOST)];
    size_t trace_count;
    xl_foresight foresight; /* predictions of links, for sim_endpoint_new() */
    /* Index 2 * link number + (0: to the server, 1: to the client); bottlenecks last. link NULL: the set shares. */
    sim_direction *directions;
    size_t direction_count, path_direction_count;
    link_route *routes; /* of the directions of paths; a route has numbers of directions */
    sim_player *players;
    size_t event_actor, next_event;
    size_t running; /* players that are not over */
    jsonl *server_log;
    xl_log_files *client_files, *server_files;
    xl_credentials *client_credentials, *server_credentials;
    sim_session session;
    bool out_of_memory;
};

/* ---- traces.c ---- */

/* Loads each file once, even if several links replay it. NULL with a sentence in error[SIM_ERROR_BYTES / 2]. */
const sim_trace *sim_trace_load(simulation *, const char *file, char *error);
void sim_traces_free(simulation *);
/* Loads a job's traces for all runs of this process, at most 64. A run loads other traces and changed files itself. */
void sim_traces_keep(const sim_job *);

/* ---- network.c: packets between the ends ---- */

/* Loads the traces and makes the links. False with a sentence in error[SIM_ERROR_BYTES]. */
bool sim_network_setup(simulation *, const char *job_name, char *error);
void sim_network_free(simulation *);
/* Passes the endpoint's datagrams to the links. Player: the sender; NULL: a server sends. */
void sim_network_transmit(simulation *, xl_endpoint *, sim_player *);
/* xl_endpoint_new() for an endpoint whose scheduler may ask for predictions of the links. */
xl_endpoint *sim_endpoint_new(simulation *, const xl_config *, uint64_t now, int *error);
/* Delivers the due packets of this direction. */
void sim_network_deliver(simulation *, sim_direction *);

/* ---- ends.c: players and servers ---- */

bool sim_ends_setup(simulation *, const char *job_name, char *error);
void sim_ends_free(simulation *);
void sim_server_act(simulation *, sim_server *);
void sim_player_act(sim_player *);
/* Says that the interface of a path is down or up again. The player notices the former when it next sends a packet
 * there, as on sockets. */
void sim_player_interface(sim_player *, size_t path, bool is_up);
/* Ends all servers and writes their records. */
void sim_servers_stop(simulation *);

/* ---- acquaint.c: an earlier connection ---- */

/* Makes the credentials keep sessions if the job says so. False on failure. */
bool sim_acquaint_credentials(simulation *);
/* Connects the player to a server with this configuration and ends the connection; the player keeps its session for the
 * next one. False if it got none. */
bool sim_acquaint(simulation *, const sim_player *, const xl_config *of_server);

/* ---- outputs.c ---- */

/* Make the directory and the transport's logs, which the ends need; then all other files. */
bool sim_outputs_open_transport(simulation *, char *error);
bool sim_outputs_open(simulation *, char *error);
/* Writes the summary, completes and closes the files. False if something could not be written. */
bool sim_outputs_close(simulation *, int status, char *error);

/* Captures a packet at the end that sends in this direction of a path. Does nothing without captures. */
void sim_outputs_capture(const simulation *, const sim_direction *, const link_packet *);

/* Closes the open logs and captures. False if something could not be written. */
bool sim_outputs_close_logs(simulation *);

/* ---- run.c ---- */

/* Runs a job and returns the exit status. On failure of the simulator there is a sentence without full stop in
 * error[SIM_ERROR_BYTES], else it is empty. */
int sim_run(const sim_job *, const char *job_name, const char *directory, char *error);
/* Whether the links of a job can be made, as at the start of a run. False with such a sentence in error. */
bool sim_check(const sim_job *, const char *job_name, char *error);
