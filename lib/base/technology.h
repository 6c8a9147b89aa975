/* The radio technologies of paths, by name. */
#pragma once

#include <stdbool.h>

#include "xlink/xlink.h"

#define TECHNOLOGY_LIST "5g-sa, 5g-nsa, wifi, lte" /* for help and messages */

/* In the order of xl_technology, by which the primary path is chosen (paper section 5.3); ends with NULL. */
extern const char *const technology_names[];

/* "unknown" for XL_TECH_UNKNOWN. */
const char *technology_name(xl_technology);
/* False: not one of them. */
bool technology_parse(const char *text, xl_technology *out);
