/* The client's state, and its first steps: connection, proof of the token, sockets. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "emulator/saturatr/control.h"
#include "emulator/saturatr/peer.h"
#include "emulator/saturatr/recording.h"

#define SAT_CLIENT_SOCKETS (2u * SAT_MAX_PATHS)

/* Results of a channel's HELLOs and WELCOMEs. */
typedef struct {
    uint8_t cookie[SAT_COOKIE_BYTES];
    uint64_t next_hello_us;
    uint64_t hellos, answers;
    uint64_t least_rtt_us; /* SAT_NEVER: no answer yet */
} sat_channel;

typedef struct {
    const sat_options *options;
    sat_control control;
    sat_peer peer;
    sat_socket sockets[SAT_CLIENT_SOCKETS]; /* index: channel */
    sat_channel channels[SAT_MAX_CHANNELS];
    sat_recording recording;
    sat_records uplinks[SAT_MAX_PATHS]; /* fetched from the server */
    bool late;                          /* clock exchanges are in the second half of the recording, or later */
    bool fetching;                      /* the server's next line is the answer to stop */
    bool hung_up;                       /* the server ended the connection, or sent an error; see `error` */
    char error[SAT_ERROR_SIZE];
} sat_client;

/* False with one sentence in client->error. */
bool sat_client_connect(sat_client *client);
bool sat_client_open_channels(sat_client *client);
void sat_client_close(sat_client *client);

#define sat_client_fail(client, ...) error_set((client)->error, sizeof((client)->error), __VA_ARGS__)
/* Returns a line from the server that is not an error, owned by the caller; else NULL, with client->error set. */
json_t *sat_client_line(sat_client *client, uint64_t timeout_us, const char *what);
