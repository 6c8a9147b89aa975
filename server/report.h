/* The server's configuration and summary as JSON objects: the format of its JSON Lines in every arena. */
#ifndef SERVER_REPORT_H
#define SERVER_REPORT_H

#include <jansson.h>

#include "server/server.h"

/* Members of the "start" record. */
json_t *server_describe(const server_config *);
/* Members of the "summary" record. */
json_t *server_summary_fields(const server_totals *);

#endif
