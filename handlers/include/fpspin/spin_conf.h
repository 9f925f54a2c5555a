/* spin_conf.h: FPsPIN's card has two clusters. */
#ifndef NB_CLUSTERS
#define NB_CLUSTERS 2
#endif
#include_next <spin_conf.h>
