/* The server's part in a deployment, from --workers, --lb-config and --server-id. */
#ifndef SERVER_DEPLOYMENT_H
#define SERVER_DEPLOYMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "server/server.h"

/* Without --lb-config: connection IDs in the plaintext form, server ID 0 of one byte, nonce of eight. Without a secret
 * in the file the keys follow from the configuration's random key. *lb is to be freed by xl_lb_free(); out->worker is
 * 0. False with one sentence. */
bool server_deployment_open(const server_config *, xl_lb **lb, xl_deployment *out, char *error, size_t error_cap);

#endif
