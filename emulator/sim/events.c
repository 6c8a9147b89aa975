#include "emulator/sim/events.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/link/trace.h"
#include "emulator/sim/sim.h"

#define MAX_TIME_MS UINT64_C(86400000000)
#define NOT_GIVEN   UINT64_MAX
#define CHANGES     "state, delay_ms, loss, rate, mtu, reorder, duplicate, cross, nat or interface"

static const char *const directions[] = {"up", "down", "both", NULL};
static const char *const states[] = {"up", "down", NULL};
static const char *const nats[] = {"rebind", NULL};

typedef struct {
    uint64_t at_us;
    const char *path, *direction, *state, *rate, *nat, *interface;
} event_members;

#define FIELD(member) SETTING_FIELD(event_members, member)
static const setting event_rows[] = {
    {"t_s", SETTING_DECIMAL, FIELD(at_us), .most = MAX_TIME_MS, .scale = 1000},
    {"path", SETTING_TEXT, FIELD(path)},
    {"direction", SETTING_WORD, FIELD(direction), .words = directions},
    {"state", SETTING_WORD, FIELD(state), .words = states},
    {"rate", SETTING_TEXT, FIELD(rate)},
    {"nat", SETTING_WORD, FIELD(nat), .words = nats},
    {"interface", SETTING_WORD, FIELD(interface), .words = states},
    {0},
};
/* Members that are settings of links too. */
static const char *const of_links[] = {"delay_ms",         "loss",      "mtu",   "reorder",
                                       "reorder_delay_ms", "duplicate", "cross", NULL};

/* ---- reading ---- */

static bool find_path(const sim_job *job, const char *name, size_t *path) {
    *path = 0;
    while (*path < job->path_count + job->bottleneck_count && strcmp(job->paths[*path].name, name) != 0)
        ++*path;
    return *path < job->path_count + job->bottleneck_count;
}

/* Reads the members that are settings of links, by their rules. */
static bool take_settings(link_change *change, const json_t *object, const char *where, char *error) {
    char reason[SIM_ERROR_BYTES / 2];
    link_settings given[2] = {{.trace = NULL}, {.trace = NULL}};
    bool good = true;
    for (size_t i = 0; good && of_links[i]; i++) {
        json_t *value = json_object_get(object, of_links[i]);
        if (value && !json_is_null(value))
            good = link_settings_set_json(given, of_links[i], value, reason, sizeof reason);
    }
    link_change_read(change, &given[0]);
    link_settings_free(given);
    return good || sim_fail(error, "%s%s", where, reason);
}

static bool take_change(link_change *change, const event_members *m, const json_t *object, const char *where,
                        char *error) {
    if (!take_settings(change, object, where, error))
        return false;
    if (m->rate && !link_trace_parse_rate(m->rate, &change->rate_bps))
        return sim_fail(error, "%srate takes a rate such as \"12mbps\", not \"%.40s\"", where, m->rate);
    const char *state = m->interface ? m->interface : m->state;
    change->has_state = state != NULL;
    change->is_up = state == states[0];
    change->rebinds = m->nat != NULL;
    if ((change->reorder > 0.0) != (change->reorder_us > 0))
        return sim_fail(error, "%sreorder above 0 and reorder_delay_ms go together", where);
    bool changes = change->has_state || change->has_delay || change->has_loss || change->rate_bps != 0 ||
                   change->mtu_bytes != 0 || change->has_reorder || change->has_duplicate || change->has_cross ||
                   change->rebinds;
    return changes || sim_fail(error, "%s" CHANGES " must say what changes", where);
}

