//! Macros that declare the commands of one subject. Each command is written once, with its arguments and its outcome.

use super::Outcome;
use nicety_nic_apenet::{self as apenet, Region};
use nicety_nic_qnix::Completed;
use nicety_portals::{CtEvent, Event, Limits};

/// Declares the calls of a subject, which take virtual time. Also defines the function of [`Program`](super::Program) that
/// executes them. Each call has its own boxed future.
///
/// `enum NAME by FUNCTION(PROGRAM, HOST) API = VALUE;` gives the name of the type, the name of the function, and the names of its
/// two variables. `API` is a variable for an interface of the host, and `VALUE` its value. A list of calls follows. Each has its
/// arguments and, after `=>`, an expression for its outcome.
macro_rules! calls {
    (
        $(#[$doc:meta])*
        enum $name:ident by $carry:ident($program:pat, $host:ident $(, $object:ident: $number:ty)?)
            $api:ident = $of:expr;
        $(
            $(#[$about:meta])*
            $call:ident $({ $($(#[$note:meta])* $field:ident: $kind:ty),* $(,)? })? => $outcome:expr;
        )*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the calls and arguments of the host, under the same names")]
        pub enum $name {
            $($(#[$about])* $call $({ $($(#[$note])* $field: $kind),* })?),*
        }

        impl super::Program {
            pub(super) fn $carry<'c>(
                &'c self,
                $host: &'c crate::Host,
                $($object: $number,)?
                call: $name,
            ) -> super::Carried<'c> {
                let $program = self;
                match call {
                    $($name::$call $({ $($field),* })? => Box::pin(async move {
                        let $api = $of;
                        Ok(super::Outcome::from($outcome))
                    })),*
                }
            }
        }
    };
}

/// Declares the commands of a subject that take no virtual time, in the syntax of `calls!`.
macro_rules! setups {
    (
        $(#[$doc:meta])*
        enum $name:ident by $carry:ident($program:ident $(, $object:ident: $number:ty)?) $api:ident = $of:expr;
        $(
            $(#[$about:meta])*
            $call:ident $({ $($(#[$note:meta])* $field:ident: $kind:ty),* $(,)? })? => $outcome:expr;
        )*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the functions and arguments of the host, under the same names")]
        pub enum $name {
            $($(#[$about])* $call $({ $($(#[$note])* $field: $kind),* })?),*
        }

        impl super::Program {
            pub(super) fn $carry(
                &self,
                $($object: $number,)?
                setup: $name,
            ) -> Result<super::Outcome, crate::Error> {
                let $program = self;
                let $api = $of;
                Ok(match setup {
                    $($name::$call $({ $($field),* })? => super::Outcome::from($outcome)),*
                })
            }
        }
    };
}

pub(super) use {calls, setups};

/// Defines the conversions of values into outcomes.
macro_rules! outcomes {
    ($($value:ty => $outcome:ident),* $(,)?) => {
        $(impl From<$value> for Outcome {
            fn from(value: $value) -> Outcome {
                Outcome::$outcome(value.into())
            }
        })*
    };
}

outcomes! {
    u64 => Word,
    u32 => Word,
    Vec<u8> => Bytes,
    crate::Received => Received,
    CtEvent => Count,
    Option<Event> => Event,
    Event => Event,
    Completed => Completed,
    Option<Completed> => Completed,
    Region => Region,
    apenet::Event => RdmaEvent,
    Option<apenet::Event> => RdmaEvent,
    Limits => Limits,
}

impl From<()> for Outcome {
    fn from((): ()) -> Outcome {
        Outcome::Nothing
    }
}
