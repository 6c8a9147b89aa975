#include "get/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/net.h"
#include "base/numbers.h"
#include "http/hq.h"

#define SCHEME        "https://"
#define HTTPS_PORT    443
#define TIME_LIMIT_US 60000000

/* ---- URLs ---- */

/* Returns the end of the host in "host", "host:port", "[v6]" or "[v6]:port"; NULL: a bracket is missing. */
static const char *host_end(const char *authority, const char *end) {
    if (authority[0] != '[') {
        const char *colon = memchr(authority, ':', (size_t)(end - authority));
        return colon ? colon : end;
    }
    const char *bracket = memchr(authority, ']', (size_t)(end - authority));
    return bracket ? bracket + 1 : NULL;
}

static bool take_authority(const char *text, size_t len, get_url *url) {
    if (memchr(text, '@', len)) /* user information is not supported */
        return false;
    const char *end = text + len, *after = len > 0 && len < sizeof url->authority ? host_end(text, end) : NULL;
    uint64_t port = HTTPS_PORT;
    if (!after || after == text || (after < end && *after != ':'))
        return false;
    if (after < end && (!number_parse(after + 1, (size_t)(end - after - 1), &port) || port == 0 || port > UINT16_MAX))
        return false;
    bool in_brackets = text[0] == '[';
    snprintf(url->authority, sizeof url->authority, "%.*s", (int)len, text);
    snprintf(url->host, sizeof url->host, "%.*s", (int)(after - text) - 2 * in_brackets, text + in_brackets);
    url->port = (uint16_t)port;
    return url->host[0] != '\0';
}

/* Names the file by the last segment of the path; "index.html" if that is empty, "." or "..". */
static void name_file(get_url *url) {
    size_t len = strcspn(url->path, "?");
    size_t begin = len;
    while (begin > 0 && url->path[begin - 1] != '/')
        begin--;
    snprintf(url->file, sizeof url->file, "%.*s", (int)(len - begin), url->path + begin);
    if (url->file[0] == '\0' || strcmp(url->file, ".") == 0 || strcmp(url->file, "..") == 0)
        snprintf(url->file, sizeof url->file, "index.html");
}

/* Parses https://HOST[:PORT][/PATH]; the default port is 443. False: not of this form, or with a fragment, which is not
 * part of a request (RFC 9110 section 4.2.5). */
static bool parse_url(const char *text, get_url *url) {
    if (strncmp(text, SCHEME, strlen(SCHEME)) != 0 || strchr(text, '#'))
        return false;
    text += strlen(SCHEME);
    size_t len = strcspn(text, "/?");
    url->path = text[len] == '/' ? text + len : "/";
    name_file(url);
    return (text[len] == '/' || text[len] == '\0') && take_authority(text, len, url);
}

/* ---- Settings with their own syntax ---- */

static bool read_connect(void *into, const char *text, char *reason, size_t cap) {
    get_options *o = into;
    xl_addr a;
    const bool ok = net_read_server(&a, text, reason, cap);
    if (ok)
        o->connect[a.family == 6] = a;
    return ok;
}

static bool read_path(void *into, const char *text, char *reason, size_t cap) {
    get_options *o = into;
    if (o->paths == XL_MAX_PATHS)
        return error_set(reason, cap, "may be given %d times", XL_MAX_PATHS);
    bool ok = net_parse_local(text, &o->local[o->paths], reason, cap);
    o->paths += ok;
    return ok;
}

static bool read_path_events(void *into, const char *text, char *reason, size_t cap) {
    get_options *o = into;
    return path_events_parse(text, o->path_events, &o->path_event_count, reason, cap);
}

/* ---- The table ---- */

#define FIELD(member) SETTING_FIELD(get_options, member)

static const char *const alpns[] = {"h3", HQ_ALPN, NULL};
static const char *const splits[] = {"none", "first", "each", NULL};

