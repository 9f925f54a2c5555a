"""Python made of the tables in Rust."""
