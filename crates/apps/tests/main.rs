//! All tests of the crate. One test program builds and links faster than several.

mod programs;
