//! Collective operations of MPI that cards execute. This file selects the operations, checks the cards, and reports the
//! disposition of calls.
//!
//! A library in front of MPI (`shim/offload*.c`) decides for each call whether the card executes it. It counts its decisions in
//! the page that its process shares with the simulator.

use crate::launcher::Launcher;
use crate::requests::{Fallback, Offloaded, RankOffload, Request};
use nicety::cards::{self, Card};
use nicety::spin::SpinSpec;
use nicety::{Environment, Error};
use nicety_goal::requests::Ns;
use serde::Serialize;

/// Names of the operations, in the order of their numbers in `shim/offload_base.h`.
pub(crate) const COLLECTIVES: [&str; 3] = ["bcast", "barrier", "allreduce"];
/// Reasons for leaving a call to MPI, in the order of their numbers in `shim/offload_base.h`.
pub(crate) const REASONS: [&str; 9] =
    ["communicator", "datatype", "operator", "length", "empty", "arguments", "alone", "set-up", "cost"];
/// The only operation that MPI may execute faster. With the suffix `=always`, the card executes every call.
const REDUCTION: &str = "allreduce";
const ALWAYS: &str = "allreduce=always";
/// The source file of the operations' handlers, in the library of handlers.
const SOURCE: &str = "collectives.c";
/// The offset of a rank's counts in its page, in bytes.
pub(crate) const AT: usize = 3008;
/// The payload of a packet must be a multiple of this number of bytes, so that no item of a reduction is cut.
const ITEM_BYTES: u64 = 16;

/// The counts of one process.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) offloaded_calls: [u64; COLLECTIVES.len()],
    pub(crate) offloaded_bytes: [u64; COLLECTIVES.len()],
    pub(crate) fallback_calls: [[u64; REASONS.len()]; COLLECTIVES.len()],
    pub(crate) set_up_ps: u64,
}

impl Counts {
    /// Returns the report of one process.
    pub(crate) fn of_rank(&self) -> RankOffload {
        RankOffload {
            set_up_ns: Ns { ps: self.set_up_ps },
            offloaded_calls: self.offloaded_calls.iter().sum(),
            fallback_calls: self.fallback_calls.iter().flatten().sum(),
        }
    }
}

/// The operations of a run that cards execute.
pub(crate) struct Offload {
    names: String,
    program: String,
    packet_bytes: u64,
    /// The longest vector in bytes that the card reduces, by operator and type; `None` if it reduces all vectors.
    limits: Option<crate::trial::Limits>,
}

impl Offload {
    /// Returns the operations that cards execute, if any are requested.
    ///
    /// # Errors
    /// As [`plan`], and when the compiled handlers are missing.
    pub(crate) fn of(
        request: &Request,
        (name, card): (&str, &Card),
        environment: &Environment<'_>,
    ) -> Result<Option<Offload>, Error> {
        let names = names(request)?;
        if names.is_empty() {
            return Ok(None);
        }
        let spec = with_handlers(name, card)?;
        if request.offload_program.is_empty() {
            return Err(Error::Input(format!("offload: no compiled handlers; compile {SOURCE} as planned")));
        }
        let is_tried = names.contains(&REDUCTION) && request.ranks > 1 && !is_always(request);
        let limits = if is_tried { Some(limits(request, (name, card), environment, spec)?) } else { None };
        let (program, packet_bytes) = (request.offload_program.clone(), spec.packet_payload);
        Ok(Some(Offload { names: names.join(","), program, packet_bytes, limits }))
    }

    /// Returns the environment variables for the library in front of MPI.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![
            ("NICETY_OFFLOAD", self.names.clone()),
            ("NICETY_OFFLOAD_PROGRAM", self.program.clone()),
            ("NICETY_OFFLOAD_PACKET", self.packet_bytes.to_string()),
        ];
        if let Some(limits) = &self.limits {
            let limits: Vec<String> = limits.iter().flatten().map(u64::to_string).collect();
            all.push(("NICETY_OFFLOAD_LIMITS", limits.join(",")));
        }
        all
    }

    /// Returns the dispositions of the calls, summed over all processes.
    pub(crate) fn report(&self, ranks: &[Counts]) -> Vec<Offloaded> {
        let sum = |of: &dyn Fn(&Counts) -> u64| ranks.iter().map(of).sum();
        let all =
            COLLECTIVES.iter().enumerate().filter(|(_, name)| self.names.split(',').any(|own| own == **name));
        all.map(|(at, name)| Offloaded {
            name,
            offloaded_calls: sum(&|own| own.offloaded_calls[at]),
            offloaded_bytes: sum(&|own| own.offloaded_bytes[at]),
            fallback_calls: sum(&|own| own.fallback_calls[at].iter().sum()),
            fallbacks: REASONS
                .iter()
                .enumerate()
                .map(|(why, reason)| Fallback { reason, calls: sum(&|own| own.fallback_calls[at][why]) })
                .filter(|passed| passed.calls > 0)
                .collect(),
        })
        .collect()
    }
}

