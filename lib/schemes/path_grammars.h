/* The settings of paths that have a grammar of their own, as text: path management, when a client migrates, the order
 * of paths, and path events. Readers give false with a phrase that follows the setting's name, e.g. "takes never or
 * seconds, not 'x'". */
#ifndef SCHEMES_PATH_GRAMMARS_H
#define SCHEMES_PATH_GRAMMARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/xlink.h"

#define PATH_EVENTS_MAX       128
#define PATH_EVENT_NAME_BYTES 32

/* off|on[,rtt=4][,loss=10][,degraded=1][,recovered=2][,abandon=10][,reopen=1]: factor, percent, seconds. */
bool path_management_read(void *management, const char *text, char *reason, size_t cap);
/* silence|silence:MS|ptos:N */
bool migrate_after_read(void *limits, const char *text, char *reason, size_t cap);
/* never|S */
bool migrate_back_read(void *limits, const char *text, char *reason, size_t cap);

/* TECH,TECH,…, e.g. wifi,5g-sa: rank[technology], smaller goes first; what is not named follows in the usual order. */
bool path_order_parse(const char *text, unsigned rank[XL_TECH_UNKNOWN + 1], char *reason, size_t cap);

typedef enum { PATH_ADD, PATH_REMOVE, PATH_STANDBY, PATH_AVAILABLE } path_action;

/* T:ACTION:NAME: what happens to a path T seconds after the player's start. */
typedef struct {
    uint64_t at_us;
    path_action action;
    char name[PATH_EVENT_NAME_BYTES];
} path_event;

/* One or several with commas between them; inserted into events[*count] in order of time. */
bool path_events_parse(const char *text, path_event events[PATH_EVENTS_MAX], size_t *count, char *reason, size_t cap);
/* Whether the path comes only later: the first thing that happens to it is that it is added. */
bool path_events_add_later(const path_event *, size_t count, const char *name);

#endif
