/* YAML files that hold settings in more than one mapping. A file that is one mapping is settings_read_yaml()'s. */
#ifndef BASE_SETTINGS_YAML_H
#define BASE_SETTINGS_YAML_H

#include <yaml.h>

#include "base/settings.h"

typedef struct {
    const char *file; /* as errors name it */
    char *error;      /* SETTINGS_ERROR_BYTES; gets one sentence with file and line */
    yaml_document_t document;
} settings_yaml;

/* Loads the document from a text, or where that is NULL from the file. After true settings_yaml_free() is due. */
bool settings_yaml_load(settings_yaml *, const char *text);
void settings_yaml_free(settings_yaml *);

/* Returns false. The sentence is about a line, counted from 0 as libyaml counts; what a terminal would not print is
 * replaced by a question mark. */
bool settings_yaml_fail(const settings_yaml *, size_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* NULL: the node is no scalar, or one that a C string cannot hold. Lives as long as the document. */
const char *settings_yaml_text(const yaml_node_t *);

/* Reads the members of a mapping. Only settings that can_reload are known. */
bool settings_yaml_members(const settings_yaml *, const yaml_node_t *mapping, const setting_tables *);

#endif
