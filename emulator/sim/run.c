#include <stdlib.h>
#include <string.h>

#include "emulator/sim/random.h"
#include "emulator/sim/sim.h"

/* Lets an actor act at its deadline. */
static void act(simulation *sim, size_t actor) {
    size_t players = sim->job->player_count;
    if (actor < sim->direction_count)
        sim_network_deliver(sim, &sim->directions[actor]);
    else if (actor < sim->direction_count + players)
        sim_server_act(sim, &sim->players[actor - sim->direction_count].server);
    else if (actor != sim->event_actor)
        sim_player_act(&sim->players[actor - sim->direction_count - players]);
    else
        sim_events_act(sim);
}

/* Ends because players have time limits, and an actor that is due again at once acts a microsecond later. */
static void loop(simulation *sim) {
    while (sim->running > 0 && !sim->out_of_memory) {
        size_t actor = sim_timers_next(&sim->timers);
        uint64_t at = sim_timers_get(&sim->timers, actor);
        sim->now = at > sim->now ? at : sim->now;
        act(sim, actor);
    }
}

static void count_directions(simulation *sim) {
    sim->path_direction_count = 2 * sim_path_links(sim->job);
    sim->direction_count = sim->path_direction_count + 2 * sim->job->bottleneck_count;
}

static bool set_up(simulation *sim, const char *job_name, char *error) {
    count_directions(sim);
    sim->event_actor = sim->direction_count + 2 * sim->job->player_count;
    if (!sim_timers_init(&sim->timers, sim->event_actor + 1))
        return sim_fail(error, "out of memory");
    sim_events_plan(sim);
    return sim_network_setup(sim, job_name, error) && sim_outputs_open_transport(sim, error) &&
           sim_ends_setup(sim, job_name, error) && sim_outputs_open(sim, error);
}

/* Returns the largest of the players' exit statuses. */
static int worst_status(const simulation *sim) {
    int status = 0;
    for (size_t i = 0; i < sim->job->player_count; i++)
        status = sim->players[i].status > status ? sim->players[i].status : status;
    return status;
}

static int finish(simulation *sim, char *error) {
    if (sim->out_of_memory) {
        sim_fail(error, "out of memory");
        return 1;
    }
    sim_servers_stop(sim);
    int status = worst_status(sim);
    if (!sim_outputs_close(sim, status, error))
        return 1;
    if (sim_random_drawn() == 0) {
        sim_fail(error, "this GnuTLS does not draw its random numbers from the program: runs cannot be repeated");
        return 1;
    }
    return status;
}

int sim_run(const sim_job *job, const char *job_name, const char *directory, char *error) {
    simulation sim = {.job = job};
    int status = 2;
    error[0] = '\0';
    sim_random_seed(job->seed);
    if (strlen(directory) >= sizeof sim.directory) {
        sim_fail(error, "the name of the output directory is too long");
        return status;
    }
    strcpy(sim.directory, directory);
    if (set_up(&sim, job_name, error)) {
        loop(&sim);
        status = finish(&sim, error);
    }
    (void)sim_outputs_close_logs(&sim);
    sim_ends_free(&sim);
    sim_network_free(&sim);
    sim_timers_free(&sim.timers);
    return status;
}

bool sim_check(const sim_job *job, const char *job_name, char *error) {
    simulation sim = {.job = job};
    count_directions(&sim);
    const bool is_good = sim_network_setup(&sim, job_name, error);
    sim_network_free(&sim);
    return is_good;
}
