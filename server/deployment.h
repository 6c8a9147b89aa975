/* The server's part in a deployment, from --workers, --lb-config and --server-id. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/server.h"

/* Without --lb-config, connection IDs have the plaintext form, server ID 0 of one byte and a nonce of eight bytes.
 * Without a secret in the file the keys are derived from the configuration's random key. The caller frees *lb by
 * xl_lb_free(). out->worker is 0. False: error has a sentence. */
bool server_deployment_open(const server_config *, xl_lb **lb, xl_deployment *out, char *error, size_t error_cap);
