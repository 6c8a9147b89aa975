/* Parsers for the settings of paths that have their own syntax: path management, migration, order of paths, and path
 * events. On error they return false with a phrase that follows the setting's name, e.g. "takes never, or a number of
 * seconds, not 'x'". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlink/xlink.h"

#define PATH_EVENTS_MAX       128
#define PATH_EVENT_NAME_BYTES 32

/* Splits NAME:LOCALADDR[:TECH], the setting of one path, in place; *technology is NULL without TECH. An IPv6 address
 * must be in brackets, which are removed. False: the text has another form. */
bool path_split(char *text, char **address, char **technology);

/* off|on[,rtt=4][,loss=10][,degraded=1][,recovered=2][,abandon=10][,reopen=1]; rtt: factor, loss: percent, others:
 * seconds. */
bool path_management_read(void *management, const char *text, char *reason, size_t cap);
/* silence|silence:MS|ptos:N */
bool migrate_after_read(void *limits, const char *text, char *reason, size_t cap);
/* never|S */
bool migrate_back_read(void *limits, const char *text, char *reason, size_t cap);

/* TECH,TECH,…, e.g. wifi,5g-sa. Writes rank[technology], smallest first; the others follow in the default order. */
bool path_order_parse(const char *text, unsigned rank[XL_TECH_UNKNOWN + 1], char *reason, size_t cap);

typedef enum { PATH_ADD, PATH_REMOVE, PATH_STANDBY, PATH_AVAILABLE } path_action;

/* T:ACTION:NAME: a change of a path, T seconds after the player's start. */
typedef struct {
    uint64_t at_us;
    path_action action;
    char name[PATH_EVENT_NAME_BYTES];
} path_event;

/* Parses events separated by commas, and inserts them into events[*count] in order of time. */
bool path_events_parse(const char *text, path_event events[PATH_EVENTS_MAX], size_t *count, char *reason, size_t cap);
/* Whether the path is opened later: its first event is PATH_ADD. */
bool path_events_add_later(const path_event *, size_t count, const char *name);
