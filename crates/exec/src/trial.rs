//! Finds the maximum length at which cards reduce vectors faster than MPI does by messages. A trial runs both methods on the
//! cards of the run.
//!
//! The card's method is that of `shim/offload_card.c`, with the same handlers. MPI's method is recursive doubling, or a
//! reduce-scatter and an allgather (Rabenseifner). Both use messages over the card, and the hosts' arithmetic takes no time.
//! Measurements show that MPICH 5.0 uses Rabenseifner's algorithm if each host gets at least one item; hosts beyond a power of
//! two do not count. For another MPI, the faster of the two algorithms is compared. Each method runs once for each length, on all
//! hosts together. The length doubles from the shortest one on, as long as the card is faster.

use nicety::portals::{AckRequest, CtHandle, List, Md, MdHandle, MdOptions, Me, MeOptions, PutRequest};
use nicety::{Buffer, Cluster, ClusterConfig, Error, HandlerNames, Host, NodeId, Portals, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The numbers of operators and of types in `collectives.h`.
pub(crate) const OPERATORS: usize = 10;
pub(crate) const TYPES: usize = 10;
/// Bytes of the longest and of the shortest vector.
const MOST: u64 = 65536;
const SHORTEST: u64 = 8;
/// Maximum hosts of a trial. More hosts would add the same number of steps to both methods.
pub(crate) const MOST_HOSTS: u32 = 16;
/// Match bits, as in `collectives.h`.
const REDUCE: u64 = 0x300;
const SLOT: u64 = 0x400;

/// The maximum length at which the card is faster, by operator and type; 0 if the card is never faster.
pub(crate) type Limits = [[u64; TYPES]; OPERATORS];

/// Operators, and others that take the same time: sums and bitwise operators; products; minimum and maximum; logical operators.
const SAME: [(usize, &[usize]); 4] = [(0, &[4, 5, 6]), (1, &[]), (2, &[3]), (7, &[8, 9])];
/// Types, and others that take the same time.
const ALIKE: [(usize, &[usize]); 6] = [(0, &[1]), (2, &[3]), (4, &[5]), (6, &[7]), (8, &[]), (9, &[])];
/// Bytes of an item, by type.
const ITEM_BYTES: [u64; TYPES] = [1, 1, 2, 2, 4, 4, 8, 8, 4, 8];
/// Types with this number or a higher one have no bitwise and no logical operators.
const FLOAT: usize = 8;

/// The state that all hosts share.
struct Trial {
    program: Vec<u8>,
    packet_bytes: u64,
    hosts: u32,
    is_mpich: bool,
    /// For each step of the trial, the longest time of any host, in picoseconds.
    took: RefCell<BTreeMap<Step, u64>>,
    limits: RefCell<Limits>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Doubling(u64),
    Scattering(u64),
    Card { op: usize, datatype: usize, bytes: u64 },
}

/// A host in the trial.
struct Own {
    host: Host,
    portals: Portals,
    trial: Rc<Trial>,
    vector: Buffer,
    other: Buffer,
    md: MdHandle,
    pt: u32,
    done: CtHandle,
    counted: u64,
}

/// Tries both methods.
///
/// # Errors
/// When the handlers cannot be loaded, or a run fails.
pub(crate) fn limits(
    config: ClusterConfig,
    program: Vec<u8>,
    packet_bytes: u64,
    is_mpich: bool,
) -> Result<Limits, Error> {
    let hosts = config.nodes;
    let mut cluster = Cluster::new(config)?;
    let trial = Rc::new(Trial {
        program,
        packet_bytes,
        hosts,
        is_mpich,
        took: RefCell::default(),
        limits: RefCell::default(),
    });
    for rank in 0..hosts {
        let trial = trial.clone();
        cluster.program(rank, move |host| async move { Own::new(host, trial)?.run().await });
    }
    cluster.run()?;
    let limits = *trial.limits.borrow();
    Ok(limits)
}

fn lengths() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(SHORTEST), |bytes| Some(bytes * 2)).take_while(|bytes| *bytes <= MOST)
}

