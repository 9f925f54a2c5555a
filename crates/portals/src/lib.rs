//! Portals 4 message semantics as a state machine without time.
