/* The player's events and summary as JSON objects: the format of the player's JSON Lines in every arena. */
#pragma once

#include <jansson.h>

#include "player/player.h"

/* Value of "event". */
const char *player_event_name(player_event_type);
/* Returns the members besides "t" and "event" as a new object; NULL: none. start_us: the time of t = 0. */
json_t *player_event_fields(const player_event *, uint64_t start_us);
/* Returns the members of the "summary" record, to which the caller adds the transport's ("paths", …). */
json_t *player_summary_fields(const player_summary *);
