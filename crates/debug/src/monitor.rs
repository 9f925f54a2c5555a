//! The commands behind GDB's `monitor`.

use std::fmt;

/// A command of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Lists the commands.
    Help,
    /// The packet of the current handler: its message, its addresses, and its first bytes.
    Packet {
        /// Most bytes to show.
        bytes: usize,
    },
    /// The handlers on all cores.
    Cores,
    /// The memory of the current handler.
    Memory,
    /// The simulated time and the number of the instruction.
    Time,
}

/// Bytes of a packet that are shown without a number.
const BYTES: usize = 128;

/// Most bytes of a packet that are shown.
const MOST_BYTES: usize = 65_536;

/// The commands and their answers.
pub(crate) const HELP: &str = "\
packet [N]  message, offset, address and the first N bytes (128) of the current handler's packet
cores       the handler on each core, or the process on each context
memory      addresses and sizes of its memory
time        simulated time, and the number of the instruction in the run
help        this list
";

/// A command that does not exist, or an argument that is no number.
#[derive(Debug, PartialEq, Eq)]
pub struct CommandError(String);

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Command {
    /// Parses the text behind `monitor`.
    ///
    /// # Errors
    /// When there is no such command.
    pub fn parse(text: &[u8]) -> Result<Command, CommandError> {
        let text = String::from_utf8_lossy(text);
        let mut words = text.split_whitespace();
        let (name, argument) = (words.next().unwrap_or("help"), words.next());
        let wrong = |what: &str| {
            Err(CommandError(format!(
                "monitor {}: {what}; monitor help lists the commands",
                name.escape_debug()
            )))
        };
        if words.next().is_some() || argument.is_some() && name != "packet" {
            return wrong("too many words");
        }
        match (name, argument) {
            ("help", _) => Ok(Command::Help),
            ("packet", None) => Ok(Command::Packet { bytes: BYTES }),
            ("packet", Some(number)) => match number.parse() {
                Ok(bytes @ 1..=MOST_BYTES) => Ok(Command::Packet { bytes }),
                _ => wrong("the number of bytes is 1 to 65536"),
            },
            ("cores", _) => Ok(Command::Cores),
            ("memory", _) => Ok(Command::Memory),
            ("time", _) => Ok(Command::Time),
            _ => wrong("no such command"),
        }
    }
}

/// Returns bytes as lines of 16, each with its address, hexadecimal numbers and characters.
pub(crate) fn dump(address: u32, bytes: &[u8]) -> String {
    let line = |(number, line): (usize, &[u8])| {
        let numbers: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let visible = |byte: &u8| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' };
        let characters: String = line.iter().map(visible).collect();
        let at = u64::from(address) + 16 * number as u64;
        format!("{at:#010x}  {:<47}  {characters}\n", numbers.join(" "))
    };
    bytes.chunks(16).enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_are_words() {
        assert_eq!(Command::parse(b"packet"), Ok(Command::Packet { bytes: 128 }));
        assert_eq!(Command::parse(b" packet  64 "), Ok(Command::Packet { bytes: 64 }));
        assert_eq!(Command::parse(b""), Ok(Command::Help));
        assert_eq!(Command::parse(b"cores"), Ok(Command::Cores));
        let refused = |text: &[u8]| Command::parse(text).unwrap_err().to_string();
        assert_eq!(refused(b"reset halt"), "monitor reset: too many words; monitor help lists the commands");
        assert_eq!(refused(b"reset"), "monitor reset: no such command; monitor help lists the commands");
        assert_eq!(
            refused(b"packet 0"),
            "monitor packet: the number of bytes is 1 to 65536; monitor help lists the commands"
        );
    }

    #[test]
    fn bytes_are_shown_in_lines() {
        let bytes: Vec<u8> = (0x38..0x4a).collect();
        assert_eq!(
            dump(0x1c40_0000, &bytes),
            "0x1c400000  38 39 3a 3b 3c 3d 3e 3f 40 41 42 43 44 45 46 47  89:;<=>?@ABCDEFG\n\
             0x1c400010  48 49                                            HI\n"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_a_command_or_one_line(text in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Err(error) = Command::parse(&text) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}
