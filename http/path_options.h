/* Settings of path management and connection migration as text: the same on the command lines of player and server, in
 * the jobs of xlink-sim and in experiments. Parsers give false with a phrase (no full stop) in error. */
#ifndef HTTP_PATH_OPTIONS_H
#define HTTP_PATH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/xlink.h"

#define PATH_EVENTS_MAX       64
#define PATH_EVENT_NAME_BYTES 32

/* What was given; NULL leaves the default. */
typedef struct {
    const char *management;    /* --path-management off|on[,rtt=4][,loss=10][,degraded=1][,recovered=2][,abandon=10]
                                * [,reopen=1]: factor, percent, seconds */
    const char *migrate_after; /* --migrate-after silence|silence:MS|ptos:N, of the player */
    const char *migrate_back;  /* --migrate-back never|S, of the player: seconds */
} path_options;

/* Checks all of them and sets what was given. */
bool path_options_apply(const path_options *, xl_limits *, char *error, size_t cap);

/* --path-order wifi,5g-sa,…: rank[technology], smaller goes first; what is not named follows in the usual order. */
bool path_order_parse(const char *text, unsigned rank[XL_TECH_UNKNOWN + 1], char *error, size_t cap);

typedef enum { PATH_ADD, PATH_REMOVE, PATH_STANDBY, PATH_AVAILABLE } path_action;

/* --path-event T:ACTION:NAME: what happens to a path T seconds after the player's start. */
typedef struct {
    uint64_t at_us;
    path_action action;
    char name[PATH_EVENT_NAME_BYTES];
} path_event;

/* One or several with commas between them; appended to events[*count] in order of time. */
bool path_events_parse(const char *text, path_event events[PATH_EVENTS_MAX], size_t *count, char *error, size_t cap);
/* Whether the path comes only later: the first thing that happens to it is that it is added. */
bool path_events_add_later(const path_event *, size_t count, const char *name);

#endif