impl Own {
    fn new(host: Host, trial: Rc<Trial>) -> Result<Own, Error> {
        let portals = host.portals()?;
        let pt = portals.ni_limits().portal_table - 1;
        portals.pt_alloc(Some(pt), None)?;
        let (vector, other, into) = (host.alloc(MOST)?, host.alloc(MOST)?, host.alloc(MOST)?);
        let md = portals.md_bind(Md {
            start: vector.address(),
            length: MOST,
            options: MdOptions::empty(),
            eq: None,
            ct: None,
        })?;
        let counters = [portals.ct_alloc()?, portals.ct_alloc()?];
        let (rank, hosts) = (host.rank(), trial.hosts);
        let entry = |names: [&str; 2], state: &[u8], match_bits, ct, counts| {
            let names = HandlerNames {
                header: Some(names[0].to_owned()),
                payload: Some(names[1].to_owned()),
                completion: None,
            };
            let handlers = portals.load_handlers(&trial.program, &names)?;
            let me = Me {
                start: into.address(),
                length: MOST,
                match_bits,
                options: MeOptions::OP_PUT
                    | MeOptions::EVENT_COMM_DISABLE
                    | MeOptions::EVENT_LINK_DISABLE
                    | MeOptions::EVENT_UNLINK_DISABLE
                    | counts,
                ct: Some(ct),
                handlers: Some(portals.attach(&handlers, state, None)?),
                ..Me::default()
            };
            portals.me_set_up(pt, me, List::Priority)
        };
        let reduces = reduce_state((rank, hosts), trial.packet_bytes);
        entry(["reduce_header", "reduce_payload"], &reduces, REDUCE, counters[0], MeOptions::empty())?;
        let slot = words(&[rank, hosts, 0, 0]);
        let counts = MeOptions::EVENT_CT_COMM | MeOptions::EVENT_CT_BYTES;
        entry(["slot_header", "slot_payload"], &slot, SLOT, counters[1], counts)?;
        let done = counters[usize::from(rank > 0)];
        Ok(Own { host, portals, trial, vector, other, md, pt, done, counted: 0 })
    }

    async fn run(mut self) -> Result<(), Error> {
        for bytes in lengths() {
            self.host.barrier().await;
            let start = self.host.now();
            self.doubles(bytes).await?;
            self.note(Step::Doubling(bytes), start);
            self.host.barrier().await;
            let start = self.host.now();
            self.scatters(bytes).await?;
            self.note(Step::Scattering(bytes), start);
        }
        for (datatype, alike) in ALIKE {
            for (op, same) in SAME {
                if datatype >= FLOAT && op >= 7 {
                    continue;
                }
                let limit = self.limit(op, datatype).await?;
                let mut limits = self.trial.limits.borrow_mut();
                for op in [&[op], same].concat() {
                    for datatype in [&[datatype], alike].concat() {
                        limits[op][datatype] = limit;
                    }
                }
            }
        }
        Ok(())
    }

    /// Records the time of a step on this host, to find the longest of all hosts.
    fn note(&self, step: Step, start: Time) {
        let took = self.host.now().ps() - start.ps();
        let mut all = self.trial.took.borrow_mut();
        let most = all.entry(step).or_default();
        *most = took.max(*most);
    }

    /// Returns the length in bytes of the longest vector that the card reduces faster.
    async fn limit(&mut self, op: usize, datatype: usize) -> Result<u64, Error> {
        let mut limit = 0;
        for bytes in lengths() {
            self.host.barrier().await;
            let start = self.host.now();
            self.reduces(op, datatype, bytes).await?;
            let step = Step::Card { op, datatype, bytes };
            self.note(step, start);
            self.host.barrier().await;
            let took = self.trial.took.borrow();
            let (doubling, scattering) = (took[&Step::Doubling(bytes)], took[&Step::Scattering(bytes)]);
            let by_messages = match self.trial.is_mpich {
                true if bytes / ITEM_BYTES[datatype] >= 1 << self.trial.hosts.ilog2() => scattering,
                true => doubling,
                false => doubling.min(scattering),
            };
            if took[&step] > by_messages {
                break;
            }
            limit = bytes;
        }
        Ok(limit)
    }

