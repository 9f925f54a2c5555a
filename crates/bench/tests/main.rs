//! All tests of the crate: one program is built and linked sooner than many.

mod fat_tree;
mod interface_benchmarks;
mod load;
mod natural;
mod own_design;
mod pcie;
mod peer;
mod recording;
mod star;
mod worked;
