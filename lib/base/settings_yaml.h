/* YAML files with settings in more than one mapping. For a single mapping see settings_read_yaml(). */
#pragma once

#include <yaml.h>

#include "base/settings.h"

typedef struct {
    const char *file; /* name in errors */
    char *error;      /* [SETTINGS_ERROR_BYTES], receives one sentence with file and line */
    yaml_document_t document;
} settings_yaml;

/* Loads the document from text, or with NULL from the file. After success, call settings_yaml_free(). */
bool settings_yaml_load(settings_yaml *, const char *text);
void settings_yaml_free(settings_yaml *);

/* Writes a sentence about a line, counted from 0 as libyaml does. Characters that are not printable become '?'. Returns
 * false. */
bool settings_yaml_fail(const settings_yaml *, size_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns the node's text, valid as long as the document; NULL: not a scalar, or it contains a NUL. */
const char *settings_yaml_text(const yaml_node_t *);

/* Reads the members of a mapping. It takes only can_reload settings. */
bool settings_yaml_members(const settings_yaml *, const yaml_node_t *mapping, const setting_tables *);
