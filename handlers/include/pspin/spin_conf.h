/* spin_conf.h: the numbers of clusters and cores of the card. */
#ifndef PSPIN_SPIN_CONF_H
#define PSPIN_SPIN_CONF_H

#ifndef NB_CLUSTERS
#define NB_CLUSTERS 4
#endif
#ifndef NB_CORES
#define NB_CORES 8
#endif
#define CORE_COUNT (NB_CORES * NB_CLUSTERS)
#define NUM_CLUSTER_HPUS (NB_CORES)

/* Default sizes of PsPIN's own programs. The sizes of the card are in its spec. */
#ifndef PKT_SIZE
#define PKT_SIZE 1024
#endif
#define PacketQueueLength (4 * (1 << 20) - 3 * 4)

/* Further names, from nicety. They are not macros, because handlers of PsPIN define a macro NUM_CLUSTERS themselves. */
#ifndef NUM_CLUSTERS
enum { NUM_CLUSTERS = NB_CLUSTERS };
#endif
#ifndef NUM_HPUS
enum { NUM_HPUS = CORE_COUNT };
#endif
#ifndef NUM_HPUS_PER_CLUSTER
enum { NUM_HPUS_PER_CLUSTER = NB_CORES };
#endif

#endif
