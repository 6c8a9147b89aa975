#include "emulator/link/route.h"

#include <stdio.h>
#include <string.h>

static int refuse(char *error, size_t error_size, const char *what, const char *name, size_t length) {
    snprintf(error, error_size, "via: \"%.*s\" %s", (int)(length < 40 ? length : 40), name, what);
    return -1;
}

/* name_count: there is no such name. */
static size_t find(const char *const *names, size_t name_count, const char *name, size_t length) {
    size_t i = 0;
    while (i < name_count && (strlen(names[i]) != length || memcmp(names[i], name, length) != 0))
        i++;
    return i;
}

int link_via_parse(const char *via, const char *const *names, size_t name_count, uint16_t out[LINK_VIA_MOST],
                   char *error, size_t error_size) {
    int count = 0;
    for (bool more = via != NULL; more;) {
        size_t length = strcspn(via, ":"), place = find(names, name_count, via, length);
        if (place == name_count)
            return refuse(error, error_size, "is not the name of a bottleneck", via, length);
        for (int i = 0; i < count; i++)
            if (out[i] == place)
                return refuse(error, error_size, "is there twice", via, length);
        if (count == LINK_VIA_MOST)
            return refuse(error, error_size, "is one bottleneck too many; 4 are the most", via, length);
        out[count++] = (uint16_t)place;
        more = via[length] == ':';
        via += length + more;
    }
    return count;
}

link_route link_route_make(uint16_t own, const uint16_t *via, size_t via_count, bool to_server) {
    link_route route = {.count = (uint8_t)(1 + via_count)};
    for (size_t i = 0; i < via_count; i++)
        route.links[to_server ? 1 + i : via_count - 1 - i] = via[i];
    route.links[to_server ? 0 : via_count] = own;
    return route;
}
