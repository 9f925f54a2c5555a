//! Parses faults of the network, as users write them.
//!
//! On one line, as in an option of a command:
//!
//! ```text
//! loss=1e-3,corrupt=1e-4,duplicate=1e-3,reorder=1e-3:5us,burst=4,seed=7,fail=hosts.1@2ms
//! ```
//!
//! As TOML, or as a JSON object with the same keys. Both allow rates for single links:
//!
//! ```toml
//! seed = 7
//! loss = 1e-3                  # fraction of lost packets, 0 to 1; corrupt (a damaged byte) and duplicate alike
//! reorder = "1e-3:5 us"        # fraction of late packets, and their maximum delay
//! burst = 4                    # mean number of consecutive packets lost or damaged
//! fail = [
//!     "hosts.1@2 ms",                        # a node, from then on
//!     "hosts.0 -> switch.0@5 us..9 us",      # one direction of a link, for an interval
//!     "hosts.2 <-> switch.0@1 ms",           # both directions, for good
//! ]
//!
//! [[link]]
//! name = "hosts.3 -> switch.0"
//! loss = 0.5                   # keys that are missing here have the values above
//! drop = [1, 5]                # the first and the fifth packet of this direction
//! ```

mod value;

use crate::Error;
use nicety_fabric::{Faults, LinkFaults, NodeFailure, Outage, Place, Rates};
use nicety_spec::units::parse_time;
use nicety_types::{Duration, Time};
use value::Node;

/// Valid keys of the document, and of a link in the document.
const KEYS: [&str; 8] = ["seed", "loss", "corrupt", "duplicate", "reorder", "burst", "fail", "link"];
const LINK_KEYS: [&str; 7] = ["name", "loss", "corrupt", "duplicate", "reorder", "burst", "drop"];

/// Maximum number of items in a list.
const MOST: usize = 100_000;

/// Reads faults: a line of `key=value`, TOML or a JSON object.
///
/// # Errors
/// [`Error::Input`] with the line, the key and a correction.
pub fn parse(text: &str) -> Result<Faults, Error> {
    read(text).map_err(|problem| Error::Input(format!("faults{problem}")))
}

/// The text of an error, after the word `faults`: `, line 3: loss: ...`, or `: loss: ...` without a line.
type Problem = String;

fn read(text: &str) -> Result<Faults, Problem> {
    let top = value::document(text)?;
    let entries = top.table("", &KEYS)?;
    let mut faults = Faults::default();
    let mut links: Vec<&Node> = Vec::new();
    faults.rates = rates(&top, Rates::default())?;
    for (key, node) in entries {
        match key.as_str() {
            "seed" => faults.seed = node.whole("seed", 0)?,
            "link" => links.extend(node.items()),
            _ => {}
        }
    }
    if links.len() > MOST {
        return Err(top.problem("link", &format!("more than {MOST} entries")));
    }
    for link in links {
        let direction = read_link(link, faults.rates)?;
        faults.links.push(direction);
    }
    if let Some(fail) = top.get("fail") {
        let failures = fail.items();
        if failures.len() > MOST {
            return Err(fail.problem("fail", &format!("more than {MOST} entries")));
        }
        failures.iter().try_for_each(|node| read_failure(node, &mut faults))?;
    }
    Ok(faults)
}

/// Reads rates. If the table lacks the key of a rate, the rate has its value in `usual`.
fn rates(table: &Node, usual: Rates) -> Result<Rates, Problem> {
    let rate = |key, usual| table.get(key).map_or(Ok(usual), |node| node.rate(key));
    let mut rates = Rates {
        loss: rate("loss", usual.loss)?,
        corruption: rate("corrupt", usual.corruption)?,
        duplication: rate("duplicate", usual.duplication)?,
        ..usual
    };
    if let Some(node) = table.get("reorder") {
        (rates.reordering, rates.delay) = reorder(node)?;
    }
    if let Some(node) = table.get("burst") {
        rates.burst = node.number("burst")?;
        if !(1.0..=1e6).contains(&rates.burst) {
            let what =
                "is no length of a burst; write the mean number of packets in a row, 1 or more, such as 4";
            return Err(node.problem("burst", &format!("{} {what}", rates.burst)));
        }
    }
    for (key, rate) in [("loss", rates.loss), ("corrupt", rates.corruption)] {
        // At least one packet is between two bursts, so the rate has a maximum.
        let most = rates.burst / (rates.burst + 1.0);
        if rates.burst > 0.0 && rate > most && rate < 1.0 {
            let burst = rates.burst;
            let what = format!(
                "{rate} is too much in bursts of {burst}; write {most:.3} or less, or a longer burst"
            );
            return Err(table.get(key).unwrap_or(table).problem(key, &what));
        }
    }
    Ok(rates)
}

