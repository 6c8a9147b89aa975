/* The player's events and summary as JSON objects: the format of the player's JSON Lines in every arena. */
#ifndef PLAYER_REPORT_H
#define PLAYER_REPORT_H

#include <jansson.h>

#include "player/player.h"

/* Value of "event". */
const char *player_event_name(player_event_type);
/* Members beside "t" and "event" as a new object; NULL when there are none. start_us: when t = 0 was. */
json_t *player_event_fields(const player_event *, uint64_t start_us);
/* Members of the "summary" record; the caller adds the transport's ("paths", …). */
json_t *player_summary_fields(const player_summary *);

#endif
