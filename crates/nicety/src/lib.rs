//! An open laboratory for programmable network cards: clusters, programs, workloads, results.
