//! Constants of `shim/channels.h`.

use nicety::Error;

/// Maximum bytes of a direct message.
pub(super) const DIRECT: usize = 56;
/// Maximum arguments of a process on the card.
pub(super) const ARGUMENTS: usize = 8;
/// Maximum alternatives of a selection.
pub(super) const ALTERNATIVES: u64 = 1024;

/// The numbers of the operations that a call may request.
pub(super) mod op {
    macro_rules! ops {
        ($($name:ident = $number:literal,)*) => {
            $(pub(in crate::channels) const $name: u32 = $number;)*
            /// All operations, by name.
            #[cfg(test)]
            pub(in crate::channels) const ALL: &[(&str, u32)] = &[$((stringify!($name), $number)),*];
        };
    }
    ops! {
        OPEN = 1, LOAD = 2, START = 3, FINISHED = 4, MEMORY = 5, READ = 6, WRITE = 7, SUBSCRIBE = 8, CLOSE = 9,
        SEND = 10, RECEIVE = 11, SEND_IND = 12, RECEIVE_IND = 13, SELECT = 14, GO = 15, JOIN = 16, END = 17,
        COMPUTE = 18, SLEEP = 19, BARRIER = 20,
    }
}

/// Returns the code and the text of an error that the program receives. Any other error is returned, and ends the run.
pub(super) fn code(error: Error) -> Result<(i64, String), Error> {
    Ok(match error {
        Error::Input(text) => (1, text),
        Error::Program(text) | Error::System { text, .. } => (2, text),
        Error::HandlerTrap(text) => (3, text),
        Error::TimedOut(text) => (4, text),
        error => return Err(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_shim::CHANNELS_H as HEADER;

    fn names(prefix: &str) -> Vec<&'static str> {
        let words = HEADER.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter_map(|word| word.strip_prefix(prefix)).collect()
    }

    #[test]
    fn numbers_are_those_of_the_header() {
        let own: Vec<_> = op::ALL.iter().map(|(name, _)| *name).collect();
        assert_eq!(names("CHANNELS_"), own);
        assert!(op::ALL.iter().zip(1..).all(|((_, number), place)| *number == place));
        assert_eq!(names("CODE_"), ["OK", "INPUT", "FAILED", "TRAP", "TIMED_OUT"]);
        for (name, number) in [
            ("CALL_CHANNELS", 48),
            ("CHANNEL_DIRECT", DIRECT as u64),
            ("CHANNEL_ARGUMENTS", ARGUMENTS as u64),
            ("CHANNEL_ALTERNATIVES", ALTERNATIVES),
        ] {
            assert!(HEADER.contains(&format!("#define {name} {number}\n")), "{name}");
        }
    }

    #[test]
    fn errors_of_the_run_are_no_codes() {
        assert_eq!(code(Error::TimedOut("late".to_owned())).unwrap(), (4, "late".to_owned()));
        assert_eq!(code(Error::Input("none".to_owned())).unwrap(), (1, "none".to_owned()));
        assert!(code(Error::Interrupted).is_err() && code(Error::Deadlock(String::new())).is_err());
    }
}
