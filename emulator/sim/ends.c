#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "emulator/sim/random.h"
#include "emulator/sim/sim.h"
#include "server/report.h"

/* ---- the player's transport: that of player/transport_quic.c with the simulator's network in place of sockets ---- */

static sim_player *from_handle(player_transport *t) {
    return (sim_player *)t;
}

static player_transport *create(const player_transport_config *config, const player_transport_callbacks *callbacks,
                                uint64_t now, char *error) {
    sim_player *p = config->network;
    simulation *sim = p->sim;
    const xl_log log = xl_log_files_log(sim->client_files);
    p->client = http3_client_new(config, callbacks, sim->client_credentials, &log, now, error);
    for (size_t i = 0; p->client && i < config->path_count; i++) {
        if (http3_client_opens_at_start(config, i) &&
            !http3_client_open_path(p->client, i, &config->paths[i].local, now, error)) {
            http3_client_free(p->client);
            p->client = NULL;
        }
    }
    return (player_transport *)(p->client ? p : NULL);
}

static bool request(player_transport *t, uint64_t id, uint64_t first, uint64_t last, uint64_t now) {
    return http3_client_request(from_handle(t)->client, id, first, last, now);
}

/* Returns the index in the player's configuration of path k of the job. */
static size_t configured(const sim_player *p, size_t k) {
    const player_transport_config *config = &p->job->options.transport_config;
    size_t i = 0;
    while (i < config->path_count && strcmp(config->paths[i].name, p->sim->job->paths[k].name) != 0)
        i++;
    return i;
}

/* As in player/transport_quic.c: abandons a path whose interface refused a packet, and opens it again when the
 * interface is back. Returns whether anything changed. */
static bool watch_interfaces(sim_player *p, uint64_t now) {
    bool any = false;
    for (size_t k = 0; k < p->sim->job->path_count; k++) {
        bool is_refused = p->is_refused[k] && p->is_down[k];
        if (is_refused == p->is_gone[k])
            continue;
        if (is_refused)
            http3_client_remove_path(p->client, configured(p, k), now);
        else
            http3_client_add_path(p->client, configured(p, k), now);
        p->is_refused[k] = p->is_gone[k] = is_refused;
        any = true;
    }
    return any;
}

void sim_player_interface(sim_player *p, size_t path, bool is_up) {
    p->is_down[path] = !is_up;
    if (p->state == SIM_PLAYER_PLAYS)
        sim_timers_set(&p->sim->timers, p->actor, p->sim->now);
}

static void step(player_transport *t, uint64_t now) {
    sim_player *p = from_handle(t);
    http3_client_process(p->client, now);
    if (http3_client_is_over(p->client))
        return;
    sim_network_transmit(p->sim, http3_client_endpoint(p->client), p);
    if (watch_interfaces(p, now))
        sim_network_transmit(p->sim, http3_client_endpoint(p->client), p);
}

static uint64_t next_timeout(const player_transport *t) {
    return http3_client_next_timeout(((const sim_player *)t)->client);
}

static void path_stats(player_transport *t, player_path_stats *stats) {
    http3_client_path_stats(from_handle(t)->client, stats);
}

static json_t *summary(player_transport *t) {
    return http3_client_summary(from_handle(t)->client);
}

static void close_transport(player_transport *t, uint64_t now) {
    sim_player *p = from_handle(t);
    if (!http3_client_is_over(p->client)) {
        http3_client_close(p->client, now);
        sim_network_transmit(p->sim, http3_client_endpoint(p->client), p);
    }
    http3_client_free(p->client);
    p->client = NULL;
}

static const player_transport_ops sim_transport = {
    .name = "quic",
    .has_schemes = true,
    .create = create,
    .request = request,
    .step = step,
    .next_timeout = next_timeout,
    .path_stats = path_stats,
    .summary = summary,
    .close = close_transport,
};

/* ---- servers ---- */

static void log_record(void *user, const char *event, json_t *fields, uint64_t now) {
    const sim_player *p = user;
    jsonl_write(p->sim->server_log, event, fields, now);
}

/* Each player has its own server, and one connection to it. */
static uint64_t connection_number(void *user) {
    return ((const sim_player *)user)->index;
}

static bool make_server(simulation *sim, sim_player *p, const char *job_name, char *error) {
    xl_config config;
    http3_service_configure(&p->job->server, &config);
    config.credentials = sim->server_credentials;
    config.log = xl_log_files_log(sim->server_files);
    config.limits.issue_tokens = sim->job->session != SIM_SESSION_NONE;
    if (!sim_acquaint(sim, p, &config))
        return sim_fail(error, "%s: session: the player cannot be made known to its server", job_name);
    int rv = 0;
    p->server.endpoint = sim_endpoint_new(sim, &config, 0, &rv);
    if (!p->server.endpoint && rv == XL_ERR_ARGUMENT)
        return sim_fail(error, "%s: players[%zu]: the transport refuses the settings", job_name, p->index);
    p->server.videos = catalogue_new(&p->job->server.video, NULL);
    const http3_service_hooks hooks = {.user = p, .log = log_record, .next_connection = connection_number};
    if (p->server.endpoint && p->server.videos)
        p->server.http3 = http3_service_new(p->server.endpoint, p->server.videos, &hooks);
    return p->server.http3 || sim_fail(error, "out of memory");
}

