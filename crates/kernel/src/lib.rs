//! Virtual time: clock, event queue, tasks, servers, signals, credits.
