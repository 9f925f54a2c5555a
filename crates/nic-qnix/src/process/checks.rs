//! Protection: checks that a call names only the process's own resources, and respects the card's limits.

use crate::interface::Kind;
use crate::process::{Operation, Process};
use crate::{Endpoint, QnixError};

impl Process {
    /// Checks that the interface belongs to the process. In a real host, the pages of an interface are mapped only into
    /// the memory of its process.
    pub(crate) fn check(&self, vni: u32) -> Result<(), QnixError> {
        let owner = self.card.interface(vni, |interface| interface.owner);
        if owner == Some(self.number) {
            return Ok(());
        }
        self.card.count(|counted| counted.refused += 1);
        Err(QnixError::NotYours { vni, owner, process: self.number })
    }

    pub(crate) fn check_peer(&self, peer: Endpoint) -> Result<(), QnixError> {
        let (nodes, limit) = (self.card.nodes, self.card.spec.limits.vnis);
        if peer.node.0 >= nodes {
            return Err(QnixError::NoNode { node: peer.node.0, nodes });
        }
        if peer.vni >= limit {
            return Err(QnixError::NoSuchInterface { vni: peer.vni, limit });
        }
        Ok(())
    }

    /// Checks that a message is not longer than the limit and lies in the memory of the process.
    pub(crate) fn check_bytes(&self, address: u64, bytes: u64) -> Result<(), QnixError> {
        let limit = self.card.spec.limits.message;
        if bytes > limit {
            return Err(QnixError::Message { bytes, limit });
        }
        let own = self.own.borrow();
        let last = own[..own.partition_point(|&(begin, _)| begin <= address)].last();
        if bytes == 0
            || last.is_some_and(|&(begin, len)| address - begin <= len && bytes <= len - (address - begin))
        {
            return Ok(());
        }
        self.card.count(|counted| counted.refused += 1);
        Err(QnixError::NotYourMemory { address, len: bytes, process: self.number })
    }

    pub(crate) fn check_operation(&self, vni: u32, operation: Operation) -> Result<Kind, QnixError> {
        self.check(vni)?;
        let kind = self.card.interface(vni, |interface| Some(interface.operations.get(&operation.0)?.0));
        kind.flatten().ok_or(QnixError::NoOperation { operation: operation.0 })
    }
}
