#include "emulator/link/settings.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "emulator/link/queue.h"
#include "emulator/link/report.h"
#include "emulator/link/text.h"

#define KEY_BYTES 64

/* ---- the rows ---- */

static bool parse_cross_rate(void *rate_bps, const char *text, char *wanted, size_t cap) {
    snprintf(wanted, cap, "a rate of at most 10gbps, or off");
    return link_cross_parse_rate(text, rate_bps);
}

#define FIELD(member) SETTING_FIELD(link_settings, member)
#define MS(member)    SETTING_MS, FIELD(member), .most = LINK_MS_MOST, .value = "MS"
#define PROBABILITY   "(0(\\.[0-9]+)?|1(\\.0+)?|\\.[0-9]+)"
#define NUMBER        "[0-9.]+"
#define ONOFF         "^(exp:on=" NUMBER ":off=" NUMBER "|" NUMBER "/" NUMBER "(/" NUMBER "/" NUMBER ")*)$"
#define WIFI_OPTION   "(rate|others|busy|collision|frames|airtime|p|r|good|bad|retries|suspend|every)=" NUMBER
#define LEO_OPTION    "((period|phase|step|pause|burst)=" NUMBER "|loss=" PROBABILITY ")"
#define NAT_RULE      "((mapping|filtering)=(independent|address|address-port)|timeout=" NUMBER ")"

/* An alternative in a pattern. */
#define NAME_OR(name, promotion_ms, tail_ms) name "|"

static const char *const no_yes[] = {"no", "yes", NULL};
static const char *const loop_hold[] = {"loop", "hold", NULL};
static const char *const even_random[] = {"even", "random", NULL};

