//! All tests of the crate: one program is built and linked sooner than many.

mod programs;
