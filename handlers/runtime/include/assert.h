/* assert.h: a failed assertion is a trap (ebreak), which names its line. When included again, it follows NDEBUG. */
#undef assert
#ifdef NDEBUG
#define assert(holds) ((void)0)
#else
#define assert(holds) ((holds) ? (void)0 : ({ __asm__ volatile("ebreak"); __builtin_unreachable(); }))
#endif

#ifndef static_assert
#define static_assert _Static_assert
#endif
