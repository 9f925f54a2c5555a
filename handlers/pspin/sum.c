/* sum.c: a handler for PsPIN that adds the 32-bit words of a packet to a word of the cluster's scratchpad. These are
 * the words after the IP and UDP headers. With COMPLETION defined, there is a completion handler, which writes a word
 * to the beginning of host memory. The completion handler has the cycles of PsPIN's own aggregation. PsPIN's handler
 * adds up the words of the task's list of scratchpads, and not the words in the scratchpads.
 *
 * The handler is in assembly, so that it has the instructions and cycles of the calibration run on PsPIN's RTL with any
 * compiler. It takes 4 instructions and 6 cycles per word, and 2 cycles fewer for the last word. Besides the words, it
 * takes 22 instructions and 25 cycles. Seven of these instructions are unknown, and are nops here. */
#include <handler.h>

__attribute__((naked)) __handler__ void sum_ph(handler_args_t *args) {
    __asm__ volatile("lw a5, 0(a0)\n"     /* args->task */
                     "lw a4, 8(a5)\n"     /* pkt_mem */
                     "lw a3, 12(a5)\n"    /* pkt_mem_size */
                     "lw a2, 8(a0)\n"     /* cluster_id */
                     "slli a2, a2, 2\n"
                     "add a2, a2, a5\n"
                     "lw a2, 16(a2)\n"    /* scratchpad[cluster_id] */
                     "addi a4, a4, 28\n"  /* behind the headers */
                     "addi a3, a3, -28\n"
                     "andi a3, a3, -4\n"
                     "li a1, 0\n"
                     "nop\n"
                     "nop\n"
                     "nop\n"
                     "nop\n"
                     "nop\n"
                     "nop\n"
                     "nop\n"
                     "blez a3, 2f\n"
                     "add a3, a3, a4\n"
                     "1: lw a5, 0(a4)\n"
                     "addi a4, a4, 4\n"
                     "add a1, a1, a5\n"
                     "bne a4, a3, 1b\n"
                     "2: amoadd.w zero, a1, (a2)\n"
                     "ret\n");
}

#ifdef COMPLETION
__handler__ void sum_th(handler_args_t *args) {
    task_t *task = args->task;
    uint32_t *words = (uint32_t *)task->scratchpad;
    uint32_t result = 0;
    for (int cluster = 0; cluster < NUM_CLUSTERS; cluster++) result += words[cluster];
    spin_cmd_t written;
    spin_write_to_host((uint64_t)task->host_mem_high << 32 | task->host_mem_low, result, &written);
}
#else
#define sum_th NULL
#endif

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = sum_ph;
    *th = sum_th;
    *handler_mem_ptr = NULL;
}
