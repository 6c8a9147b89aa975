#include "base/technology.h"

#include <string.h>

const char *const technology_names[] = {"5g-sa", "5g-nsa", "wifi", "lte", NULL};

const char *technology_name(xl_technology technology) {
    return technology < XL_TECH_UNKNOWN ? technology_names[technology] : "unknown";
}

bool technology_parse(const char *text, xl_technology *out) {
    for (size_t i = 0; technology_names[i]; i++) {
        if (strcmp(text, technology_names[i]) == 0) {
            *out = (xl_technology)i;
            return true;
        }
    }
    return false;
}
