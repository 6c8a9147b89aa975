/* The server's configuration and summary as JSON objects: the format of its JSON Lines in every arena. */
#pragma once

#include <jansson.h>

#include "server/server.h"

/* Paths that a summary lists; the bytes of further ones are counted too. */
#define SERVER_SUMMARY_PATHS 1024

/* Adds all counters, and the paths while there is room for them. */
void server_totals_add(server_totals *, const server_totals *more);
/* The counters as an object, and back: adds those of the object. */
json_t *server_totals_counters(const server_totals *);
void server_totals_take(server_totals *, const json_t *counters);
/* Members of the "request" record. path: NULL if it is unknown; null then, and if it is not UTF-8. */
json_t *server_request_fields(uint64_t connection, uint64_t stream, const char *path, const catalogue_response *);
/* Members of the "start" record. */
json_t *server_describe(const server_config *);
/* Members of the "summary" record. */
json_t *server_summary_fields(const server_totals *);
