/* portals4_spin.h: sPIN's addition to Portals 4 (Hoefler et al., SC17). A match entry has handlers, which run on the
 * card.
 *
 * Handlers are a separate program in C with nicety.h, which `nicety cc` compiles to an ELF file. The host attaches the
 * handlers with their state in HPU memory, and appends match entries with these handlers. The paper names
 * PtlHPUAllocMem, PtlHPUFreeMem and a match entry with handlers. The arguments of these functions, and the other
 * functions, are nicety's.
 *
 * All functions except PtlHPUWrite, PtlHPURead and PtlMEAppendHandlers are set-up, and take no virtual time. */

#ifndef PORTALS4_SPIN_H
#define PORTALS4_SPIN_H

#include <portals4.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Option of a use-once match entry without a local offset. If a put among the unexpected headers matches the entry, the
 * card redelivers the put to the entry. The entry's handlers then run, and the entry has a PTL_EVENT_PUT. This option
 * is not part of Portals 4. */
#define PTL_ME_REDELIVER (1u << 16)

typedef ptl_handle_any_t ptl_handle_hpu_mem_t;
typedef ptl_handle_any_t ptl_handle_handlers_t;

/* Handlers with their state and memory. The card does not use a field that is zero or NULL. */
typedef struct {
    const char *program;              /* The ELF file of `nicety cc`. */
    const char *header_handler;       /* The name of a function in the file; NULL for header_handler. */
    const char *payload_handler;      /* The name of a function; NULL for payload_handler. */
    const char *completion_handler;   /* The name of a function; NULL for completion_handler. */
    ptl_handle_hpu_mem_t hpu_memory;  /* The memory of the state, possibly shared with others, */
    const void *initial_state;        /* or a memory of its own with these initial bytes. */
    ptl_size_t initial_state_length;
    void *handler_memory;             /* PTL_HANDLER_HOST_MEM: host memory that only handlers use. */
    ptl_size_t handler_memory_length;
} ptl_handlers_t;

/* Allocates `length` zero bytes of HPU memory. */
int PtlHPUAllocMem(ptl_handle_ni_t ni_handle, ptl_size_t length, ptl_handle_hpu_mem_t *hpu_memory);
/* Returns PTL_IN_USE while handlers use the memory. */
int PtlHPUFreeMem(ptl_handle_hpu_mem_t hpu_memory);
/* Posts a write. The bytes arrive before any operation that is posted later. */
int PtlHPUWrite(ptl_handle_hpu_mem_t hpu_memory, ptl_size_t offset, const void *bytes, ptl_size_t length);
/* Reads the bytes at the time when the request has crossed the bus. */
int PtlHPURead(ptl_handle_hpu_mem_t hpu_memory, ptl_size_t offset, void *bytes, ptl_size_t length);

/* Puts handlers on the card, for any number of match entries. The match entries share the state. */
int PtlHandlersAttach(ptl_handle_ni_t ni_handle, const ptl_handlers_t *handlers, ptl_handle_handlers_t *attached);
/* Returns PTL_IN_USE while a match entry has the handlers. */
int PtlHandlersDetach(ptl_handle_handlers_t attached);

/* Appends an entry like PtlMEAppend, with handlers for the entry's messages. */
int PtlMEAppendHandlers(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
                        ptl_handle_handlers_t handlers, ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
