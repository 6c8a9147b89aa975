/* The registry of the player's transports: one line each. */
#include "player/transport.h"

#include <string.h>

static const player_transport_ops *const registered[] = {
    &player_transport_quic,
    &player_transport_tcp,
    &player_transport_mptcp,
    &player_transport_stream,
};

const player_transport_ops *player_transport_at(size_t i) {
    return i < sizeof registered / sizeof registered[0] ? registered[i] : NULL;
}

const player_transport_ops *player_transport_find(const char *name) {
    for (size_t i = 0; i < sizeof registered / sizeof registered[0]; i++)
        if (strcmp(registered[i]->name, name) == 0)
            return registered[i];
    return NULL;
}
