/* nicety_exec.h: what `nicety exec` gives a program that has no launcher: who it is, and a barrier. */

#ifndef NICETY_EXEC_H
#define NICETY_EXEC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The rank of this process, and how many there are; 0 and 1 outside `nicety exec`. */
uint32_t nicety_exec_rank(void);
uint32_t nicety_exec_ranks(void);

/* Waits until all ranks have called it, over a network of the launcher's own, which costs the cards nothing. PTL_NO_INIT
 * before PtlInit. */
int nicety_exec_barrier(void);

/* Lets the CPU compute for so many nanoseconds of virtual time. PTL_NO_INIT before PtlInit. */
int nicety_exec_compute(uint64_t ns);

/* Why the last call of Portals was refused, in words; empty where none was. */
const char *nicety_reason(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
