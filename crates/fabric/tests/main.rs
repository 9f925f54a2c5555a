//! All tests of the crate but those that count allocations. One program builds and links faster than many.

mod capture;
mod channels;
mod ethernet;
mod ethernet_traffic;
mod fat_tree;
mod fat_tree_traffic;
mod faults;
mod protocol;
mod switch;
mod switch_beside;
mod switch_support;
mod switch_traffic;
mod torus;
mod torus_traffic;
