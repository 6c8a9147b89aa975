#include "base/settings_yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_file.h"

#define KNOWN_BYTES    144 /* fits into the sentence of fail_unknown() */
#define MAX_YAML_BYTES ((size_t)16 << 20)
#define MAX_DEPTH      100

/* ---- Documents ---- */

bool settings_yaml_fail(const settings_yaml *y, size_t line, const char *format, ...) {
    static const char ellipsis[] = "…";
    char what[SETTINGS_ERROR_BYTES * 2 / 3];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    for (char *c = what; *c; c++)
        if (strncmp(c, ellipsis, strlen(ellipsis)) == 0)
            c += strlen(ellipsis) - 1;
        else
            *c = *c >= ' ' && *c <= '~' ? *c : '?';
    snprintf(y->error, SETTINGS_ERROR_BYTES, "%s, line %zu: %s", y->file, line + 1, what);
    return false;
}

/* Returns the change of depth after an event. */
static int descent(yaml_event_type_t type) {
    return (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT) -
           (type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT);
}

/* Limits the depth, because libyaml's time to load a document grows with its square. libyaml finds all other errors. */
static bool check_depth(const settings_yaml *y, const char *text, size_t length) {
    yaml_parser_t parser;
    yaml_event_t event;
    int depth = 0;
    bool has_more = true;
    if (!yaml_parser_initialize(&parser))
        return settings_yaml_fail(y, 0, "out of memory.");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    while (has_more && depth <= MAX_DEPTH && yaml_parser_parse(&parser, &event)) {
        has_more = event.type != YAML_STREAM_END_EVENT;
        depth += descent(event.type);
        yaml_event_delete(&event);
    }
    if (depth > MAX_DEPTH)
        settings_yaml_fail(y, parser.mark.line, "lists or mappings lie too deep within each other; at most %d.",
                           MAX_DEPTH);
    yaml_parser_delete(&parser);
    return depth <= MAX_DEPTH;
}

bool settings_yaml_load(settings_yaml *y, const char *text) {
    yaml_parser_t parser;
    size_t length = text ? strlen(text) : 0;
    char *read = text ? NULL : file_read_at(y->file, MAX_YAML_BYTES, &length);
    if ((!read && !text) || !yaml_parser_initialize(&parser)) {
        snprintf(y->error, SETTINGS_ERROR_BYTES, "cannot read %s: %s.", y->file,
                 file_problem(read || text ? ENOMEM : errno));
        free(read);
        return false;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)(text ? text : read), length);
    const bool is_shallow = check_depth(y, text ? text : read, length);
    const bool ok = is_shallow && yaml_parser_load(&parser, &y->document);
    if (is_shallow && !ok)
        settings_yaml_fail(y, parser.problem_mark.line, "this is not YAML: %s.",
                           parser.problem ? parser.problem : "it cannot be read");
    yaml_parser_delete(&parser);
    free(read);
    return ok;
}

void settings_yaml_free(settings_yaml *y) {
    yaml_document_delete(&y->document);
}

const char *settings_yaml_text(const yaml_node_t *node) {
    const char *text = (const char *)node->data.scalar.value;
    return node->type == YAML_SCALAR_NODE && strlen(text) == node->data.scalar.length ? text : NULL;
}

/* ---- Members ---- */

/* Whether the word is a prefix of the name, with '-' for '_': a name without its unit, or an option's name. */
static bool begins(const char *name, const char *word) {
    while (*word && (*word == *name || (*word == '-' && *name == '_')))
        word++, name++;
    return *word == '\0';
}

static bool fail_unknown(const settings_yaml *y, const setting_tables *s, const yaml_node_t *node, const char *word) {
    static const char more[] = " and more";
    char known[KNOWN_BYTES] = "";
    size_t used = 0;
    bool is_full = false;
    for (size_t i = 0; i < s->count; i++) {
        for (const setting *row = s->table[i].rows; row->name; row++) {
            if (!row->can_reload)
                continue;
            if (*word && begins(row->name, word))
                return settings_yaml_fail(y, node->start_mark.line, "'%.40s' is not a parameter; did you mean '%s'?",
                                          word, row->name);
            is_full = is_full || used + strlen(", ") + strlen(row->name) + sizeof more > sizeof known;
            if (!is_full)
                used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "", row->name);
        }
    }
    return settings_yaml_fail(y, node->start_mark.line, "'%.40s' is not a parameter; known are %s%s.", word, known,
                              is_full ? more : "");
}

static bool read_entry(const settings_yaml *y, const setting_tables *s, yaml_node_t *key, yaml_node_t *value,
                       settings_pass pass) {
    const char *name = settings_yaml_text(key), *text = settings_yaml_text(value);
    char reason[SETTINGS_ERROR_BYTES];
    void *into = NULL;
    if (!name)
        return settings_yaml_fail(y, key->start_mark.line, "a name was expected here.");
    const setting *row = settings_find(s, name, &into);
    if (!row || !row->can_reload)
        return fail_unknown(y, s, key, name);
    if (!text)
        return settings_yaml_fail(y, value->start_mark.line, "%.40s takes one text or number.", name);
    if (row->is_base != (pass == SETTINGS_BASES))
        return true;
    if (row->kind == SETTING_SWITCH && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0))
        text = text[0] == 't' ? "on" : "off";
    return setting_read(row, into, name, text, reason) || settings_yaml_fail(y, value->start_mark.line, "%s", reason);
}

static bool read_pass(const settings_yaml *y, const setting_tables *s, const yaml_node_t *mapping, settings_pass pass) {
    yaml_document_t *document = (yaml_document_t *)(uintptr_t)&y->document; /* libyaml only reads it */
    const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
    for (; pair < mapping->data.mapping.pairs.top; pair++)
        if (!read_entry(y, s, yaml_document_get_node(document, pair->key),
                        yaml_document_get_node(document, pair->value), pass))
            return false;
    return true;
}

bool settings_yaml_members(const settings_yaml *y, const yaml_node_t *mapping, const setting_tables *s) {
    const char *text = settings_yaml_text(mapping);
    if (mapping->type != YAML_MAPPING_NODE)
        return settings_yaml_fail(y, mapping->start_mark.line, "this is not YAML of the form 'name: value'%s.",
                                  text && strchr(text, '=') ? "; write ':' instead of '='" : "");
    return (s->pass == SETTINGS_OTHERS || read_pass(y, s, mapping, SETTINGS_BASES)) &&
           (s->pass == SETTINGS_BASES || read_pass(y, s, mapping, SETTINGS_OTHERS));
}

bool settings_read_yaml(const setting_tables *s, const char *file, char *error) {
    settings_yaml y = {.file = file, .error = error};
    if (!settings_yaml_load(&y, NULL))
        return false;
    const yaml_node_t *root = yaml_document_get_root_node(&y.document);
    const bool ok = !root || settings_yaml_members(&y, root, s); /* an empty file sets nothing */
    settings_yaml_free(&y);
    return ok;
}
