/* nicety_exec.h: support of `nicety exec` for programs without a launcher: their rank, and a barrier. */

#ifndef NICETY_EXEC_H
#define NICETY_EXEC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The rank of this process, and the number of ranks; 0 and 1 outside `nicety exec`. */
uint32_t nicety_exec_rank(void);
uint32_t nicety_exec_ranks(void);

/* Waits until all ranks have called it, over a network of the launcher's own, which costs the cards nothing. Returns PTL_NO_INIT before
 * PtlInit. */
int nicety_exec_barrier(void);

/* Computes on the CPU for `ns` nanoseconds of virtual time. Returns PTL_NO_INIT before PtlInit. */
int nicety_exec_compute(uint64_t ns);

/* Returns the reason for the last refused call of Portals, in words; empty if there was none. */
const char *nicety_reason(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
