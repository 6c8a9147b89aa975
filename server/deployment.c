#include "server/deployment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balancer/lb_file.h"

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t next_word(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void secret_from_seed(uint64_t seed, uint8_t out[XL_STATIC_SECRET_BYTES]) {
    for (size_t i = 0; i < XL_STATIC_SECRET_BYTES; i += sizeof seed) {
        uint64_t word = next_word(&seed);
        memcpy(out + i, &word, sizeof word);
    }
}

static bool read_file(const server_config *config, lb_file *file, xl_deployment *out, char *error, size_t cap) {
    char reason[LB_ERROR_BYTES];
    if (!lb_file_read(config->lb_file, file, reason)) {
        snprintf(error, cap, "%s", reason);
        return false;
    }
    if (!lb_parse_server_id(config->server_id, file->server_id_bytes, out->server_id)) {
        snprintf(error, cap, "--server-id takes %u hexadecimal digits, as %s says, not '%s'.",
                 2u * file->server_id_bytes, config->lb_file, config->server_id);
        return false;
    }
    return true;
}

bool server_deployment_open(const server_config *config, xl_lb **lb, xl_deployment *out, char *error,
                            size_t error_cap) {
    *out = (xl_deployment){.workers = config->workers > 0 ? (unsigned)config->workers : 1};
    lb_file *file = calloc(1, sizeof *file);
    bool ok = file != NULL;
    snprintf(error, error_cap, "out of memory.");
    if (ok && config->lb_file != NULL) {
        ok = read_file(config, file, out, error, error_cap);
    } else if (ok) {
        file->config_count = 1;
        file->config[0] = (xl_lb_config){.server_id_bytes = 1, .nonce_bytes = 8};
    }
    *lb = ok ? lb_file_codec(file) : NULL;
    out->lb = *lb;
    if (ok && file->has_secret) {
        memcpy(out->secret, file->secret, sizeof out->secret);
    } else if (ok) {
        secret_from_seed(config->seed, out->secret);
    }
    free(file);
    return *lb != NULL;
}
