//! The placement of one or several ranks on each host, and the tags that separate the messages of a host's ranks.
//!
//! The processes of a host share the message library of its card, which knows only hosts. So each tag has two more numbers, in
//! bits above those of the program. They are the numbers of the sender and the receiver on their hosts.

use nicety::{Error, Pairs, Tags};

/// Bits of a message's tag, without the bits for the kind of message.
pub(crate) const TAG_BITS: u32 = 61;
/// Maximum processes of a host. MPICH's tags have 55 bits, so three bits remain for each of the two numbers.
pub(crate) const MOST_ON_HOST: u32 = 8;

/// The number of ranks on each host. Ranks are placed in order: the first ranks fill host 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    on_host: u32,
    /// The number of bits for a process's number on its host.
    bits: u32,
}

impl Places {
    /// # Errors
    /// When a host cannot have `on_host` ranks.
    pub(crate) fn new(ranks: u32, on_host: u32) -> Result<Places, Error> {
        if !(1..=MOST_ON_HOST).contains(&on_host) {
            return Err(Error::Input(format!(
                "ranks_per_node {on_host}: a host has 1 to {MOST_ON_HOST} processes, since tags of messages \
                 carry their numbers"
            )));
        }
        if on_host > ranks {
            return Err(Error::Input(format!(
                "ranks_per_node {on_host}: the program has {ranks} processes; give -n {on_host} or more, or \
                 lower ranks_per_node"
            )));
        }
        Ok(Places { on_host, bits: on_host.next_power_of_two().ilog2() })
    }

    /// Returns whether hosts have more than one rank.
    pub(crate) const fn are_shared(self) -> bool {
        self.on_host > 1
    }

    /// Returns the number of ranks on a host.
    pub(crate) const fn on_host(self) -> u32 {
        self.on_host
    }

    /// Returns the number of hosts for `ranks` ranks.
    pub(crate) const fn hosts(self, ranks: u32) -> u32 {
        ranks.div_ceil(self.on_host)
    }

    /// Returns the host of a rank.
    pub(crate) const fn host(self, rank: u32) -> u32 {
        rank / self.on_host
    }

    /// Returns the number of a rank on its host.
    const fn number(self, rank: u32) -> u64 {
        (rank % self.on_host) as u64
    }

    /// Returns the number of tag bits for the program.
    pub(crate) const fn tag_bits(self) -> u32 {
        TAG_BITS - 2 * self.bits
    }

    /// Returns the bits of a tag that belong to the program.
    pub(crate) const fn own(self, tag: u64) -> u64 {
        tag & ((1 << self.tag_bits()) - 1)
    }

    const fn sender(self, rank: u32) -> u64 {
        self.number(rank) << self.tag_bits()
    }

    const fn receiver(self, rank: u32) -> u64 {
        self.number(rank) << (self.tag_bits() + self.bits)
    }

    /// Returns the card's tag of a message from one rank to another. `tag` has the program's bits.
    pub(crate) const fn between(self, from: u32, to: u32, tag: u64) -> u64 {
        self.own(tag) | self.sender(from) | self.receiver(to)
    }

    /// Returns the card's tags of messages from one rank, or any rank, to another. `tags` are the program's tags.
    pub(crate) fn wanted(self, from: Option<u32>, to: u32, tags: Tags) -> Tags {
        let senders = ((1 << self.bits) - 1) << self.tag_bits();
        Tags {
            bits: tags.bits | from.map_or(0, |rank| self.sender(rank)) | self.receiver(to),
            ignore: tags.ignore | if from.is_none() { senders } else { 0 },
        }
    }

    /// Returns the pairs of processes on two hosts. In the number of a pair, the sender's number takes the low bits.
    pub(crate) const fn pairs(self) -> Pairs {
        Pairs { first: self.tag_bits(), bits: 2 * self.bits }
    }