/* The first row is the trace, whose keys are the directions themselves: "up" and "down". */
const setting link_setting_rows[] = {
    {"trace", SETTING_TEXT, FIELD(trace), .value = "TRACE",
     .help = "The opportunities of a direction: a trace file, or a rate such as 12mbps."},
    {"offset_ms", SETTING_WHOLE, FIELD(config.start_offset_ms), .most = UINT32_MAX, .value = "MS", .fallback = "0",
     .help = "The position in the path's traces at time 0."},
    {"once", SETTING_CHOICE, FIELD(config.once), .words = no_yes, .value = "yes|no", .fallback = "no",
     .help = "yes: there are no opportunities after the trace's last one."},
    {"delay_ms", MS(config.delay_us), .help = "Delay in each direction."},
    {"delay_trace", SETTING_TEXT, FIELD(delay_trace), .value = "FILE", .help = "The delay over time."},
    {"delay_trace_end", SETTING_CHOICE, FIELD(config.hold_delay), .words = loop_hold, .fallback = "loop",
     .help = "After the last line of the delay trace."},
    {"light_trace", SETTING_TEXT, FIELD(light_trace), .value = "FILE",
     .help = "The delays and offsets of short bursts, in the place of a delay; the trace is that of long ones."},
    {"light_gap_ms", MS(config.light.gap_us), .fallback = "0",
     .help = "How long nothing leaves the delay before a burst begins."},
    {"size_latency", SETTING_TEXT, FIELD(size_latency), .value = "FILE",
     .help = "What is added to the delays of a light trace, by packet size."},
    {"opportunity_bytes", SETTING_WHOLE, FIELD(config.opportunity_bytes), .least = 1, .most = LINK_OPPORTUNITY_BYTES,
     .value = "BYTES", .help = "What an opportunity delivers; 1504 if it is not given."},
    {"mtu", SETTING_WHOLE, FIELD(config.mtu_bytes), .least = LINK_MTU_LEAST, .most = LINK_MTU_MOST, .value = "BYTES",
     .help = "The largest IP packet, 1500 if it is not given; larger ones are lost without a word."},
    {"jitter_ms", MS(config.jitter_us), .fallback = "0", .help = "The delay is uniform within this much of it."},
    {"reorder", SETTING_PROBABILITY, FIELD(config.reorder), .value = "P", .fallback = "0",
     .help = "Probability that a packet takes reorder_delay_ms longer, so that others overtake it."},
    {"reorder_delay_ms", MS(config.reorder_us), .help = "How much longer."},
    {"loss", SETTING_OWN, FIELD(config.loss), .parse = link_loss_parse, .value = "P|ge:p=P:r=P[:good=P][:bad=P]",
     .fallback = "0", .pattern = "^(" PROBABILITY "|ge(:(p|r|good|bad)=" PROBABILITY "){2,4})$",
     .help = "Probability of random loss, or Gilbert-Elliott: ge:p=P:r=P[:good=P][:bad=P]."},
    {"onoff", SETTING_OWN, FIELD(config.onoff), .parse = link_onoff_parse, .value = "TIMES", .pattern = ONOFF,
     .help = "Times ON/OFF[/ON/OFF...] in ms, or exp:on=MS:off=MS; what arrives in an off time is lost."},
    {"radio", SETTING_OWN, FIELD(config.radio), .parse = link_radio_parse, .value = "TIMES",
     .pattern = "^(off|" LINK_RADIO_PRESETS(NAME_OR) "(promotion|tail|inactive|cycle)=" NUMBER
                                                     "(:(promotion|tail|inactive|cycle)=" NUMBER "){1,3})$",
     .help = "What the first packet after a pause waits: promotion=MS:tail=MS, inactive=MS:cycle=MS, both, a preset "
             "such as lte-2012, or off."},
    {"paging_ms", MS(paging_us), .fallback = "0",
     .help = "Both directions share the uplink's radio, and one that sleeps is paged once in this time."},
    {"grants", SETTING_OWN, FIELD(config.grants), .parse = link_grants_parse, .value = "TIMES", .fallback = "off",
     .pattern = "^(off|sr=" NUMBER ":grant=" NUMBER "(:((report|idle)=" NUMBER "|first=[0-9]+)){0,3})$",
     .help = "Uplink grants of LTE and 5G: sr=MS:grant=MS, the period in which a terminal may ask for one and how long "
             "it takes; further report=MS, first=BYTES and idle=MS; or off."},
    {"leo", SETTING_OWN, FIELD(config.leo), .parse = link_leo_parse, .value = "KIND[:KEY=VALUE...]", .fallback = "off",
     .pattern = "^(off|(starlink|" LEO_OPTION ")(:" LEO_OPTION ")*)$",
     .help = "A satellite of a low orbit, which changes each 15 s: starlink, period=MS:phase=MS:step=MS:pause=MS:"
             "burst=MS:loss=P or some of them, or off."},
    {"duplicate", SETTING_PROBABILITY, FIELD(config.duplicate), .value = "P", .fallback = "0",
     .help = "Probability that a packet arrives at the queue twice."},
    {"nat", SETTING_OWN, FIELD(nat), .parse = link_nat_parse, .value = "RULES", .fallback = "off",
     .pattern = "^(off|" NAT_RULE "(:" NAT_RULE "){0,2})$",
     .help = "A NAT between link and server: mapping=KIND:filtering=KIND:timeout=MS or some of them, or off. KIND: "
             "independent, address or address-port."},
    {"wifi", SETTING_OWN, FIELD(wifi), .parse = link_wifi_parse, .value = "KIND[:KEY=VALUE...]", .fallback = "off",
     .pattern = "^(off|((good|congested)|" WIFI_OPTION ")(:" WIFI_OPTION ")*)$",
     .help = "Wi-Fi, whose airtime both directions share, in the place of the traces: good, congested, or options."},
    {"cross", SETTING_OWN, FIELD(config.cross.rate_bps), .parse = parse_cross_rate, .value = "RATE", .fallback = "off",
     .pattern = "^(off|" NUMBER "(bps|kbps|mbps|gbps))$",
     .help = "Others' traffic that joins the queue at this rate whatever becomes of it, or off."},
    {"cross_profile", SETTING_TEXT, FIELD(cross_profile), .value = "FILE",
     .help = "The rate of others' traffic over time, in the place of one rate."},
    {"cross_onoff", SETTING_OWN, FIELD(config.cross.onoff), .parse = link_onoff_parse, .value = "TIMES",
     .pattern = ONOFF, .help = "Times of others' traffic ON/OFF[/ON/OFF...] in ms, or exp:on=MS:off=MS."},
    {"cross_gaps", SETTING_CHOICE, FIELD(config.cross.random_gaps), .words = even_random, .fallback = "even",
     .help = "The gaps between packets of others' traffic: random ones are exponential."},
    {"cross_bytes", SETTING_WHOLE, FIELD(config.cross.bytes), .least = LINK_CROSS_BYTES_LEAST, .most = LINK_MTU_MOST,
     .value = "BYTES", .help = "Size of IP packets of others' traffic; 1500 if it is not given."},
    {"via", SETTING_TEXT, FIELD(via), .value = "NAME[:NAME...]",
     .help = "Bottlenecks that packets pass behind this link, in the order from client to server."},
    {"queue", SETTING_TEXT, FIELD(config.queue), .value = "QUEUE", .fallback = LINK_QUEUE_DEFAULT,
     .help = "The queue discipline and its options."},
    {0},
};

