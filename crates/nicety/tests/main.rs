//! All tests of the crate but those that count allocations: one program is built and linked sooner than many.

mod fat_tree;
mod faults;
mod interface_benchmarks;
mod interfaces;
mod itself;
mod load;
mod natural;
mod own_design;
mod pcie;
mod portals;
mod recording;
mod star;
mod threads;
mod worked;
