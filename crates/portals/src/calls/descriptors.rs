//! Memory descriptors, and the operations that use them ('Memory Descriptors').

use crate::error::release;
use crate::request::Draft;
use crate::state::descriptor::Descriptor;
use crate::state::operation::{Operation, Owner, Place, State};
use crate::{Error, Header, Interface, Md, MdHandle, MdOptions, OperationHandle};

impl Interface {
    /// Binds memory as the source of messages, or as the destination of replies (`PtlMDBind`).
    ///
    /// # Errors
    /// [`Error::NoSpace`]; [`Error::Stale`] for the queue or counter; [`Error::ArgInvalid`] if the memory ends beyond
    /// 2^64, or an option counts although `ct` is `None`.
    pub fn md_bind(&mut self, md: Md) -> Result<MdHandle, Error> {
        if md.start.checked_add(md.length).is_none() {
            return Err(Error::ArgInvalid("the descriptor's memory must end below address 2^64"));
        }
        let counts = MdOptions::EVENT_CT_SEND | MdOptions::EVENT_CT_REPLY | MdOptions::EVENT_CT_ACK;
        if md.ct.is_none() && md.options.intersects(counts) {
            return Err(Error::ArgInvalid("EVENT_CT_ options of a descriptor need a counter in `ct`"));
        }
        md.eq.map(|eq| self.queues.get(eq)).transpose()?;
        md.ct.map(|ct| self.counters.get(ct)).transpose()?;
        let handle = self.descriptors.insert(Descriptor { md, users: 0 })?;
        if let Some(eq) = md.eq {
            self.queues.get_mut(eq)?.users += 1;
        }
        self.counters.r#use(md.ct);
        Ok(handle)
    }

    /// Releases a memory descriptor (`PtlMDRelease`).
    ///
    /// # Errors
    /// [`Error::Stale`], or [`Error::InUse`] while an operation uses it.
    pub fn md_release(&mut self, md: MdHandle) -> Result<(), Error> {
        release(self.descriptors.get(md)?.users, "memory descriptor", "operations that have not ended")?;
        let Descriptor { md, .. } = self.descriptors.remove(md)?;
        if let Some(eq) = md.eq {
            self.queues.get_mut(eq)?.users -= 1;
        }
        self.counters.unuse(md.ct);
        Ok(())
    }

    /// Creates an operation that has not started.
    pub(crate) fn remember_operation(
        &mut self,
        draft: &Draft,
        from: Option<Place>,
        to: Option<Place>,
    ) -> Result<OperationHandle, Error> {
        let header = Header { source: self.node, uid: self.uid, ..draft.header };
        let (operand, user_ptr, state) = (draft.operand, draft.user_ptr, State::Waiting);
        let operation = self.operations.insert(Operation { header, from, to, operand, user_ptr, state })?;
        self.operations.get_mut(operation)?.header.operation = operation.to_bits();
        for place in [from, to].into_iter().flatten() {
            match place.of {
                Owner::Host(md) => self.descriptors.get_mut(md)?.users += 1,
                Owner::Card(ct) => self.counters.r#use(ct),
            }
        }
        Ok(operation)
    }

    /// Removes an operation that has ended.
    pub(crate) fn forget(&mut self, operation: OperationHandle) {
        let op = self.operations.remove(operation).expect("an operation ends once");
        for place in [op.from, op.to].into_iter().flatten() {
            match place.of {
                Owner::Host(md) => {
                    self.descriptors.get_mut(md).expect("a descriptor in use is not released").users -= 1;
                }
                Owner::Card(ct) => self.counters.unuse(ct),
            }
        }
    }

    /// Returns the memory descriptor of a place. If the place belongs to the card, returns a substitute.
    pub(crate) fn md(&self, place: Place) -> Md {
        match place.of {
            Owner::Host(md) => self.descriptors.get(md).expect("a descriptor in use is not released").md,
            Owner::Card(ct) => Md { ct, options: MdOptions::EVENT_CT_REPLY, ..Md::default() },
        }
    }
}
