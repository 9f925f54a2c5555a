//! The messenger as the transport of the library of `send` and `recv`.

use crate::card::ChannelError;
use crate::messenger::Messenger;
use crate::messenger::envelope::Envelope;
use crate::messenger::error::MessageError;
use crate::messenger::progress::{Posted, Progress, Receiving};
use nicety_nic_core::library::{ArrivedMessage, Library, Transport, Types};
use nicety_nic_core::{Arrival, CardError, Outgoing, Wanted};
use nicety_types::{Path, Stage};
use std::rc::Rc;

impl Messenger {
    /// Checks that this host can exchange messages with `peer`, or with all ranks if `peer` is `None`. Messages of a
    /// rank to itself need no card.
    fn reach(&self, peer: Option<u32>) -> Result<(), CardError> {
        match &self.unfit {
            Some(why) if peer != Some(self.own) => Err(why.clone()),
            _ => Ok(()),
        }
    }
}

impl Types for Messenger {
    /// The envelope, and the path up to its arrival.
    type Body = (Envelope, Path);
    type Progress = Progress;
    type Failure = ChannelError;
    type Error = MessageError;

    fn failed(failure: &ChannelError) -> MessageError {
        MessageError::Channel(*failure)
    }
}

impl Transport for Messenger {
    fn library(&self) -> &Library<Messenger> {
        &self.library
    }

    fn check_send(&self, message: &Outgoing) -> Result<(), CardError> {
        self.reach(Some(message.to))
    }

    async fn send(
        self: &Rc<Self>,
        _thread: u32,
        message: Outgoing,
        path: &mut Path,
    ) -> Result<(), CardError> {
        let Outgoing { to, tag, address, bytes } = message;
        match Messenger::send(self, path, to, tag, address, bytes).await {
            // The message was taken by a receive that is too short. The program of this receive gets the error.
            Err(MessageError::Refused { .. }) => Ok(()),
            sent => Ok(sent?),
        }
    }

    fn check_receive(self: &Rc<Self>, wanted: &Wanted) -> Result<(), CardError> {
        self.reach(wanted.source)?;
        Ok(self.check_wanted(wanted)?)
    }

    fn check_source(&self, source: Option<u32>) -> Result<(), CardError> {
        self.reach(source)
    }

    fn deliver(
        self: &Rc<Self>,
        receiving: Rc<Receiving>,
        came: ArrivedMessage<(Envelope, Path)>,
        _path: Path,
    ) {
        receiving.progress.taken.replace(Some(came.body));
    }

    fn posted(self: &Rc<Self>, receiving: &Rc<Receiving>, path: &Path) {
        self.complete(receiving, path);
    }

    fn withdrawn(&self, receiving: &Receiving) {
        receiving.progress.withdrawn.set(true);
        self.library.changed.notify_all();
    }

    async fn receive(
        self: &Rc<Self>,
        _thread: u32,
        receiving: &Rc<Receiving>,
        path: &mut Path,
    ) -> Result<Arrival, CardError> {
        match self.received(path, Posted(receiving.clone())).await {
            Ok(arrival) => Ok(arrival.in_room(arrival.bytes)),
            // If the message was eager, its first bytes are in the buffer. Otherwise the buffer has none of its bytes.
            Err(MessageError::NoRoom { message, room }) => Ok(message.in_room(room)),
            Err(error) => Err(error.into()),
        }
    }

    async fn call(&self, _thread: u32, path: &mut Path) {
        let card = self.device.card();
        card.kernel().cpus().spend(card.spec().channels.library, Stage::LIBRARY, path).await;
    }

    async fn look(self: &Rc<Self>, thread: u32, wanted: &Wanted, path: &mut Path) -> Result<(), CardError> {
        self.expect_from(wanted.source)?;
        self.call(thread, path).await;
        Ok(())
    }
}
