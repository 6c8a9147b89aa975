/* When the packets of a light recording leave: a train of packets, back to back, every every_us. They are not
 * acknowledged, so that the link is idle between trains. Packet seq is packet seq % packets of train seq / packets.
 * Sans-IO; times are us of the sender's clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SAT_TRAIN_MOST        500u  /* packets */
#define SAT_EVERY_LEAST_US    5000u /* from the start of a train to the start of the next */
#define SAT_EVERY_MOST_US     60000000u
#define SAT_TRAIN_MOST_PER_MS 10u /* packets on average: a client can request at most 120 Mbps */

typedef struct {
    uint32_t packets;
    uint64_t every_us;
    uint64_t next_seq; /* number of the next packet */
    uint32_t left;     /* packets of the present train that have not left */
    uint64_t due_us;   /* when the next train begins */
} sat_train;

/* Whether a recording may have such trains. every_us: from the start of a train to the next. */
bool sat_train_is_allowed(uint64_t packets, uint64_t every_us);
void sat_train_init(sat_train *train, uint32_t packets, uint64_t every_us, uint64_t now);
/* Returns how many packets may be sent now. If a train is due, the rest of the one before is never sent, and its
 * numbers stay unused. Trains that were due in the meantime are skipped without numbers. */
uint32_t sat_train_allowance(sat_train *train, uint64_t now);
void sat_train_on_sent(sat_train *train, uint32_t packets);
/* Returns when to ask again; 0: at once. */
uint64_t sat_train_next(const sat_train *train);
