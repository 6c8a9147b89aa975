/* One recording at the server: set up, running, handing over what was recorded. */
#ifndef RAILYARD_SATURATR_SERVER_SESSION_H
#define RAILYARD_SATURATR_SERVER_SESSION_H

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
    bool go_expected;      /* data came before the client's go, and the session runs */
    uint64_t memory_bytes; /* for records */
    uint64_t length_us;    /* of the sending, as the client announced it */
    uint64_t deadline_us;  /* of the stage */
    uint32_t drops_before;
    /* handover */
    size_t path;
    const sat_block *block;
    size_t offset; /* in the block's frame: 4 bytes of length, then its records */
} sat_session;

/* What a client asks for, checked; takes over the connection. An error leaves the session idle: one sentence. */
bool sat_session_begin(sat_session *session, const sat_options *options, sat_control *control, const sat_nonces *nonces,
                       const json_t *request, char *error);
/* A line came, or bytes may be written. */
void sat_session_on_readable(sat_session *session);
void sat_session_on_writable(sat_session *session);
/* Checks the stage's deadline. */
void sat_session_on_time(sat_session *session, uint64_t now);
void sat_session_end(sat_session *session);

#endif
