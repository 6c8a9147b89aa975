/* The settings of a path as text: the keys of mpshell's --path, of its configuration file and of the simulator's jobs
 * (docs/reference/link.md). A key applies to both directions. With the prefix "up-" or "down-" it applies to one and
 * overrides the other, in whatever order they are given. */
#ifndef RAILYARD_LINK_SETTINGS_H
#define RAILYARD_LINK_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "emulator/link/link.h"

/* In the order of the table in settings.c. */
enum xl_link_key {
    XL_LINK_TRACE, /* "up" and "down" */
    XL_LINK_OFFSET,
    XL_LINK_ONCE,
    XL_LINK_DELAY,
    XL_LINK_DELAY_TRACE,
    XL_LINK_DELAY_TRACE_END,
    XL_LINK_JITTER,
    XL_LINK_REORDER,
    XL_LINK_REORDER_DELAY,
    XL_LINK_LOSS,
    XL_LINK_ONOFF,
    XL_LINK_DUPLICATE,
    XL_LINK_QUEUE,
    XL_LINK_KEYS,
};

/* One direction of a path. All zero is a link without settings. */
struct xl_link_settings {
    char *text[XL_LINK_KEYS]; /* as given; NULL: not given. Owned. */
    bool own[XL_LINK_KEYS];   /* given for this direction alone */
    uint64_t offset_ms, delay_us, jitter_us, reorder_us;
    double reorder, duplicate;
    struct xl_loss loss;
    struct xl_onoff onoff;
    bool once, hold_delay;
};

/* Sets one key for a path: settings[0] is the uplink, settings[1] the downlink. Returns 0, or -1 and one sentence in
 * error, which begins with the key: unknown, given twice, or a value that it does not take. Whether traces and queues
 * are good is found when they are loaded and made. */
int xl_link_settings_set(struct xl_link_settings settings[2], const char *key, const char *value, char *error,
                         size_t error_size);
/* Checks the keys together: up, down and a delay or delay-trace must be there. Returns 0, or -1 and one sentence. */
int xl_link_settings_check(const struct xl_link_settings settings[2], char *error, size_t error_size);
/* What top says takes the place of what base says of the same direction; top is free afterwards. Returns 0, or -1
 * without memory. */
int xl_link_settings_override(struct xl_link_settings base[2], struct xl_link_settings top[2]);
void xl_link_settings_free(struct xl_link_settings settings[2]);
/* All keys in one line, for help texts. */
const char *xl_link_settings_keys(void);
/* The configuration of a link, but for trace, delay_trace, pool, log and seed, which are the driver's; it borrows from
 * settings. start_offset_ms is added to the path's own. */
struct xl_link_config xl_link_settings_config(const struct xl_link_settings *settings, uint64_t start_offset_ms);
/* The same for a member of a JSON object, whose names have '_' for '-' and the unit of times: "up_queue", "delay_ms".
 */
int xl_link_settings_set_json(struct xl_link_settings settings[2], const char *member, json_t *value, char *error,
                              size_t error_size);
/* Adds to the report of a path: delay_ms, loss and queue; null where the directions differ, or where the value is none
 * of that kind (a delay trace, bursts of loss). */
void xl_link_settings_report_path(const struct xl_link_settings settings[2], json_t *path);
/* Adds to the report of a direction: "settings", the texts as given but for the trace, if they say more than the path's
 * delay_ms, loss and queue. */
void xl_link_settings_report(const struct xl_link_settings *settings, json_t *direction);

#endif
