/* assert.h: a failed assertion is a trap (ebreak), and the report of the trap names the line. When this file is
 * included again, it follows NDEBUG. */
#undef assert
#ifdef NDEBUG
#define assert(holds) ((void)0)
#else
#define assert(holds) ((holds) ? (void)0 : ({ __asm__ volatile("ebreak"); __builtin_unreachable(); }))
#endif

#ifndef static_assert
#define static_assert _Static_assert
#endif
