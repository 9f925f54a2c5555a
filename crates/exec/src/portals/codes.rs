//! Constants of `shim/portals4.h`, and their meanings.

use nicety::portals::{AckRequest, Atomic, AtomicOp, Datatype, List, SearchOp, StatusRegister};
use nicety::{AttachError, CallError, Error};

/// The return codes, in the order of their numbers.
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
/// Values that mean none or any, in place of a handle, an index, a rank or a time.
pub(crate) const EQ_NONE: u64 = u64::MAX - 1;
pub(crate) const CT_NONE: u64 = u64::MAX - 2;
pub(crate) const ANY: u64 = u32::MAX as u64;
pub(crate) const FOREVER: u64 = u32::MAX as u64;

/// The reason for which a call failed.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The call was refused. The first text is a code of [`CODES`], and the second is the reason.
    Refused(&'static str, String),
    /// The run has failed.
    Failed(Error),
}

impl Stop {
    pub(crate) fn invalid(why: &str) -> Stop {
        Stop::Refused("PTL_ARG_INVALID", why.to_owned())
    }
}

/// Returns the number of a return code.
pub(crate) fn number(code: &str) -> i64 {
    CODES.iter().position(|name| *name == code).expect("one of the list") as i64
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        match error {
            // The text of the card begins with the code. A text without a code reports an invalid argument.
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
    let all = [AckRequest::None, AckRequest::Full, AckRequest::Counting, AckRequest::OperationCompleted];
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
        (one(AtomicOp::ALL, op, "operator")?, one(Datatype::ALL, datatype, "supported datatype")?);
    Atomic::new(op, datatype).map_err(|error| Stop::Refused("PTL_ARG_INVALID", error.to_string()))
}

/// Returns the options of these bits. Refuses the call if `of_bits` does not know a bit.
pub(crate) fn options<T>(bits: u64, of_bits: fn(u32) -> Option<T>, what: &str) -> Result<T, Stop> {
    let known = u32::try_from(bits).ok().and_then(of_bits);
    known.ok_or_else(|| {
        Stop::invalid(&format!("options {bits:#x}: some of them are not options of a {what} on these cards"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety::portals::{EventKind, FailType, MdOptions, MeOptions, PtOptions};
    use nicety_shim::PORTALS4_H as HEADER;

    /// Returns the names of an enumeration in the header, from name `first` on, in the order of their numbers.
    fn names(first: &str) -> Vec<&'static str> {
        let mut blocks = HEADER.split("enum {").map(str::trim_start);
        let block = blocks.find(|block| block.starts_with(first)).unwrap_or_else(|| panic!("{first}"));
        let names = block.split('}').next().unwrap().split(',');
        names.map(|name| name.split('=').next().unwrap().trim()).filter(|name| !name.is_empty()).collect()
    }

    /// Returns the options with this prefix in the header, and their bits.
    fn bits(prefix: &str) -> Vec<(&str, u32)> {
        let lines = HEADER.lines().filter_map(|line| line.strip_prefix("#define ")?.strip_prefix(prefix));
        lines
            .filter_map(|line| {
                let (name, shift) = line.split_once(" (1u << ")?;
                Some((name, 1 << shift.trim_end_matches(')').parse::<u32>().ok()?))
            })
            .collect()
    }

    #[test]
    fn numbers_are_those_of_the_header() {
        assert_eq!(names("PTL_OK"), CODES);
        let kinds: Vec<_> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names("PTL_EVENT_GET,"), kinds);
        let fails: Vec<_> = FailType::ALL.iter().map(|fail| fail.name()).collect();
        assert_eq!(names("PTL_NI_OK"), fails);
        let ops: Vec<_> = AtomicOp::ALL.iter().map(|op| op.name()).collect();
        assert_eq!(names("PTL_MIN,"), ops);
        let types: Vec<_> = Datatype::ALL.iter().map(|datatype| datatype.name()).collect();
        assert_eq!(names("PTL_INT8_T")[..types.len()], types);
        assert_eq!(number("PTL_IGNORED"), 16);
    }

    #[test]
    fn options_are_those_of_the_header() {
        // The library of the process removes options from bit `end` on. Options that it leaves are refused.
        let known = |prefix, end: u32| bits(prefix).into_iter().filter(move |(_, bit)| *bit < 1 << end);
        let entry: Vec<_> = known("PTL_ME_", 24).collect();
        assert_eq!(entry.len(), 16);
        for (name, bit) in entry {
            assert_eq!(MeOptions::from_name(name).map(|option| option.bits()), Some(bit), "{name}");
        }
        let descriptor: Vec<_> = known("PTL_MD_", 24).collect();
        assert_eq!(descriptor.len(), 6);
        for (name, bit) in descriptor {
            assert_eq!(MdOptions::from_name(name).map(|option| option.bits()), Some(bit), "{name}");
        }
        assert_eq!(known("PTL_PT_", 8).collect::<Vec<_>>(), [("FLOWCTRL", PtOptions::FLOWCTRL.bits())]);
        assert!(options(1 << 26, MeOptions::from_bits, "match entry").is_err());
        assert!(options(1 << 40, MdOptions::from_bits, "memory descriptor").is_err());
    }

    #[test]
    fn codes_are_read_off_errors() {
        let refused = |text: &str| match Stop::from(Error::Program(text.to_owned())) {
            Stop::Refused(code, _) => code,
            Stop::Failed(error) => panic!("{error}"),
        };
        assert_eq!(refused("PTL_PT_IN_USE: portal table entry 1 is in use"), "PTL_PT_IN_USE");
        assert_eq!(refused("PTL_IN_USE: the counter"), "PTL_IN_USE");
        assert_eq!(refused("there is no rank 7"), "PTL_ARG_INVALID");
        assert!(matches!(Stop::from(Error::Interrupted), Stop::Failed(Error::Interrupted)));
    }

    #[test]
    fn numbers_that_are_none_are_refused() {
        for number in [4, 17, u64::MAX] {
            assert!(ack(number).is_err() && list(number).is_err() && search(number).is_err());
            assert!(register(number).is_err() && atomic(number, 99).is_err());
        }
        // A sum with a swap does not exist, nor does a logical operator on floating-point numbers.
        assert!(atomic(AtomicOp::Lor as u64, Datatype::Float as u64).is_err());
        assert!(atomic(AtomicOp::Sum as u64, Datatype::Float as u64).is_ok());
    }
}
