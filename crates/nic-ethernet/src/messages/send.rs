//! Sending: a connection to each rank carries one message after another.

use super::header::Header;
use super::{Messenger, PORT, Sender, failed};
use crate::sockets::Socket;
use crate::wire;
use nicety_host::threads::{Group, Piece, Thread};
use nicety_kernel::{Server, describe};
use nicety_nic_core::library::to_its_end;
use nicety_nic_core::{CardError, Outgoing};
use nicety_stack::{Error, Options};
use nicety_types::{Buffer, NodeId, Path, Stage, Starter};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

impl Messenger {
    /// Sends a message, for a thread of the host's program. Returns when the socket has the message's bytes, so that
    /// the program may reuse the buffer.
    pub(super) async fn write_message(
        self: &Rc<Messenger>,
        program: u32,
        message: Outgoing,
        path: &mut Path,
    ) -> Result<(), CardError> {
        let Outgoing { to, tag, address, bytes } = message;
        let card = &self.net.card;
        let header = Header { source: card.node.0, tag, bytes, number: card.next_message().sequence };
        card.recorder.sent(header.message(), NodeId(to), bytes, "send", Starter::Host, path);
        let payload = self.memory.read(address, bytes)?.into_buffer();
        let payload = payload.map_err(|phantom| CardError::Input(format!("send over TCP: {phantom}")))?;
        let sender = self.sender(to);
        let turn = sender.turn.acquire().await;
        let call = self.net.programs.enter(program);
        path.advance(Stage::SEND_QUEUED, self.net.sim.now());
        let (own, mut on) = (self.clone(), path.clone());
        // A message is always written completely, because the bytes after it begin with a header.
        let work = async move {
            let result = own.send_on(&sender, call.thread(), header, to, &payload, &mut on).await;
            drop((turn, call));
            ((result, on), ())
        };
        let waits = || format!("rank {to} to take its message of {bytes} bytes, tag {tag}");
        let (result, on) = describe(waits, to_its_end(&self.net.sim, work)).await;
        *path = on;
        result.map_err(|error| failed(&format!("send to rank {to}"), error))
    }

    async fn send_on(
        &self,
        sender: &Sender,
        thread: &Thread,
        header: Header,
        to: u32,
        payload: &Buffer,
        path: &mut Path,
    ) -> Result<(), Error> {
        let work = Piece::new(Group::Application, self.net.spec.messages.match_);
        thread.run(work, Stage::POST, path).await;
        if to == self.net.card.node.0 {
            self.copy(thread, payload.len(), path).await;
            self.deliver_own(header, payload, path);
            return Ok(());
        }
        let known = sender.socket.borrow().clone();
        let socket = match known {
            Some(socket) => socket,
            None => {
                let options = Options { nodelay: true, ..Options::default() };
                let peer = (SocketAddr::new(wire::ipv4(to).into(), PORT), None);
                let socket = Socket::connect(&self.net, thread, peer, &options, path).await?;
                sender.socket.replace(Some(socket.clone()));
                socket
            }
        };
        socket.write(thread, &[&header.emit(), payload], path).await
    }

    fn sender(&self, to: u32) -> Rc<Sender> {
        let new = || Rc::new(Sender { socket: RefCell::default(), turn: Server::new(&self.net.sim) });
        self.senders.borrow_mut().entry(to).or_insert_with(new).clone()
    }

    /// Delivers a message of the host to itself, which the library has copied.
    fn deliver_own(&self, header: Header, payload: &[u8], path: &Path) {
        let target = self.target(header);
        self.put(&target, 0, payload);
        self.complete(&target, header, path);
        let watcher = self.net.watcher.borrow().clone();
        if let Some(watcher) = watcher {
            watcher.interrupt();
        }
    }
}
