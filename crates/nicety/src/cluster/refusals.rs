//! Notes on commands of handlers that cards refused.

use nicety_nic_core::{Card, RefusedCommand};
use std::rc::Rc;

/// Maximum listed commands.
const LISTED: usize = 8;

/// Returns refused commands as notes on a failed run. A handler that ignores the result of a refused command does not
/// fail, but other programs may wait for the command's effect.
pub(crate) fn notes(cards: &[Rc<dyn Card>]) -> String {
    let found = merged(cards.iter().map(|card| card.refused_commands()).zip(0..));
    let mut text: String = found
        .iter()
        .take(LISTED)
        .map(|(RefusedCommand { command, code, place, times }, ranks)| {
            let on = match ranks[..] {
                [rank] => format!("the card of rank {rank}"),
                _ => format!("the cards of {} ranks", ranks.len()),
            };
            format!("\n  note: {on} refused {times} {command}: {code}, {place}")
        })
        .collect();
    if let more @ 1.. = found.len().saturating_sub(LISTED) {
        text += &format!("\n  note: and cards refused commands at {more} other places");
    }
    text
}

/// Merges the refusals of all ranks that have the same source line.
fn merged(of_ranks: impl Iterator<Item = (Vec<RefusedCommand>, u32)>) -> Vec<(RefusedCommand, Vec<u32>)> {
    let mut found: Vec<(RefusedCommand, Vec<u32>)> = Vec::new();
    for (refused, rank) in of_ranks {
        for one in refused {
            let same = found.iter_mut().find(|(known, _)| {
                (known.command, known.code, &known.place) == (one.command, one.code, &one.place)
            });
            match same {
                Some((known, ranks)) => {
                    known.times += one.times;
                    ranks.push(rank);
                }
                None => found.push((one, vec![rank])),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_at_one_place_are_added_up_over_ranks() {
        let refused = |place: &str, times| RefusedCommand {
            command: "PtlHandlerCTInc",
            code: "PTL_ARG_INVALID",
            place: place.to_owned(),
            times,
        };
        let of_ranks = [vec![refused("a.c:1", 2), refused("a.c:7", 1)], vec![], vec![refused("a.c:1", 5)]];
        assert_eq!(
            merged(of_ranks.into_iter().zip(0..)),
            [(refused("a.c:1", 7), vec![0, 2]), (refused("a.c:7", 1), vec![0])]
        );
    }
}
