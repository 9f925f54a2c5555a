/* pingpong.c: a handler for PsPIN that sends a packet back from L1. The addresses of the IP header and the ports of the
 * UDP header are exchanged.
 *
 * The handler has the effect of PsPIN's own ping-pong, with 26 instructions and 28 cycles. It is in assembly, so that
 * it has the instructions and cycles of the calibration run on PsPIN's RTL with any compiler. The exchange and the
 * command take 25 instructions. One instruction of the compiled code there is unknown, and is a nop here. */
#include <handler.h>

__attribute__((naked)) __handler__ void pingpong_ph(handler_args_t *args) {
    __asm__ volatile("lw a4, 0(a0)\n"     /* args->task */
                     "lui a3, 0x1b205\n"  /* the core's registers */
                     "nop\n"
                     "lw a5, 8(a4)\n"     /* pkt_mem */
                     "lbu a4, 0(a5)\n"    /* ip_hdr.version, ip_hdr.ihl */
                     "lhu a2, 2(a5)\n"    /* ip_hdr.length */
                     "lw a1, 12(a5)\n"    /* ip_hdr.source_id */
                     "lw a0, 16(a5)\n"    /* ip_hdr.dest_id */
                     "srli a4, a4, 4\n"
                     "slli a4, a4, 2\n"
                     "add a4, a4, a5\n"   /* udp_hdr */
                     "sw a0, 12(a5)\n"
                     "sw a1, 16(a5)\n"
                     "lhu a1, 0(a4)\n"    /* udp_hdr.src_port */
                     "lhu a0, 2(a4)\n"    /* udp_hdr.dst_port */
                     "li a6, 2\n"         /* a packet to be sent */
                     "sh a0, 0(a4)\n"
                     "sh a1, 2(a4)\n"
                     "sw zero, 0x90(a3)\n"
                     "sw zero, 0x94(a3)\n"
                     "sw a5, 0x98(a3)\n"
                     "sw zero, 0x9c(a3)\n"
                     "sw a2, 0xa0(a3)\n"
                     "sw a6, 0x8c(a3)\n"
                     "lw a5, 0x80(a3)\n"  /* issue; no code waits for the handle */
                     "ret\n");
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    *hh = NULL;
    *ph = pingpong_ph;
    *th = NULL;
    *handler_mem_ptr = NULL;
}
