/* The command line of xlink-player. */
#pragma once

#include <stdbool.h>

#include "player/player.h"
#include "player/transport.h"

typedef struct {
    const player_transport_ops *transport;
    player_transport_config transport_config; /* points to paths and settings below */
    quic_settings settings;
    player_path paths[PLAYER_MAX_PATHS];
    path_event path_events[PATH_EVENTS_MAX];
    char authority[96];
    char target[1100];
    player_config player;
    const char *out_file, *save_file;
    const char *server_text, *primary, *path_order, *url; /* as given; checked after all options are read */
    uint64_t size_bytes, bitrate_bps, fps_milli, first_frame_bytes, duration_us;
    bool help;
} player_options;

/* Sets the defaults. */
void player_options_init(player_options *);
/* Reads the command line and $MPSHELL_…. False with one sentence in error[SETTINGS_ERROR_BYTES]. *out points into argv
 * and into itself, so it must not be moved. */
bool player_options_parse(int argc, char **argv, player_options *out, char *error);
/* Prints --help. */
void player_options_print_usage(void);

/* Moves the primary path to the front; the others keep their order. The primary path is the one named `primary`, or
 * with NULL the first by technology in `order` (NULL: the default order). False with a phrase in error. */
bool player_options_choose_primary(player_options *, const char *primary, const char *order, char *error, size_t cap);
/* Call it after player_options_choose_primary(). Checks that path events name configured paths, that the scheme is
 * multipath and that no event adds the primary path. False with a phrase in error. */
bool player_options_check_events(const player_options *, char *error, size_t cap);
