/* Text from a peer or a file, made safe for the terminal and the log. */
#pragma once

/* Replaces every byte that is not printable ASCII by '?'. */
void make_printable(char *text);
