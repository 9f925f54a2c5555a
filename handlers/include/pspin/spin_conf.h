/* spin_conf.h: the shape of the card: clusters and cores. */
#ifndef PSPIN_SPIN_CONF_H
#define PSPIN_SPIN_CONF_H

/* The names of PsPIN's runtime, and those of its simulator. */
#define NB_CLUSTERS 4
#define NB_CORES 8
#define CORE_COUNT (NB_CLUSTERS * NB_CORES)
#define NUM_CLUSTERS NB_CLUSTERS
#define NUM_HPUS_PER_CLUSTER NB_CORES
#define NUM_CLUSTER_HPUS NUM_HPUS_PER_CLUSTER
#define NUM_HPUS (NUM_CLUSTERS * NUM_HPUS_PER_CLUSTER)

#endif
