#include "balancer/lb_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/http1.h"
#include "http/keyvalue.h"
#include "http/net.h"
#include "http/text_file.h"

typedef struct {
    const char *name;
    lb_file *out;
    char *error;
    unsigned config_section; /* number of the section whose lines go to the last configuration */
    unsigned config_line[XL_LB_CONFIGS_MAX];
} parser;

__attribute__((format(printf, 3, 4))) static bool fail(const parser *p, unsigned line, const char *format, ...) {
    int n = snprintf(p->error, LB_ERROR_BYTES, "%s, line %u: ", p->name, line);
    va_list args;
    va_start(args, format);
    if (n > 0 && n < LB_ERROR_BYTES) {
        vsnprintf(p->error + n, LB_ERROR_BYTES - (size_t)n, format, args);
        for (char *c = p->error + n; *c != '\0'; c++) { /* what is quoted ends up in terminals */
            *c = *c >= ' ' && *c <= '~' ? *c : '?';
        }
    }
    va_end(args);
    return false;
}

static int hex_digit(char c) {
    const char *digits = "0123456789abcdef", *at = c != '\0' ? strchr(digits, c | 0x20) : NULL;
    return at != NULL && (c >= 'A' || (c >= '0' && c <= '9')) ? (int)(at - digits) : -1;
}

