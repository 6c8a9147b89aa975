/* QUIC schemes and their settings. Each setting is declared once, as a row of quic_setting_rows. From the rows come the
 * options of server, player and load generator, the members of a simulator's job, the server's parameter file and
 * `xlink-server --describe-settings`, which gives the fields of experiments and the reference pages. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/settings.h"
#include "xlink/xlink.h"

/* Largest UDP payload on a link with an MTU of 1500 bytes, with IPv6 headers. */
#define QUIC_UDP_PAYLOAD_BYTES 1452

/* What the player does if its connection is not confirmed in time, or ends. */
typedef enum {
    QUIC_RECONNECT_OFF,  /* it ends the play */
    QUIC_RECONNECT_SAME, /* it connects again on the primary path */
    QUIC_RECONNECT_NEXT, /* it connects again on the next path */
} quic_reconnect;

typedef struct {
    const char *name; /* of the scheme; NULL: none chosen */
    xl_scheme scheme;
    xl_limits limits;
    /* For the player only. */
    uint64_t race_us; /* time without an answer until the next path tries a handshake too; 0: never */
    quic_reconnect reconnect;
    uint64_t leave_us;     /* time without response bytes until a connection is replaced; 0: never */
    uint64_t reconnect_us; /* time without a confirmed connection until the next attempt */
} quic_settings;

/* Rows for quic_settings. */
extern const setting quic_setting_rows[];

/* Returns the name of scheme i: "sp", "cm", "vanilla-mp", "xlink", "xlink-lean", "xlink+", …; NULL past the last. */
const char *quic_scheme_name(size_t i);

/* Sets the programs' defaults, without a scheme. Scheduler, congestion controller and send buffer stay NULL or 0, which
 * shows whether they were set. */
void quic_settings_init(quic_settings *);
/* Resets `scheme` and race_us to the values of this scheme. False: unknown scheme; nothing has changed. */
bool quic_settings_choose(quic_settings *, const char *scheme);
/* Returns a phrase on settings that contradict each other, or that need a simulation; NULL: none. */
const char *quic_settings_problem(const quic_settings *, bool is_simulated);
/* Copies scheme and limits to an endpoint's configuration. */
void quic_settings_configure(const quic_settings *, xl_config *);
/* Returns a client's credentials, which the caller frees. They verify the server by the CA certificates in a file;
 * NULL: not at all. NULL with a phrase in error. */
xl_credentials *quic_settings_credentials(const char *ca_file, char *error, size_t cap);

/* Whether the scheme uses several paths at a time. */
bool quic_settings_are_multipath(const quic_settings *);
/* Whether a client of this scheme uses more than its first path. */
bool quic_settings_use_all_paths(const quic_settings *);

/* Returns {"settings": [rows], "schemes": [{"name", "about", "multipath", "migration", "settings": {name: value}}],
 *  "foresight": [schedulers that only a simulation can have]}. */
json_t *quic_settings_describe(void);
