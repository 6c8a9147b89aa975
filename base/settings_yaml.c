#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <yaml.h>

#include "base/settings.h"

#define KNOWN_BYTES 256

typedef struct {
    const setting_tables *s;
    const char *file;
    yaml_document_t document;
    char *error;
} reader;

__attribute__((format(printf, 3, 4))) static bool fail_at(const reader *r, size_t line, const char *format, ...) {
    char what[SETTINGS_ERROR_BYTES / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(r->error, SETTINGS_ERROR_BYTES, "%s, line %zu: %s", r->file, line + 1, what);
    return false;
}

/* NULL where the node is no scalar, or one that a C string cannot hold. */
static const char *text_of(const yaml_node_t *node) {
    const char *text = (const char *)node->data.scalar.value;
    return node->type == YAML_SCALAR_NODE && strlen(text) == node->data.scalar.length ? text : NULL;
}

static bool fail_unknown(const reader *r, const yaml_node_t *node, const char *name) {
    char known[KNOWN_BYTES] = "";
    for (size_t i = 0; i < r->s->count; i++) {
        for (const setting *row = r->s->table[i].rows; row->name; row++) {
            const size_t used = strlen(known);
            if (row->can_reload)
                snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "", row->name);
        }
    }
    return fail_at(r, node->start_mark.line, "'%.40s' is not a parameter; known are %s.", name, known);
}

static bool read_entry(reader *r, const yaml_node_pair_t *pair, settings_pass pass) {
    const yaml_node_t *key = yaml_document_get_node(&r->document, pair->key);
    const yaml_node_t *value = yaml_document_get_node(&r->document, pair->value);
    const char *name = text_of(key), *text = text_of(value);
    char reason[SETTINGS_ERROR_BYTES];
    void *into = NULL;
    if (!name)
        return fail_at(r, key->start_mark.line, "a name was expected here.");
    if (!text)
        return fail_at(r, value->start_mark.line, "%.40s takes one text or number.", name);
    const setting *row = settings_find(r->s, name, &into);
    if (!row || !row->can_reload)
        return fail_unknown(r, key, name);
    if (row->is_base != (pass == SETTINGS_BASES))
        return true;
    if (row->kind == SETTING_SWITCH && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0))
        text = text[0] == 't' ? "on" : "off";
    return setting_read(row, into, name, text, reason) || fail_at(r, value->start_mark.line, "%s", reason);
}

static bool read_pass(reader *r, const yaml_node_t *root, settings_pass pass) {
    const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
    for (; pair < root->data.mapping.pairs.top; pair++) {
        if (!read_entry(r, pair, pass))
            return false;
    }
    return true;
}

static bool read_document(reader *r) {
    const yaml_node_t *root = yaml_document_get_root_node(&r->document);
    if (!root) /* an empty file: nothing is set */
        return true;
    if (root->type != YAML_MAPPING_NODE)
        return fail_at(r, root->start_mark.line, "this is not YAML of the form 'name: value'%s.",
                       strchr(text_of(root) ? text_of(root) : "", '=') ? "; write ':' instead of '='" : "");
    return (r->s->pass == SETTINGS_OTHERS || read_pass(r, root, SETTINGS_BASES)) &&
           (r->s->pass == SETTINGS_BASES || read_pass(r, root, SETTINGS_OTHERS));
}

bool settings_read_yaml(const setting_tables *s, const char *file, char *error) {
    reader r = {.s = s, .file = file, .error = error};
    yaml_parser_t parser;
    FILE *in = fopen(file, "rbe");
    if (!in || !yaml_parser_initialize(&parser)) {
        snprintf(error, SETTINGS_ERROR_BYTES, "cannot read %s: %s.", file, strerror(in ? ENOMEM : errno));
        if (in)
            fclose(in);
        return false;
    }
    yaml_parser_set_input_file(&parser, in);
    bool ok = yaml_parser_load(&parser, &r.document);
    if (ok) {
        ok = read_document(&r);
        yaml_document_delete(&r.document);
    } else {
        fail_at(&r, parser.problem_mark.line, "this is not YAML: %s.",
                parser.problem ? parser.problem : "it cannot be read");
    }
    yaml_parser_delete(&parser);
    fclose(in);
    return ok;
}
