/* `session` of a job: the player knows the server from an earlier connection. That connection is made here, between
 * separate endpoints without a network, with the credentials and keys of the simulated ones. */
#include <stdlib.h>
#include <string.h>

#include "emulator/sim/sim.h"
#include "xlink/udp.h"

#define LAST_PORT  39999
#define ROUNDS_MAX 64

static void save(void *user, const char *server_name, const uint8_t *session, size_t len) {
    sim_session *s = user;
    (void)server_name;
    memcpy(s->bytes, session, len);
    s->len = len;
}

/* All servers of a job have the same name, so it is ignored. */
static size_t load(void *user, const char *server_name, uint8_t *session, size_t cap) {
    const sim_session *s = user;
    (void)server_name;
    if (s->len > cap)
        return 0;
    memcpy(session, s->bytes, s->len);
    return s->len;
}

bool sim_acquaint_credentials(simulation *sim) {
    static const uint8_t ticket_key[XL_TICKET_KEY_BYTES] = {'s', 'i', 'm'};
    const xl_sessions sessions = {.user = &sim->session, .save = save, .load = load};
    if (sim->job->session == SIM_SESSION_NONE)
        return true;
    xl_set_time_of_day(xl_udp_time_of_day_ns); /* only for the age of tickets, none of which is too old */
    bool is_early = sim->job->session == SIM_SESSION_EARLY_DATA;
    return xl_credentials_keep_sessions(sim->client_credentials, &sessions) == 0 &&
           xl_credentials_issue_tickets(sim->server_credentials, ticket_key) == 0 &&
           (!is_early || (xl_credentials_allow_early_data(sim->client_credentials) == 0 &&
                          xl_credentials_allow_early_data(sim->server_credentials) == 0));
}

static bool carry(xl_endpoint *from, xl_endpoint *to) {
    uint8_t data[QUIC_UDP_PAYLOAD_BYTES];
    xl_datagram d;
    size_t n = xl_endpoint_transmit(from, data, sizeof data, &d, 0);
    if (n == 0)
        return false;
    const xl_datagram in = {.local = d.remote, .remote = d.local, .len = n};
    xl_endpoint_receive(to, &in, data, 0);
    return true;
}

/* Exchanges datagrams at time 0. The rest would wait for timers; both endpoints are freed before that. */
static void talk(xl_endpoint *near, xl_endpoint *far) {
    for (int i = 0; i < ROUNDS_MAX; i++) {
        bool moved = carry(near, far);
        moved |= carry(far, near);
        if (!moved)
            return;
    }
}

bool sim_acquaint(simulation *sim, const sim_player *p, const xl_config *of_server) {
    if (sim->job->session == SIM_SESSION_NONE)
        return true;
    const player_transport_config *t = &p->job->options.transport_config;
    xl_config config;
    int rv = 0;
    xl_config_init(&config);
    config.alpn = "h3";
    memcpy(config.random_key, t->random_key, sizeof config.random_key);
    config.random_key[0] ^= 0xff; /* so that the player's random choices stay its own */
    config.credentials = sim->client_credentials;
    config.null_crypto = t->null_crypto;
    quic_settings_configure(t->settings, &config);
    xl_config before = *of_server;
    before.log = (xl_log){0};
    xl_endpoint *near = sim_endpoint_new(sim, &config, 0, &rv), *far = sim_endpoint_new(sim, &before, 0, &rv);
    xl_addr local = t->paths[0].local;
    local.port = LAST_PORT;
    bool ok =
        near && far && xl_endpoint_connect(near, HTTP3_SERVER_NAME, &local, &t->server, t->paths[0].technology, 0);
    sim->session.len = 0;
    if (ok)
        talk(near, far);
    xl_endpoint_free(near);
    xl_endpoint_free(far);
    return ok && sim->session.len > 0;
}
