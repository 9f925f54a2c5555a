/* handler.h: what a handler written for PsPIN is given, and how a program names its handlers.
 *
 *     __handler__ void packet(handler_args_t *args);
 *
 *     void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
 *         *hh = NULL; *ph = packet; *th = NULL;
 *         *handler_mem_ptr = NULL;
 *     }
 *
 * The header handler hh runs on the first packet of a message before any other handler of it, the packet handler ph on every
 * packet, and the tail handler th after all others. *handler_mem_ptr names a variable of the program that task->handler_mem
 * points to; with NULL that is the state which the host has attached. These headers have the names and the signatures
 * of PsPIN's; nicety's own interface is nicety.h. */
#ifndef PSPIN_HANDLER_H
#define PSPIN_HANDLER_H

#include "spin_conf.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define __handler__ __attribute__((used, noinline))

/* The registers of a task decode whole words only, so they are aligned, packed as they are. */
typedef struct {
    void *handler_mem;           /* the program's handler memory, in L2 */
    size_t handler_mem_size;
    void *pkt_mem;               /* the packet, in L1 of the core's cluster */
    size_t pkt_mem_size;
    void *scratchpad[NUM_CLUSTERS]; /* handlers' part of each cluster's L1 */
    size_t scratchpad_size[NUM_CLUSTERS];
    uint32_t host_mem_high;      /* host memory of the message: where it begins, and its bytes */
    uint32_t host_mem_low;
    size_t host_mem_size;
    void *l2_pkt_mem;            /* the packet, in L2 */
    uint32_t home_cluster_id;    /* of its message */
    uint32_t flow_id;            /* of its message */
} __attribute__((packed, aligned(4))) task_t;

typedef struct {
    task_t *task;
    uint32_t hpu_gid;            /* the core's number on the card */
    uint32_t cluster_id;
    uint32_t hpu_id;             /* the core's number in its cluster */
} handler_args_t;

typedef void (*handler_fn)(handler_args_t *);

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr);

/* PsPIN's handler.h brings all of these, and handlers that were written for it include no other. */
#include "pspin.h"
#include "spin_dma.h"
#include "util.h"

#endif
