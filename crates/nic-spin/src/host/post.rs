//! Operations that a host posts to its card: puts, gets and atomic operations, immediate or triggered.
//!
//! A post takes the time o of a CPU. Then the command crosses the bus, and the operation continues at the send engine.

use crate::host::in_order::Posting;
use crate::transmit::{Bytes, HostPart, Leaving, Report};
use crate::{CallError, Card};
use nicety_host::Cpus;
use nicety_portals::{CtHandle, Effects, Interface, PutRequest, Request};
use nicety_types::{Path, Starter};
use std::rc::Rc;

impl Card {
    pub(crate) fn check_rank(&self, rank: u32) -> Result<(), CallError> {
        if rank >= self.nodes { Err(CallError::Rank { rank, ranks: self.nodes }) } else { Ok(()) }
    }

    /// Checks the arguments of an operation. This is useful for a triggered operation, because its call has returned
    /// before the card can refuse it.
    ///
    /// # Errors
    /// When the request is not valid.
    pub fn check_request(&self, request: &Request) -> Result<(), CallError> {
        self.check_rank(request.target().0)?;
        Ok(self.interface.borrow().check_request(request)?)
    }

    /// Sends a message (`PtlPut`), like [`Card::post`].
    ///
    /// # Errors
    /// Like [`Card::post`].
    pub async fn put(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        request: &PutRequest,
    ) -> Result<(), CallError> {
        self.post(cpus, path, &Request::Put(*request)).await
    }

    /// Starts an operation (`PtlPut`, `PtlGet`, `PtlAtomic`, `PtlFetchAtomic`, `PtlSwap`). Returns when its command has
    /// been posted. The command crosses the bus, followed by the bytes to be sent.
    ///
    /// # Errors
    /// When the request is not valid. The call then has no effect.
    pub async fn post(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        request: &Request,
    ) -> Result<(), CallError> {
        self.post_behind(cpus, path, request, None).await
    }

    /// Like [`Card::post`]. With `posting`, the command stays behind earlier calls.
    pub(crate) async fn post_behind(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        request: &Request,
        posting: Option<&Posting<'_>>,
    ) -> Result<(), CallError> {
        self.check_rank(request.target().0)?;
        let out = self.interface.borrow_mut().start(request)?;
        let message = self.next_message();
        self.record_sent(message, &out.header, Starter::Host, path);
        cpus.post(path, message).await;
        if let Some(posting) = posting {
            posting.turn(path).await;
        }
        let bytes = out.header.payload_bytes();
        // A swap with its operand is fetched as a whole, for any number of packets.
        let whole = !out.operand.as_slice().is_empty();
        let packet_bytes = if whole { bytes } else { self.spec.packet_payload };
        let transfer = self.dma.bus().push(message, bytes, packet_bytes, path.clone());
        let leaving = Leaving {
            message,
            header: out.header,
            bytes: Bytes::Host { memory: HostPart::of(&out), transfer },
            report: Some(Report::Sent(out.operation)),
            place: None,
        };
        self.sim.spawn(self.clone().send(leaving));
        Ok(())
    }

    /// Sends a message from the card when a counter has reached `threshold` (`PtlTriggeredPut`), like
    /// [`Card::post_triggered`].
    ///
    /// # Errors
    /// Like [`Card::post_triggered`].
    pub async fn triggered_put(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        request: PutRequest,
        ct: CtHandle,
        threshold: u64,
    ) -> Result<(), CallError> {
        self.post_triggered(cpus, path, Request::Put(request), ct, threshold).await
    }

    /// Starts an operation on the card when a counter has reached `threshold` (`PtlTriggeredPut` and its siblings).
    /// Returns when the command has been posted.
    ///
    /// # Errors
    /// When the rank is not valid. If the card refuses the command on its arrival, the refusal is among the card's
    /// failures.
    pub async fn post_triggered(
        self: &Rc<Card>,
        cpus: &Cpus,
        path: &mut Path,
        request: Request,
        ct: CtHandle,
        threshold: u64,
    ) -> Result<(), CallError> {
        self.check_rank(request.target().0)?;
        let act = move |interface: &mut Interface, effects: &mut Effects| {
            interface.trigger(&request, ct, threshold, effects)
        };
        self.tell(cpus, path, request.triggered_name(), act).await;
        Ok(())
    }
}
