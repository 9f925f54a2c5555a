//! Commands of handlers that the card has refused. A handler that ignores the return code continues without a trace.
//! So the run's report lists refusals with their places.

use crate::commands::codes::{code, function};
use nicety_hpu::Image;
use nicety_nic_core::RefusedCommand;
use std::cell::RefCell;

/// Most distinct places. Refusals at other places are counted by command and code.
const PLACES_KEPT: usize = 64;

/// The place of refusals beyond the limit.
const ELSEWHERE: &str = "elsewhere";

/// The refusals of a card.
#[derive(Default)]
pub(crate) struct Refusals {
    counted: RefCell<Vec<RefusedCommand>>,
}

impl Refusals {
    /// Counts a command's return code if it is a refusal. `registers` are those of the command, issued at `pc`.
    #[cold]
    pub fn count(&self, registers: &[u32; 8], returned: u32, image: &Image, pc: u32) {
        let Some(command) = function(registers) else { return };
        self.add(command, code::name(returned), place(image, pc));
    }

    fn add(&self, command: &'static str, code: &'static str, place: String) {
        let mut counted = self.counted.borrow_mut();
        let same = |counted: &[RefusedCommand], place: &str| {
            counted
                .iter()
                .position(|known| (known.command, known.code, &*known.place) == (command, code, place))
        };
        let kept = counted.iter().filter(|known| known.place != ELSEWHERE).count();
        let (found, place) = match same(&counted, &place) {
            None if kept >= PLACES_KEPT => (same(&counted, ELSEWHERE), ELSEWHERE.to_owned()),
            found => (found, place),
        };
        match found {
            Some(index) => counted[index].times += 1,
            None => counted.push(RefusedCommand { command, code, place, times: 1 }),
        }
    }

    pub(crate) fn list(&self) -> Vec<RefusedCommand> {
        self.counted.borrow().clone()
    }
}

/// Returns a place in the source, in short form.
pub(crate) fn place(image: &Image, pc: u32) -> String {
    let Some(location) = image.locate(pc) else { return format!("pc {pc:#010x}") };
    match (location.file_name(), location.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file.into_owned(),
        (None, _) => location.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COMMANDS: [&str; 3] = ["PtlHandlerPutFromDevice", "PtlHandlerCTInc", "PtlHandlerDMAToHostB"];
    const CODES: [&str; 3] = ["PTL_ARG_INVALID", "PTL_SEGV", "PTL_NO_SPACE"];

    proptest! {
        #[test]
        fn every_refusal_is_counted_in_a_bounded_table(
            refused in prop::collection::vec((0..3usize, 0..3usize, 0..60u32), 0..600),
        ) {
            let refusals = Refusals::default();
            for (command, code, line) in &refused {
                refusals.add(COMMANDS[*command], CODES[*code], format!("a.c:{line}"));
            }
            let list = refusals.list();
            prop_assert!(list.len() <= PLACES_KEPT + COMMANDS.len() * CODES.len());
            for (index, command) in COMMANDS.iter().enumerate() {
                let expected = refused.iter().filter(|(command, ..)| *command == index).count() as u64;
                let counted: u64 = list.iter().filter(|known| known.command == *command).map(|known| known.times).sum();
                prop_assert_eq!(counted, expected);
            }
            // A refusal with its own entry is counted there from its first occurrence on.
            for known in list.iter().filter(|known| known.place != ELSEWHERE) {
                let here = |(command, code, line): &&(usize, usize, u32)| {
                    (COMMANDS[*command], CODES[*code], format!("a.c:{line}"))
                        == (known.command, known.code, known.place.clone())
                };
                prop_assert_eq!(known.times, refused.iter().filter(here).count() as u64);
            }
        }
    }
}
