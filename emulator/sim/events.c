#include "emulator/sim/events.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/link/trace.h"
#include "emulator/sim/members.h"
#include "emulator/sim/sim.h"

#define MAX_TIME_MS UINT64_C(86400000000)
#define NOT_GIVEN   UINT64_MAX

static const char *const directions[] = {"up", "down", "both", NULL};
static const char *const states[] = {"up", "down", NULL};

struct event_members {
    uint64_t at_us, delay_us;
    const char *path, *direction, *state, *rate;
};

#define FIELD(member) SETTING_FIELD(struct event_members, member)
static const setting event_rows[] = {
    {"t_s", SETTING_DECIMAL, FIELD(at_us), .most = MAX_TIME_MS, .scale = 1000},
    {"path", SETTING_TEXT, FIELD(path)},
    {"direction", SETTING_WORD, FIELD(direction), .words = directions},
    {"state", SETTING_WORD, FIELD(state), .words = states},
    {"delay_ms", SETTING_DECIMAL, FIELD(delay_us), .most = 3600000000u},
    {"rate", SETTING_TEXT, FIELD(rate)},
    {0},
};
static const char *const read_apart[] = {"loss", NULL};

/* ---- reading ---- */

static bool find_path(const struct sim_job *job, const char *name, size_t *path) {
    for (size_t k = 0; name && k < job->path_count; k++) {
        if (strcmp(job->paths[k].name, name) == 0) {
            *path = k;
            return true;
        }
    }
    return false;
}

/* The loss, by the rules of a path's `loss`. */
static bool take_loss(struct sim_event *event, json_t *value, const char *where, char *error) {
    char reason[SIM_ERROR_BYTES / 2];
    struct link_settings settings[2] = {{.trace = NULL}, {.trace = NULL}};
    if (!value || json_is_null(value))
        return true;
    bool good = link_settings_set_json(settings, "loss", value, reason, sizeof reason) == 0;
    event->has_loss = good;
    event->loss = settings[0].config.loss;
    link_settings_free(settings);
    return good || sim_fail(error, "%s%s", where, reason);
}

static bool take_event(struct sim_job *job, json_t *object, const char *where, struct sim_event *event, char *error) {
    struct event_members m = {.at_us = NOT_GIVEN, .delay_us = NOT_GIVEN, .direction = directions[2]};
    const setting_tables members = {.table = {{event_rows, &m, 0}}, .count = 1};
    if (!sim_members_read(&members, object, where, read_apart, error) ||
        !take_loss(event, json_object_get(object, "loss"), where, error))
        return false;
    if (m.at_us == NOT_GIVEN || !m.path)
        return sim_fail(error, "%s%s is missing", where, !m.path ? "path" : "t_s");
    if (!find_path(job, m.path, &event->path))
        return sim_fail(error, "%spath \"%.40s\" is not the name of a path", where, m.path);
    if (m.rate && !link_trace_parse_rate(m.rate, &event->rate_bps))
        return sim_fail(error, "%srate takes a rate such as \"12mbps\", not \"%.40s\"", where, m.rate);
    event->at_us = m.at_us;
    event->ways[0] = m.direction != directions[1];
    event->ways[1] = m.direction != directions[0];
    event->has_state = m.state != NULL;
    event->is_up = m.state == states[0];
    event->has_delay = m.delay_us != NOT_GIVEN;
    event->delay_us = event->has_delay ? m.delay_us : 0;
    bool changes = event->has_state || event->has_delay || event->has_loss || event->rate_bps != 0;
    return changes || sim_fail(error, "%sstate, delay_ms, loss or rate must say what changes", where);
}

bool sim_events_parse(struct sim_job *job, json_t *events, const char *name, char *error) {
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

static void change(struct sim *sim, struct sim_direction *d, const struct sim_event *event) {
    if (event->has_state)
        link_set_up(d->link, event->is_up, sim->now);
    if (event->has_delay)
        link_set_delay(d->link, event->delay_us, sim->now);
    if (event->has_loss)
        (void)link_set_loss(d->link, &event->loss, sim->now);
    if (event->rate_bps != 0)
        (void)link_set_rate(d->link, event->rate_bps, sim->now);
    sim_timers_set(&sim->timers, d->actor, link_next_deadline(d->link));
}

static void plan(struct sim *sim) {
    bool more = sim->next_event < sim->job->event_count;
    sim_timers_set(&sim->timers, sim->event_actor, more ? sim->job->events[sim->next_event].at_us : UINT64_MAX);
}

void sim_events_start(struct sim *sim) {
    plan(sim);
}

void sim_events_act(struct sim *sim) {
    while (sim->next_event < sim->job->event_count && sim->job->events[sim->next_event].at_us <= sim->now) {
        const struct sim_event *event = &sim->job->events[sim->next_event++];
        for (size_t number = event->path; 2 * number < sim->direction_count; number += sim->job->path_count) {
            for (size_t way = 0; way < 2; way++) {
                struct sim_direction *d = &sim->directions[2 * number + way];
                if (event->ways[way] && d->link)
                    change(sim, d, event);
            }
        }
    }
    plan(sim);
}
