//! Frames that ended with `XDP_ABORTED`, by program and line of the source.

use crate::object::Linked;
use schemars::JsonSchema;
use serde::Serialize;

/// The place of the last instruction in front of a program's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The program.
    pub program: String,
    /// File and line, as `firewall.c:31`; without lines in the object, the instruction, as `instruction 12`.
    pub place: String,
}

impl Linked {
    /// The place of a step.
    pub fn site(&self, step: usize) -> Site {
        let slot = self.code.slots.get(step).map_or(0, |slot| *slot as usize);
        let place = match self.line(slot) {
            Some(line) => {
                let name = line.file.rsplit('/').next().unwrap_or_default();
                format!("{}:{}", crate::error::printable(name), line.line)
            }
            None => format!("instruction {slot}"),
        };
        Site { program: self.name.clone(), place }
    }
}

/// Frames with `XDP_ABORTED` at a place of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "XdpAborted")]
pub struct Aborted {
    /// The program.
    pub program: String,
    /// The last line in front of its end, as `firewall.c:31`; without lines in the object, the instruction.
    pub place: String,
    /// Frames.
    pub frames: u64,
}

impl Aborted {
    /// Adds frames of a place to a list, which has each place once.
    pub fn add(all: &mut Vec<Aborted>, site: &Site, frames: u64) {
        match all.iter_mut().find(|each| each.program == site.program && each.place == site.place) {
            Some(known) => known.frames += frames,
            None => {
                let Site { program, place } = site.clone();
                all.push(Aborted { program, place, frames });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_in_a_list_once() {
        let site = |place: &str| Site { program: "p".to_owned(), place: place.to_owned() };
        let mut all = Vec::new();
        for (place, frames) in [("a.c:1", 2), ("a.c:2", 1), ("a.c:1", 3)] {
            Aborted::add(&mut all, &site(place), frames);
        }
        let found: Vec<(&str, u64)> = all.iter().map(|each| (each.place.as_str(), each.frames)).collect();
        assert_eq!(found, [("a.c:1", 5), ("a.c:2", 1)]);
    }
}
