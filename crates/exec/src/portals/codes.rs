//! Numbers of `client/portals4.h` and `client/portals.h`, and what they mean.

use nicety::portals::{AckRequest, Atomic, AtomicOp, Datatype, List, SearchOp, StatusRegister};
use nicety::{CallError, Error, spin::AttachError};

/// The return codes by their numbers.
pub(crate) const CODES: [&str; 17] = [
    "PTL_OK",
    "PTL_FAIL",
    "PTL_ARG_INVALID",
    "PTL_SEGV",
    "PTL_NO_SPACE",
    "PTL_NO_INIT",
    "PTL_IN_USE",
    "PTL_PT_IN_USE",
    "PTL_PT_FULL",
    "PTL_PT_EQ_NEEDED",
    "PTL_LIST_TOO_LONG",
    "PTL_PID_IN_USE",
    "PTL_CT_NONE_REACHED",
    "PTL_EQ_EMPTY",
    "PTL_EQ_DROPPED",
    "PTL_ABORTED",
    "PTL_IGNORED",
];
/// In place of a handle, an index, a rank or a time: none, or any.
pub(crate) const EQ_NONE: u64 = u64::MAX - 1;
pub(crate) const CT_NONE: u64 = u64::MAX - 2;
pub(crate) const ANY: u64 = u32::MAX as u64;
pub(crate) const FOREVER: u64 = u32::MAX as u64;

/// The operations of calls.
pub(crate) mod op {
    macro_rules! ops {
        ($($name:ident = $number:literal,)*) => {
            $(pub(crate) const $name: u32 = $number;)*
            /// All of them, by name.
            #[cfg(test)]
            pub(crate) const ALL: &[(&str, u32)] = &[$((stringify!($name), $number)),*];
        };
    }
    ops! {
        NI_INIT = 1, NI_FINI = 2, NI_STATUS = 3, UID = 4, PT_ALLOC = 5, PT_FREE = 6, PT_ENABLE = 7, MD_BIND = 8,
        MD_RELEASE = 9, ME_APPEND = 10, ME_UNLINK = 11, ME_SEARCH = 12, EQ_ALLOC = 13, EQ_FREE = 14, EQ_GET = 15,
        EQ_POLL = 16, CT_ALLOC = 17, CT_FREE = 18, CT_CANCEL = 19, CT_GET = 20, CT_WAIT = 21, CT_POLL = 22,
        CT_SET = 23, CT_INC = 24, PUT = 25, GET = 26, ATOMIC = 27, FETCH_ATOMIC = 28, SWAP = 29, ATOMIC_SYNC = 30,
        HPU_ALLOC = 31, HPU_FREE = 32, HPU_WRITE = 33, HPU_READ = 34, ATTACH = 35, DETACH = 36, BARRIER = 37,
        COMPUTE = 38, FINI = 39,
    }

    /// Whether it looks for something that may not be there.
    pub(crate) const fn is_look(op: u32) -> bool {
        matches!(op, CT_GET | EQ_GET | CT_POLL | EQ_POLL)
    }
}

/// Why a call has not been carried out.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It is refused: a code of [`CODES`], and why.
    Refused(&'static str, String),
    /// The run is over.
    Failed(Error),
}

impl Stop {
    pub(crate) fn invalid(why: &str) -> Stop {
        Stop::Refused("PTL_ARG_INVALID", why.to_owned())
    }
}

/// The number of a return code.
pub(crate) fn number(code: &str) -> i64 {
    CODES.iter().position(|name| *name == code).expect("one of the list") as i64
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        match error {
            // The card says the code at the start of its text; what it does not name is an argument that cannot be.
            Error::Input(text) | Error::Program(text) => {
                let code = CODES.into_iter().find(|code| text.starts_with(&format!("{code}:")));
                Stop::Refused(code.unwrap_or("PTL_ARG_INVALID"), text)
            }
            other => Stop::Failed(other),
        }
    }
}

impl From<CallError> for Stop {
    fn from(error: CallError) -> Stop {
        let code = match &error {
            CallError::Attached(AttachError::MemoryInUse { .. } | AttachError::HandlersInUse) => "PTL_IN_USE",
            CallError::Handlers(
                nicety::HandlerError::NoMemory { .. } | nicety::HandlerError::NoShare { .. },
            ) => "PTL_NO_SPACE",
            _ => return Error::from(error).into(),
        };
        Stop::Refused(code, error.to_string())
    }
}

fn one<T: Copy>(all: &[T], number: u64, what: &str) -> Result<T, Stop> {
    let found = usize::try_from(number).ok().and_then(|number| all.get(number));
    found.copied().ok_or_else(|| Stop::invalid(&format!("there is no {what} {number}")))
}

pub(crate) fn ack(number: u64) -> Result<AckRequest, Stop> {
    let all =
        [AckRequest::None, AckRequest::Full, AckRequest::Counting, AckRequest::OperationCompleted];
    one(&all, number, "acknowledgement")
}

pub(crate) fn list(number: u64) -> Result<List, Stop> {
    one(&[List::Priority, List::Overflow], number, "list")
}

pub(crate) fn search(number: u64) -> Result<SearchOp, Stop> {
    one(&[SearchOp::Only, SearchOp::Delete], number, "search")
}

pub(crate) fn register(number: u64) -> Result<StatusRegister, Stop> {
    one(&StatusRegister::ALL, number, "status register")
}

pub(crate) fn atomic(op: u64, datatype: u64) -> Result<Atomic, Stop> {
    let (op, datatype) =
        (one(AtomicOp::ALL, op, "operator")?, one(Datatype::ALL, datatype, "type of items on these cards,")?);
    Atomic::new(op, datatype).map_err(|error| Stop::Refused("PTL_ARG_INVALID", error.to_string()))
}

/// Options, where `of_bits` knows all of these bits.
pub(crate) fn options<T>(bits: u64, of_bits: fn(u32) -> Option<T>, what: &str) -> Result<T, Stop> {
    let known = u32::try_from(bits).ok().and_then(of_bits);
    known.ok_or_else(|| {
        Stop::invalid(&format!("options {bits:#x}: not all of them are options of a {what} on these cards"))
    })
}
