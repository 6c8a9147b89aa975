#include "connection/versions.h"

#include "connection/connection.h"
#include "connection/state.h"

static bool speaks(const xl_connection *c, uint32_t version) {
    return xl_versions_has(c->config->limits.versions, version);
}

void xl_conn_choose_first_version(xl_connection *c, const char *server_name) {
    uint32_t resumed = xl_credentials_session_version(c->config->credentials, server_name);
    if (c->config->limits.versions == XL_VERSIONS_BOTH && resumed && speaks(c, resumed))
        c->handshake.version = c->handshake.original_version = resumed;
}

void xl_conn_put_version_information(xl_connection *c) {
    xl_transport_params *p = &c->local_params;
    p->has_version_information = c->config->limits.versions != XL_VERSIONS_1;
    p->versions = c->config->limits.versions;
    p->chosen_version = c->handshake.version;
}

xl_keys *xl_conn_make_initial_keys(const xl_connection *c, uint32_t version, xl_keys **write) {
    xl_keys *client, *server;
    if (xl_keys_initial(version, &c->handshake.initial_dcid, &client, &server) != 0)
        return *write = NULL;
    if (c->config->null_crypto) {
        xl_keys_make_null(client);
        xl_keys_make_null(server);
    }
    *write = c->is_server ? server : client;
    return c->is_server ? client : server;
}

/* Changes the version in use. The old keys still open late packets, and those of a client that does not know it yet. */
static uint64_t change_version(xl_connection *c, uint32_t version) {
    xl_level_state *l = &c->level[XL_LEVEL_INITIAL];
    xl_keys *write, *read = xl_conn_make_initial_keys(c, version, &write);
    if (!read)
        return XL_QERR_INTERNAL;
    xl_keys_free(c->handshake.original_read);
    c->handshake.original_read = l->read;
    xl_keys_free(l->write);
    l->read = read;
    l->write = write;
    c->handshake.version = version;
    xl_tls_set_version(c->handshake.tls, version);
    xl_qlog_connection(c->qlog, c->now, "version_changed", version == XL_VERSION_2 ? "2" : "1");
    return 0;
}

/* RFC 9368 section 2.3: version 2 is preferred. */
static uint64_t choose(xl_connection *c) {
    const xl_transport_params *theirs = &c->peer_params;
    if (!theirs->has_version_information)
        return 0;
    if (theirs->chosen_version != c->handshake.original_version)
        return XL_QERR_VERSION_NEGOTIATION;
    bool upgrades = theirs->has_v2 && c->handshake.version != XL_VERSION_2 && speaks(c, XL_VERSION_2);
    uint64_t error = upgrades ? change_version(c, XL_VERSION_2) : 0;
    c->local_params.chosen_version = c->handshake.version;
    return error;
}

/* RFC 9368 section 4: the version must not change without the server's version information, which the handshake
 * authenticates. */
static uint64_t check(const xl_connection *c) {
    const xl_transport_params *theirs = &c->peer_params;
    bool has_changed = c->handshake.version != c->handshake.original_version;
    if (!theirs->has_version_information)
        return has_changed ? XL_QERR_VERSION_NEGOTIATION : 0;
    return theirs->chosen_version == c->handshake.version ? 0 : XL_QERR_VERSION_NEGOTIATION;
}

uint64_t xl_conn_agree_on_version(xl_connection *c) {
    if (c->config->limits.versions == XL_VERSIONS_1)
        return 0; /* its parameter is unknown to us */
    return c->is_server ? choose(c) : check(c);
}

static bool may_follow(const xl_connection *c, uint32_t version) {
    return !c->is_server && version != c->handshake.version && speaks(c, version) &&
           c->handshake.version == c->handshake.original_version && !c->level[XL_LEVEL_HANDSHAKE].read;
}

const xl_keys *xl_conn_initial_read_keys(xl_connection *c, uint32_t version, bool *changes) {
    xl_keys *unused = NULL;
    *changes = false;
    if (version == c->handshake.version)
        return c->level[XL_LEVEL_INITIAL].read;
    if (c->is_server)
        return version == c->handshake.original_version ? c->handshake.original_read : NULL;
    if (!may_follow(c, version))
        return NULL;
    *changes = true;
    if (!c->handshake.candidate_read || c->handshake.candidate_version != version) {
        xl_keys_free(c->handshake.candidate_read);
        c->handshake.candidate_read = xl_conn_make_initial_keys(c, version, &unused);
        c->handshake.candidate_version = version;
        xl_keys_free(unused);
    }
    return c->handshake.candidate_read;
}

void xl_conn_follow_version(xl_connection *c, uint32_t version) {
    if (change_version(c, version) != 0)
        xl_conn_fail(c, XL_QERR_INTERNAL, "no keys of another version");
}

void xl_conn_drop_original_keys(xl_connection *c) {
    xl_keys_free(c->handshake.original_read);
    xl_keys_free(c->handshake.candidate_read);
    c->handshake.original_read = c->handshake.candidate_read = NULL;
}

uint32_t xl_connection_quic_version(const xl_connection *c) {
    return c->handshake.version;
}
