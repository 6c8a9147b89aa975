/* For tests of links: CHANGE(link, now, .has_delay = true, .delay_us = 7000) */
#pragma once

#include "emulator/link/link.h"

#define CHANGE(link, now, ...) link_change_apply(link, &(link_change){__VA_ARGS__}, now)
