//! Links and topologies.