static bool parse_hex(const char *text, uint8_t *out, size_t bytes) {
    if (strlen(text) != 2 * bytes) {
        return false;
    }
    for (size_t i = 0; i < bytes; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool lb_parse_server_id(const char *text, size_t bytes, uint8_t out[XL_LB_SERVER_ID_MAX]) {
    return bytes <= XL_LB_SERVER_ID_MAX && parse_hex(text, out, bytes);
}

static bool take_number(const parser *p, const keyvalue *e, uint64_t least, uint64_t most, uint8_t *out) {
    uint64_t value = 0;
    if (!http1_parse_number(e->value, strlen(e->value), &value) || value < least || value > most) {
        return fail(p, e->line, "%s is a number from %u to %u, not '%s'.", e->name, (unsigned)least, (unsigned)most,
                    e->value);
    }
    *out = (uint8_t)value;
    return true;
}

static bool take_config_line(parser *p, const keyvalue *e) {
    lb_file *f = p->out;
    if (p->config_section != e->section_number) {
        if (f->config_count == XL_LB_CONFIGS_MAX) {
            return fail(p, e->line, "at most %d configurations can be told apart.", XL_LB_CONFIGS_MAX);
        }
        p->config_section = e->section_number;
        p->config_line[f->config_count] = e->line;
        f->config[f->config_count++] = (xl_lb_config){0};
    }
    xl_lb_config *c = &f->config[f->config_count - 1];
    if (strcmp(e->name, "rotation") == 0) {
        return take_number(p, e, 0, XL_LB_UNROUTABLE - 1, &c->rotation);
    }
    if (strcmp(e->name, "server-id-bytes") == 0) {
        return take_number(p, e, 1, XL_LB_SERVER_ID_MAX, &c->server_id_bytes);
    }
    if (strcmp(e->name, "nonce-bytes") == 0) {
        return take_number(p, e, XL_LB_NONCE_MIN, XL_LB_NONCE_MAX, &c->nonce_bytes);
    }
    if (strcmp(e->name, "key") == 0) {
        c->has_key = true;
        return parse_hex(e->value, c->key, sizeof c->key) || fail(p, e->line, "a key has 32 hexadecimal digits.");
    }
    if (strcmp(e->name, "encode-length") == 0) {
        c->encode_length = strcmp(e->value, "yes") == 0;
        return c->encode_length || strcmp(e->value, "no") == 0 || fail(p, e->line, "encode-length is yes or no.");
    }
    return fail(p, e->line,
                "'%s' is not known; a [config] has rotation, server-id-bytes, nonce-bytes, key and encode-length.",
                e->name);
}

static bool take_server_line(parser *p, const keyvalue *e) {
    lb_file *f = p->out;
    if (f->server_count == LB_SERVERS_MAX) {
        return fail(p, e->line, "more than %d servers.", LB_SERVERS_MAX);
    }
    lb_server *s = &f->server[f->server_count];
    *s = (lb_server){0};
    if (f->config_count == 0 || f->config[0].server_id_bytes == 0) {
        return fail(p, e->line, "the servers come after a [config] with server-id-bytes.");
    }
    if (!lb_parse_server_id(e->name, f->config[0].server_id_bytes, s->id)) {
        return fail(p, e->line, "a server ID has %u hexadecimal digits here, not '%s'.",
                    2u * f->config[0].server_id_bytes, e->name);
    }
    char address[80];
    size_t len = strcspn(e->value, " \t");
    const char *word = e->value + len + strspn(e->value + len, " \t");
    snprintf(address, sizeof address, "%.*s", (int)(len < sizeof address ? len : 0), e->value);
    s->drain = strcmp(word, "drain") == 0;
    if (!net_parse_endpoint(address, &s->address) || s->address.port == 0 || (*word != '\0' && !s->drain)) {
        return fail(p, e->line, "a server is ID = ADDR:PORT, perhaps followed by drain, not '%s'.", e->value);
    }
    for (size_t i = 0; i < f->server_count; i++) {
        if (memcmp(f->server[i].id, s->id, sizeof s->id) == 0) {
            return fail(p, e->line, "server ID %s comes twice.", e->name);
        }
    }
    f->server_count++;
    return true;
}

static bool take_line(parser *p, const keyvalue *e) {
    if (strcmp(e->section, "config") == 0) {
        return take_config_line(p, e);
    }
    if (strcmp(e->section, "servers") == 0) {
        return take_server_line(p, e);
    }
    if (e->section[0] == '\0' && strcmp(e->name, "secret") == 0) {
        p->out->has_secret = true;
        return parse_hex(e->value, p->out->secret, sizeof p->out->secret) ||
               fail(p, e->line, "the secret has %d hexadecimal digits.", 2 * XL_STATIC_SECRET_BYTES);
    }
    if (e->section[0] == '\0') {
        return fail(p, e->line, "'%s' is not known outside of a section.", e->name);
    }
    return fail(p, e->line, "there is no section [%s]; known are [config] and [servers].", e->section);
}

static bool check(parser *p) {
    const lb_file *f = p->out;
    if (f->config_count == 0) {
        return fail(p, 1, "there is no [config].");
    }
    for (size_t i = 0; i < f->config_count; i++) {
        const xl_lb_config *c = &f->config[i];
        unsigned line = p->config_line[i];
        if (c->server_id_bytes == 0 || c->nonce_bytes == 0) {
            return fail(p, line, "a [config] needs server-id-bytes and nonce-bytes.");
        }
        if (c->server_id_bytes != f->config[0].server_id_bytes) {
            return fail(p, line, "all configurations have the same server-id-bytes: they share the list of servers.");
        }
        unsigned both = (unsigned)c->server_id_bytes + c->nonce_bytes;
        if (both < XL_HASHED_CID_BYTES - 1 || both >= XL_LB_PLAINTEXT_MAX) {
            return fail(p, line, "server-id-bytes and nonce-bytes are from %d to %d together, not %u.",
                        XL_HASHED_CID_BYTES - 1, XL_LB_PLAINTEXT_MAX - 1, both);
        }
        for (size_t k = 0; k < i; k++) {
            if (f->config[k].rotation == c->rotation) {
                return fail(p, line, "rotation %u comes twice.", c->rotation);
            }
        }
    }
    return true;
}

bool lb_file_parse(char *text, const char *name, lb_file *out, char *error) {
    *out = (lb_file){0};
    parser p = {.name = name, .out = out, .error = error};
    keyvalue_reader reader = keyvalue_reader_of(text);
    keyvalue e;
    keyvalue_result result;
    while ((result = keyvalue_next(&reader, &e)) == KEYVALUE_ENTRY) {
        if (!take_line(&p, &e)) {
            return false;
        }
    }
    if (result == KEYVALUE_BAD_LINE) {
        return fail(&p, e.line, "this is neither [section] nor name = value.");
    }
    if (!check(&p)) {
        return false;
    }
    out->server_id_bytes = out->config[0].server_id_bytes;
    return true;
}

bool lb_file_read(const char *name, lb_file *out, char *error) {
    char *text = text_file_read(name, error, LB_ERROR_BYTES - 2);
    if (text == NULL) {
        strcat(error, ".");
        return false;
    }
    bool ok = lb_file_parse(text, name, out, error);
    memset(text, 0, strlen(text));
    free(text);
    return ok;
}

xl_lb *lb_file_codec(const lb_file *f) {
    int error;
    return xl_lb_new(f->config, f->config_count, 1, &error);
}
