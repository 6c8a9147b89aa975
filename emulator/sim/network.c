#include <stdlib.h>
#include <string.h>

#include "emulator/link/foresight.h"
#include "emulator/link/rng.h"
#include "emulator/sim/sim.h"
#include "transport/endpoint/foresight.h"

#define IP_BYTES      20
#define HEADERS_BYTES 28 /* IPv4 without options, UDP */
#define UDP_PROTOCOL  17
#define TIME_TO_LIVE  64

/* ---- set-up ---- */

static bool make_link(simulation *sim, sim_direction *d, const link_settings *settings, uint32_t seed, char *error) {
    link_config config = link_settings_config(settings, sim->job->start_offset_ms);
    config.trace = &d->trace->trace;
    config.pool = sim->pool;
    config.log = d->log;
    config.seed = link_seed(sim->job->seed, seed, d->to_server ? 0 : 1);
    link_parts *uplink = &sim->directions[d->actor & ~(size_t)1].parts;
    d->link = link_settings_make(settings, &config, &d->parts, uplink, error, SIM_ERROR_BYTES / 2);
    return d->link != NULL;
}

/* Makes one direction of a path or bottleneck, which `where` names in errors. seed: "path" of link_seed(). */
static bool make_direction(simulation *sim, const sim_path_job *path, const char *where, size_t number, uint32_t seed,
                           uint32_t way, char *error) {
    sim_direction *d = &sim->directions[2 * number + way];
    const char *way_name = way == 0 ? "up" : "down";
    char reason[SIM_ERROR_BYTES / 2];
    d->actor = 2 * number + way;
    d->to_server = way == 0;
    d->trace = sim_trace_load(sim, link_settings_trace(&path->settings[way]), reason);
    if (!d->trace)
        return sim_fail(error, "%s.%s: %s", where, way_name, reason);
    if (sim->job->link_logs) {
        d->log = calloc(1, sizeof *d->log);
        if (!d->log)
            return sim_fail(error, "out of memory");
    }
    return make_link(sim, d, &path->settings[way], seed, reason) ||
           sim_fail(error, "%s.%s: %s", where, way_name, reason);
}

/* Makes both directions. */
static bool make_links(simulation *sim, const sim_path_job *path, const char *where, size_t number, uint32_t seed,
                       char *error) {
    return make_direction(sim, path, where, number, seed, 0, error) &&
           make_direction(sim, path, where, number, seed, 1, error);
}

static void make_routes(simulation *sim, const sim_path_job *path, size_t number) {
    for (size_t way = 0; way < 2; way++) {
        size_t own = 2 * number + way;
        sim->routes[own] = link_route_make(own, &path->via[way], sim->path_direction_count, way == 0);
    }
}

bool sim_network_setup(simulation *sim, const char *job_name, char *error) {
    const sim_job *job = sim->job;
    char where[SIM_ERROR_BYTES / 4];
    sim->pool = link_pool_new(0);
    sim->directions = calloc(sim->direction_count, sizeof *sim->directions);
    sim->routes = calloc(sim->path_direction_count, sizeof *sim->routes);
    if (!sim->pool || !sim->directions || !sim->routes)
        return sim_fail(error, "out of memory");
    for (size_t set = 0; set < job->player_count; set++) {
        for (size_t k = 0; k < job->path_count && (set == 0 || job->players[set].own_links); k++) {
            size_t number = sim_link_number(job, set, k);
            snprintf(where, sizeof where, "%.200s: paths[%zu]", job_name, k);
            if (!make_links(sim, &job->paths[k], where, number, (uint32_t)number, error))
                return false;
            make_routes(sim, &job->paths[k], number);
        }
    }
    for (size_t b = 0; b < job->bottleneck_count; b++) {
        snprintf(where, sizeof where, "%.200s: bottlenecks[%zu]", job_name, b);
        if (!make_links(sim, &job->paths[job->path_count + b], where, sim_path_links(job) + b,
                        LINK_BOTTLENECK_SEED + (uint32_t)b, error))
            return false;
    }
    return true;
}

void sim_network_free(simulation *sim) {
    for (size_t i = 0; i < sim->direction_count && sim->directions; i++) {
        link_foresight_free(sim->directions[i].foresight);
        link_free(sim->directions[i].link);
    }
    for (size_t i = 0; i < sim->direction_count && sim->directions; i++) {
        link_parts_free(&sim->directions[i].parts);
        free(sim->directions[i].log);
    }
    free(sim->directions);
    free(sim->routes);
    sim_traces_free(sim);
    link_pool_free(sim->pool);
}

/* ---- packets ---- */

static uint8_t *put_u16(uint8_t *p, size_t value) {
    *p++ = (uint8_t)(value >> 8);
    *p++ = (uint8_t)value;
    return p;
}

/* Writes IPv4 and UDP headers, so that a link sees the same packets as from a TUN device. Checksums are left out,
 * because packets are never damaged here. */
static void put_headers(uint8_t *p, const xl_datagram *d) {
    const xl_addr *from = &d->local, *to = &d->remote;
    memset(p, 0, HEADERS_BYTES);
    p[0] = 0x45;
    p[1] = d->ecn & 3;
    put_u16(p + 2, d->len + HEADERS_BYTES);
    p[6] = 0x40; /* do not fragment */
    p[8] = TIME_TO_LIVE;
    p[9] = UDP_PROTOCOL;
    memcpy(p + 12, from->ip, 4);
    memcpy(p + 16, to->ip, 4);
    p = put_u16(p + IP_BYTES, from->port);
    p = put_u16(p, to->port);
    put_u16(p, d->len + HEADERS_BYTES - IP_BYTES);
}

