/* What a QUIC scheme is, and the settings that can be changed of it. Each setting is declared once, as a row of
 * quic_setting_rows: from it come the options of server, player and load generator, the members of a simulator's job,
 * the server's parameter file, `xlink-server --describe-settings` and with it the fields of experiments and the
 * reference pages. Client and server use the same tables. */
#ifndef SCHEMES_QUIC_SETTINGS_H
#define SCHEMES_QUIC_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/settings.h"
#include "xlink/xlink.h"

/* QUIC payload of a UDP datagram on links with an MTU of 1500 bytes, IPv6 headers included. */
#define QUIC_UDP_PAYLOAD_BYTES 1452

/* What an application does whose connection is not confirmed in time, or died. */
typedef enum {
    QUIC_RECONNECT_OFF,  /* its play is over */
    QUIC_RECONNECT_SAME, /* it connects again by the primary path */
    QUIC_RECONNECT_NEXT, /* … by the next path, in turn */
} quic_reconnect;

typedef struct {
    const char *name; /* of the scheme; NULL: none was chosen */
    xl_scheme scheme;
    xl_limits limits;
    /* For the player. */
    uint64_t race_us; /* after this long without an answer the handshake is tried on the next path too; 0: never */
    quic_reconnect reconnect;
    uint64_t leave_us;     /* a connection whose requests receive nothing for so long is left for a new one; 0: never */
    uint64_t reconnect_us; /* a connection that is not confirmed for so long gets another attempt beside it */
} quic_settings;

/* Over quic_settings. */
extern const setting quic_setting_rows[];

/* Scheme number i: "sp", "cm", "vanilla-mp", "xlink", "xlink-lean", "xlink+" and others; NULL past the last. */
const char *quic_scheme_name(size_t i);

/* The transport's defaults, and no scheme. Scheduler, congestion controller and send buffer stay unset (NULL, 0), so
 * that the kernel's transports know whether one was asked for. */
void quic_settings_init(quic_settings *);
/* Sets what distinguishes the scheme. False: there is no such scheme, and nothing has changed. */
bool quic_settings_choose(quic_settings *, const char *scheme);
/* Settings that contradict each other, or that only a simulation can have: a phrase, NULL for none. */
const char *quic_settings_problem(const quic_settings *, bool is_simulated);
/* Scheme and limits of an endpoint. */
void quic_settings_configure(const quic_settings *, xl_config *);
/* A client's, to be freed: they verify by the certificates in a file, or nothing if it is NULL. NULL with a phrase in
 * error. */
xl_credentials *quic_settings_credentials(const char *ca_file, char *error, size_t cap);

/* Whether the scheme uses several paths at a time. */
bool quic_settings_are_multipath(const quic_settings *);
/* Whether a client of this scheme uses more than its first path. */
bool quic_settings_use_all_paths(const quic_settings *);

/* {"settings": [rows], "schemes": [{"name", "about", "multipath", "migration", "settings": {name: value}}],
 *  "foresight": [schedulers that only a simulation can have]} */
json_t *quic_settings_describe(void);

#endif
