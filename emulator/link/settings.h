/* The settings of a path as text: the keys of mpshell's --path, of its configuration file and of the simulator's jobs
 * (docs/reference/links.md). A key applies to both directions. With the prefix "up-" or "down-" it applies to one
 * direction and overrides the key without prefix, in any order. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/settings.h"
#include "emulator/link/link.h"

#define LINK_SETTINGS_MAX 32 /* rows */

/* One direction of a path. All zero is a link without settings. */
typedef struct {
    link_config config;      /* values; the driver sets trace, pool, log and seed */
    const char *trace;       /* file, or a rate; NULL: not given */
    const char *delay_trace; /* files; NULL: not given */
    const char *light_trace, *size_latency, *cross_profile;
    const char *via;               /* names of the bottlenecks behind the link, "core:edge"; NULL: none */
    link_nat_rules nat;            /* the path's: the same in both directions */
    link_wifi wifi;                /* the same */
    uint64_t paging_us;            /* the same; 0: none */
    char *text[LINK_SETTINGS_MAX]; /* text of each row as given, owned; NULL: not given */
    bool own[LINK_SETTINGS_MAX];   /* given for this direction only */
} link_settings;

/* Contents of the files that a direction's settings name. */
typedef struct {
    link_steps delay_trace;
    link_light_trace light_trace;
    link_size_latency size_latency;
    link_steps cross_profile;
} link_files;

/* Objects that a direction's link borrows. nat, air and rrc are only in the uplink's parts, and serve both
 * directions. */
typedef struct {
    link_files files;
    link_nat *nat; /* NULL without one */
    link_air *air; /* the same */
    link_rrc rrc;  /* all 0 without one */
} link_parts;

/* The settings as rows over link_settings, named as in JSON. A new one also needs a member in link_config, used by
 * link.c. */
extern const setting link_setting_rows[];

/* Sets one key for a path: settings[0] is the uplink, settings[1] the downlink. False with one sentence in error, which
 * begins with the key, if the key is unknown or given twice, or its value is invalid. Traces and queues are checked
 * when they are loaded and made. */
bool link_settings_set(link_settings settings[2], const char *key, const char *value, char *error, size_t error_size);
/* Whether the setting of this name, as in JSON, is given. */
bool link_settings_has(const link_settings *settings, const char *name);
/* Changes what `given`, one direction's settings, has of delay_ms, loss, mtu, reorder, reorder_delay_ms, duplicate and
 * cross. */
void link_change_read(link_change *change, const link_settings *given);
/* Whether a change of others' traffic suits the queues of the directions in `ways` of a link with these settings. */
bool link_change_suits(const link_change *change, const link_settings settings[2], const bool ways[2]);
/* Checks the keys together. A path needs up and down, or wifi, and one of delay, delay-trace and light-trace. A
 * bottleneck needs rate, or up and down; nat, wifi, paging and via are invalid. False with one sentence in error. */
bool link_settings_check(const link_settings settings[2], bool is_path, char *error, size_t error_size);
/* Values set in `top` override those in `base`, per direction. Frees `top`. False if there is no memory. */
bool link_settings_override(link_settings base[2], link_settings top[2]);
void link_settings_free(link_settings settings[2]);
/* Returns the direction's trace: a file or a rate. For Wi-Fi, which has no opportunities, the rate of its data. */
const char *link_settings_trace(const link_settings *settings);
/* Returns the configuration of a link, which borrows from settings. start_offset_ms is added to the path's own. */
link_config link_settings_config(const link_settings *settings, uint64_t start_offset_ms);
/* Makes the link of a direction. Fills in `own` and completes `config` with it; the parts must outlive the link.
 * uplink: the parts of the path's uplink, made before; `own` itself for the uplink. NULL with one sentence in error. */
emulated_link *link_settings_make(const link_settings *settings, link_config *config, link_parts *own,
                                  link_parts *uplink, char *error, size_t error_size);
void link_parts_free(link_parts *parts);
/* Whether a member of a JSON object, with or without a direction, names a file. */
bool link_settings_names_file(const char *member);
/* link_settings_set() for a member of a JSON object, whose name has '_' for '-' and the unit of times: "up_queue",
 * "delay_ms". */
bool link_settings_set_json(link_settings settings[2], const char *member, json_t *value, char *error,
                            size_t error_size);
/* Adds delay_ms, loss and queue to the report of a path; null if the directions differ, or if the value is not a number
 * (a delay trace, Gilbert-Elliott loss). */
void link_settings_report_path(const link_settings settings[2], json_t *path);
/* Adds "settings" to the report of a direction: the texts as given, except the trace, if any is more than the path's
 * delay, loss and queue. File names are without folders, so that a run has the same bytes elsewhere. */
void link_settings_report(const link_settings *settings, json_t *direction);
