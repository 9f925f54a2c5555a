/* stdlib.h: the functions that need neither a heap nor files. A card's memory is allocated by its host. */
#ifndef NICETY_STDLIB_H
#define NICETY_STDLIB_H

#include <stddef.h>

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 0x7fffffff

typedef struct {
    int quot, rem;
} div_t;
typedef struct {
    long quot, rem;
} ldiv_t;
typedef struct {
    long long quot, rem;
} lldiv_t;

int abs(int value);
long labs(long value);
long long llabs(long long value);
div_t div(int dividend, int divisor);
ldiv_t ldiv(long dividend, long divisor);
lldiv_t lldiv(long long dividend, long long divisor);

/* A number out of range becomes the nearest number that fits, and errno becomes ERANGE. A text without a number gives
 * 0, and errno becomes EINVAL. */
int atoi(const char *text);
long atol(const char *text);
long long atoll(const char *text);
long strtol(const char *restrict text, char **restrict end, int base);
unsigned long strtoul(const char *restrict text, char **restrict end, int base);
long long strtoll(const char *restrict text, char **restrict end, int base);
unsigned long long strtoull(const char *restrict text, char **restrict end, int base);

/* All users of the program's data share the state of rand. */
int rand(void);
void srand(unsigned seed);

/* Sorts in place, with of the order of n log n comparisons and a constant amount of stack. Equal elements may change
 * places. */
void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *));
void *bsearch(const void *key, const void *base, size_t count, size_t size, int (*compare)(const void *, const void *));

/* There is no heap. These functions are for programs that define them, for example over their own array. */
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *old, size_t size);
void free(void *old);

/* Ends a bare program with this exit code. A handler returns instead. */
_Noreturn void exit(int code);
/* Ends the program by a trap. */
_Noreturn void abort(void);

#endif
