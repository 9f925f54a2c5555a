//! The C files that come with nicety: the handlers' interface, and the library of handlers.

/// Path inside the folder `handlers`, and text, of every file.
pub const FILES: &[(&str, &str)] = &[
    ("include/nicety.h", include_str!("../../../handlers/include/nicety.h")),
    ("include/pingpong.h", include_str!("../../../handlers/include/pingpong.h")),
    ("pingpong_store.c", include_str!("../../../handlers/pingpong_store.c")),
    ("pingpong_stream.c", include_str!("../../../handlers/pingpong_stream.c")),
    ("sink_store.c", include_str!("../../../handlers/sink_store.c")),
    ("sink_stream.c", include_str!("../../../handlers/sink_stream.c")),
];
