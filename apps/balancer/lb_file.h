/* The configuration file of balancers and servers: the format of connection IDs, and the servers.
 *
 *     secret: 64 hex digits           # optional: key for stateless reset tokens, process octets and balancers' hashes
 *     configs:
 *       - rotation: 0                 # 0 to 6. Servers issue CIDs of the first configuration; all are routed
 *         server_id_bytes: 2
 *         nonce_bytes: 6
 *         key: 32 hex digits          # optional: without it server IDs are in the clear
 *         encode_length: true         # optional: false
 *     servers:
 *       a001: {address: "192.0.2.1:4433"}
 *       a002: {address: "192.0.2.2:4433", drain: true}  # keeps its connections, but gets no new ones
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/deployment.h"

#define LB_SERVERS_MAX 256
#define LB_ERROR_BYTES 512

typedef struct {
    uint8_t id[XL_LB_SERVER_ID_MAX];
    xl_addr address;
    bool drain;
} lb_server;

typedef struct {
    size_t config_count, server_count;
    xl_lb_config config[XL_LB_CONFIGS_MAX];
    uint8_t server_id_bytes; /* equal in all configurations, because they share the server IDs */
    lb_server server[LB_SERVERS_MAX];
    bool has_secret;
    uint8_t secret[XL_STATIC_SECRET_BYTES]; /* all zero without has_secret */
} lb_file;

/* Parses a text. False with a sentence in error[LB_ERROR_BYTES], with file and line. */
bool lb_file_parse(const char *text, const char *name, lb_file *out, char *error);
/* The same for a file. */
bool lb_file_read(const char *name, lb_file *out, char *error);
/* Parses a server ID in hexadecimal. False: it does not have this number of bytes. */
bool lb_parse_server_id(const char *text, size_t bytes, uint8_t out[XL_LB_SERVER_ID_MAX]);
/* Returns the codec of the file's configurations. NULL: out of memory. */
xl_lb *lb_file_codec(const lb_file *);
