/* The client's state, and its first steps: connection, proof of the token, sockets. */
#ifndef RAILYARD_SATURATR_CLIENT_SETUP_H
#define RAILYARD_SATURATR_CLIENT_SETUP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "emulator/saturatr/control.h"
#include "emulator/saturatr/peer.h"
#include "emulator/saturatr/recording.h"

#define SAT_CLIENT_SOCKETS (2u * SAT_MAX_PATHS)

/* What a channel's HELLOs and WELCOMEs have reported. */
typedef struct {
    uint8_t cookie[SAT_COOKIE_BYTES];
    uint64_t next_hello_us;
    uint64_t hellos, answers;
    uint64_t least_rtt_us; /* SAT_NEVER before the first answer */
} sat_channel;

typedef struct {
    const sat_options *options;
    volatile sig_atomic_t *stop;
    sat_control control;
    sat_peer peer;
    sat_socket sockets[SAT_CLIENT_SOCKETS]; /* of channel k at k */
    sat_channel channels[SAT_MAX_CHANNELS];
    sat_recording recording;
    sat_records uplinks[SAT_MAX_PATHS]; /* fetched */
    bool late;                          /* clock exchanges are near the end of the recording */
    bool fetching;                      /* what the server says now is the answer to stop */
    bool hung_up;                       /* the server ended the connection, or said why it cannot go on: error */
    char error[SAT_ERROR_SIZE];
} sat_client;

/* False with one sentence in client->error. */
bool sat_client_connect(sat_client *client);
bool sat_client_open_channels(sat_client *client);
void sat_client_close(sat_client *client);

#define sat_client_fail(client, ...) error_set((client)->error, sizeof((client)->error), __VA_ARGS__)
/* A line from the server that has no error in it; NULL otherwise, with client->error set. The caller owns it. */
json_t *sat_client_line(sat_client *client, uint64_t timeout_us, const char *what);

#endif
