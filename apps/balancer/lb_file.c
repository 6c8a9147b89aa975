#include "balancer/lb_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/numbers.h"
#include "base/settings_yaml.h"
#include "base/net.h"
#include "base/text_file.h"

_Static_assert(LB_ERROR_BYTES >= SETTINGS_ERROR_BYTES, "an error of settings has room");

/* ---- Values ---- */

bool lb_parse_server_id(const char *text, size_t bytes, uint8_t out[XL_LB_SERVER_ID_MAX]) {
    return bytes <= XL_LB_SERVER_ID_MAX && hex_read(text, out, bytes);
}

/* Errors of read_key() and read_secret() do not show the value, which may be a secret with a typing error. */
static bool read_key(void *into, const char *text, char *reason, size_t cap) {
    xl_lb_config *c = into;
    snprintf(reason, cap, "takes %zu hexadecimal digits", 2 * sizeof c->key);
    return c->has_key = hex_read(text, c->key, sizeof c->key);
}

static bool read_secret(void *into, const char *text, char *reason, size_t cap) {
    lb_file *f = into;
    snprintf(reason, cap, "takes %zu hexadecimal digits", 2 * sizeof f->secret);
    return f->has_secret = hex_read(text, f->secret, sizeof f->secret);
}

/* ---- The tables; a balancer reads the complete file again at SIGHUP ---- */

#define CONFIG(member) SETTING_FIELD(xl_lb_config, member), .can_reload = true

static const setting config_rows[] = {
    {"rotation", SETTING_WHOLE, CONFIG(rotation), .most = XL_LB_UNROUTABLE - 1},
    {"server_id_bytes", SETTING_WHOLE, CONFIG(server_id_bytes), .least = 1, .most = XL_LB_SERVER_ID_MAX},
    {"nonce_bytes", SETTING_WHOLE, CONFIG(nonce_bytes), .least = XL_LB_NONCE_MIN, .most = XL_LB_NONCE_MAX},
    {"key", SETTING_OWN, .read = read_key, .can_reload = true},
    {"encode_length", SETTING_SWITCH, CONFIG(encode_length)},
    {0},
};

static const setting server_rows[] = {
    {"address", SETTING_OWN, SETTING_FIELD(lb_server, address), .read = net_read_server, .can_reload = true},
    {"drain", SETTING_SWITCH, SETTING_FIELD(lb_server, drain), .can_reload = true},
    {0},
};

static const setting secret_row = {"secret", SETTING_OWN, .read = read_secret};

/* ---- The document ---- */

typedef struct {
    settings_yaml yaml;
    lb_file *out;
    const yaml_node_t *secret, *configs, *servers; /* members of the document; NULL: missing */
} reader;

static yaml_node_t *node_of(reader *r, int index) {
    return yaml_document_get_node(&r->yaml.document, index);
}

static bool find_members(reader *r, const yaml_node_t *root) {
    if (root->type != YAML_MAPPING_NODE)
        return settings_yaml_fail(&r->yaml, root->start_mark.line,
                                  "the file has the members secret, configs and servers.");
    for (const yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = node_of(r, p->key);
        const char *name = settings_yaml_text(key) ? settings_yaml_text(key) : "";
        const yaml_node_t **member = strcmp(name, "secret") == 0    ? &r->secret
                                     : strcmp(name, "configs") == 0 ? &r->configs
                                     : strcmp(name, "servers") == 0 ? &r->servers
                                                                    : NULL;
        if (!member)
            return settings_yaml_fail(&r->yaml, key->start_mark.line,
                                      "'%.40s' is not known; the file has secret, configs and servers.", name);
        if (*member)
            return settings_yaml_fail(&r->yaml, key->start_mark.line, "%s comes twice.", name);
        *member = node_of(r, p->value);
    }
    return true;
}

static bool read_secret_member(reader *r) {
    char reason[SETTINGS_ERROR_BYTES];
    const char *text = r->secret ? settings_yaml_text(r->secret) : NULL;
    return !r->secret || setting_read(&secret_row, r->out, "secret", text ? text : "", reason) ||
           settings_yaml_fail(&r->yaml, r->secret->start_mark.line, "%s", reason);
}

static bool check_config(const reader *r, size_t n, size_t line) {
    const xl_lb_config *all = r->out->config, *c = &all[n];
    if (c->server_id_bytes == 0 || c->nonce_bytes == 0)
        return settings_yaml_fail(&r->yaml, line, "a member of configs needs server_id_bytes and nonce_bytes.");
    if (c->server_id_bytes != all[0].server_id_bytes)
        return settings_yaml_fail(&r->yaml, line,
                                  "all configurations have the same server_id_bytes: they share the list of servers.");
    const unsigned both = (unsigned)c->server_id_bytes + c->nonce_bytes;
    if (both < XL_HASHED_CID_BYTES - 1 || both >= XL_LB_PLAINTEXT_MAX)
        return settings_yaml_fail(&r->yaml, line, "server_id_bytes and nonce_bytes are from %d to %d together, not %u.",
                                  XL_HASHED_CID_BYTES - 1, XL_LB_PLAINTEXT_MAX - 1, both);
    for (size_t k = 0; k < n; k++)
        if (all[k].rotation == c->rotation)
            return settings_yaml_fail(&r->yaml, line, "rotation %u comes twice.", c->rotation);
    return true;
}

