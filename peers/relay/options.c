#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/net.h"
#include "peers/relay/relay.h"

static bool refuse(char *reason, size_t cap, const char *what, const char *text) {
    return error_set(reason, cap, "takes %s, not '%.80s'", what, text);
}

static bool read_path(void *into, const char *text, char *reason, size_t cap) {
    relay_options *o = into;
    relay_path *path = &o->paths[o->path_count];
    const char *colon = strchr(text, ':');
    if (o->path_count == RELAY_MAX_PATHS)
        return refuse(reason, cap, "no more than 8 paths", text);
    if (!colon || colon == text || colon - text >= RELAY_NAME_BYTES || !net_parse_ip(colon + 1, &path->local))
        return refuse(reason, cap, "NAME:ADDR with an IP address", text);
    memcpy(path->name, text, (size_t)(colon - text));
    path->name[colon - text] = '\0';
    o->path_count++;
    return true;
}

#define FIELD(member) SETTING_FIELD(relay_options, member)

static const setting client_rows[] = {
    {"socket", SETTING_TEXT, FIELD(socket_file), .value = "FILE", .help = "The Unix socket to listen on."},
    {"server", SETTING_OWN, FIELD(server), .read = net_read_endpoint, .value = "ADDR:PORT",
     .help = "The relay of the server side."},
    {"path", SETTING_OWN, .read = read_path, .value = "NAME:ADDR", .repeats = true,
     .help = "A path and its local address; the first is the primary path."},
    {0},
};

static const setting server_rows[] = {
    {"listen", SETTING_OWN, FIELD(listen), .read = net_read_endpoint, .value = "ADDR:PORT",
     .help = "Where clients come to."},
    {"upstream", SETTING_OWN, FIELD(upstream), .read = net_read_endpoint, .value = "ADDR:PORT",
     .help = "The HTTP/1.1 server."},
    {"certificate", SETTING_TEXT, FIELD(certificate_file), .value = "FILE", .help = "In PEM form."},
    {"key", SETTING_TEXT, FIELD(key_file), .value = "FILE", .help = "Of the certificate, in PEM form."},
    {0},
};

static bool say(char *error, const char *sentence) {
    return error_set(error, SETTINGS_ERROR_BYTES, "%s", sentence);
}

static void print_usage(const char *program, const relay_own_options *own) {
    const char *slash = strrchr(program, '/');
    printf("usage: %s client|server OPTIONS\nclient:\n", slash ? slash + 1 : program);
    settings_help(stdout, client_rows, 0);
    printf("server:\n");
    settings_help(stdout, server_rows, 0);
    if (own && own->rows) {
        printf("of this stack:\n");
        settings_help(stdout, own->rows, SETTING_OF_PLAYER | SETTING_OF_SERVER);
    }
}

bool relay_options_read(int argc, char **argv, const relay_own_options *own, relay_options *out, char *error) {
    *out = (relay_options){0};
    const char *side = argc > 1 ? argv[1] : "";
    out->help = strcmp(side, "--help") == 0;
    out->is_server = strcmp(side, "server") == 0;
    if (!out->help && !out->is_server && strcmp(side, "client") != 0)
        return say(error, "The first argument is 'client' or 'server'; see --help.");
    setting_tables tables = {.table = {{out->is_server ? server_rows : client_rows, out, 0}}, .count = 1};
    if (own && own->rows)
        tables.table[tables.count++] =
            (setting_table){own->rows, own->into, out->is_server ? SETTING_OF_SERVER : SETTING_OF_PLAYER};
    if (!out->help && !settings_read_args(&tables, argc - 1, argv + 1, &out->help, NULL, error))
        return false;
    if (out->help) {
        print_usage(argv[0], own);
        return true;
    }
    if (out->is_server)
        return (out->listen.family != 0 && out->upstream.family != 0) ||
               say(error, "--listen and --upstream are required; see --help.");
    return (out->socket_file && out->server.family != 0 && out->path_count > 0) ||
           say(error, "--socket, --server and --path are required; see --help.");
}
