#include <jansson.h>

#include "base/technology.h"
#include "emulator/link/queue.h"
#include "emulator/link/settings.h"
#include "emulator/sim/job.h"
#include "schemes/quic_settings.h"

static json_t *describe_queue(const link_queue_discipline *discipline) {
    json_t *options = json_array();
    for (const link_queue_option *o = discipline->options; o && o->name; o++)
        json_array_append_new(options, json_string(o->name));
    char missing[SIM_ERROR_BYTES];
    json_t *o = json_pack("{s:s, s:o}", "name", discipline->name, "options", options);
    link_pool *pool = link_pool_new(0);
    link_queue *queue = pool ? link_queue_new(discipline->name, pool, 0, missing, sizeof missing) : NULL;
    if (pool && !queue)
        json_object_set_new(o, "missing", json_string(missing));
    link_queue_free(queue);
    link_pool_free(pool);
    return o;
}

json_t *sim_describe_settings(void) {
    json_t *all = quic_settings_describe(), *queues = json_array(), *technologies = json_array();
    for (size_t i = 0; link_queue_disciplines[i]; i++)
        json_array_append_new(queues, describe_queue(link_queue_disciplines[i]));
    for (size_t i = 0; technology_names[i]; i++)
        json_array_append_new(technologies, json_string(technology_names[i]));
    json_object_set_new(all, "links", settings_describe(link_setting_rows));
    json_object_set_new(all, "queues", queues);
    json_object_set_new(all, "technologies", technologies);
    return all;
}