fn reorder(node: &Node) -> Result<(f64, Duration), Problem> {
    let wrong = |why: &str| node.problem("reorder", &format!("{why}; write RATE:TIME, such as \"1e-3:5us\""));
    let text = node.text("reorder").map_err(|_| wrong("a rate and a time are expected"))?;
    let (rate, time) = text.split_once(':').ok_or_else(|| wrong("the time is missing"))?;
    let rate = Node::loose(rate.trim(), node.line).rate("reorder")?;
    let time = parse_time(time.trim()).map_err(|error| wrong(&error.to_string()))?;
    if time.is_zero() || time > Duration::from_us(1_000_000) {
        return Err(wrong("the time must be 1 ps to 1 s"));
    }
    Ok((rate, time))
}

fn read_link(link: &Node, usual: Rates) -> Result<LinkFaults, Problem> {
    link.table("link", &LINK_KEYS)?;
    let example = "write name = \"hosts.0 -> switch.0\"";
    let name = link.get("name").ok_or_else(|| link.problem("link", &format!("it has no name; {example}")))?;
    let text = name.text("link.name")?;
    let (from, to) =
        text.split_once("->").filter(|(from, _)| !from.trim_end().ends_with('<')).ok_or_else(|| {
            name.problem("link.name", &format!("'{text}' is no direction of a link; {example}"))
        })?;
    let place = |text| place(text).map_err(|why| name.problem("link.name", &why));
    let drop = link.get("drop").map_or(Ok(Vec::new()), |node| {
        node.items().iter().take(MOST).map(|number| number.whole("link.drop", 1)).collect()
    })?;
    let (from, to) = (place(from)?, place(to)?);
    Ok(LinkFaults { from, to, rates: rates(link, usual)?, down: Vec::new(), drop })
}

/// Reads a failure: `hosts.1@2ms`, `hosts.0 -> switch.0@5us..9us`, or both directions with `<->`.
fn read_failure(node: &Node, faults: &mut Faults) -> Result<(), Problem> {
    let text = node.text("fail")?;
    let wrong = |why: &str| {
        let example = "write hosts.1@2ms for a node, or hosts.0->switch.0@5us..9us for a link";
        node.problem("fail", &format!("'{text}': {why}; {example}"))
    };
    let (name, when) = text.split_once('@').ok_or_else(|| wrong("the time is missing"))?;
    let time = |text: &str| {
        let since = parse_time(text.trim()).map_err(|error| wrong(&error.to_string()))?;
        Ok::<Time, Problem>(Time::ZERO + since)
    };
    let place = |text: &str| place(text).map_err(|why| wrong(&why));
    let outage = match when.split_once("..") {
        None => Outage { from: time(when)?, until: None },
        Some((from, until)) => Outage { from: time(from)?, until: Some(time(until)?) },
    };
    if outage.until.is_some_and(|until| until <= outage.from) {
        return Err(wrong("it ends before it begins"));
    }
    let directions = match (name.split_once("<->"), name.split_once("->")) {
        (Some((a, b)), _) => vec![(place(a)?, place(b)?), (place(b)?, place(a)?)],
        (None, Some((from, to))) => vec![(place(from)?, place(to)?)],
        (None, None) if outage.until.is_some() => {
            return Err(wrong("a failed node does not recover; leave the end out"));
        }
        (None, None) => {
            faults.nodes.push(NodeFailure { node: place(name)?, at: outage.from });
            return Ok(());
        }
    };
    for (from, to) in directions {
        match faults.links.iter_mut().find(|link| (link.from, link.to) == (from, to)) {
            Some(link) => link.down.push(outage),
            None => {
                let (rates, down) = (faults.rates, vec![outage]);
                faults.links.push(LinkFaults { from, to, rates, down, drop: Vec::new() });
            }
        }
    }
    Ok(())
}

