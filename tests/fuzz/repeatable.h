/* Repeatable TLS: GnuTLS gets a fixed sequence of random bytes for each input, and a constant time. */
#ifndef FUZZ_REPEATABLE_H
#define FUZZ_REPEATABLE_H

/* Call it at the beginning of each input in harnesses with TLS sessions. */
void fuzz_repeat_tls(void);

#endif
