/* portals4_spin.h: sPIN's addition to Portals 4 (Hoefler et al., SC17): match entries with handlers, which run on the card.
 *
 * Handlers are a program of their own, of C with nicety.h, which `nicety cc` compiles to an ELF file. The host attaches
 * them with their state, which is in HPU memory, and appends match entries that have them. The paper names PtlHPUAllocMem,
 * PtlHPUFreeMem and a match entry with handlers; their arguments here, and the other functions, are nicety's.
 *
 * But for PtlHPUWrite, PtlHPURead and PtlMEAppendHandlers these are set-up, and take no virtual time. */

#ifndef PORTALS4_SPIN_H
#define PORTALS4_SPIN_H

#include <portals4.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Of a match entry, used once and without a local offset: a put that it finds among the unexpected headers is delivered to it as
 * if it came now, with its handlers and its PTL_EVENT_PUT. The card does it; not of Portals 4. */
#define PTL_ME_REDELIVER (1u << 16)

typedef ptl_handle_any_t ptl_handle_hpu_mem_t;
typedef ptl_handle_any_t ptl_handle_handlers_t;

/* Handlers with their state and memory. A field that is zero or NULL is not used. */
typedef struct {
    const char *program;              /* the ELF file of `nicety cc` */
    const char *header_handler;       /* names of functions in it, if they are not header_handler, */
    const char *payload_handler;      /* payload_handler */
    const char *completion_handler;   /* and completion_handler */
    ptl_handle_hpu_mem_t hpu_memory;  /* what `state` points to: memory that others may have as well, or */
    const void *initial_state;        /* memory of its own that begins as these bytes */
    ptl_size_t initial_state_length;
    void *handler_memory;             /* PTL_HANDLER_HOST_MEM: host memory that only handlers use */
    ptl_size_t handler_memory_length;
} ptl_handlers_t;

/* HPU memory of so many zero bytes. */
int PtlHPUAllocMem(ptl_handle_ni_t ni_handle, ptl_size_t length, ptl_handle_hpu_mem_t *hpu_memory);
/* PTL_IN_USE while handlers have it. */
int PtlHPUFreeMem(ptl_handle_hpu_mem_t hpu_memory);
/* Posts a write; the bytes are there before anything that is posted afterwards. */
int PtlHPUWrite(ptl_handle_hpu_mem_t hpu_memory, ptl_size_t offset, const void *bytes, ptl_size_t length);
/* Reads the bytes that are there when the request has crossed the bus. */
int PtlHPURead(ptl_handle_hpu_mem_t hpu_memory, ptl_size_t offset, void *bytes, ptl_size_t length);

/* Puts handlers on the card, for any number of match entries, which then share the state. */
int PtlHandlersAttach(ptl_handle_ni_t ni_handle, const ptl_handlers_t *handlers, ptl_handle_handlers_t *attached);
/* PTL_IN_USE while a match entry has them. */
int PtlHandlersDetach(ptl_handle_handlers_t attached);

/* PtlMEAppend of an entry whose messages the handlers handle. */
int PtlMEAppendHandlers(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
                        ptl_handle_handlers_t handlers, ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