/// Returns whether the card executes every reduction, even if MPI is faster.
fn is_always(request: &Request) -> bool {
    request.offload.iter().flatten().any(|name| name == ALWAYS)
}

/// Tries reductions on the hosts of the run, or on the first of them, without the noise and faults of the run.
fn limits(
    request: &Request,
    card: (&str, &Card),
    environment: &Environment<'_>,
    spec: &SpinSpec,
) -> Result<crate::trial::Limits, Error> {
    let hosts = request.ranks.min(crate::trial::MOST_HOSTS);
    let program = std::fs::read(&request.offload_program)
        .map_err(|error| Error::Input(format!("offload: {}: {error}", request.offload_program)))?;
    let quiet = Environment { interrupt: environment.interrupt.clone(), ..Environment::default() };
    let config = request.cards.config(&request.network, request.ranks, card, &quiet)?;
    // The network for all ranks may be too large for a trial. A star has the same links.
    let topology = if hosts < request.ranks { nicety::Topology::Star } else { config.topology };
    let mut config = nicety::ClusterConfig { nodes: hosts, topology, noise: None, ..config };
    config.faults = nicety::Faults::default();
    config.breakdown = false;
    crate::trial::limits(config, program, spec.packet_payload, request.launcher == Launcher::Mpich)
}

/// The handlers to compile for a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The programs to compile: one, or none without offloading.
    pub compile: Vec<Planned>,
}

/// A program to compile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// The source file in the library of handlers.
    pub source: &'static str,
    /// The instruction set of the card's processors.
    pub isa: String,
}

/// Returns the handlers to compile for a run.
///
/// # Errors
/// When an operation cannot be offloaded. When the card cannot be read, or cannot run the handlers.
pub fn plan(request: &Request) -> Result<Plan, Error> {
    if names(request)?.is_empty() {
        return Ok(Plan { compile: Vec::new() });
    }
    let card = cards::load(&request.nic, &request.cards.overrides)?;
    let spec = with_handlers(&card.listing.name, &card)?;
    Ok(Plan { compile: vec![Planned { source: SOURCE, isa: spec.hpu.isa.clone() }] })
}

/// Returns the operations to offload, without repetition, in the order of `COLLECTIVES`.
fn names(request: &Request) -> Result<Vec<&'static str>, Error> {
    let Some(asked) = &request.offload else { return Ok(Vec::new()) };
    let list = format!("name one or several of {}, with commas between them", COLLECTIVES.join(", "));
    let is_known = |name: &str| name == ALWAYS || COLLECTIVES.contains(&name);
    if let Some(unknown) = asked.iter().find(|name| !is_known(name)) {
        return Err(Error::Input(format!("--offload: {unknown:?} cannot be offloaded; {list}")));
    }
    if asked.is_empty() {
        return Err(Error::Input(format!(
            "--offload: no operation is named; {list}, or leave the option out"
        )));
    }
    if request.goal.is_some() {
        return Err(Error::Input(
            "--goal: a schedule cannot have operations that cards execute by themselves; leave out \
             --offload or --goal"
                .to_owned(),
        ));
    }
    if request.ranks_per_node > 1 {
        return Err(Error::Input(
            "--ranks-per-node: cards execute operations by themselves for only one process of a host; leave \
             out --offload, or run one process on each host"
                .to_owned(),
        ));
    }
    let is_asked = |name: &&str| asked.iter().any(|own| own == name || (own == ALWAYS && *name == REDUCTION));
    Ok(COLLECTIVES.into_iter().filter(is_asked).collect())
}

/// Returns whether a card can run the handlers of collective operations.
fn runs_handlers(card: &Card) -> bool {
    card.spec.of::<SpinSpec>().is_ok_and(|spec| spec.hpu.pspin.is_none())
}

