//! Commands for sockets.

use super::Outcome;
use super::calls::{calls, setups};
use nicety_nic_ethernet::{Setting, SocketKind};
use std::net::SocketAddr;

setups! {
    /// The set-up functions of [`Sockets`](crate::Sockets), under the same names.
    enum SocketSetup by set_up_sockets(program) sockets = program.0.host.socket()?;

    Open { kind: SocketKind } => sockets.open(kind);
    /// Returns the addresses of a socket and of its peer, as [`Outcome::Ends`].
    Ends { socket: u32 } => {
        let (own, peer) = sockets.ends(socket)?;
        Outcome::Ends(own, peer)
    };
}

calls! {
    /// The calls of [`Sockets`](crate::Sockets), under the same names.
    enum SocketCall by sockets(_, host, socket: u32) sockets = host.socket()?;

    Bind { port: u16 } => sockets.bind(socket, port).await?;
    Set { setting: Setting } => sockets.set(socket, setting).await?;
    Connect { to: SocketAddr } => sockets.connect(socket, to).await?;
    Listen { backlog: u32 } => sockets.listen(socket, backlog).await?;
    Accept => sockets.accept(socket).await?;
    Send { bytes: Vec<u8> } => {
        sockets.send(socket, &bytes).await?;
        bytes.len() as u64
    };
    Recv { most: u64 } => sockets.recv(socket, most).await?;
    SendTo { bytes: Vec<u8>, to: SocketAddr } => {
        sockets.send_to(socket, &bytes, to).await?;
        bytes.len() as u64
    };
    RecvFrom { most: u64 } => {
        let (bytes, from) = sockets.recv_from(socket, most).await?;
        Outcome::Datagram(bytes, from)
    };
    Shutdown => sockets.shutdown(socket).await?;
    Close => sockets.close(socket).await?;
}
