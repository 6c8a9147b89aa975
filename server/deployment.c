#include "server/deployment.h"

#include <stdio.h>
#include <stdlib.h>

#include "balancer/lb_file.h"
#include "base/error.h"

static bool read_file(const server_config *config, lb_file *file, xl_deployment *out, char *error, size_t cap) {
    char reason[LB_ERROR_BYTES];
    if (!lb_file_read(config->lb_file, file, reason))
        return error_set(error, cap, "%s", reason);
    return lb_parse_server_id(config->server_id, file->server_id_bytes, out->server_id) ||
           error_set(error, cap, "--server-id takes %u hexadecimal digits, as %s says, not '%s'.",
                     2u * file->server_id_bytes, config->lb_file, config->server_id);
}

bool server_deployment_open(const server_config *config, xl_lb **lb, xl_deployment *out, char *error,
                            size_t error_cap) {
    *out = (xl_deployment){.workers = config->workers > 0 ? (unsigned)config->workers : 1};
    lb_file *file = calloc(1, sizeof *file);
    bool ok = file != NULL;
    snprintf(error, error_cap, "out of memory.");
    if (ok && config->lb_file) {
        ok = read_file(config, file, out, error, error_cap);
    } else if (ok) {
        file->config_count = 1;
        file->config[0] = (xl_lb_config){.server_id_bytes = 1, .nonce_bytes = 8};
    }
    *lb = ok ? lb_file_codec(file) : NULL;
    out->lb = *lb;
    /* Without a secret in the file the keys are valid for this server and its workers while it runs. */
    if (ok && *lb && xl_static_keys_from(file->has_secret ? file->secret : config->random_key, &out->keys) != 0) {
        snprintf(error, error_cap, "cannot make the keys of the deployment.");
        xl_lb_free(*lb);
        *lb = NULL;
    }
    free(file);
    return *lb != NULL;
}
