/* Settings of re-injection and QoE control beside the scheme's own, under the same names and words on the command lines
 * of server and player, in the jobs of xlink-sim and in experiments. */
#ifndef HTTP_REINJECTION_OPTIONS_H
#define HTTP_REINJECTION_OPTIONS_H

#include <stdint.h>

#include "xlink/xlink.h"

#define MAX_REINJECTIONS   (XL_MAX_PATHS - 1)
#define MAX_RESCUE_GAIN_MS 600000

/* Of xlink+, and of --rescue on alone. */
#define RESCUE_GAIN_US  500000
#define RESCUE_PERMILLE 20

/* What was given; NULL and 0 leave the scheme's own. Words are those of the tables below. */
typedef struct {
    uint64_t max_reinjections;     /* --max-reinjections: copies of one packet, 1 to MAX_REINJECTIONS */
    const char *copy_rule;         /* --copy-rule */
    const char *qoe_control;       /* --qoe-control on|off */
    const char *qoe_extrapolation; /* --qoe-extrapolation on|off */
    const char *rescue;            /* --rescue on|off: copies while the gate is closed, */
    uint64_t rescue_gain_ms;       /* --rescue-gain: which gain so much, */
    uint64_t rescue_permille;      /* --rescue-permille: as long as all copies are less than this share */
    const char *qoe;               /* --qoe, of the player: what carries its signal */
} reinjection_options;

/* NULL terminated. "pays": a copy is made where it is expected before the original; "always": of every packet that the
 * mode and the gate let through, the paper's form. */
extern const char *const copy_rules[];
extern const char *const qoe_carriers[]; /* "off", "ack", "signals", "both" */
extern const char *const on_or_off[];    /* "off", "on" */

void reinjection_options_apply(const reinjection_options *, xl_scheme *);

#endif