static xl_addr get_addr(const uint8_t *ip, const uint8_t *port) {
    xl_addr a = {.family = 4, .port = (uint16_t)(port[0] << 8 | port[1])};
    memcpy(a.ip, ip, 4);
    return a;
}

/* Returns the direction that a datagram takes; NULL: there is no such link. */
static sim_direction *route(simulation *sim, const xl_addr *from, const xl_addr *to, bool to_server) {
    const uint8_t *ip = to_server ? from->ip : to->ip;
    size_t actor = 2 * ((size_t)(ip[1] - 64) << 8 | ip[2]) + !to_server;
    bool known = ip[0] == 100 && ip[1] >= 64 && actor < sim->path_direction_count && sim->directions[actor].link;
    return known ? &sim->directions[actor] : NULL;
}

static void update(simulation *sim, const sim_direction *d) {
    sim_timers_set(&sim->timers, d->actor, link_next_deadline(d->link));
}

/* Whether the interface that the player sends from is down. Remembers the refusal. */
static bool refuses(simulation *sim, sim_player *client, const sim_direction *d) {
    size_t path = d->actor / 2 % sim->job->path_count;
    bool is_down = client && client->is_down[path];
    if (is_down)
        client->is_refused[path] = true;
    return is_down;
}

static void enter(simulation *sim, sim_direction *d, link_packet *packet) {
    if (link_enqueue(d->link, packet, sim->now))
        update(sim, d);
}

void sim_network_transmit(simulation *sim, xl_endpoint *endpoint, sim_player *client) {
    for (;;) {
        link_packet *packet = link_pool_get(sim->pool);
        if (!packet) {
            sim->out_of_memory = true;
            return;
        }
        xl_datagram d;
        size_t n = xl_endpoint_transmit(endpoint, packet->data + HEADERS_BYTES, sizeof packet->data - HEADERS_BYTES, &d,
                                        sim->now);
        sim_direction *direction = n > 0 ? route(sim, &d.local, &d.remote, client != NULL) : NULL;
        if (!direction || refuses(sim, client, direction)) {
            link_pool_put(sim->pool, packet);
            if (n == 0)
                return;
            continue;
        }
        put_headers(packet->data, &d);
        packet->length = (uint32_t)(n + HEADERS_BYTES);
        link_route_begin(packet, direction->actor);
        sim_outputs_capture(sim, direction, packet);
        enter(sim, &sim->directions[sim->routes[direction->actor].links[0]], packet);
    }
}

/* Returns the endpoint that a packet is for, and makes its actor due; NULL: nobody listens there. */
static xl_endpoint *receiver(simulation *sim, const xl_addr *to, bool to_server) {
    size_t index = (size_t)to->port - (to_server ? SIM_SERVER_PORT : SIM_CLIENT_PORT);
    sim_player *p = index < sim->job->player_count ? &sim->players[index] : NULL;
    if (!p || (!to_server && p->state != SIM_PLAYER_PLAYS))
        return NULL;
    sim_timers_set(&sim->timers, to_server ? p->server.actor : p->actor, sim->now);
    return to_server ? p->server.endpoint : http3_client_endpoint(p->client);
}

/* Delivers a packet at the end of its route. */
static void arrive(simulation *sim, sim_direction *d, link_packet *p) {
    const uint8_t *ip = p->data, *udp = p->data + IP_BYTES;
    xl_datagram in = {.remote = get_addr(ip + 12, udp),
                      .local = get_addr(ip + 16, udp + 2),
                      .ecn = ip[1] & 3,
                      .len = p->length - HEADERS_BYTES};
    sim_outputs_capture(sim, &sim->directions[p->route ^ 1], p);
    xl_endpoint *endpoint = receiver(sim, &in.local, d->to_server);
    if (endpoint)
        xl_endpoint_receive(endpoint, &in, p->data + HEADERS_BYTES, sim->now);
    link_departed(d->link, p, sim->now);
}

void sim_network_deliver(simulation *sim, sim_direction *d) {
    link_advance(d->link, sim->now);
    for (link_packet *p = link_pull(d->link); p; p = link_pull(d->link)) {
        int next = link_route_next(&sim->routes[p->route], p);
        if (next < 0) {
            arrive(sim, d, p);
        } else {
            link_route_forward(d->link, sim->directions[next].link, p, sim->now);
            update(sim, &sim->directions[next]);
        }
    }
    update(sim, d);
}

/* ---- foresight ---- */

static void *ask(void *user, const xl_addr *from, const xl_addr *to) {
    bool to_server = from->ip[3] == SIM_CLIENT_HOST;
    sim_direction *d = route(user, from, to, to_server);
    if (d && !d->foresight)
        d->foresight = link_foresight_new(d->link);
    if (!d || !d->foresight)
        return NULL;
    link_foresee(d->foresight);
    return d->foresight;
}

static bool inside(void *handle, size_t *bytes, uint64_t *arrives_at) {
    uint32_t length;
    if (!link_foresee_inside(handle, &length, arrives_at))
        return false;
    *bytes = length > HEADERS_BYTES ? length - HEADERS_BYTES : 0;
    return true;
}

static uint64_t send_one(void *handle, size_t bytes, uint64_t at) {
    return link_foresee_packet(handle, (uint32_t)bytes + HEADERS_BYTES, at);
}

xl_endpoint *sim_endpoint_new(simulation *sim, const xl_config *config, uint64_t now, int *error) {
    sim->foresight = (xl_foresight){.user = sim, .ask = ask, .inside = inside, .send = send_one};
    return xl_endpoint_new_foreseeing(config, &sim->foresight, now, error);
}