fn with_handlers<'c>(name: &str, card: &'c Card) -> Result<&'c SpinSpec, Error> {
    if !runs_handlers(card) {
        let able = cards::shipped()?.into_iter().map(|(name, _)| name);
        let able: Vec<_> =
            able.filter(|name| cards::load(name, &[]).is_ok_and(|card| runs_handlers(&card))).collect();
        return Err(Error::Input(format!(
            "--offload: {name} cannot run handlers for messages (nicety.h); cards that can are {}",
            able.join(", ")
        )));
    }
    let spec = card.spec.of::<SpinSpec>()?;
    match spec.packet_payload % ITEM_BYTES {
        0 => Ok(spec),
        _ => Err(Error::Input(format!(
            "--offload: packets of {name} carry {} bytes (packet.payload), and a number cannot be split \
             between packets; set a multiple of {ITEM_BYTES}",
            spec.packet_payload
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_shim::{OFFLOAD_BASE_C as PLACE, OFFLOAD_BASE_H as HEADER};

    /// Returns the names of the header with this prefix, in the order of their numbers. The last name, which is the count, is
    /// left out.
    fn names_of(prefix: &str) -> Vec<String> {
        let block = HEADER.split("enum {").find(|block| block.trim_start().starts_with(prefix)).unwrap();
        let words = block.split('}').next().unwrap().lines().flat_map(|line| {
            let code = line.split("/*").next().unwrap();
            code.split(',').map(str::trim).filter(|word| !word.is_empty()).collect::<Vec<_>>()
        });
        let mut all: Vec<_> =
            words.map(|word| word.strip_prefix(prefix).unwrap().to_lowercase().replace('_', "-")).collect();
        all.pop();
        all
    }

    #[test]
    fn names_and_places_are_those_of_the_header() {
        assert_eq!(names_of("OFFLOAD_"), COLLECTIVES);
        assert_eq!(names_of("PASS_"), REASONS);
        assert!(PLACE.contains(&format!("#define NICETY_OFFLOAD_AT {AT}\n")));
        assert_eq!(size_of::<Counts>(), 8 * (2 * 3 + 3 * 9 + 1));
    }

    fn request(nic: &str, more: &str) -> Request {
        let text =
            format!(r#"{{"program": ["x"], "nic": "{nic}", "launcher": "none", "folder": "x"{more}}}"#);
        Request::from_json(&text).unwrap()
    }

    #[test]
    fn a_repeated_name_is_planned_once() {
        let asked = request("spin-discrete", r#", "offload": ["barrier", "bcast", "barrier"]"#);
        assert_eq!(names(&asked).unwrap(), ["bcast", "barrier"]);
        let always = request("spin-discrete", r#", "offload": ["allreduce=always"]"#);
        assert!(names(&always).unwrap() == ["allreduce"] && is_always(&always) && !is_always(&asked));
        let [planned] = <[_; 1]>::try_from(plan(&asked).unwrap().compile).unwrap();
        assert_eq!((planned.source, planned.isa.as_str()), (SOURCE, "rv32imac_zicsr"));
        assert!(plan(&request("qnix", "")).unwrap().compile.is_empty());
    }

    #[test]
    fn a_card_works_for_one_process() {
        let asked = request("spin-discrete", r#", "ranks": 4, "ranks_per_node": 2, "offload": ["barrier"]"#);
        let told = plan(&asked).unwrap_err().to_string();
        assert!(
            told.contains("--ranks-per-node: cards execute operations by themselves for only one process"),
            "{told}"
        );
    }

    #[test]
    fn counts_are_summed_over_ranks_for_what_is_offloaded() {
        let mut counts = [Counts::default(); 2];
        counts[0].offloaded_calls = [1, 2, 4];
        counts[1].offloaded_calls = [8, 16, 32];
        counts[0].fallback_calls[1] = [0, 0, 0, 0, 5, 0, 0, 7, 0];
        counts[1].fallback_calls[1] = [0, 0, 0, 0, 6, 0, 0, 0, 0];
        let own =
            Offload { names: "barrier".to_owned(), program: String::new(), packet_bytes: 4096, limits: None };
        let expected = Offloaded {
            name: "barrier",
            offloaded_calls: 18,
            offloaded_bytes: 0,
            fallback_calls: 18,
            fallbacks: vec![Fallback { reason: "empty", calls: 11 }, Fallback { reason: "set-up", calls: 7 }],
        };
        assert_eq!(own.report(&counts), [expected]);
        let rank = counts[0].of_rank();
        assert_eq!((rank.offloaded_calls, rank.fallback_calls), (7, 12));
    }

    #[test]
    fn cards_without_handlers_are_refused() {
        for nic in ["qnix", "pspin", "spin-100g", "ethernet-100g", "apenet-v5", "nfp-4000"] {
            let told = plan(&request(nic, r#", "offload": ["bcast"]"#)).unwrap_err().to_string();
            assert!(told.contains("cards that can are spin-discrete, spin-integrated"), "{told}");
        }
    }
}
