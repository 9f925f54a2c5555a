/* nicety_exec.h: functions of `nicety exec` for programs without a launcher, such as their rank and a barrier. */

#ifndef NICETY_EXEC_H
#define NICETY_EXEC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Return the rank of this process, and the number of ranks. Outside `nicety exec` these are 0 and 1. */
uint32_t nicety_exec_rank(void);
uint32_t nicety_exec_ranks(void);

/* Waits until all ranks have called this function. The barrier uses a network of the launcher's own, and causes no work
 * of the cards. Returns PTL_NO_INIT before PtlInit. */
int nicety_exec_barrier(void);

/* Computes on the CPU for `ns` nanoseconds of virtual time. Returns PTL_NO_INIT before PtlInit. */
int nicety_exec_compute(uint64_t ns);

/* Returns the reason for the last refused call of Portals as a text. The text is empty if no call was refused. */
const char *nicety_reason(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
