/* board.h: shared by a program of this suite and its main: a board that is prepared, a region of interest between two
 * triggers, and a result that the program itself checks. */
#ifndef BOARD_H
#define BOARD_H

#include <stdbool.h>
#include <stdint.h>

extern const char *const name;

void initialise_board(void);
void start_trigger(void);
void stop_trigger(void);

/* Defined by each program: input, the work itself, and whether its result is right. */
void initialise(void);
int work(int rounds);
bool verify(int result);

/* Numbers from 0 to 32767, the same on every board. */
void seed(unsigned value);
int next_number(void);

#endif
