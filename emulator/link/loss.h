/* Loss models of a link: independent loss, and the Gilbert-Elliott model (Gilbert 1960, Elliott 1963), a Markov chain
 * of a good and a bad state that moves once a packet. Independent loss is the chain that never leaves the good state.
 */
#ifndef RAILYARD_LINK_LOSS_H
#define RAILYARD_LINK_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulator/link/rng.h"

/* All are probabilities, 0 to 1; all zero is no loss. */
struct link_loss {
    double good; /* of loss in the good state: the whole of independent loss */
    double bad;  /* of loss in the bad state */
    double p;    /* of a move from the good state to the bad one, before each packet */
    double r;    /* of the move back */
};

struct link_loss_state {
    struct link_loss model;
    bool is_bad;
    struct link_rng losses; /* a stream each: another p leaves the draws of the losses as they are */
    struct link_rng moves;
};

/* "0.01", or "ge:p=0.01:r=0.3" with optional ":good=" (0) and ":bad=" (1). Returns 0, or -1 and what the text must be,
 * a phrase, in error. */
int link_loss_parse(struct link_loss *loss, const char *text, char *error, size_t error_size);
bool link_loss_is_valid(const struct link_loss *loss);
/* Whether the next packet is lost. Draws nothing where nothing is random. */
bool link_loss_next(struct link_loss_state *state);

#endif
