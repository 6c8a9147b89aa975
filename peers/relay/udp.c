#include "peers/relay/udp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

bool relay_refuse(char *error, const char *sentence) {
    return error_set(error, RELAY_ERROR_BYTES, "%s", sentence);
}

bool relay_udp_bind(relay_udp *u, size_t count) {
    for (size_t k = 0; k < count; k++) {
        const int socket = xl_udp_add_socket(u->udp, &u->options.paths[k].local, &u->local[k]);
        if (socket < 0) {
            char reason[RELAY_ERROR_BYTES];
            snprintf(reason, sizeof reason, "the address of path %s cannot be used: %s", u->options.paths[k].name,
                     strerror(-socket));
            relay_close(u->relay, reason, true);
            return false;
        }
    }
    return true;
}

static bool listen_there(relay_udp *u, char *error) {
    xl_addr bound;
    const int socket = xl_udp_add_socket(u->udp, &u->options.listen, &bound);
    if (socket < 0)
        return error_set(error, RELAY_ERROR_BYTES, "Cannot listen there: %s.", strerror(-socket));
    u->options.listen = bound;
    return true;
}

static bool start(const relay_program *p, void *stack, relay_udp *u, char *error) {
    const relay_options *o = &u->options;
    if (o->is_server && p->needs_certificate && (!o->certificate_file || !o->key_file))
        return relay_refuse(error, "--certificate and --key are required.");
    u->udp = xl_udp_new();
    if (!u->udp)
        return relay_refuse(error, strerror(errno));
    if (o->is_server && !listen_there(u, error))
        return false;
    u->relay = relay_new(o, &p->ops, stack, error);
    return u->relay && (relay_watch(u->relay, xl_udp_fd(u->udp)) || relay_refuse(error, strerror(errno))) &&
           p->start(stack, error);
}

int relay_over_udp(int argc, char **argv, const relay_program *p, const relay_own_options *own, void *stack,
                   relay_udp *u) {
    char error[SETTINGS_ERROR_BYTES] = "";
    if (p->version && argc > 1 && strcmp(argv[1], "version") == 0) {
        puts(p->version);
        return 0;
    }
    const bool is_read = relay_options_read(argc, argv, own, &u->options, error);
    if (u->options.help)
        return 0;
    const bool ok = is_read && start(p, stack, u, error);
    const int status = ok ? relay_run(u->relay) : 2;
    if (ok) {
        p->close(stack);
        xl_udp_send(u->udp);
    } else {
        fprintf(stderr, "%s: %s\n", p->name, error);
    }
    relay_release_all(u->relay);
    p->destroy(stack); /* may still call relay functions */
    relay_free(u->relay);
    xl_udp_free(u->udp);
    return status;
}
