/* spin_conf.h: the shape of the card: clusters and cores. */
#ifndef PSPIN_SPIN_CONF_H
#define PSPIN_SPIN_CONF_H

#define NUM_CLUSTERS 4
#define NUM_HPUS_PER_CLUSTER 8
#define NUM_CLUSTER_HPUS NUM_HPUS_PER_CLUSTER
#define NUM_HPUS (NUM_CLUSTERS * NUM_HPUS_PER_CLUSTER)

#endif
