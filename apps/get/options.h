/* The command line of xlink-get. */
#pragma once

#include "base/random_key.h"
#include "get/client.h"
#include "schemes/quic_settings.h"

#define GET_URLS_MAX 4096

/* How the URLs are divided among consecutive connections. */
typedef enum {
    GET_SPLIT_NONE,  /* one connection */
    GET_SPLIT_FIRST, /* one connection for the first URL, one for the others */
    GET_SPLIT_EACH,  /* one connection per URL */
} get_split;

typedef struct {
    quic_settings settings;
    get_url *urls;
    size_t url_count;
    xl_addr connect[2]; /* IPv4, IPv6; family 0: not given */
    xl_addr local[XL_MAX_PATHS];
    size_t paths;
    path_event path_events[PATH_EVENTS_MAX];
    size_t path_event_count;
    const char *alpn, *dir, *ca_file, *out_file, *qlog_dir, *keylog_file, *ciphers, *session_file;
    get_split split;
    uint64_t time_limit_us, packets_per_key;
    random_seed seed;
    bool insecure, early_data, quiet, help;
} get_options;

/* False with a sentence in error[SETTINGS_ERROR_BYTES]. The options point into argv. The caller frees urls. */
bool get_options_parse(int argc, char **argv, get_options *, char *error);
/* Prints --help. */
void get_options_print_usage(void);
