// Source of program.elf, which tests/programs.rs runs. After a change, build it again in this folder:
//   python -m ziglang cc -target riscv32-freestanding-none -mcpu=generic_rv32+m+a+c -O2 -gdwarf-4 \
//     -fomit-frame-pointer -ffreestanding -fno-stack-protector -fdebug-prefix-map=$PWD=. -nostdlib -static \
//     -fno-sanitize=all program.c -o program.elf (program-64.elf: riscv64)

typedef unsigned uint32_t;

static const char greeting[] = "hello from a bare program\n";
static uint32_t primes[64];
static uint32_t calls = 40;

static long system_call(long number, long a, long b, long c) {
    register long a0 __asm__("a0") = a;
    register long a1 __asm__("a1") = b;
    register long a2 __asm__("a2") = c;
    register long a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
    return a0;
}

// The 64th prime is 311.
__attribute__((noinline)) static uint32_t sieve(void) {
    uint32_t found = 0;
    for (uint32_t candidate = 2; found < 64; candidate++) {
        uint32_t i = 0;
        while (i < found && candidate % primes[i] != 0) i++;
        if (i == found) primes[found++] = candidate;
    }
    return primes[63];
}

void _start(void) {
    calls += 2;
    system_call(64, 1, (long)greeting, sizeof greeting - 1);
    system_call(93, sieve() == 311 ? calls : 1, 0, 0);
    __builtin_unreachable();
}

static inline __attribute__((always_inline)) void poke(volatile uint32_t *where, uint32_t value) {
    *where = value; // inlined into payload_handler
}

// Adds up words, as a payload handler does; a null destination is a trap.
uint32_t payload_handler(const uint32_t *words, uint32_t count, volatile uint32_t *where) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += words[i];
    poke(where, sum);
    return sum;
}

uint32_t header_handler(uint32_t depth) {
    volatile uint32_t frame[32];
    frame[0] = depth;
    if (depth == 0) return 0;
    return header_handler(depth - 1) + frame[0]; // a frame of 128 bytes a level
}

uint32_t completion_handler(volatile uint32_t *flag) {
    while (*flag == 0) {}
    return __atomic_fetch_add(flag, 1, __ATOMIC_SEQ_CST);
}

uint32_t write_code(void) {
    *(volatile uint32_t *)payload_handler = 0;
    return 0;
}

int unknown_call(void) {
    return system_call(1234, 0, 0, 0);
}

int bad_pointer(void) {
    return system_call(64, 1, 16, 4);
}
