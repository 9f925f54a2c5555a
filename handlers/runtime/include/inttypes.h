/* inttypes.h: conversions of printf for stdint.h's types. */
#ifndef NICETY_INTTYPES_H
#define NICETY_INTTYPES_H

#include <stdint.h>

/* The type of 32 bits depends on the compiler: clang reports it, and gcc takes long. */
#ifdef __INT32_FMTd__
#define NICETY_PRI32
#else
#define NICETY_PRI32 "l"
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

#define PRId64 "ll" "d"
#define PRIi64 "ll" "i"
#define PRIu64 "ll" "u"
#define PRIo64 "ll" "o"
#define PRIx64 "ll" "x"
#define PRIX64 "ll" "X"

#define PRIdMAX "ll" "d"
#define PRIiMAX "ll" "i"
#define PRIuMAX "ll" "u"
#define PRIoMAX "ll" "o"
#define PRIxMAX "ll" "x"
#define PRIXMAX "ll" "X"

#define PRIdPTR "d"
#define PRIiPTR "i"
#define PRIuPTR "u"
#define PRIoPTR "o"
#define PRIxPTR "x"
#define PRIXPTR "X"

#endif
