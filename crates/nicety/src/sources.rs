//! The shipped C files: the handlers' interface, their runtime, and the library of handlers.

/// Every file for handlers: its path in the folder `handlers`, and its text.
pub const FILES: &[(&str, &str)] = nicety_handlers::FILES;
