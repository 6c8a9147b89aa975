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

#include "emulator/link/link.h"
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

struct sim;

struct sim_trace {
    const char *file; /* as in the job; of a constant rate its text, whose hash is in sha256 */
    char sha256[65];
    bool is_kept; /* of the process: it outlives the run */
    struct link_trace trace;
};

/* One direction of a link. */
struct sim_direction {
    const struct sim_trace *trace;
    struct link_files files; /* of its settings */
    struct link *link;
    struct link_nat *nat;             /* of the uplink, shared with the downlink; NULL without one */
    struct link_foresight *foresight; /* NULL until it is asked */
    struct link_log *log;             /* NULL without logs */
    void *log_file;                   /* FILE * */
    size_t actor;
    bool to_server;
};

struct sim_server {
    xl_endpoint *endpoint;
    catalogue *videos;
    http3_service *http3;
    size_t actor;
};

enum sim_player_state { SIM_PLAYER_WAITS, SIM_PLAYER_PLAYS, SIM_PLAYER_IS_OVER };

struct sim_player {
    struct sim *sim;
    const struct sim_player_job *job;
    size_t index, actor;
    enum sim_player_state state;
    jsonl *log;
    player_session session;
    http3_client *client; /* while it plays */
    /* By paths of the job: the interface is down; a packet was refused there, and the path was given up for it. */
    bool is_down[SIM_MAX_PATHS], is_refused[SIM_MAX_PATHS], is_gone[SIM_MAX_PATHS];
    int status; /* exit status, when it is over */
    struct sim_server server;
};

/* For the client's credentials: the TLS session of the job's player. */
struct sim_session {
    uint8_t bytes[XL_SESSION_MAX_BYTES];
    size_t len;
};

struct sim {
    const struct sim_job *job;
    char directory[3072]; /* outputs */
    uint64_t now;
    struct sim_timers timers;
    struct link_pool *pool;
    struct sim_trace traces[2 * SIM_MAX_PATHS];
    size_t trace_count;
    xl_foresight foresight;           /* what the links will do: sim_endpoint_new() */
    struct sim_direction *directions; /* [2 * link number], then the way back; NULL links are of sets that share */
    size_t direction_count;
    struct sim_player *players;
    size_t event_actor, next_event;
    size_t running; /* players that are not over */
    jsonl *server_log;
    xl_log_files *client_files, *server_files;
    xl_credentials *client_credentials, *server_credentials;
    struct sim_session session;
    bool out_of_memory;
};

/* ---- traces.c ---- */

/* Each file is loaded once, however many links replay it. NULL with a sentence in error[SIM_ERROR_BYTES / 2]. */
const struct sim_trace *sim_trace_load(struct sim *, const char *file, char *error);
void sim_traces_free(struct sim *);
/* Loads those of a job for all runs of this process and of its copies, as long as the files stay the same. Those that
 * cannot be loaded are left to the run. */
void sim_traces_keep(const struct sim_job *);

/* ---- network.c: packets between the ends ---- */

/* Loads the traces and makes the links. False with a sentence in error[SIM_ERROR_BYTES]. */
bool sim_network_setup(struct sim *, const char *job_name, char *error);
void sim_network_free(struct sim *);
/* Hands what the endpoint has to send to the links. The player that sends; NULL: its server. */
void sim_network_transmit(struct sim *, xl_endpoint *, struct sim_player *);
/* xl_endpoint_new(), of an endpoint that may know what the links will do. */
xl_endpoint *sim_endpoint_new(struct sim *, const xl_config *, uint64_t now, int *error);
/* Delivers what is due in this direction. */
void sim_network_deliver(struct sim *, struct sim_direction *);

/* ---- ends.c: players and servers ---- */

bool sim_ends_setup(struct sim *, const char *job_name, char *error);
void sim_ends_free(struct sim *);
void sim_server_act(struct sim *, struct sim_server *);
void sim_player_act(struct sim_player *);
/* The interface of a path has gone, or is back. A player learns the former from the next packet that it sends there, as
 * on sockets. */
void sim_player_interface(struct sim_player *, size_t path, bool is_up);
/* Ends all servers, with their records. */
void sim_servers_stop(struct sim *);

/* ---- acquaint.c: an earlier connection ---- */

/* Whether sessions are kept, as the job says. */
bool sim_acquaint_credentials(struct sim *);
/* The player connects to a server with this configuration and goes again; what it keeps is for the one that follows. */
bool sim_acquaint(struct sim *, const struct sim_player *, const xl_config *of_server);

/* ---- outputs.c ---- */

/* Makes the directory and the transport's logs, which the ends need; then all other files. */
bool sim_outputs_open_transport(struct sim *, char *error);
bool sim_outputs_open(struct sim *, char *error);
/* Writes the summary, completes and closes the files; false when something could not be written. */
bool sim_outputs_close(struct sim *, int status, char *error);

/* Frees what is still open. */
void sim_outputs_abandon(struct sim *);

/* ---- run.c ---- */

/* Runs a job. Returns the exit status; other than 0 there is a sentence (without full stop) in
 * error[SIM_ERROR_BYTES]. */
int sim_run(const struct sim_job *, const char *job_name, const char *directory, char *error);

#endif
