//! What programs ask about processes on the card.

use super::{Command, Program, none};
use crate::{Error, Start};
use serde_json::{Value, json};
use std::fmt::Write;

impl Program {
    pub(super) fn load_processes(&self, elf: &[u8]) -> Result<Value, Error> {
        let processes = self.host.load_processes(elf)?;
        let mut loaded = self.shared.loaded.processes.borrow_mut();
        loaded.push(processes);
        Ok(json!(loaded.len() - 1))
    }

    pub(super) async fn about_processes(&self, command: Command) -> Result<Value, Error> {
        let host = &self.host;
        match command {
            Command::Start { processes, name, microengine, context, contexts, arguments } => {
                let loaded = self.shared.loaded.processes.borrow();
                let unknown = || Error::Program(format!("there are no processes {processes}"));
                let processes = loaded.get(processes).ok_or_else(unknown)?;
                let start = Start { name: &name, microengine, context, contexts, arguments: &arguments };
                let mut started = self.shared.started.borrow_mut();
                started.push(host.start(processes, &start)?);
                Ok(json!(started.len() - 1))
            }
            Command::Finished { process } => {
                let unknown = || Error::Program(format!("this host has started no process {process}"));
                let process = self.shared.started.borrow().get(process).copied().ok_or_else(unknown)?;
                Ok(json!(host.finished(&process).await?))
            }
            Command::OpenQueue { queue } => none(host.open_queue(queue)),
            Command::CardMemory { part } => {
                let part = part.memory()?;
                host.check_card(&part)?;
                Ok(json!(part.address()))
            }
            Command::ReadCard { part } => Ok(json!(hexadecimal(&host.read_card(&part.memory()?)?))),
            Command::WriteCard { part, contents } => {
                none(host.write_card(&part.memory()?, &from_hexadecimal(&contents)?))
            }
            _ => unreachable!("the caller has the others"),
        }
    }
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a text takes all");
    }
    text
}

pub(super) fn from_hexadecimal(text: &str) -> Result<Vec<u8>, Error> {
    let wrong = || Error::Program("contents are pairs of hexadecimal digits".to_owned());
    let digit = |digit: u8| (digit as char).to_digit(16).map(|value| value as u8);
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(|chunk| pair(chunk).ok_or_else(wrong)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_their_digits() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hexadecimal(&hexadecimal(&bytes)), Ok(bytes));
        assert_eq!(hexadecimal(&[0x0f, 0xa0]), "0fa0");
        for wrong in ["0", "0g", "+1", "ä"] {
            assert!(from_hexadecimal(wrong).is_err(), "{wrong}");
        }
    }
}
