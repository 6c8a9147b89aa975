#include "emulator/link/report.h"

#include <stdlib.h>
#include <string.h>

static json_t *number(uint64_t value) {
    return json_integer((json_int_t)value);
}

json_t *link_report_text(const char *value) {
    json_t *string = json_string(value);
    if (string)
        return string;
    char *copy = strdup(value);
    for (char *c = copy; c && *c != '\0'; c++)
        *c = (*c & 0x80) != 0 ? '?' : *c;
    string = !copy ? json_null() : json_string(copy);
    free(copy);
    return string;
}

json_t *link_report_lateness(const link_lateness *lateness) {
    const json_int_t p50 = (json_int_t)link_lateness_quantile(lateness, 0.50);
    const json_int_t p99 = (json_int_t)link_lateness_quantile(lateness, 0.99);
    return json_pack("{s:I,s:I,s:I,s:I,s:I}", "p50", p50, "p99", p99, "max", (json_int_t)lateness->max_us, "over_1ms",
                     (json_int_t)lateness->over_1ms, "count", (json_int_t)lateness->count);
}

json_t *link_report(const emulated_link *link, const char *trace, const char *trace_sha256) {
    link_stats stats = link_get_stats(link);
    const struct {
        const char *name;
        uint64_t value;
    } figures[] = {
        {"opportunities", stats.opportunities},
        {"opportunities_used", stats.opportunities_used},
        {"missed", stats.missed},
        {"arrived_packets", stats.arrived_packets},
        {"arrived_bytes", stats.arrived_bytes},
        {"departed_packets", stats.departed_packets},
        {"departed_bytes", stats.departed_bytes},
        {"queue_drops", stats.queue_drops},
        {"random_losses", stats.random_losses},
        {"oversize_drops", stats.oversize_drops},
        {"memory_drops", stats.memory_drops},
        {"inside_packets", stats.inside_packets},
    };
    json_t *object = json_object();
    json_object_set_new(object, "trace", link_report_text(trace));
    json_object_set_new(object, "trace_sha256", json_string(trace_sha256));
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        json_object_set_new(object, figures[i].name, number(figures[i].value));
    const struct {
        const char *name;
        uint64_t value;
    } rare[] = {{"off_losses", stats.off_losses},         {"duplicates", stats.duplicates},
                {"reordered", stats.reordered},           {"nat_drops", stats.nat_drops},
                {"nat_mappings", stats.nat_mappings},     {"cross_packets", stats.cross_packets},
                {"cross_departed", stats.cross_departed}, {"cross_departed_bytes", stats.cross_departed_bytes},
                {"cross_drops", stats.cross_drops},       {"retry_drops", stats.retry_drops},
                {"collisions", stats.air.collisions},     {"mpdu_retries", stats.air.retries},
                {"airtime_us", stats.air.airtime_us}};
    for (size_t i = 0; i < sizeof rare / sizeof rare[0]; i++)
        if (rare[i].value > 0)
            json_object_set_new(object, rare[i].name, number(rare[i].value));
    json_object_set_new(object, "lateness_us", link_report_lateness(link_get_lateness(link)));
    return object;
}
