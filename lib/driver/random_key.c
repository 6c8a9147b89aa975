#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "xlink/udp.h"

int xl_udp_random_key(uint8_t key[XL_RANDOM_KEY_BYTES]) {
    size_t have = 0;
    while (have < XL_RANDOM_KEY_BYTES) {
        ssize_t n = getrandom(key + have, XL_RANDOM_KEY_BYTES - have, 0);
        if (n < 0 && errno != EINTR) {
            int error = -errno;
            memset(key, 0, XL_RANDOM_KEY_BYTES);
            return error;
        }
        have += n > 0 ? (size_t)n : 0;
    }
    return 0;
}
