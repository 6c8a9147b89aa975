/* Text from a peer or a file, made safe for the terminal and the log. */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H

/* Replaces every byte that is not printable ASCII by '?'. */
void make_printable(char *text);

#endif
