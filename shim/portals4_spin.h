/* portals4_spin.h: sPIN's addition to Portals 4 (Hoefler et al., SC17): match entries with handlers, which run on the card.
 *
 * Handlers are a separate program in C with nicety.h, which `nicety cc` compiles to an ELF file. The host attaches them with their state
 * in HPU memory, and appends match entries with them. The paper names PtlHPUAllocMem, PtlHPUFreeMem and a match entry with handlers.
 * Their arguments here, and the other functions, are nicety's.
 *
 * All functions except PtlHPUWrite, PtlHPURead and PtlMEAppendHandlers are set-up, and take no virtual time. */

#ifndef PORTALS4_SPIN_H
#define PORTALS4_SPIN_H

#include <portals4.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Option of a use-once match entry without a local offset. A put that it finds among the unexpected headers is redelivered to it, with
 * its handlers and its PTL_EVENT_PUT. The card does that; it is not part of Portals 4. */
#define PTL_ME_REDELIVER (1u << 16)

typedef ptl_handle_any_t ptl_handle_hpu_mem_t;
typedef ptl_handle_any_t ptl_handle_handlers_t;

/* Handlers with their state and memory. A field that is zero or NULL is not used. */
typedef struct {
    const char *program;              /* The ELF file of `nicety cc`. */
    const char *header_handler;       /* A function in it; NULL for header_handler. */
    const char *payload_handler;      /* The same for payload_handler. */
    const char *completion_handler;   /* The same for completion_handler. */
    ptl_handle_hpu_mem_t hpu_memory;  /* The memory of `state`, possibly shared with others; */
    const void *initial_state;        /* or its own memory with these initial bytes. */
    ptl_size_t initial_state_length;
    void *handler_memory;             /* PTL_HANDLER_HOST_MEM: host memory that only handlers use. */
    ptl_size_t handler_memory_length;
} ptl_handlers_t;

/* Allocates `length` zero bytes of HPU memory. */
int PtlHPUAllocMem(ptl_handle_ni_t ni_handle, ptl_size_t length, ptl_handle_hpu_mem_t *hpu_memory);
/* Returns PTL_IN_USE while handlers use it. */
int PtlHPUFreeMem(ptl_handle_hpu_mem_t hpu_memory);
/* Posts a write; its bytes arrive before any operation that is posted later. */
int PtlHPUWrite(ptl_handle_hpu_mem_t hpu_memory, ptl_size_t offset, const void *bytes, ptl_size_t length);
/* Reads the bytes at the time when the request has crossed the bus. */
int PtlHPURead(ptl_handle_hpu_mem_t hpu_memory, ptl_size_t offset, void *bytes, ptl_size_t length);

/* Puts handlers on the card, for any number of match entries, which then share the state. */
int PtlHandlersAttach(ptl_handle_ni_t ni_handle, const ptl_handlers_t *handlers, ptl_handle_handlers_t *attached);
/* Returns PTL_IN_USE while a match entry has them. */
int PtlHandlersDetach(ptl_handle_handlers_t attached);

/* PtlMEAppend of an entry with handlers for its messages. */
int PtlMEAppendHandlers(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
                        ptl_handle_handlers_t handlers, ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
