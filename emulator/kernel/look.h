/* Looks from outside into a running time-travel kernel: its virtual time, and which program inside runs. */
#ifndef EMULATOR_KERNEL_LOOK_H
#define EMULATOR_KERNEL_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The address of a symbol of 8 bytes in an x86-64 program with a symbol table; 0: it has none of that name, or is no
 * such program. */
uint64_t vk_symbol_address(const char *program, const char *name);
/* Nanoseconds since the kernel of that process started; `address`: of its time_travel_time. False: not to be read. */
bool vk_virtual_time(pid_t kernel, uint64_t address, uint64_t *ns);

#define VK_PROGRAM_SIZE 256

/* The program inside that uses the processor: of the kernel's children on the host the one that got most of it within a
 * tenth of a second; a second at most passes until one got any. "a forked process": it has started no program since its
 * fork, and its memory does not show the name. False: none got any. */
bool vk_running_program(pid_t kernel, char name[VK_PROGRAM_SIZE]);

#endif
