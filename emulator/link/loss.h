/* Loss models of a link: independent loss, and the Gilbert-Elliott model (Gilbert 1960, Elliott 1963), a Markov chain
 * with a good and a bad state and one transition before each packet. Independent loss is the chain that never leaves
 * the good state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "emulator/link/rng.h"

/* Probabilities, 0 to 1. All zero: no loss. */
typedef struct {
    double good; /* loss in the good state; with p = 0, independent loss */
    double bad;  /* loss in the bad state */
    double p;    /* transition from the good to the bad state, before each packet */
    double r;    /* transition from the bad to the good state */
} link_loss;

typedef struct {
    link_loss model;
    bool is_bad;
    link_rng losses; /* separate streams, so that another p does not change the draws of losses */
    link_rng moves;
} link_loss_state;

/* Parses "0.01", or "ge:p=0.01:r=0.3" with optional ":good=" (0) and ":bad=" (1), into a link_loss. */
bool link_loss_parse(void *loss, const char *text, char *wanted, size_t cap);
bool link_loss_is_valid(const link_loss *loss);
/* Whether the next packet is lost. An all-zero model draws no random numbers. */
bool link_loss_next(link_loss_state *state);
