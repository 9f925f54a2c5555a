/* inttypes.h: conversions of printf for stdint.h's types. */
#ifndef NICETY_INTTYPES_H
#define NICETY_INTTYPES_H

#include <stdint.h>

/* In RV32, the type of 32 bits depends on the compiler. clang reports the type, and gcc uses long. */
#if defined __INT32_FMTd__ || __riscv_xlen == 64
#define NICETY_PRI32
#else
#define NICETY_PRI32 "l"
#endif

/* In RV64, the types of 64 bits and of pointers are long. */
#if __riscv_xlen == 64
#define NICETY_PRI64 "l"
#define NICETY_PRIPTR "l"
#else
#define NICETY_PRI64 "ll"
#define NICETY_PRIPTR
#endif

#define PRId8 "hh" "d"
#define PRIi8 "hh" "i"
#define PRIu8 "hh" "u"
#define PRIo8 "hh" "o"
#define PRIx8 "hh" "x"
#define PRIX8 "hh" "X"

#define PRId16 "h" "d"
#define PRIi16 "h" "i"
#define PRIu16 "h" "u"
#define PRIo16 "h" "o"
#define PRIx16 "h" "x"
#define PRIX16 "h" "X"

#define PRId32 NICETY_PRI32 "d"
#define PRIi32 NICETY_PRI32 "i"
#define PRIu32 NICETY_PRI32 "u"
#define PRIo32 NICETY_PRI32 "o"
#define PRIx32 NICETY_PRI32 "x"
#define PRIX32 NICETY_PRI32 "X"

#define PRId64 NICETY_PRI64 "d"
#define PRIi64 NICETY_PRI64 "i"
#define PRIu64 NICETY_PRI64 "u"
#define PRIo64 NICETY_PRI64 "o"
#define PRIx64 NICETY_PRI64 "x"
#define PRIX64 NICETY_PRI64 "X"

#define PRIdMAX NICETY_PRI64 "d"
#define PRIiMAX NICETY_PRI64 "i"
#define PRIuMAX NICETY_PRI64 "u"
#define PRIoMAX NICETY_PRI64 "o"
#define PRIxMAX NICETY_PRI64 "x"
#define PRIXMAX NICETY_PRI64 "X"

#define PRIdPTR NICETY_PRIPTR "d"
#define PRIiPTR NICETY_PRIPTR "i"
#define PRIuPTR NICETY_PRIPTR "u"
#define PRIoPTR NICETY_PRIPTR "o"
#define PRIxPTR NICETY_PRIPTR "x"
#define PRIXPTR NICETY_PRIPTR "X"

#endif
