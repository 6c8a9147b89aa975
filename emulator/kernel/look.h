/* Reads from outside a running time-travel kernel: its virtual time, and which program inside runs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns the address of a symbol in an x86-64 program with a symbol table; 0: there is no such symbol or program. */
uint64_t vk_symbol_address(const char *program, const char *name);
/* Reads the time since that kernel started, in ns. address: of its time_travel_time. False: unreadable. */
bool vk_virtual_time(pid_t kernel, uint64_t address, uint64_t *ns);

#define VK_PROGRAM_SIZE 256

/* Finds the program inside that uses the processor: the one of the kernel's children on the host with the most
 * processor time. Waits 0.1 s to 1 s for one that uses any. "a forked process": it has not started a program since its
 * fork, and its memory does not show the name. False: none used any. */
bool vk_running_program(pid_t kernel, char name[VK_PROGRAM_SIZE]);
