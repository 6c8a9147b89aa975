/* Changes that a link event makes to one direction of a path (docs/reference/links.md). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "emulator/link/link.h"
#include "emulator/link/settings.h"

/* All zero changes nothing. */
typedef struct {
    bool has_state, is_up;
    bool has_delay, has_loss, has_reorder, has_duplicate, has_cross;
    uint64_t delay_us;
    link_loss loss;
    uint64_t rate_bps;         /* 0: no change */
    const link_trace *trace;   /* borrowed for the life of the link; NULL: no change */
    uint64_t mtu_bytes;        /* 0: no change */
    double reorder, duplicate; /* probabilities */
    uint64_t reorder_us;
    uint64_t cross_bps; /* others' traffic; 0: none */
    bool rebinds;       /* the NAT of the path forgets its mappings */
} link_change;

/* Changes what `given`, one direction's settings, has of delay_ms, loss, mtu, reorder, reorder_delay_ms, duplicate and
 * cross. */
void link_change_read(link_change *change, const link_settings *given);
/* Whether a change of others' traffic suits the queues of the directions in `ways` of a link with these settings. */
bool link_change_suits(const link_change *change, const link_settings settings[2], const bool ways[2]);
/* Makes the changes at `now`, in the order of the members. Values must be valid for the setters of link.h. */
void link_change_apply(emulated_link *link, const link_change *change, uint64_t now);
