/* One play over one transport with its log, sans-IO. Connects player/player.h, a player_transport and the JSON Lines.
 * The driver (player/main.c, emulator/sim) owns the clock and waits:
 *
 *     player_session_start()
 *     until player_session_over(): player_session_step(now), wait until player_session_next_timeout()
 *     player_session_finish() */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/jsonl.h"
#include "player/options.h"
#include "player/player.h"
#include "player/transport.h"

#define PLAYER_SESSION_ERROR_BYTES (PLAYER_ERROR_BYTES + PLAYER_MESSAGE_BYTES)

typedef struct {
    void *user;
    /* See player_transport_callbacks; may be NULL for a transport that watches nothing. */
    void (*watch)(void *user, int fd, uint32_t events);
    /* Saves bytes at offset `at` of the video; false with errno set. NULL: nothing is saved. */
    bool (*save)(void *user, uint64_t at, const uint8_t *data, size_t len);
} player_session_hooks;

typedef struct {
    const player_options *options;
    player_session_hooks hooks;
    jsonl *log;
    player *player;
    player_transport *transport; /* NULL: could not be created */
    uint64_t start_us;
    bool has_new_qoe; /* time has passed, or data came, since the last QoE signal */
} player_session;

/* Returns the members of the "start" record: the resolved configuration. */
json_t *player_session_describe(const player_options *);

/* Creates player and transport. If the transport cannot be created, the play is over at once. options and log must
 * outlive the session. False: out of memory. */
bool player_session_start(player_session *, const player_options *, const player_session_hooks *, jsonl *log,
                          uint64_t now);
void player_session_step(player_session *, uint64_t now);
uint64_t player_session_next_timeout(const player_session *);
bool player_session_over(const player_session *);
/* Writes the summary and closes the transport. Returns the program's exit status; if it is not 0,
 * error[PLAYER_SESSION_ERROR_BYTES] has a sentence without full stop. */
int player_session_finish(player_session *, uint64_t now, char *error);
void player_session_free(player_session *);
