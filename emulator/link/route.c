#include "emulator/link/route.h"

#include <string.h>

#include "base/error.h"

/* Returns name_count if there is no such name. */
static size_t find(const char *const *names, size_t name_count, const char *name, size_t length) {
    size_t i = 0;
    while (i < name_count && (strlen(names[i]) != length || memcmp(names[i], name, length) != 0))
        i++;
    return i;
}

static const char *problem_of(const link_via *via, size_t place, size_t name_count) {
    if (place == name_count)
        return "is not the name of a bottleneck";
    for (size_t i = 0; i < via->count; i++)
        if (via->bottlenecks[i] == place)
            return "is there twice";
    return via->count == LINK_VIA_MOST ? "is one bottleneck too many; 4 are the most" : NULL;
}

bool link_via_parse(link_via *via, const char *text, const char *const *names, size_t name_count, char *error,
                    size_t error_size) {
    via->count = 0;
    for (bool more = text != NULL; more;) {
        size_t length = strcspn(text, ":"), place = find(names, name_count, text, length);
        const char *problem = problem_of(via, place, name_count);
        if (problem)
            return error_set(error, error_size, "via: \"%.*s\" %s", (int)(length < 40 ? length : 40), text, problem);
        via->bottlenecks[via->count++] = (uint16_t)place;
        more = text[length] == ':';
        text += length + more;
    }
    return true;
}

bool link_vias_parse(link_via via[2], const link_settings settings[2], const char *const *names, size_t name_count,
                     char *error, size_t error_size) {
    return link_via_parse(&via[0], settings[0].via, names, name_count, error, error_size) &&
           link_via_parse(&via[1], settings[1].via, names, name_count, error, error_size);
}

link_route link_route_make(size_t own, const link_via *via, size_t first, bool to_server) {
    link_route route = {.count = (uint8_t)(1 + via->count)};
    for (size_t i = 0; i < via->count; i++)
        route.links[to_server ? 1 + i : via->count - 1 - i] = (uint16_t)(first + 2 * via->bottlenecks[i] + !to_server);
    route.links[to_server ? 0 : via->count] = (uint16_t)own;
    return route;
}
