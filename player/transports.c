#include "player/transport.h"

#include <string.h>

const player_transport_ops *player_transport_find(const char *name) {
    for (size_t i = 0; player_transports[i]; i++)
        if (strcmp(player_transports[i]->name, name) == 0)
            return player_transports[i];
    return NULL;
}
