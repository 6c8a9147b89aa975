/* File descriptors: how many a process may have, and one in reserve. */
#ifndef BASE_DESCRIPTORS_H
#define BASE_DESCRIPTORS_H

/* Raises the process's limit to what it may raise it to. */
void descriptors_raise_limit(void);

/* A descriptor that does nothing but keep its place, so that there is one to give up where none is left. -1: none. */
int descriptors_reserve(void);

#endif
