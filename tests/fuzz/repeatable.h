/* TLS that does the same each time: while an input runs GnuTLS has random bytes that follow from their number alone,
 * and time stands still. */
#ifndef FUZZ_REPEATABLE_H
#define FUZZ_REPEATABLE_H

/* At the beginning of each input of a harness that has TLS sessions. */
void fuzz_repeat_tls(void);

#endif
