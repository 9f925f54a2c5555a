/* spin_host.h: requests of an FPsPIN handler to the host. Each core has a page of the message's host memory. The
 * handler writes the request's bytes, and then a flag at the beginning of the page. The handler then waits until the
 * host has written the answer with the same number to __host_data.flag of this core. */
#ifndef FPSPIN_SPIN_HOST_H
#define FPSPIN_SPIN_HOST_H

#include <handler.h>

typedef struct {
    union {
        struct {
            uint8_t dma_id; /* number of the request; it increases by one with each request of a core */
            uint32_t len;   /* number of bytes, in both directions */
            uint16_t hpu_id;
        } __attribute__((packed));
        uint64_t data;
    };
} fpspin_flag_t;
_Static_assert(sizeof(fpspin_flag_t) == sizeof(uint64_t), "a flag is a command's 8 bytes");

#define HPU_ID(args) (args->hpu_gid)
#define HOST_ADDR(args) ((uint64_t)args->task->host_mem_high << 32 | args->task->host_mem_low)
#define HOST_ADDR_HPU(args) (HOST_ADDR(args) + HPU_ID(args) * PAGE_SIZE)
#define HOST_PLD_ADDR(args) (HOST_ADDR_HPU(args) + DMA_ALIGN)

#define DMA_BUS_WIDTH 512 /* bits */
#define DMA_ALIGN (DMA_BUS_WIDTH / 8)

/* The numbers of the requests of the cluster's cores. FPsPIN has a copy per cluster, in the cluster's L1. Here the
 * numbers of all clusters are in L2. */
extern volatile uint8_t pspin_dma_idx[CORE_COUNT];
#define dma_idx (pspin_dma_idx + user_cluster_id() * NB_CORES)

/* Returns whether there is host memory with a page per core. */
PSPIN_INLINE bool fpspin_check_host_mem(handler_args_t *args) {
    return HOST_ADDR(args) && args->task->host_mem_size >= CORE_COUNT * PAGE_SIZE;
}

PSPIN_INLINE fpspin_flag_t fpspin_host_req(handler_args_t *args, uint32_t len) {
    spin_cmd_t command;
    fpspin_flag_t asked = {.data = 0}, answer;
    asked.dma_id = ++dma_idx[args->hpu_id];
    asked.len = len;
    asked.hpu_id = (uint16_t)HPU_ID(args);
    spin_write_to_host(HOST_ADDR_HPU(args), asked.data, &command);
    spin_cmd_wait(command);
    do {
        answer.data = __host_data.flag[HPU_ID(args)];
    } while (answer.dma_id != asked.dma_id);
    if (answer.hpu_id != HPU_ID(args)) printf("HPU ID mismatch in response flag!  Got: %u\n", answer.hpu_id);
    return answer;
}

#endif