static_assert(sizeof link_setting_rows / sizeof link_setting_rows[0] <= LINK_SETTINGS_MAX, "texts have room");

static size_t index_of(const setting *row) {
    return (size_t)(row - link_setting_rows);
}

static const setting *row_of(const char *name) {
    const setting *row = link_setting_rows;
    while (row->name && strcmp(row->name, name) != 0)
        row++;
    return row->name ? row : NULL;
}

bool link_settings_has(const link_settings *settings, const char *name) {
    return settings->text[index_of(row_of(name))] != NULL;
}

/* ---- changes at run time ---- */

void link_change_read(link_change *change, const link_settings *given) {
    const link_config *c = &given->config;
    change->has_delay = link_settings_has(given, "delay_ms");
    change->has_loss = link_settings_has(given, "loss");
    change->has_reorder = link_settings_has(given, "reorder");
    change->has_duplicate = link_settings_has(given, "duplicate");
    change->has_cross = link_settings_has(given, "cross");
    change->delay_us = c->delay_us;
    change->loss = c->loss;
    change->mtu_bytes = c->mtu_bytes;
    change->reorder = c->reorder;
    change->reorder_us = c->reorder_us;
    change->duplicate = c->duplicate;
    change->cross_bps = c->cross.rate_bps;
}

bool link_change_suits(const link_change *change, const link_settings settings[2], const bool ways[2]) {
    for (size_t way = 0; way < 2 && change->cross_bps > 0; way++)
        if (ways[way] && link_queue_is_infinite(settings[way].config.queue))
            return false;
    return true;
}

/* ---- keys and members ---- */

static const char *const ways[2] = {"up", "down"};

/* "reorder_delay_ms" is the key "reorder-delay". */
static void key_of(const setting *row, char key[KEY_BYTES]) {
    size_t length = strlen(row->name);
    if (length > 3 && strcmp(row->name + length - 3, "_ms") == 0)
        length -= 3;
    for (size_t i = 0; i < length; i++)
        key[i] = row->name[i] == '_' ? '-' : row->name[i];
    key[length] = '\0';
}

/* "up=TRACE, down=TRACE, offset=MS, …" */
static void list_keys(char *out, size_t cap) {
    char key[KEY_BYTES];
    snprintf(out, cap, "up=TRACE, down=TRACE, rate=RATE");
    for (const setting *row = link_setting_rows + 1; row->name; row++) {
        key_of(row, key);
        snprintf(out + strlen(out), cap - strlen(out), ", %s=%s", key,
                 row->value                ? row->value
                 : row->words == loop_hold ? "loop|hold"
                                           : "even|random");
    }
}