static bool read_configs(reader *r) {
    lb_file *f = r->out;
    const yaml_node_t *list = r->configs;
    if (!list || list->type != YAML_SEQUENCE_NODE || list->data.sequence.items.start == list->data.sequence.items.top)
        return settings_yaml_fail(&r->yaml, list ? list->start_mark.line : 0,
                                  "configs is a list with one configuration at least: "
                                  "\"- server_id_bytes: 2\" starts one of its members.");
    for (const yaml_node_item_t *i = list->data.sequence.items.start; i < list->data.sequence.items.top; i++) {
        const yaml_node_t *node = node_of(r, *i);
        if (f->config_count == XL_LB_CONFIGS_MAX)
            return settings_yaml_fail(&r->yaml, node->start_mark.line, "at most %d configurations can be told apart.",
                                      XL_LB_CONFIGS_MAX);
        const setting_tables s = {.table = {{config_rows, &f->config[f->config_count], 0}}, .count = 1};
        if (!settings_yaml_members(&r->yaml, node, &s) || !check_config(r, f->config_count, node->start_mark.line))
            return false;
        f->config_count++;
    }
    f->server_id_bytes = f->config[0].server_id_bytes;
    return true;
}

static bool read_server(reader *r, const yaml_node_t *key, const yaml_node_t *value) {
    lb_file *f = r->out;
    const size_t line = key->start_mark.line;
    const char *id = settings_yaml_text(key) ? settings_yaml_text(key) : "";
    if (f->server_count == LB_SERVERS_MAX)
        return settings_yaml_fail(&r->yaml, line, "more than %d servers.", LB_SERVERS_MAX);
    lb_server *s = &f->server[f->server_count];
    const setting_tables tables = {.table = {{server_rows, s, 0}}, .count = 1};
    if (!lb_parse_server_id(id, f->server_id_bytes, s->id))
        return settings_yaml_fail(&r->yaml, line, "a server ID has %u hexadecimal digits here, not '%.40s'.",
                                  2u * f->server_id_bytes, id);
    for (size_t i = 0; i < f->server_count; i++)
        if (memcmp(f->server[i].id, s->id, sizeof s->id) == 0)
            return settings_yaml_fail(&r->yaml, line, "server ID %s comes twice.", id);
    if (value->type != YAML_MAPPING_NODE)
        return settings_yaml_fail(&r->yaml, line, "a server is %s: {address: \"ADDR:PORT\"}, perhaps with drain: true.",
                                  id);
    if (!settings_yaml_members(&r->yaml, value, &tables))
        return false;
    f->server_count++;
    return s->address.family != 0 || settings_yaml_fail(&r->yaml, line, "server %s needs an address.", id);
}

static bool read_servers(reader *r) {
    const yaml_node_t *map = r->servers;
    if (!map || (map->type == YAML_SCALAR_NODE && map->data.scalar.length == 0)) /* no servers yet */
        return true;
    if (map->type != YAML_MAPPING_NODE)
        return settings_yaml_fail(&r->yaml, map->start_mark.line, "servers has members ID: {address: \"ADDR:PORT\"}.");
    for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++)
        if (!read_server(r, node_of(r, p->key), node_of(r, p->value)))
            return false;
    return true;
}

/* Refuses the format of version 0.1, which had sections. The current format cannot have such lines. */
static bool refuse_sections(const settings_yaml *y, const char *text) {
    for (size_t line = 0; text; line++) {
        text += strspn(text, " \t");
        if (strncmp(text, "[config]", 8) == 0 || strncmp(text, "[servers]", 9) == 0)
            return settings_yaml_fail(y, line,
                                      "this file is YAML now: write [config] as 'configs: [{server_id_bytes: 2, "
                                      "nonce_bytes: 6, ...}]' and [servers] as 'servers: {ID: {address: ADDR:PORT}}'.");
        const char *end = strchr(text, '\n');
        text = end ? end + 1 : NULL;
    }
    return true;
}

static bool read_document(reader *r) {
    const yaml_node_t *root = yaml_document_get_root_node(&r->yaml.document);
    return (!root || find_members(r, root)) && read_secret_member(r) && read_configs(r) && read_servers(r);
}

bool lb_file_parse(const char *text, const char *name, lb_file *out, char *error) {
    reader r = {.yaml = {.file = name, .error = error}, .out = out};
    *out = (lb_file){0};
    if (!refuse_sections(&r.yaml, text) || !settings_yaml_load(&r.yaml, text))
        return false;
    const bool ok = read_document(&r);
    settings_yaml_free(&r.yaml);
    return ok;
}

bool lb_file_read(const char *name, lb_file *out, char *error) {
    char *text = text_file_read(name, error, LB_ERROR_BYTES - 2);
    if (!text) {
        strcat(error, ".");
        return false;
    }
    const bool ok = lb_file_parse(text, name, out, error);
    free(text);
    return ok;
}

xl_lb *lb_file_codec(const lb_file *f) {
    int error;
    return xl_lb_new(f->config, f->config_count, 1, &error);
}
