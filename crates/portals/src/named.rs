//! Enumerations with values that have the names of the specification.

/// Defines an enumeration with its list of values, and their names.
macro_rules! named {
    (
        $(#[$outer:meta])*
        pub enum $type:ident {
            $($(#[$doc:meta])* $name:ident = $text:literal,)*
        }
    ) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $type { $($(#[$doc])* $name),* }

        impl $type {
            /// All values, in the order of their numbers.
            pub const ALL: &'static [$type] = &[$($type::$name),*];

            /// Returns the name in the specification.
            pub const fn name(self) -> &'static str {
                match self { $($type::$name => $text),* }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
pub(crate) use named;
