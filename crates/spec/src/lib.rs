//! Card specifications: TOML with units, provenance and errors that say where and what to write.
