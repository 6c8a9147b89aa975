/* Repeatable TLS: GnuTLS gets a fixed sequence of random bytes for each input, and a constant time. */
#pragma once

/* Call it at the beginning of each input in harnesses with TLS sessions. */
void fuzz_repeat_tls(void);
