/* Text that holds bytes of a peer or of a file, for the terminal and the log. */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H

/* Replaces all but printable ASCII by '?'. */
void make_printable(char *text);

#endif
