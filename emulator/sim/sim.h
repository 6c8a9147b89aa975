/* What a simulation consists of while it runs.
 *
 * Actors have deadlines (timers.h): first the links' directions, then the servers, then the players, then the changes
 * of links. At each moment the links deliver what is due, then the servers that got something or whose timer is due
 * act, then the players, each in the order of their numbers; then links change. Time is microseconds since the start of
 * the simulation. */
#ifndef RAILYARD_SIM_SIM_H
#define RAILYARD_SIM_SIM_H

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
    const char *file; /* as in the job; of a constant rate its text, whose hash is in sha256 */
    char sha256[65];
    bool is_kept; /* of the process: it outlives the run */
    link_trace trace;
} sim_trace;

/* One direction of a link. */
typedef struct {
    const sim_trace *trace;
    link_parts parts;
    emulated_link *link;
    link_foresight *foresight; /* NULL until it is asked */
    link_log *log;             /* NULL without logs */
    void *log_file;            /* FILE * */
    void *capture;             /* FILE *: of the end that sends in this direction; NULL without captures */
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
    http3_client *client; /* while it plays */
    /* By paths of the job: the interface is down; a packet was refused there, and the path was given up for it. */
    bool is_down[SIM_MAX_PATHS], is_refused[SIM_MAX_PATHS], is_gone[SIM_MAX_PATHS];
    int status; /* exit status, when it is over */
    sim_server server;
} sim_player;

/* For the client's credentials: the TLS session of the job's player. */
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
    xl_foresight foresight; /* what the links will do: sim_endpoint_new() */
    /* [2 * link number], then the way back; those of bottlenecks follow. NULL links are of sets that share. */
    sim_direction *directions;
    size_t direction_count, path_direction_count;
    link_route *routes; /* of the directions of paths: numbers of directions */
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

/* Each file is loaded once, however many links replay it. NULL with a sentence in error[SIM_ERROR_BYTES / 2]. */
const sim_trace *sim_trace_load(simulation *, const char *file, char *error);
void sim_traces_free(simulation *);
/* Loads those of a job for all runs of this process, as long as the files stay the same. The run loads the others. */
void sim_traces_keep(const sim_job *);

/* ---- network.c: packets between the ends ---- */

/* Loads the traces and makes the links. False with a sentence in error[SIM_ERROR_BYTES]. */
bool sim_network_setup(simulation *, const char *job_name, char *error);
void sim_network_free(simulation *);
/* Hands what the endpoint has to send to the links. The player that sends; NULL: its server. */
void sim_network_transmit(simulation *, xl_endpoint *, sim_player *);
/* xl_endpoint_new(), of an endpoint that may know what the links will do. */
xl_endpoint *sim_endpoint_new(simulation *, const xl_config *, uint64_t now, int *error);
/* Delivers what is due in this direction. */
void sim_network_deliver(simulation *, sim_direction *);

/* ---- ends.c: players and servers ---- */

bool sim_ends_setup(simulation *, const char *job_name, char *error);
void sim_ends_free(simulation *);
void sim_server_act(simulation *, sim_server *);
void sim_player_act(sim_player *);
/* The interface of a path has gone, or is back. A player learns the former from the next packet that it sends there, as
 * on sockets. */
void sim_player_interface(sim_player *, size_t path, bool is_up);
/* Ends all servers, with their records. */
void sim_servers_stop(simulation *);

/* ---- acquaint.c: an earlier connection ---- */

/* Whether sessions are kept, as the job says. */
bool sim_acquaint_credentials(simulation *);
/* The player connects to a server with this configuration and goes again; what it keeps is for the one that follows. */
bool sim_acquaint(simulation *, const sim_player *, const xl_config *of_server);

/* ---- outputs.c ---- */

/* Makes the directory and the transport's logs, which the ends need; then all other files. */
bool sim_outputs_open_transport(simulation *, char *error);
bool sim_outputs_open(simulation *, char *error);
/* Writes the summary, completes and closes the files; false when something could not be written. */
bool sim_outputs_close(simulation *, int status, char *error);

/* Captures a packet at the end that sends in this direction of a path; without captures it does nothing. */
void sim_outputs_capture(const simulation *, const sim_direction *, const link_packet *);

/* Closes logs and captures, as far as they are open; false when something could not be written. */
bool sim_outputs_close_logs(simulation *);

/* ---- run.c ---- */

/* Runs a job. Returns the exit status; other than 0 there is a sentence (without full stop) in
 * error[SIM_ERROR_BYTES]. */
int sim_run(const sim_job *, const char *job_name, const char *directory, char *error);
/* Whether the links of a job can be made, as at the start of a run. False with such a sentence. */
bool sim_check(const sim_job *, const char *job_name, char *error);

#endif
