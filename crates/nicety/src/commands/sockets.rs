//! Commands on sockets.

use super::{Carried, Outcome, Program, nothing};
use crate::{Error, Host};
use nicety_nic_ethernet::{Setting, SocketKind};
use std::net::SocketAddr;

/// Commands that take no virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketSetup {
    /// [`Sockets::open`](crate::Sockets::open).
    Open(SocketKind),
    /// [`Sockets::ends`](crate::Sockets::ends): an [`Outcome::Ends`].
    Ends {
        /// The socket.
        socket: u32,
    },
}

/// The calls of [`Sockets`](crate::Sockets), under the same names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the calls and arguments of `Sockets`, under the same names")]
pub enum SocketCall {
    Bind { port: u16 },
    Set(Setting),
    Connect { to: SocketAddr },
    Listen { backlog: u32 },
    Accept,
    Send { bytes: Vec<u8> },
    Recv { most: u64 },
    SendTo { bytes: Vec<u8>, to: SocketAddr },
    RecvFrom { most: u64 },
    Shutdown,
    Close,
}

impl Program {
    pub(super) fn set_up_sockets(&self, setup: SocketSetup) -> Result<Outcome, Error> {
        let sockets = self.0.host.socket()?;
        Ok(match setup {
            SocketSetup::Open(kind) => Outcome::Word(sockets.open(kind).into()),
            SocketSetup::Ends { socket } => {
                let (own, peer) = sockets.ends(socket)?;
                Outcome::Ends(own, peer)
            }
        })
    }

    pub(super) fn sockets<'c>(&'c self, host: &'c Host, socket: u32, call: SocketCall) -> Carried<'c> {
        match call {
            SocketCall::Bind { port } => {
                Box::pin(async move { host.socket()?.bind(socket, port).await.map(nothing) })
            }
            SocketCall::Set(setting) => {
                Box::pin(async move { host.socket()?.set(socket, setting).await.map(nothing) })
            }
            SocketCall::Connect { to } => {
                Box::pin(async move { host.socket()?.connect(socket, to).await.map(nothing) })
            }
            SocketCall::Listen { backlog } => {
                Box::pin(async move { host.socket()?.listen(socket, backlog).await.map(nothing) })
            }
            SocketCall::Accept => Box::pin(async move {
                host.socket()?.accept(socket).await.map(|accepted| Outcome::Word(accepted.into()))
            }),
            SocketCall::Send { bytes } => Box::pin(async move {
                host.socket()?.send(socket, &bytes).await.map(|()| Outcome::Word(bytes.len() as u64))
            }),
            SocketCall::Recv { most } => {
                Box::pin(async move { host.socket()?.recv(socket, most).await.map(Outcome::Bytes) })
            }
            SocketCall::SendTo { bytes, to } => Box::pin(async move {
                host.socket()?.send_to(socket, &bytes, to).await.map(|()| Outcome::Word(bytes.len() as u64))
            }),
            SocketCall::RecvFrom { most } => Box::pin(async move {
                let (bytes, from) = host.socket()?.recv_from(socket, most).await?;
                Ok(Outcome::Datagram(bytes, from))
            }),
            SocketCall::Shutdown => {
                Box::pin(async move { host.socket()?.shutdown(socket).await.map(nothing) })
            }
            SocketCall::Close => Box::pin(async move { host.socket()?.close(socket).await.map(nothing) }),
        }
    }
}
