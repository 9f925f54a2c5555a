//! All tests of the crate in one binary, which links faster than several.

mod fat_tree;
mod grid;
mod interface_benchmarks;
mod load;
mod natural;
mod pcie;
mod pcie_bench;
mod peer;
mod python_types;
mod recording;
mod schemas;
mod sockets;
mod star;
mod torus;
mod torus_traffic;
mod typescript_types;
mod worked;