/* Returns the name without its direction; for_way[i] says whether it applies to direction i. */
static const char *take_way(const char *name, char separator, bool for_way[2]) {
    for_way[0] = for_way[1] = true;
    for (int way = 0; way < 2; way++) {
        size_t n = strlen(ways[way]);
        if (strncmp(name, ways[way], n) == 0 && (name[n] == '\0' || name[n] == separator)) {
            for_way[1 - way] = false;
            return name + n + (name[n] != '\0');
        }
    }
    return name;
}

static bool is_one_way(const bool for_way[2]) {
    return !for_way[0] || !for_way[1];
}

/* Whether the key is a trace: "up", "down", "rate" or "up-rate". rest: the name without its direction. */
static bool is_trace(const char *name, const char *rest, char separator) {
    return strcmp(rest, "rate") == 0 || (rest[0] == '\0' && rest != name && rest[-1] != separator);
}

/* Returns the row of a key such as "up-delay", or NULL. */
static const setting *find_key(const char *key, bool for_way[2]) {
    char candidate[KEY_BYTES];
    const char *rest = take_way(key, '-', for_way);
    if (is_trace(key, rest, '-'))
        return link_setting_rows;
    for (const setting *row = link_setting_rows + 1; row->name; row++) {
        key_of(row, candidate);
        if (strcmp(rest, candidate) == 0)
            return row;
    }
    return NULL;
}

/* Returns the row of a member such as "up_delay_ms", or NULL. */
static const setting *find_member(const char *member, bool for_way[2]) {
    const char *rest = take_way(member, '_', for_way);
    if (is_trace(member, rest, '_'))
        return link_setting_rows;
    const setting *row = row_of(rest);
    return row == link_setting_rows ? NULL : row;
}

/* ---- values ---- */

static bool set_one(link_settings *settings, const setting *row, const char *value, bool own) {
    size_t i = index_of(row);
    char ignored[SETTINGS_ERROR_BYTES];
    char *copy = strdup(value);
    if (!copy)
        return false;
    free(settings->text[i]);
    settings->text[i] = copy;
    settings->own[i] = own;
    (void)setting_read(row, settings, row->name, copy, ignored);
    return true;
}

/* Whether a value for both directions, given now or before, has no effect because each direction has its own. */
static bool serves_none(const link_settings settings[2], size_t i, const bool for_way[2], bool own) {
    bool is_given = !own;
    for (int way = 0; way < 2; way++) {
        const bool is_text = settings[way].text[i] != NULL;
        if (!(own && for_way[way]) && !(is_text && settings[way].own[i]))
            return false;
        is_given = is_given || (is_text && !settings[way].own[i]);
    }
    return is_given;
}

/* Stores a valid value in the directions that it applies to. */
static bool store(link_settings settings[2], const setting *row, const bool for_way[2], const char *key,
                  const char *value, char *error, size_t error_size) {
    size_t i = index_of(row);
    bool own = is_one_way(for_way);
    if (row == link_setting_rows && serves_none(settings, i, for_way, own))
        return error_set(error, error_size, "%s: beside up and down, rate has no effect; leave one of the three out",
                         key);
    for (int way = 0; way < 2; way++) {
        bool given = settings[way].text[i] != NULL;
        if (!for_way[way] || (given && settings[way].own[i] && !own))
            continue; /* a value for one direction overrides one for both */
        if (given && settings[way].own[i] == own)
            return error_set(error, error_size, "%s is given twice", key);
        if (!set_one(&settings[way], row, value, own))
            return error_set(error, error_size, "no memory");
    }
    return true;
}

/* Reads and stores the text. NULL: `given` has a type that the setting does not take. */
static bool take(link_settings settings[2], const setting *row, const bool for_way[2], const char *label,
                 const char *text, const json_t *given, char *error, size_t error_size) {
    link_settings scratch;
    char sentence[SETTINGS_ERROR_BYTES];
    if (text ? setting_read(row, &scratch, label, text, sentence) : setting_refuse_json(row, label, given, sentence))
        return store(settings, row, for_way, label, text, error, error_size);
    sentence[strlen(sentence) - 1] = '\0'; /* the full stop */
    return error_set(error, error_size, "%s", sentence);
}