    /// Reduces a vector on the card, as `card_reduce` in `shim/offload_card.c`.
    async fn reduces(&mut self, op: usize, datatype: usize, bytes: u64) -> Result<(), Error> {
        let rank = self.host.rank();
        let has_children = rank == 0 || (rank & rank.wrapping_neg()) > 1 && rank + 1 < self.trial.hosts;
        let to = if has_children { rank } else { rank & (rank - 1) };
        let put = PutRequest {
            ack: AckRequest::None,
            hdr_data: (op | datatype << 8) as u64,
            ..PutRequest::new(self.md, bytes, NodeId(to), self.pt, REDUCE)
        };
        self.portals.put(&put).await?;
        self.counted += bytes;
        self.portals.ct_wait(self.done, self.counted).await?;
        Ok(())
    }

    async fn exchange(&self, with: u32, bytes: u64) -> Result<(), Error> {
        let pending = self.host.post_recv(&self.other.slice(0, bytes)?, Some(with), Some(1)).await?;
        self.host.send(&self.vector.slice(0, bytes)?, with, 1).await?;
        self.host.received(pending).await?;
        Ok(())
    }

    /// Each rank beyond a power of two first gives its vector to another rank, and gets the result at the end. Returns whether
    /// this rank takes part in the steps between.
    async fn fold(&self, bytes: u64, is_end: bool) -> Result<bool, Error> {
        let (rank, all) = (self.host.rank(), 1 << self.trial.hosts.ilog2());
        let whole = self.vector.slice(0, bytes)?;
        if rank >= all {
            match is_end {
                false => self.host.send(&whole, rank - all, 2).await?,
                true => drop(self.host.recv(&whole, Some(rank - all), Some(2)).await?),
            }
        } else if rank + all < self.trial.hosts {
            match is_end {
                false => drop(self.host.recv(&self.other.slice(0, bytes)?, Some(rank + all), Some(2)).await?),
                true => self.host.send(&whole, rank + all, 2).await?,
            }
        }
        Ok(rank < all)
    }

    async fn doubles(&self, bytes: u64) -> Result<(), Error> {
        if self.fold(bytes, false).await? {
            for step in 0..self.trial.hosts.ilog2() {
                self.exchange(self.host.rank() ^ 1 << step, bytes).await?;
            }
        }
        self.fold(bytes, true).await?;
        Ok(())
    }

    async fn scatters(&self, bytes: u64) -> Result<(), Error> {
        let steps = self.trial.hosts.ilog2();
        if self.fold(bytes, false).await? {
            for step in (0..steps).chain((0..steps).rev()) {
                self.exchange(self.host.rank() ^ 1 << step, bytes >> (step + 1)).await?;
            }
        }
        self.fold(bytes, true).await?;
        Ok(())
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns the bytes of a `collective_reduce_t`, with the contents that `set_up_reductions` in `shim/offload_card.c` gives it.
fn reduce_state((rank, hosts): (u32, u32), packet_bytes: u64) -> Vec<u8> {
    let segments = MOST.div_ceil(packet_bytes);
    let vector = (32 + 8 * segments + 15) & !15;
    let lowest = if rank == 0 { hosts.next_power_of_two() } else { rank & rank.wrapping_neg() };
    let children = (0..lowest.ilog2()).filter(|step| rank + (1 << step) < hosts).count() as u32;
    let mut state =
        words(&[rank, hosts, children + 1, packet_bytes as u32, MOST as u32, vector as u32, 0, 0]);
    state.resize((vector + MOST) as usize, 0);
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_and_type_is_tried_once() {
        let all = |groups: &[(usize, &[usize])]| {
            let mut all: Vec<usize> =
                groups.iter().flat_map(|(one, same)| [&[*one], *same].concat()).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(all(&SAME), (0..OPERATORS).collect::<Vec<_>>());
        assert_eq!(all(&ALIKE), (0..TYPES).collect::<Vec<_>>());
    }

    #[test]
    fn contributions_are_those_of_the_tree() {
        // A binomial tree of 6 ranks. The children of 0 are 1, 2 and 4; 3 is the child of 2, and 5 that of 4.
        let expected = |rank| u32::from_le_bytes(reduce_state((rank, 6), 4096)[8..12].try_into().unwrap());
        assert_eq!((0..6).map(expected).collect::<Vec<_>>(), [4, 1, 2, 1, 2, 1]);
        assert_eq!(reduce_state((0, 6), 4096).len(), 32 + 16 * 8 + 65536);
    }
}
