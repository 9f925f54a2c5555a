//! From defects at instructions to findings at lines, each once.

use crate::calls::Site;
use crate::checker::{Checker, Interface};
use crate::finding::{Defect, Finding, Frame, Side};
use crate::locks::Suspect;
use crate::raw::{Place, Raw};
use crate::run::Running;
use nicety_hpu::Location;

/// Folders of sources that are linked into every program: findings name the author's line that leads there.
const RUNTIME: [&str; 2] = ["nicety/runtime/", "nicety/include/"];
/// Headers of interfaces, with functions that a compiler inlines.
const HEADERS: [&str; 3] = ["/nicety.h", "/frame.h", "/nfp.h"];
/// The maps of XDP programs. As in Linux, lookups take no lock, and an update may be seen in part.
const MAPS: &str = "nicety/runtime/xdp/";
/// The begin of the name of a function that clang inlines at its own traps.
const TRAP: &str = "__clang_trap_msg";

impl Checker {
    /// Makes a finding.
    pub(crate) fn report(
        &mut self,
        defect: Defect,
        run: &Running,
        site: Site,
        action: String,
        other: Option<Place>,
    ) {
        self.findings.add(defect, Place { run: run.number, site, action }, other);
    }

    /// Makes a finding about locks.
    pub(crate) fn suspected(&mut self, suspect: &Suspect) {
        let (action, others) = match suspect.defect {
            Defect::UnlockWithoutLock => ("releases a lock that it does not hold", "has taken the lock"),
            Defect::DoubleLock => ("takes a lock that it holds", "has taken the lock"),
            Defect::LockKept => ("takes a lock that it keeps at its end", ""),
            _ => ("takes a second lock", "takes the same locks in another order"),
        };
        let at = Place { run: suspect.at.run, site: suspect.at.site, action: action.to_owned() };
        let other =
            suspect.other.map(|other| Place { run: other.run, site: other.site, action: others.to_owned() });
        self.findings.add(suspect.defect, at, other);
    }

    /// Ends the check. Returns the findings in the order in which they were found, those of locks last.
    pub fn finish(&mut self) -> Vec<Finding> {
        for suspect in self.locks.findings() {
            self.suspected(&suspect);
        }
        let raw = std::mem::take(&mut self.findings);
        let mut found: Vec<Finding> = Vec::new();
        for Raw { defect, at, other, times } in raw.all {
            let (Some(at), other) = (self.side(defect, &at), other.map(|other| self.side(defect, &other)))
            else {
                continue;
            };
            let Some(other) = other.map_or(Some(None), |side| side.map(Some)) else { continue };
            let advice = match self.limits.interface {
                Interface::Processes => defect.advice_of_process(),
                _ => defect.advice(),
            };
            let finding = Finding { kind: defect, at, other, advice, times };
            match found.iter_mut().find(|known| known.key() == finding.key()) {
                Some(known) => known.times += times,
                None => found.push(finding),
            }
        }
        found
    }

    /// Returns a side of a finding. None for a race inside the maps of XDP programs.
    fn side(&self, defect: Defect, place: &Place) -> Option<Side> {
        let record = self.record(place.run);
        let instructions = self.stacks.instructions(place.site);
        let frames: Vec<Location> = instructions
            .iter()
            .flat_map(|&pc| self.programs[record.program as usize].image.frames(pc))
            .filter(|frame| !is_unknown(frame))
            .collect();
        let in_maps =
            frames.first().and_then(|frame| frame.file.as_deref()).is_some_and(|file| file.contains(MAPS));
        if defect == Defect::Race && in_maps {
            return None;
        }
        let authors = frames.iter().find(|frame| {
            frame.file.as_deref().is_some_and(|file| {
                !RUNTIME.iter().any(|folder| file.contains(folder))
                    && !HEADERS.iter().any(|header| file.ends_with(header))
            })
        });
        Some(Side {
            handler: record.handler.name(),
            packet: record.packet,
            process: self.processes.names.get(&place.run).cloned(),
            action: place.action.clone(),
            pc: place.site.pc,
            place: authors.or(frames.first()).map(frame_of).unwrap_or_default(),
            stack: frames.iter().map(frame_of).collect(),
        })
    }
}

fn is_unknown(frame: &Location) -> bool {
    let is_trap = frame.function.as_deref().is_some_and(|name| name.starts_with(TRAP));
    is_trap || frame.file.is_none() && frame.function.is_none()
}

fn frame_of(location: &Location) -> Frame {
    Frame {
        function: location.function.clone(),
        file: location.file_name().map(std::borrow::Cow::into_owned),
        line: location.line,
    }
}
