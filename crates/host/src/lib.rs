//! Hosts: CPUs, memory, buses.
