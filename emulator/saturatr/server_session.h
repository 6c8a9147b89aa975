/* One recording at the server: set-up, running, handover of the records. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "emulator/saturatr/control.h"
#include "emulator/saturatr/options.h"
#include "emulator/saturatr/peer.h"

typedef enum { SAT_IDLE, SAT_SETUP, SAT_RUNNING, SAT_HANDOVER, SAT_OVER } sat_stage;

typedef struct {
    sat_stage stage;
    sat_control control;
    sat_peer peer;
    sat_socket *data_socket, *ack_socket; /* borrowed */
    uint8_t cookie_key[SAT_KEY_BYTES];
    bool up, down;
    bool go_expected;      /* data came before the client's go and started the session */
    uint64_t memory_bytes; /* of all records */
    uint64_t length_us;    /* of sending, as announced by the client */
    uint64_t deadline_us;  /* of the present stage */
    uint32_t drops_before;
    /* handover */
    size_t path;
    const sat_block *block;
    size_t offset; /* in the block's frame: 4 bytes of length, then the block's records */
} sat_session;

/* Checks a client's request and takes over the connection. False with one sentence in error; the session stays idle. */
bool sat_session_begin(sat_session *session, const sat_options *options, sat_control *control, const sat_nonces *nonces,
                       const json_t *request, char *error);
/* Call them when a line came, or bytes may be written. */
void sat_session_on_readable(sat_session *session);
void sat_session_on_writable(sat_session *session);
/* Checks the stage's deadline. */
void sat_session_on_time(sat_session *session, uint64_t now);
void sat_session_end(sat_session *session);
