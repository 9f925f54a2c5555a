/* The calls of Portals between a process and the simulator.
 *
 * The operation of a call is in `flags`. The call's arguments are in the words at the end of the process's page, and
 * the outcome replaces the arguments. The result of the call is a code of portals4.h. generated/portals_calls.h has a
 * function for each call. */

#ifndef NICETY_PORTALS_H
#define NICETY_PORTALS_H

#include "nicety_exec.h"
#include "portals4.h"
#include "portals4_spin.h"
#include "process.h"

#define CALL_PORTALS 32
/* The number of words for arguments and results, and the bytes of the text of a refusal, which precedes the words. */
#define NICETY_WORDS 32
#define NICETY_REASON 512

_Static_assert(sizeof(struct nicety_slot) + NICETY_REASON + 8 * NICETY_WORDS <= NICETY_PAGE, "behind the slot");

/* Options of portal table entries that have no effect. */
#define PT_UNUSED (PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE | PTL_PT_MATCH_UNORDERED)

/* The handle of the open interface. */
#define NI_HANDLE (1ull << 60)

/* Checks that a handle is that of the interface. Returns PTL_OK or a code. */
int portals_check(ptl_handle_ni_t ni);
/* Refuses a call for this reason, and returns the code. */
int portals_refuse(int code, const char *reason);
/* Makes a call of some words, and returns its code. Stores the outcome of a call that succeeds. */
int portals_ask(uint32_t op, const void *asked, size_t asked_bytes, void *told, size_t told_bytes);
/* Computes the rank of a process. The rank is PTL_RANK_ANY for any process. Returns PTL_OK or a code. */
int portals_rank(ptl_process_t process, int any, uint64_t *rank);
ptl_process_t portals_process(uint64_t rank);
/* Checks that a program may name a portal table entry. Returns PTL_OK or a code. */
int portals_index(ptl_pt_index_t pt);
/* Checks that the trigger of a triggered operation is a counter. Returns PTL_OK or a code. */
int portals_triggered(ptl_handle_ct_t trigger);
/* Checks that cards have atomic operations on a type. Returns PTL_OK or a code. */
int portals_type(ptl_datatype_t type);
/* Copies the operand of a swap, if its operation has one. Returns PTL_OK or a code. */
struct asked_swap;
int portals_operand(const void *operand, struct asked_swap *asked);
/* Returns whether the open interface compares match bits. */
int portals_matches(void);
/* Returns whether waits are aborted. */
int portals_aborted(void);

#endif
