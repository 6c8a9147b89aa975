#include "emulator/mpshell/config.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/settings_yaml.h"
#include "emulator/mpshell/flow_options.h"

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

/* Handles one member of a mapping. */
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

/* What the lists of the file have: links, by mp_link_kind, and flows. A list has the name in the plural. */
enum { FLOW = MP_BOTTLENECK + 1, KINDS };
static const struct {
    const char *name, *example; /* of a member's name, for messages */
} kinds[KINDS] = {[MP_PATH] = {"path", "wifi"}, [MP_BOTTLENECK] = {"bottleneck", "core"}, [FLOW] = {"flow", "bulk"}};

typedef struct {
    int kind;
    const char *name;
    mp_path_options *link; /* NULL: a flow */
    mp_flow_options *flow;
} list_item;

static bool set_member(reader *r, void *context, const char *key, yaml_node_t *value) {
    const list_item *item = context;
    char reason[512] = "no memory";
    const char *text = text_of(r, value);
    if (!text || strcmp(key, "name") == 0)
        return text;
    if (item->link && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0))
        text = text[0] == 't' ? "yes" : "no";
    if (item->flow)
        text = mp_options_keep(r->options, text);
    const bool good = item->link ? link_settings_set(item->link->settings, key, text, reason, sizeof reason)
                                 : text && mp_flow_set(item->flow, key, text, reason, sizeof reason);
    return good || settings_yaml_fail(&r->yaml, value->start_mark.line, "%s %s: %s", kinds[item->kind].name, item->name,
                                      reason);
}

static bool read_item(reader *r, int kind, const yaml_node_t *node) {
    char reason[512], what[48];
    list_item item = {.kind = kind};
    snprintf(what, sizeof what, "a %s, a list of KEY: VALUE,", kinds[kind].name);
    if (!each_member(r, node, what, find_name, &item.name))
        return false;
    if (!item.name)
        return settings_yaml_fail(&r->yaml, node->start_mark.line, "this %s has no name.", kinds[kind].name);
    const size_t length = strlen(item.name);
    if (kind == FLOW)
        item.flow = mp_flow_add(r->options, item.name, length, reason, sizeof reason);
    else
        item.link = mp_options_add(r->options, (mp_link_kind)kind, item.name, length, reason, sizeof reason);
    if (!item.flow && !item.link)
        return settings_yaml_fail(&r->yaml, node->start_mark.line, "%s", reason);
    return each_member(r, node, what, set_member, &item);
}

static bool read_list(reader *r, int kind, const yaml_node_t *list) {
    if (list->type != YAML_SEQUENCE_NODE)
        return settings_yaml_fail(&r->yaml, list->start_mark.line,
                                  "%ss is a list: \"- name: %s\" starts one of its members.", kinds[kind].name,
                                  kinds[kind].example);
    for (yaml_node_item_t *i = list->data.sequence.items.start; i < list->data.sequence.items.top; i++)
        if (!read_item(r, kind, yaml_document_get_node(&r->yaml.document, *i)))
            return false;
    return true;
}

static bool set_top(reader *r, void *context, const char *key, yaml_node_t *value) {
    char reason[512];
    (void)context;
    for (int kind = 0; kind < KINDS; kind++) {
        const size_t length = strlen(kinds[kind].name);
        if (strncmp(key, kinds[kind].name, length) == 0 && strcmp(key + length, "s") == 0)
            return read_list(r, kind, value);
    }
    const char *text = text_of(r, value);
    return text && (mp_options_set(r->options, key, text, reason, sizeof reason) ||
                    settings_yaml_fail(&r->yaml, value->start_mark.line, "%s", reason));
}

static bool read_document(reader *r) {
    yaml_node_t *root = yaml_document_get_root_node(&r->yaml.document);
    if (!root)
        return settings_yaml_fail(&r->yaml, 0, "the file is empty; it needs paths at least.");
    return each_member(r, root, "a list of OPTION: VALUE", set_top, NULL);
}

bool mp_config_read(mp_options *options, const char *file, char *error, size_t error_size) {
    char sentence[SETTINGS_ERROR_BYTES];
    reader r = {.options = options, .yaml = {.file = file, .error = sentence}};
    bool ok = settings_yaml_load(&r.yaml, NULL);
    if (ok) {
        ok = read_document(&r);
        settings_yaml_free(&r.yaml);
    }
    return ok || error_set(error, error_size, "%s", sentence);
}