bool link_settings_set(link_settings settings[2], const char *key, const char *value, char *error, size_t error_size) {
    bool for_way[2];
    const setting *row = find_key(key, for_way);
    if (!row) {
        char keys[SETTINGS_ERROR_BYTES];
        list_keys(keys, sizeof keys);
        return error_set(error, error_size, "\"%.60s\" is not one of %s", key, keys);
    }
    if (value[0] == '\0')
        return error_set(error, error_size, "%s= is empty", key);
    return take(settings, row, for_way, key, value, NULL, error, error_size);
}

bool link_settings_set_json(link_settings settings[2], const char *member, json_t *value, char *error,
                            size_t error_size) {
    bool for_way[2];
    char scratch[SETTING_NUMBER_BYTES];
    const setting *row = find_member(member, for_way);
    if (!row)
        return error_set(error, error_size, "%.60s is not a known member; docs/reference/links.md lists them", member);
    return take(settings, row, for_way, member, setting_text_of(row, value, scratch), value, error, error_size);
}

static void unset(link_settings *settings, const char *name) {
    const setting *row = row_of(name);
    size_t i = index_of(row);
    free(settings->text[i]);
    settings->text[i] = NULL;
    memset((char *)settings + row->offset, 0, row->size);
}

bool link_settings_override(link_settings base[2], link_settings top[2]) {
    bool good = true;
    for (size_t way = 0; way < 2; way++) {
        bool plain = link_settings_has(&top[way], "delay_ms"), traced = top[way].delay_trace,
             light = top[way].light_trace;
        static const char *const of_light[] = {"light_trace", "light_gap_ms", "size_latency"};
        if (top[way].cross_profile)
            unset(&base[way], "cross");
        if (link_settings_has(&top[way], "cross"))
            unset(&base[way], "cross_profile");
        if (plain || light) {
            unset(&base[way], "delay_trace");
            unset(&base[way], "delay_trace_end");
        }
        if (traced || light)
            unset(&base[way], "delay_ms");
        for (size_t i = 0; i < 3 && (plain || traced); i++)
            unset(&base[way], of_light[i]);
        for (const setting *row = link_setting_rows; row->name && good; row++)
            if (top[way].text[index_of(row)])
                good = set_one(&base[way], row, top[way].text[index_of(row)], top[way].own[index_of(row)]);
    }
    link_settings_free(top);
    return good;
}

/* ---- the whole ---- */

/* Checks the keys of others' traffic. Returns the problem, or NULL. */
static const char *find_cross_problem(const link_settings *s) {
    const link_cross *c = &s->config.cross;
    bool has_cross = c->rate_bps > 0 || s->cross_profile;
    return c->rate_bps > 0 && s->cross_profile ? "cross and cross-profile exclude each other"
           : !has_cross && (c->onoff.count > 0 || c->random_gaps || c->bytes > 0)
               ? "cross-onoff, cross-gaps and cross-bytes go with cross or a cross-profile"
           : has_cross && link_queue_is_infinite(s->config.queue) ? LINK_CROSS_NEEDS_LIMIT
                                                                  : NULL;
}

