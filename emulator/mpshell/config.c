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

/* Names of the kinds, for messages. */
static const char *const kinds[] = {[MP_PATH] = "path", [MP_BOTTLENECK] = "bottleneck"};

typedef struct {
    mp_link_kind kind;
    mp_path_options *link;
} named_link;

static bool set_member(reader *r, void *context, const char *key, yaml_node_t *value) {
    const named_link *named = context;
    char reason[512];
    const char *text = text_of(r, value);
    if (!text || strcmp(key, "name") == 0)
        return text;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        text = text[0] == 't' ? "yes" : "no";
    return link_settings_set(named->link->settings, key, text, reason, sizeof reason) ||
           settings_yaml_fail(&r->yaml, value->start_mark.line, "%s %s: %s", kinds[named->kind], named->link->name,
                              reason);
}

static bool read_link(reader *r, mp_link_kind kind, const yaml_node_t *node) {
    const char *name = NULL;
    char reason[512], what[48];
    named_link named = {.kind = kind};
    snprintf(what, sizeof what, "a %s, a list of KEY: VALUE,", kinds[kind]);
    if (!each_member(r, node, what, find_name, &name))
        return false;
    if (!name)
        return settings_yaml_fail(&r->yaml, node->start_mark.line, "this %s has no name.", kinds[kind]);
    named.link = mp_options_add(r->options, kind, name, strlen(name), reason, sizeof reason);
    if (!named.link)
        return settings_yaml_fail(&r->yaml, node->start_mark.line, "%s", reason);
    return each_member(r, node, what, set_member, &named);
}

/* name: an example of a member's name, for messages. */
typedef bool item_reader(reader *r, mp_link_kind kind, const yaml_node_t *node);
static bool read_list(reader *r, const yaml_node_t *list, const char *what, const char *name, item_reader *read,
                      mp_link_kind kind) {
    if (list->type != YAML_SEQUENCE_NODE)
        return settings_yaml_fail(&r->yaml, list->start_mark.line,
                                  "%ss is a list: \"- name: %s\" starts one of its members.", what, name);
    for (yaml_node_item_t *i = list->data.sequence.items.start; i < list->data.sequence.items.top; i++)
        if (!read(r, kind, yaml_document_get_node(&r->yaml.document, *i)))
            return false;
    return true;
}

static bool set_flow_member(reader *r, void *context, const char *key, yaml_node_t *value) {
    mp_flow_options *flow = context;
    char reason[512];
    const char *text = text_of(r, value);
    if (!text || strcmp(key, "name") == 0)
        return text;
    const char *kept = mp_options_keep(r->options, text);
    return (kept && mp_flow_set(flow, key, kept, reason, sizeof reason)) ||
           settings_yaml_fail(&r->yaml, value->start_mark.line, "flow %s: %s", flow->name, kept ? reason : "no memory");
}

static bool read_flow(reader *r, mp_link_kind kind, const yaml_node_t *node) {
    (void)kind;
    static const char what[] = "a flow, a list of KEY: VALUE,";
    const char *name = NULL;
    char reason[512];
    if (!each_member(r, node, what, find_name, &name))
        return false;
    if (!name)
        return settings_yaml_fail(&r->yaml, node->start_mark.line, "this flow has no name.");
    mp_flow_options *flow = mp_flow_add(r->options, name, strlen(name), reason, sizeof reason);
    if (!flow)
        return settings_yaml_fail(&r->yaml, node->start_mark.line, "%s", reason);
    return each_member(r, node, what, set_flow_member, flow);
}

static bool set_top(reader *r, void *context, const char *key, yaml_node_t *value) {
    char reason[512];
    (void)context;
    if (strcmp(key, "flows") == 0)
        return read_list(r, value, "flow", "bulk", read_flow, MP_PATH);
    if (strcmp(key, "paths") == 0)
        return read_list(r, value, "path", "wifi", read_link, MP_PATH);
    if (strcmp(key, "bottlenecks") == 0)
        return read_list(r, value, "bottleneck", "core", read_link, MP_BOTTLENECK);
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