    /// Returns the sender's and the receiver's rank of a pair of processes on two hosts.
    pub(crate) const fn ranks(self, hosts: [u32; 2], pair: u32) -> (u32, u32) {
        let [from, to] = hosts;
        let number = pair & ((1 << self.bits) - 1);
        (from * self.on_host + number, to * self.on_host + (pair >> self.bits))
    }

    /// Returns the rank that sent a message with this tag from a host.
    pub(crate) const fn source(self, host: u32, tag: u64) -> u32 {
        let number = (tag >> self.tag_bits()) & ((1 << self.bits) - 1);
        host * self.on_host + number as u32
    }
}

/// A bit of a message's tag, above those of the program and its processes. It means that the message begins with data for the
/// receiver's completion.
pub(crate) const HAS_DATA: u64 = 1 << TAG_BITS;
pub(crate) const UNTAGGED: u64 = 1 << (TAG_BITS + 1);
/// Bytes of the data for the receiver's completion.
pub(crate) const DATA_BYTES: u64 = 4;

/// Describes tags. In the tags of both MPIs, the low 31 bits are the program's tag. Higher bits have the communicator, and
/// protocol bits that are ignored.
pub(crate) fn tags(tag: u64, ignore: u64) -> String {
    const LOW: u64 = (1 << 31) - 1;
    let high = tag & !ignore & !LOW;
    let low = match ignore & LOW {
        0 => format!("tag {}", tag & LOW),
        LOW => "any tag".to_owned(),
        _ => return Tags { bits: tag, ignore }.what(),
    };
    if high == 0 {
        low
    } else {
        format!("{low} with the bits {high:#x} (for MPI, a communicator or its protocol)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_on_each_host_needs_no_bits() {
        let places = Places::new(5, 1).unwrap();
        assert_eq!((places.hosts(5), places.host(4), places.tag_bits()), (5, 4, 61));
        assert_eq!(places.between(3, 4, !0), (1 << 61) - 1);
        assert_eq!(places.wanted(None, 4, Tags::exactly(9)), Tags::exactly(9));
        assert_eq!(places.source(4, !0), 4);
        assert_eq!((places.pairs().count(), places.pairs().of(!0), places.ranks([4, 3], 0)), (1, 0, (4, 3)));
    }

    #[test]
    fn tags_name_sender_and_receiver() {
        // With three processes on a host, a number takes two bits. Rank 7 is the second of host 2, and rank 5 the third of host
        // 1.
        let places = Places::new(8, 3).unwrap();
        assert_eq!((places.hosts(8), places.host(7), places.host(5), places.tag_bits()), (3, 2, 1, 57));
        let tag = places.between(7, 5, 0x2a);
        assert_eq!(tag, 0x2a | 1 << 57 | 2 << 59);
        assert_eq!((places.source(2, tag), places.own(tag)), (7, 0x2a));
        // The pair of process 1 and process 2, with four processes on each host.
        assert_eq!((places.pairs().count(), places.pairs().of(tag)), (16, 1 + 2 * 4));
        assert_eq!(places.ranks([2, 1], 1 + 2 * 4), (7, 5));
        let exactly = Tags::exactly(0x2a);
        assert!(places.wanted(Some(7), 5, exactly).has(tag));
        assert!(places.wanted(None, 5, exactly).has(tag));
        // Rank 6 is the first process of its host, and rank 4 the second of the other host.
        assert!(!places.wanted(Some(6), 5, exactly).has(tag));
        assert!(!places.wanted(None, 4, exactly).has(tag));
    }

    #[test]
    fn numbers_of_processes_that_cannot_be_are_refused() {
        for (ranks, on_host, told) in [
            (4, 0, "ranks_per_node 0: a host has 1 to 8 processes"),
            (16, 9, "ranks_per_node 9: a host has 1 to 8 processes"),
            (2, 4, "ranks_per_node 4: the program has 2 processes; give -n 4 or more"),
        ] {
            let Err(Error::Input(text)) = Places::new(ranks, on_host) else { panic!("{told}") };
            assert!(text.starts_with(told), "{text}");
        }
    }
}
