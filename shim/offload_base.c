/* Functions for the library that offloads MPI's collective operations. */

#include "offload_base.h"

#include "generated/portals_calls.h"

/* The offset of the counts in the page, between the slot and the texts and words of calls. crates/exec/src/offload.rs
 * has the same offset. */
#define NICETY_OFFLOAD_AT 3008

_Static_assert(sizeof(struct nicety_slot) <= NICETY_OFFLOAD_AT, "behind the slot");
_Static_assert(NICETY_OFFLOAD_AT + sizeof(struct nicety_offload) + NICETY_REASON + 8 * NICETY_WORDS <= NICETY_PAGE,
               "before the reason");

struct nicety_offload *nicety_offload_counts(void) {
    return nicety_slot ? (struct nicety_offload *)((char *)nicety_slot + NICETY_OFFLOAD_AT) : NULL;
}

uint64_t nicety_offload_now_ps(void) {
    return nicety_now_ps();
}

int nicety_offload_await(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event) {
    struct told_count told;
    int code = ask_ct_await(&(struct asked_ct_await){.ct = ct_handle, .test = test}, &told);
    if (!code)
        *event = (ptl_ct_event_t){.success = told.success, .failure = told.failure};
    return code;
}

int nicety_offload_copy(uint64_t bytes) {
    return ask_copy(&(struct asked_copy){.bytes = bytes});
}