bool link_settings_check(const link_settings settings[2], bool is_path, char *error, size_t error_size) {
    for (int way = 0; way < 2; way++) {
        const link_settings *s = &settings[way];
        const link_config *c = &s->config;
        bool has_delay = link_settings_has(s, "delay_ms");
        bool has_one = has_delay || s->delay_trace || s->light_trace || !is_path;
        const bool is_wifi = s->wifi.rate_bps > 0;
        const char *missing = !s->trace && !is_wifi ? is_path ? ways[way] : "rate" : !has_one ? "delay" : NULL;
        const char *with = has_delay && s->delay_trace              ? "delay and delay-trace exclude each other"
                           : has_delay && s->light_trace            ? "delay and light-trace exclude each other"
                           : s->delay_trace && s->light_trace       ? "delay-trace and light-trace exclude each other"
                           : c->light.gap_us > 0 && !s->light_trace ? "light-gap goes with a light-trace"
                           : s->size_latency && !s->light_trace     ? "size-latency goes with a light-trace"
                           : c->hold_delay && !s->delay_trace       ? "delay-trace-end goes with a delay-trace"
                           : is_wifi && s->light_trace              ? "wifi and light-trace exclude each other"
                           : link_leo_is_on(&c->leo) && s->light_trace ? "leo and light-trace exclude each other"
                           : s->own[index_of(row_of("wifi"))] ? "wifi is of both directions; leave up- and down- out"
                           : s->own[index_of(row_of("nat"))]  ? "nat is of both directions; leave up- and down- out"
                           : s->own[index_of(row_of("paging_ms"))]
                               ? "paging is of both directions; leave up- and down- out"
                           : c->reorder > 0.0 && c->reorder_us == 0 ? "reorder needs a reorder-delay, in ms"
                           : !is_path && (s->via || s->nat.timeout_us > 0 || is_wifi || s->paging_us > 0)
                               ? "a bottleneck has no nat, no wifi, no paging and no via"
                               : find_cross_problem(s);
        if (missing)
            return error_set(error, error_size, "%s is missing%s", missing,
                             is_path ? "; a path needs up, down and delay" : "");
        if (with)
            return error_set(error, error_size, "%slink: %s", ways[way], with);
    }
    return true;
}

void link_settings_free(link_settings settings[2]) {
    for (int way = 0; way < 2; way++) {
        for (size_t i = 0; i < LINK_SETTINGS_MAX; i++)
            free(settings[way].text[i]);
        settings[way] = (link_settings){0};
    }
}

const char *link_settings_trace(const link_settings *settings) {
    return settings->wifi.rate_bps > 0 ? settings->wifi.rate : settings->trace;
}

link_config link_settings_config(const link_settings *settings, uint64_t start_offset_ms) {
    link_config config = settings->config;
    config.start_offset_ms += start_offset_ms;
    return config;
}

/* The settings that name a file, except the trace: the member with the name, and the one that the file is read into. */
static const struct {
    const char *key;
    size_t name, into; /* offsets in link_settings and in link_files */
    const link_text_form *form;
} file_settings[] = {
    {"delay-trace", offsetof(link_settings, delay_trace), offsetof(link_files, delay_trace), &link_delay_trace_form},
    {"light-trace", offsetof(link_settings, light_trace), offsetof(link_files, light_trace), &link_light_trace_form},
    {"size-latency", offsetof(link_settings, size_latency), offsetof(link_files, size_latency),
     &link_size_latency_form},
    {"cross-profile", offsetof(link_settings, cross_profile), offsetof(link_files, cross_profile),
     &link_cross_profile_form},
};

#define FILE_SETTINGS (sizeof file_settings / sizeof file_settings[0])

static bool load_file(size_t i, const char *name, link_files *files, char *error, size_t error_size) {
    char reason[SETTINGS_ERROR_BYTES], *text;
    size_t length;
    bool ok = link_trace_read_file(name, &text, &length, reason, sizeof reason);
    if (ok) {
        ok = link_text_parse(file_settings[i].form, (char *)files + file_settings[i].into, name, text, length, reason,
                             sizeof reason);
        free(text);
    }
    return ok || error_set(error, error_size, "%s: %s", file_settings[i].key, reason);
}