void sim_server_act(simulation *sim, sim_server *s) {
    http3_service_process(s->http3, sim->now);
    sim_network_transmit(sim, s->endpoint, NULL);
    uint64_t next = xl_endpoint_next_timeout(s->endpoint);
    sim_timers_set(&sim->timers, s->actor, next > sim->now ? next : sim->now + 1);
}

void sim_servers_stop(simulation *sim) {
    server_totals totals = {.paths = json_array()};
    for (size_t i = 0; i < sim->job->player_count; i++) {
        http3_service *http3 = sim->players[i].server.http3;
        http3_service_close(http3, sim->now);
        http3_service_finish(http3, sim->now);
        http3_service_add_totals(http3, &totals);
    }
    jsonl_write(sim->server_log, "summary", server_summary_fields(&totals), sim->now);
    json_decref(totals.paths);
}

/* ---- players ---- */

static void end_player(sim_player *p) {
    char reason[PLAYER_SESSION_ERROR_BYTES] = "";
    p->status = player_session_finish(&p->session, p->sim->now, reason);
    if (p->status != 0 && p->sim->job->player_count > 1)
        error_say("xlink-sim", "player %zu: %s.", p->index + 1, reason);
    else if (p->status != 0)
        error_say("xlink-sim", "%s.", reason);
    p->state = SIM_PLAYER_IS_OVER;
    p->sim->running--;
    sim_timers_set(&p->sim->timers, p->actor, XL_NEVER);
}

static void start_player(sim_player *p) {
    const player_session_hooks hooks = {0};
    p->state = SIM_PLAYER_PLAYS;
    if (!player_session_start(&p->session, &p->job->options, &hooks, p->log, p->sim->now))
        p->sim->out_of_memory = true;
}

void sim_player_act(sim_player *p) {
    simulation *sim = p->sim;
    if (p->state == SIM_PLAYER_WAITS)
        start_player(p);
    if (sim->out_of_memory)
        return;
    player_session_step(&p->session, sim->now);
    if (player_session_over(&p->session)) {
        end_player(p);
        return;
    }
    uint64_t next = player_session_next_timeout(&p->session);
    sim_timers_set(&sim->timers, p->actor, next > sim->now ? next : sim->now + 1);
}

/* ---- life ---- */

static bool make_credentials(simulation *sim, char *error) {
    sim->client_credentials = xl_credentials_client(NULL);
    /* One certificate for all servers, made from the first one's key. */
    sim->server_credentials =
        xl_credentials_self_signed(HTTP3_SERVER_NAME, sim->job->players[0].server.random_key, SIM_EPOCH_S);
    return (sim->client_credentials && sim->server_credentials && sim_acquaint_credentials(sim)) ||
           sim_fail(error, "cannot make a self-signed certificate");
}

static xl_endpoint *new_endpoint(void *network, const xl_config *config, uint64_t now, int *error) {
    return sim_endpoint_new(((sim_player *)network)->sim, config, now, error);
}

bool sim_ends_setup(simulation *sim, const char *job_name, char *error) {
    sim->players = calloc(sim->job->player_count, sizeof *sim->players);
    if (!sim->players)
        return sim_fail(error, "out of memory");
    if (!make_credentials(sim, error))
        return false;
    size_t count = sim->job->player_count;
    for (size_t i = 0; i < count; i++) {
        sim_player *p = &sim->players[i];
        *p = (sim_player){.sim = sim, .job = &sim->job->players[i], .index = i};
        p->server.actor = sim->direction_count + i;
        p->actor = sim->direction_count + count + i;
        if (!make_server(sim, p, job_name, error))
            return false;
        sim_timers_set(&sim->timers, p->actor, p->job->start_us);
        sim->job->players[i].options.transport = &sim_transport;
        sim->job->players[i].options.transport_config.network = p;
        sim->job->players[i].options.transport_config.new_endpoint = new_endpoint;
        sim->job->players[i].options.transport_config.keeps_session = sim->job->session != SIM_SESSION_NONE;
    }
    sim->running = count;
    return true;
}

void sim_ends_free(simulation *sim) {
    for (size_t i = 0; sim->players && i < sim->job->player_count; i++) {
        sim_player *p = &sim->players[i];
        http3_client_free(p->client);
        player_session_free(&p->session);
        http3_service_free(p->server.http3);
        xl_endpoint_free(p->server.endpoint);
        catalogue_free(p->server.videos);
    }
    free(sim->players);
    xl_credentials_free(sim->client_credentials);
    xl_credentials_free(sim->server_credentials);
    xl_log_files_close(sim->client_files);
    xl_log_files_close(sim->server_files);
}