static const setting rows[] = {
    {"connect", SETTING_OWN, .read = read_connect, .value = "ADDR:PORT",
     .help = "Address of the server. May be given once for each IP version. Default: that of the host in the first "
             "URL."},
    {"path", SETTING_OWN, .read = read_path, .value = "ADDR", .repeats = true,
     .help =
         "Source address of a path, or @I for mpshell's path I. Give it once for each path. Without it a scheme that "
         "uses several paths takes all those of mpshell; else the kernel chooses one. A path goes to the server's "
         "address "
         "of its own IP version."},
    {"path_events", SETTING_OWN, .read = read_path_events, .value = "T:ACTION:I",
     .help = "T seconds after the handshake, remove a path, or make it standby or available. I is its place among the "
             "--path, from 0. Several with commas between them."},
    {"alpn", SETTING_WORD, FIELD(alpn), .words = alpns, .fallback = "h3",
     .help = "HTTP/3, or HTTP/0.9 as in interoperability tests."},
    {"split", SETTING_CHOICE, FIELD(split), .words = splits, .fallback = "none",
     .help = "none: all URLs in one connection. first: the first URL in one connection, the others in a second one. "
             "each: a connection for each URL."},
    {"dir", SETTING_TEXT, FIELD(dir), .value = "DIR",
     .help = "Write each body to DIR, which is made if it is missing, named by the last segment of its URL. Without it "
             "bodies are only counted."},
    {"ca", SETTING_TEXT, FIELD(ca_file), .value = "FILE",
     .help = "Verify the server's certificate against the CA certificates in FILE (PEM)."},
    {"insecure", SETTING_FLAG, FIELD(insecure), .help = "Do not verify the server's certificate."},
    {"ciphers", SETTING_TEXT, FIELD(ciphers), .value = "NAMES", .fallback = "aes128,aes256,chacha20",
     .help = "Cipher suites, the preferred one first, with commas between them."},
    {"packets_per_key", SETTING_WHOLE, FIELD(packets_per_key), .least = 64, .most = UINT32_MAX, .value = "N",
     .fallback = "as many as RFC 9001 allows", .help = "Update the keys after half as many packets sent."},
    {"session", SETTING_TEXT, FIELD(session_file), .value = "FILE",
     .help = "Resume the TLS session in FILE, and save the newest one there. It holds secrets."},
    {"early_data", SETTING_FLAG, FIELD(early_data),
     .help = "Send the requests of a connection that resumes a session in its first packets (0-RTT). They can be "
             "replayed by others."},
    {"time_limit", SETTING_WHOLE, FIELD(time_limit_us), .least = 1, .most = 86400, .scale = 1000000, .value = "S",
     .fallback = "60", .help = "Give up after this time."},
    {"quiet", SETTING_FLAG, FIELD(quiet),
     .help = "Do not print the line of summary: files, size, time, rate and paths."},
    {"seed", SETTING_OWN, FIELD(seed), .read = random_seed_read, .value = "N",
     .help = "Derive all random choices, keys and secrets from N, so that runs can be repeated. Not for deployment."},
    {"out", SETTING_TEXT, FIELD(out_file), .value = "FILE.jsonl", .help = "Write events and a summary as JSON Lines."},
    {"qlog_dir", SETTING_TEXT, FIELD(qlog_dir), .value = "DIR", .help = "Write a qlog for each connection."},
    {"keylog", SETTING_TEXT, FIELD(keylog_file), .value = "FILE", .help = "Append TLS secrets in NSS key log format."},
    {0},
};

void get_options_print_usage(void) {
    printf("usage: xlink-get [options] https://HOST[:PORT]/PATH ... [options]\n");
    settings_help(stdout, rows, 0);
    settings_help(stdout, quic_setting_rows, SETTING_OF_PLAYER);
}

static const char *problem(const get_options *o) {
    if (o->url_count == 0)
        return "at least one URL is needed; see --help";
    if (o->url_count > GET_URLS_MAX)
        return "more URLs than 4096";
    if (!o->insecure && !o->ca_file)
        return "--ca FILE is needed to verify the server's certificate, or --insecure";
    return quic_settings_problem(&o->settings, false);
}

static bool check_path_events(const get_options *o, char *error) {
    for (size_t i = 0; i < o->path_event_count; i++) {
        const path_event *e = &o->path_events[i];
        uint64_t path = 0;
        if (e->action == PATH_ADD || !number_parse(e->name, strlen(e->name), &path) || path >= o->paths)
            return error_set(
                error, SETTINGS_ERROR_BYTES,
                "--path-events takes T:remove|standby|available:I with I from 0, smaller than the number of --path"
                " (%zu), not '%s'.",
                o->paths, e->name);
    }
    if (o->path_event_count > 0 && !quic_settings_are_multipath(&o->settings))
        return error_set(error, SETTINGS_ERROR_BYTES, "--path-events needs a scheme with multipath.");
    return true;
}

static bool check_files(const get_options *o, char **texts, char *error) {
    for (size_t i = 0; i < o->url_count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(o->urls[i].file, o->urls[k].file) == 0)
                return error_set(
                    error, SETTINGS_ERROR_BYTES,
                    "'%.150s' and '%.150s' would both be the file '%.60s' in --dir; fetch them one by one.", texts[k],
                    texts[i], o->urls[i].file);
    return true;
}

static bool take_urls(get_options *o, char **texts, char *error) {
    o->urls = calloc(o->url_count, sizeof *o->urls);
    for (size_t i = 0; o->urls && i < o->url_count; i++) {
        if (!parse_url(texts[i], &o->urls[i]))
            return error_set(error, SETTINGS_ERROR_BYTES, "'%.200s' is no URL of the form https://HOST[:PORT]/PATH.",
                             texts[i]);
        if (strcmp(o->urls[i].authority, o->urls[0].authority) != 0)
            return error_set(error, SETTINGS_ERROR_BYTES,
                             "all URLs are fetched from one server: '%.200s' is of another one.", texts[i]);
    }
    if (!o->urls)
        return error_set(error, SETTINGS_ERROR_BYTES, "out of memory.");
    return !o->dir || check_files(o, texts, error);
}

bool get_options_parse(int argc, char **argv, get_options *o, char *error) {
    int rest;
    *o = (get_options){.alpn = "h3", .time_limit_us = TIME_LIMIT_US};
    quic_settings_init(&o->settings);
    quic_settings_choose(&o->settings, "sp");
    const setting_tables s = {
        .table = {{rows, o, 0}, {quic_setting_rows, &o->settings, SETTING_OF_PLAYER}}, .count = 2, .mixed = true};
    if (!settings_read_args(&s, argc, argv, &o->help, &rest, error) || o->help)
        return o->help;
    o->url_count = (size_t)(argc - rest);
    const char *what = problem(o);
    if (what)
        return error_set(error, SETTINGS_ERROR_BYTES, "%s.", what);
    return check_path_events(o, error) && take_urls(o, argv + rest, error);
}