fn place(text: &str) -> Result<Place, String> {
    let text = text.trim();
    let number = |text: &str| text.parse::<u32>().ok();
    match text.split_once('.') {
        Some(("hosts", rank)) => number(rank).map(Place::Host),
        Some(("switch", switch)) => number(switch).map(Place::Switch),
        _ => None,
    }
    .ok_or_else(|| {
        format!("'{text}' is no node; they are called hosts.0, hosts.1, ... and switch.0, switch.1, ...")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn us(us: u64) -> Time {
        Time::ZERO + Duration::from_us(us)
    }

    fn full() -> Faults {
        let rates = Rates {
            loss: 1e-3,
            corruption: 1e-4,
            duplication: 2e-3,
            reordering: 3e-3,
            delay: Duration::from_us(5),
            burst: 4.0,
        };
        let nodes = vec![NodeFailure { node: Place::Host(1), at: us(2000) }];
        let down = vec![Outage { from: us(5), until: Some(us(9)) }];
        let (from, to) = (Place::Host(0), Place::Switch(0));
        let links = vec![LinkFaults { from, to, rates, down, drop: vec![] }];
        Faults { seed: 7, rates, links, nodes }
    }

    const LINE: &str = "loss=1e-3, corrupt=0.0001,duplicate=.002,reorder=3e-3:5us,burst=4,seed=7,fail=hosts.1@2ms,\
                        fail=hosts.0->switch.0@5us..9 us";

    #[test]
    fn a_line_toml_and_json_say_the_same() {
        assert_eq!(parse(LINE).unwrap(), full());
        let toml = "seed = 7\nloss = 1e-3 # a comment\ncorrupt = 1e-4\nduplicate = 0.002\nreorder = '3e-3:5 us'\n\
                    burst = 4\nfail = ['hosts.1@2 ms', 'hosts.0 -> switch.0 @ 5 us .. 9 us']\n";
        assert_eq!(parse(toml).unwrap(), full());
        let json = r#"{"seed": 7, "loss": 1e-3, "corrupt": 1e-4, "duplicate": 0.002, "reorder": "3e-3:5us", "burst": 4,
                       "fail": ["hosts.1@2ms", "hosts.0->switch.0@5us..9us"]}"#;
        assert_eq!(parse(json).unwrap(), full());
        assert_eq!(parse("").unwrap(), Faults::default());
        assert_eq!(parse("{}").unwrap(), Faults::default());
    }

    #[test]
    fn a_link_has_rates_of_its_own() {
        let text = "loss = 0.1\ncorrupt = 0.2\nfail = 'hosts.0 <-> switch.0@1us'\n\
                    [[link]]\nname = 'hosts.0 -> switch.0'\nloss = 0.0\ndrop = [1, 5]\n";
        let faults = parse(text).unwrap();
        let [out, back] = faults.links.as_slice() else { panic!("{faults:?}") };
        assert_eq!((out.from, out.to), (back.to, back.from));
        assert_eq!((out.rates.loss, out.rates.corruption, back.rates.loss), (0.0, 0.2, 0.1));
        assert_eq!((out.drop.as_slice(), &out.down), ([1, 5].as_slice(), &back.down));
    }

    #[test]
    fn errors_name_their_place() {
        for (text, wrong) in [
            ("loss=2", "faults: loss: 2 is no rate; write a number from 0 to 1, such as 1e-3"),
            ("loss=-0.1", "loss: -0.1 is no rate"),
            ("loss=nan", "loss: 'nan' is no number"),
            ("loss=much", "loss: 'much' is no number; write one such as 0.001"),
            ("loss", "faults: 'loss' has no value; write KEY=VALUE, as in loss=1e-3,seed=7"),
            (
                "los=1",
                "faults: los: there is no such key; the keys are seed, loss, corrupt, duplicate, reorder, burst,",
            ),
            ("loss=0.1,loss=0.2", "loss: it appears twice"),
            ("seed=-1", "seed: -1 is no whole number from 0 on"),
            ("seed=1.5", "seed: 1.5 is no whole number from 0 on"),
            ("reorder=0.1", "reorder: the time is missing; write RATE:TIME, such as \"1e-3:5us\""),
            ("reorder=0.1:5", "reorder: "),
            ("reorder=0.1:0ns", "reorder: the time must be 1 ps to 1 s"),
            ("burst=0.5", "burst: 0.5 is no length of a burst"),
            ("loss=0.9,burst=2", "loss: 0.9 is too much in bursts of 2; write 0.667 or less"),
            ("fail=hosts.1", "fail: 'hosts.1': the time is missing; write hosts.1@2ms"),
            ("fail=hosts.1@soon", "fail: 'hosts.1@soon': "),
            ("fail=hosts.1@1us..2us", "a failed node does not recover; leave the end out"),
            ("fail=host.1@1us", "'host.1' is no node; they are called hosts.0"),
            ("fail=hosts.0->switch.0@3us..2us", "it ends before it begins"),
            ("loss = 0.1\n\nloss = 0.2\n", "faults, line 3: "),
            ("seed = 1\n\ncorrupt = 7.5\n", "faults, line 3: corrupt: 7.5 is no rate"),
            ("\nspeed = 1\n", "faults, line 2: speed: there is no such key"),
            ("loss = true\n", "line 1: loss: true is no number"),
            ("[[link]]\nloss = 0.1\n", "link: it has no name; write name = \"hosts.0 -> switch.0\""),
            ("[[link]]\nname = 'hosts.0'\n", "line 2: link.name: 'hosts.0' is no direction"),
            ("[[link]]\nname = 'hosts.0 <-> hosts.1'\n", "is no direction"),
            (
                "[[link]]\nname = 'hosts.0 -> hosts.1'\ndrop = [1, 0]\n",
                "line 3: link.drop: 0 is no whole number from 1 on",
            ),
            (
                "[[link]]\nname = 'hosts.0 -> hosts.1'\nseed = 1\n",
                "line 3: link.seed: there is no such key; the keys are name,",
            ),
            ("{\"loss\": }", "faults: "),
            ("{\"link\": 3}", "link: it is not a table"),
            ("loss = [\n", "faults, line 1: "),
        ] {
            let Err(Error::Input(found)) = parse(text) else { panic!("{text} was read") };
            assert!(found.starts_with("faults") && found.contains(wrong), "{text}: {found}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s).{0,80}") {
            let _ = parse(&text);
        }

        #[test]
        fn nearly_right_texts_do_not_panic(
            parts in prop::collection::vec(
                "(seed|loss|corrupt|reorder|burst|fail|drop|link|name)? ?=? ?(1e-3|[0-9.]{0,4}|hosts\\.[0-9]@[0-9]us|\"|\\[|\\{)?[,\n]?",
                0..8,
            )
        ) {
            let _ = parse(&parts.concat());
        }

        #[test]
        fn any_rates_are_read(loss in 0.0..=1.0f64, corrupt in 0.0..=1.0f64, seed: u64, ps in 1u64..1_000_000_000_000) {
            let faults = parse(&format!("loss={loss},corrupt={corrupt},seed={seed},reorder={loss}:{ps}ps")).unwrap();
            let Faults { rates, .. } = faults;
            prop_assert_eq!((rates.loss, rates.corruption, rates.reordering), (loss, corrupt, loss));
            prop_assert_eq!((faults.seed, rates.delay), (seed, Duration::from_ps(ps)));
            let whole = seed as i64;
            let toml = format!("loss = {loss:?}\ncorrupt = {corrupt:e}\nseed = {}\n", whole.unsigned_abs() >> 1);
            prop_assert_eq!(parse(&toml).unwrap().rates.loss, loss);
        }
    }
}
