/* File descriptors: how many a process may have, one in reserve, and the end of one. */
#ifndef BASE_DESCRIPTORS_H
#define BASE_DESCRIPTORS_H

/* Raises the process's limit to what it may raise it to. */
void descriptors_raise_limit(void);

/* A descriptor that does nothing but keep its place, so that there is one to give up where none is left. -1: none. */
int descriptors_reserve(void);
/* Closes the descriptor if it is one, and makes it -1, which is none. */
void descriptor_close(int *fd);

#endif
