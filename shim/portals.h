/* The calls of Portals between a process and the simulator: numbers, and words at the end of the process's page.
 *
 * A call's operation is in `flags`. Its arguments and its results are in the words, and its result is a code of portals4.h.
 * crates/exec/src/portals has the same layout. */

#ifndef NICETY_PORTALS_H
#define NICETY_PORTALS_H

#include "nicety_exec.h"
#include "portals4.h"
#include "portals4_spin.h"
#include "process.h"

#define CALL_PORTALS 32
/* Words for arguments and results, and before them the text of a refusal. */
#define NICETY_WORDS 32
#define NICETY_REASON 512

_Static_assert(sizeof(struct nicety_slot) + NICETY_REASON + 8 * NICETY_WORDS <= NICETY_PAGE, "behind the slot");

enum {
    OP_NI_INIT = 1,
    OP_NI_FINI,
    OP_NI_STATUS,
    OP_UID,
    OP_PT_ALLOC,
    OP_PT_FREE,
    OP_PT_ENABLE,
    OP_MD_BIND,
    OP_MD_RELEASE,
    OP_ME_APPEND,
    OP_ME_UNLINK,
    OP_ME_SEARCH,
    OP_EQ_ALLOC,
    OP_EQ_FREE,
    OP_EQ_GET,
    OP_EQ_POLL,
    OP_CT_ALLOC,
    OP_CT_FREE,
    OP_CT_CANCEL,
    OP_CT_GET,
    OP_CT_WAIT,
    OP_CT_POLL,
    OP_CT_SET,
    OP_CT_INC,
    OP_PUT,
    OP_GET,
    OP_ATOMIC,
    OP_FETCH_ATOMIC,
    OP_SWAP,
    OP_ATOMIC_SYNC,
    OP_HPU_ALLOC,
    OP_HPU_FREE,
    OP_HPU_WRITE,
    OP_HPU_READ,
    OP_ATTACH,
    OP_DETACH,
    OP_BARRIER,
    OP_COMPUTE,
    OP_FINI,
    OP_CT_AWAIT,
    OP_COPY,
};

/* The interface that is open. */
#define NI_HANDLE (1ull << 60)

/* Checks that a handle is the interface's. Returns PTL_OK or a code. */
int portals_check(ptl_handle_ni_t ni);
/* Refuses a call for a reason, and returns the code. */
int portals_refuse(int code, const char *reason);
/* Makes a call and returns its code. `words` has `count` arguments, and then the results. */
int portals_ask(uint32_t op, uint64_t *words, unsigned count);
/* Computes the rank of a process, PTL_RANK_ANY for any. Returns PTL_OK or a code. */
int portals_rank(ptl_process_t process, int any, uint64_t *rank);
ptl_process_t portals_process(uint64_t rank);
/* Checks that a program may name a portal table entry. Returns PTL_OK or a code. */
int portals_index(ptl_pt_index_t pt);
/* Returns whether match bits count. */
int portals_matches(void);
/* Returns whether waits are given up. */
int portals_aborted(void);

#endif
