#include "emulator/mpshell/config.h"

#include <stdio.h>
#include <string.h>

#include "base/settings_yaml.h"

typedef struct {
    mp_options *options;
    settings_yaml yaml;
} reader;

static const char *text_of(reader *r, const yaml_node_t *node) {
    const char *text = settings_yaml_text(node);
    if (!text)
        settings_yaml_fail(&r->yaml, node->start_mark.line, "one text or number was expected here.");
    return text;
}

/* Calls back for each member of a mapping. */
typedef bool member_handler(reader *r, void *context, const char *key, yaml_node_t *value);

static bool each_member(reader *r, const yaml_node_t *map, const char *what, member_handler *handle, void *context) {
    if (map->type != YAML_MAPPING_NODE)
        return settings_yaml_fail(&r->yaml, map->start_mark.line, "%s was expected here.", what);
    for (yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top; pair++) {
        const char *key = text_of(r, yaml_document_get_node(&r->yaml.document, pair->key));
        if (!key || !handle(r, context, key, yaml_document_get_node(&r->yaml.document, pair->value)))
            return false;
    }
    return true;
}

static bool find_name(reader *r, void *context, const char *key, yaml_node_t *value) {
    const char **name = context;
    if (strcmp(key, "name") != 0)
        return true;
    if (*name)
        return settings_yaml_fail(&r->yaml, value->start_mark.line, "name is given twice.");
    *name = text_of(r, value);
    return *name;
}

static bool set_member(reader *r, void *context, const char *key, yaml_node_t *value) {
    mp_path_options *path = context;
    char reason[512];
    const char *text = text_of(r, value);
    if (!text || strcmp(key, "name") == 0)
        return text;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        text = text[0] == 't' ? "yes" : "no";
    return link_settings_set(path->settings, key, text, reason, sizeof reason) == 0 ||
           settings_yaml_fail(&r->yaml, value->start_mark.line, "path %s: %s", path->name, reason);
}

static bool read_path(reader *r, const yaml_node_t *node) {
    static const char what[] = "a path, a list of KEY: VALUE,";
    const char *name = NULL;
    char reason[512];
    if (!each_member(r, node, what, find_name, &name))
        return false;
    if (!name)
        return settings_yaml_fail(&r->yaml, node->start_mark.line, "this path has no name.");
    mp_path_options *path = mp_options_add_path(r->options, name, strlen(name), reason, sizeof reason);
    if (!path)
        return settings_yaml_fail(&r->yaml, node->start_mark.line, "%s", reason);
    return each_member(r, node, what, set_member, path);
}

static bool read_paths(reader *r, const yaml_node_t *list) {
    if (list->type != YAML_SEQUENCE_NODE)
        return settings_yaml_fail(&r->yaml, list->start_mark.line,
                                  "paths is a list: \"- name: wifi\" starts one of its members.");
    for (yaml_node_item_t *i = list->data.sequence.items.start; i < list->data.sequence.items.top; i++)
        if (!read_path(r, yaml_document_get_node(&r->yaml.document, *i)))
            return false;
    return true;
}

static bool set_top(reader *r, void *context, const char *key, yaml_node_t *value) {
    char reason[512];
    (void)context;
    if (strcmp(key, "paths") == 0)
        return read_paths(r, value);
    const char *text = text_of(r, value);
    return text && (mp_options_set(r->options, key, text, reason, sizeof reason) == 0 ||
                    settings_yaml_fail(&r->yaml, value->start_mark.line, "%s", reason));
}

static bool read_document(reader *r) {
    yaml_node_t *root = yaml_document_get_root_node(&r->yaml.document);
    if (!root)
        return settings_yaml_fail(&r->yaml, 0, "the file is empty; it needs paths at least.");
    return each_member(r, root, "a list of OPTION: VALUE", set_top, NULL);
}

int mp_config_read(mp_options *options, const char *file, char *error, size_t error_size) {
    char sentence[SETTINGS_ERROR_BYTES];
    reader r = {.options = options, .yaml = {.file = file, .error = sentence}};
    bool ok = settings_yaml_load(&r.yaml, NULL);
    if (ok) {
        ok = read_document(&r);
        settings_yaml_free(&r.yaml);
    }
    if (!ok)
        snprintf(error, error_size, "%s", sentence);
    return ok ? 0 : -1;
}
