//! All tests of the crate in one binary, which builds and links faster than several.

mod programs;
mod tours;