static bool take_event(sim_job *job, json_t *object, const char *where, sim_event *event, char *error) {
    event_members m = {.at_us = NOT_GIVEN, .direction = directions[2]};
    const setting_tables members = {.table = {{event_rows, &m, 0}}, .count = 1};
    if (!sim_members_read(&members, object, where, of_links, error))
        return false;
    if (m.at_us == NOT_GIVEN || !m.path)
        return sim_fail(error, "%s%s is missing", where, !m.path ? "path" : "t_s");
    if (!find_path(job, m.path, &event->path))
        return sim_fail(error, "%spath \"%.40s\" is not the name of a path or bottleneck", where, m.path);
    event->at_us = m.at_us;
    event->ways[0] = m.direction != directions[1];
    event->ways[1] = m.direction != directions[0];
    event->has_interface = m.interface != NULL;
    if (m.interface && (m.state || m.direction != directions[2]))
        return sim_fail(error, "%sinterface has both directions, and goes with no state", where);
    if (m.interface && event->path >= job->path_count)
        return sim_fail(error, "%sinterface: \"%.40s\" is a bottleneck, and has none", where, m.path);
    if (m.nat && job->paths[event->path].settings[0].nat.timeout_us == 0)
        return sim_fail(error, "%snat: path \"%.40s\" has no NAT; give it the setting nat", where, m.path);
    if (!take_change(&event->change, &m, object, where, error))
        return false;
    return link_change_suits(&event->change, job->paths[event->path].settings, event->ways) ||
           sim_fail(error, "%scross: " LINK_CROSS_NEEDS_LIMIT, where);
}

bool sim_events_parse(sim_job *job, json_t *events, const char *name, char *error) {
    size_t count = json_array_size(events);
    if (!events || json_is_null(events))
        return true;
    if (!json_is_array(events) || count > SIM_MAX_EVENTS)
        return sim_fail(error, "%s: link_events takes an array of at most %d objects", name, SIM_MAX_EVENTS);
    job->events = calloc(count + 1, sizeof *job->events);
    if (!job->events)
        return sim_fail(error, "out of memory");
    for (size_t i = 0; i < count; i++) {
        char where[SIM_ERROR_BYTES / 4];
        json_t *object = json_array_get(events, i);
        snprintf(where, sizeof where, "%.200s: link_events[%zu].", name, i);
        if (!json_is_object(object))
            return sim_fail(error, "%s: link_events[%zu] is not an object", name, i);
        if (!take_event(job, object, where, &job->events[i], error))
            return false;
        if (i > 0 && job->events[i].at_us < job->events[i - 1].at_us)
            return sim_fail(error, "%st_s is before that of the event before it; put them in order", where);
        job->event_count = i + 1;
    }
    return true;
}

/* ---- making the changes ---- */

void sim_events_plan(simulation *sim) {
    bool more = sim->next_event < sim->job->event_count;
    sim_timers_set(&sim->timers, sim->event_actor, more ? sim->job->events[sim->next_event].at_us : UINT64_MAX);
}

/* Changes the directions of a link that the event names. */
static void change_link(simulation *sim, const sim_event *event, size_t number) {
    for (size_t way = 0; way < 2; way++) {
        sim_direction *d = &sim->directions[2 * number + way];
        if (!event->ways[way] || !d->link)
            continue;
        link_change_apply(d->link, &event->change, sim->now);
        sim_timers_set(&sim->timers, d->actor, link_next_deadline(d->link));
    }
}

void sim_events_act(simulation *sim) {
    while (sim->next_event < sim->job->event_count && sim->job->events[sim->next_event].at_us <= sim->now) {
        const sim_event *event = &sim->job->events[sim->next_event++];
        const bool is_path = event->path < sim->job->path_count;
        for (size_t number = event->path; is_path && 2 * number < sim->path_direction_count;
             number += sim->job->path_count)
            change_link(sim, event, number);
        if (!is_path)
            change_link(sim, event, sim_path_links(sim->job) + event->path - sim->job->path_count);
        for (size_t i = 0; i < sim->job->player_count && event->has_interface; i++)
            sim_player_interface(&sim->players[i], event->path, event->change.is_up);
    }
    sim_events_plan(sim);
}
