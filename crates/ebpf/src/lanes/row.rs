//! Rows and their lanes.

use super::operation::Operation;

/// An operation in a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// The operation. Jumps lead to rows.
    pub operation: Operation,
    /// The slot of the program that it comes from.
    pub slot: u32,
}

/// A row: operations that run in one cycle. The jump in the lowest lane has priority.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Checks of the packet's length, in their order.
    pub guards: Vec<Placed>,
    /// The lanes.
    pub lanes: Vec<Option<Placed>>,
}

impl Row {
    /// The operations in lanes.
    pub fn operations(&self) -> impl Iterator<Item = &Placed> {
        self.lanes.iter().flatten()
    }
}

/// An operation that looks for a lane: the lanes that it may take, a bit for each, and whether it is control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub lanes: u32,
    pub is_control: bool,
}

/// A lane for each, in order: no lane twice, and controls in rising lanes. None where there is no such choice.
pub(super) fn assign(wanted: &[Wanted], lanes: usize) -> Option<Vec<usize>> {
    fn go(wanted: &[Wanted], lanes: usize, taken: u32, above: usize, chosen: &mut Vec<usize>) -> bool {
        let Some(first) = wanted.get(chosen.len()) else { return true };
        let begin = if first.is_control { above } else { 0 };
        for lane in (begin..lanes).filter(|lane| first.lanes & !taken & 1 << lane != 0) {
            let above = if first.is_control { lane + 1 } else { above };
            chosen.push(lane);
            if go(wanted, lanes, taken | 1 << lane, above, chosen) {
                return true;
            }
            chosen.pop();
        }
        false
    }
    let mut chosen = Vec::new();
    (wanted.len() <= lanes && go(wanted, lanes, 0, 0, &mut chosen)).then_some(chosen)
}
