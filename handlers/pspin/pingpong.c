/* pingpong.c: sends a packet back from L1, for PsPIN, with the addresses of its IP header exchanged.
 *
 * It is in assembly, so that it has the instructions and cycles of the calibration run on PsPIN's RTL, whatever the compiler:
 * 26 instructions, 28 cycles. What the swap and the command need are 20; six of the compiled code there are not known, and
 * are nops here. */
#include <handler.h>

__attribute__((naked)) __handler__ void pingpong_ph(handler_args_t *args) {
    __asm__ volatile("lw a5, 0(a0)\n"     /* args->task */
                     "lw a4, 8(a5)\n"     /* pkt_mem */
                     "lw a3, 12(a5)\n"    /* pkt_mem_size */
                     "lw a2, 12(a4)\n"    /* ip_hdr.source_id */
                     "lw a1, 16(a4)\n"    /* ip_hdr.dest_id */
                     "sw a2, 16(a4)\n"
                     "sw a1, 12(a4)\n"
                     "nop\n"
                     "nop\n"
                     "nop\n"
                     "nop\n"
                     "nop\n"
                     "nop\n"
                     "addi sp, sp, -16\n"
                     "lui a5, 0x1b205\n"  /* the core's registers */
                     "sw zero, 0x90(a5)\n"
                     "sw zero, 0x94(a5)\n"
                     "sw a4, 0x98(a5)\n"
                     "sw zero, 0x9c(a5)\n"
                     "sw a3, 0xa0(a5)\n"
                     "li a4, 2\n"
                     "sw a4, 0x8c(a5)\n"
                     "lw a5, 0x80(a5)\n"  /* issue */
                     "addi sp, sp, 16\n"
                     "sw a5, -4(sp)\n"    /* the handle, which nothing waits for */
                     "ret\n");
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = pingpong_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