static bool load_files(const link_settings *settings, link_files *files, link_config *config, char *error,
                       size_t error_size) {
    for (size_t i = 0; i < FILE_SETTINGS; i++) {
        const char *name;
        memcpy(&name, (const char *)settings + file_settings[i].name, sizeof name);
        if (name && !load_file(i, name, files, error, error_size))
            return false;
    }
    config->delay_trace = settings->delay_trace ? &files->delay_trace : NULL;
    config->light.trace = settings->light_trace ? &files->light_trace : NULL;
    config->light.size = settings->size_latency ? &files->size_latency : NULL;
    config->cross.profile = settings->cross_profile ? &files->cross_profile : NULL;
    return true;
}

emulated_link *link_settings_make(const link_settings *settings, link_config *config, link_parts *own,
                                  link_parts *uplink, char *error, size_t error_size) {
    if (!load_files(settings, &own->files, config, error, error_size))
        return NULL;
    if (own == uplink) {
        own->nat = settings->nat.timeout_us > 0 ? link_nat_new(&settings->nat, config->seed) : NULL;
        own->air = settings->wifi.rate_bps > 0 ? link_air_new(&settings->wifi, config->seed) : NULL;
        own->rrc = link_rrc_make(&config->radio, settings->paging_us, config->seed);
        if ((settings->nat.timeout_us > 0 && !own->nat) || (settings->wifi.rate_bps > 0 && !own->air))
            return error_null(error, error_size, "no memory");
    }
    config->rrc = uplink->rrc.paging_us > 0 ? &uplink->rrc : NULL;
    config->nat = uplink->nat;
    config->air = uplink->air;
    config->is_downlink = own != uplink;
    return link_new(config, error, error_size);
}

void link_parts_free(link_parts *parts) {
    link_steps_free(&parts->files.delay_trace);
    link_light_trace_free(&parts->files.light_trace);
    link_size_latency_free(&parts->files.size_latency);
    link_steps_free(&parts->files.cross_profile);
    link_nat_free(parts->nat);
    link_air_free(parts->air);
}

static bool names_file(const setting *row) {
    bool names = row->offset == offsetof(link_settings, trace);
    for (size_t i = 0; i < FILE_SETTINGS; i++)
        names = names || row->offset == file_settings[i].name;
    return names;
}

bool link_settings_names_file(const char *member) {
    bool for_way[2];
    const setting *row = find_member(member, for_way);
    return row && names_file(row);
}

/* ---- reports ---- */

static const char *queue_of(const link_settings *s) {
    return s->config.queue ? s->config.queue : LINK_QUEUE_DEFAULT;
}

void link_settings_report_path(const link_settings settings[2], json_t *path) {
    const link_settings *up = &settings[0], *down = &settings[1];
    bool delay = link_settings_has(up, "delay_ms") && link_settings_has(down, "delay_ms") &&
                 up->config.delay_us == down->config.delay_us;
    bool loss =
        up->config.loss.p == 0.0 && down->config.loss.p == 0.0 && up->config.loss.good == down->config.loss.good;
    bool queue = strcmp(queue_of(up), queue_of(down)) == 0;
    json_object_set_new(path, "delay_ms", delay ? json_real((double)up->config.delay_us / 1000.0) : json_null());
    json_object_set_new(path, "loss", loss ? json_real(up->config.loss.good) : json_null());
    json_object_set_new(path, "queue", queue ? link_report_text(queue_of(up)) : json_null());
}

void link_settings_report(const link_settings *settings, json_t *direction) {
    json_t *texts = json_object();
    bool more = settings->config.loss.p > 0.0;
    char key[KEY_BYTES];
    for (const setting *row = link_setting_rows + 1; row->name; row++) {
        size_t i = index_of(row);
        bool is_of_path = row == row_of("delay_ms") || row == row_of("loss") || row == row_of("queue");
        if (settings->text[i]) {
            const char *slash = names_file(row) ? strrchr(settings->text[i], '/') : NULL;
            key_of(row, key);
            json_object_set_new(texts, key, link_report_text(slash ? slash + 1 : settings->text[i]));
            more = more || settings->own[i] || !is_of_path;
        }
    }
    if (more)
        json_object_set_new(direction, "settings", texts);
    else
        json_decref(texts);
}
