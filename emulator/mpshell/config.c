#include "emulator/mpshell/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

struct reader {
    struct mp_options *options;
    const char *file;
    yaml_document_t document;
    char *error;
    size_t error_size;
};

__attribute__((format(printf, 3, 4))) static int fail_at(const struct reader *r, size_t line, const char *format, ...) {
    char what[700];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    snprintf(r->error, r->error_size, "%s:%zu: %s", r->file, line + 1, what);
    return -1;
}

/* The node's text; NULL with a sentence if it has none, or one that a C string cannot hold. */
static const char *text_of(struct reader *r, const yaml_node_t *node) {
    const char *value = (const char *)node->data.scalar.value;
    if (node->type != YAML_SCALAR_NODE || strlen(value) != node->data.scalar.length) {
        fail_at(r, node->start_mark.line, "one text or number was expected here");
        return NULL;
    }
    return value;
}

/* Calls back for each member of a mapping. */
typedef int member_handler(struct reader *r, void *context, const char *key, yaml_node_t *value);

static int each_member(struct reader *r, const yaml_node_t *map, const char *what, member_handler *handle,
                       void *context) {
    if (map->type != YAML_MAPPING_NODE)
        return fail_at(r, map->start_mark.line, "%s was expected here", what);
    for (yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top; pair++) {
        const char *key = text_of(r, yaml_document_get_node(&r->document, pair->key));
        if (!key || handle(r, context, key, yaml_document_get_node(&r->document, pair->value)) != 0)
            return -1;
    }
    return 0;
}

static int find_name(struct reader *r, void *context, const char *key, yaml_node_t *value) {
    const char **name = context;
    if (strcmp(key, "name") == 0) {
        if (*name)
            return fail_at(r, value->start_mark.line, "name is given twice");
        *name = text_of(r, value);
        return *name ? 0 : -1;
    }
    return 0;
}

static int set_member(struct reader *r, void *context, const char *key, yaml_node_t *value) {
    struct mp_path_options *path = context;
    char reason[512];
    const char *text = text_of(r, value);
    if (!text || strcmp(key, "name") == 0)
        return !text ? -1 : 0;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        text = text[0] == 't' ? "yes" : "no";
    return xl_link_settings_set(path->settings, key, text, reason, sizeof(reason)) == 0
               ? 0
               : fail_at(r, value->start_mark.line, "path %s: %s", path->name, reason);
}

static int read_path(struct reader *r, const yaml_node_t *node) {
    static const char what[] = "a path, a list of KEY: VALUE,";
    const char *name = NULL;
    char reason[512];
    if (each_member(r, node, what, find_name, &name) != 0)
        return -1;
    if (!name)
        return fail_at(r, node->start_mark.line, "this path has no name");
    struct mp_path_options *path = mp_options_add_path(r->options, name, strlen(name), reason, sizeof(reason));
    if (!path)
        return fail_at(r, node->start_mark.line, "%s", reason);
    return each_member(r, node, what, set_member, path);
}

static int set_top(struct reader *r, void *context, const char *key, yaml_node_t *value) {
    char reason[512];
    (void)context;
    if (strcmp(key, "paths") == 0) {
        if (value->type != YAML_SEQUENCE_NODE)
            return fail_at(r, value->start_mark.line, "paths is a list: \"- name: wifi\" starts one of its members");
        for (yaml_node_item_t *i = value->data.sequence.items.start; i < value->data.sequence.items.top; i++)
            if (read_path(r, yaml_document_get_node(&r->document, *i)) != 0)
                return -1;
        return 0;
    }
    const char *text = text_of(r, value);
    if (!text)
        return -1;
    return mp_options_set(r->options, key, text, reason, sizeof(reason)) == 0
               ? 0
               : fail_at(r, value->start_mark.line, "%s", reason);
}

static int read_document(struct reader *r) {
    yaml_node_t *root = yaml_document_get_root_node(&r->document);
    if (!root)
        return fail_at(r, 0, "the file is empty; it needs paths at least");
    return each_member(r, root, "a list of OPTION: VALUE", set_top, NULL);
}

int mp_config_read(struct mp_options *options, const char *file, char *error, size_t error_size) {
    struct reader r = {.options = options, .file = file, .error = error, .error_size = error_size};
    yaml_parser_t parser;
    FILE *in = fopen(file, "rbe");
    if (!in) {
        snprintf(error, error_size, "%s: cannot read the configuration: %s", file, strerror(errno));
        return -1;
    }
    if (yaml_parser_initialize(&parser) == 0) {
        fclose(in);
        snprintf(error, error_size, "no memory");
        return -1;
    }
    yaml_parser_set_input_file(&parser, in);
    int rc;
    if (yaml_parser_load(&parser, &r.document) != 0) {
        rc = read_document(&r);
        yaml_document_delete(&r.document);
    } else {
        rc = fail_at(&r, parser.problem_mark.line, "this is neither YAML nor JSON: %s",
                     parser.problem ? parser.problem : "it cannot be read");
    }
    yaml_parser_delete(&parser);
    fclose(in);
    return rc;
}
