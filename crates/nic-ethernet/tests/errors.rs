//! Tests the errors of calls on sockets.

use super::support::{Rig, User, at, pattern};
use nicety_nic_ethernet::{Setting, SocketKind};
use nicety_types::{Duration, Time};
use std::cell::Cell;
use std::rc::Rc;

/// Runs a program on the first of two hosts.
fn alone<F: Future<Output = ()> + 'static>(
    overrides: &[&str],
    program: impl FnOnce(User) -> F + 'static,
) -> Rig {
    let mut rig = Rig::new("niagara2-niu", 2, overrides);
    let done = Rc::new(Cell::new(false));
    let end = done.clone();
    rig.program(0, async move |user| {
        program(user).await;
        end.set(true);
    });
    rig.run();
    assert!(done.get());
    rig
}

#[test]
fn a_port_without_a_listener_refuses_at_once() {
    let rig = alone(&[], async |user| {
        let socket = user.open(SocketKind::Stream);
        assert_eq!(user.connect(socket, at(1, 80)).await.unwrap_err().name(), "ECONNREFUSED");
        // The program may connect again.
        assert_eq!(user.connect(socket, at(1, 81)).await.unwrap_err().name(), "ECONNREFUSED");
        assert!(user.sim.now().ps() < 2_000_000_000);
    });
    assert_eq!(rig.report(1).dropped, 2);
}

#[test]
fn a_host_that_is_not_there_is_unreachable() {
    alone(&[], async |user| {
        let socket = user.open(SocketKind::Stream);
        assert_eq!(user.connect(socket, at(7, 80)).await.unwrap_err().name(), "EHOSTUNREACH");
        // The stack sends three requests, one second apart.
        assert_eq!(user.sim.now().ps() / 1_000_000_000_000, 3);
        let far = "192.168.1.1:80".parse().unwrap();
        assert_eq!(user.connect(socket, far).await.unwrap_err().name(), "ENETUNREACH");
        assert_eq!(user.connect(socket, at(0, 80)).await.unwrap_err().name(), "ENETUNREACH");
        assert_eq!(user.connect(socket, at(1, 0)).await.unwrap_err().name(), "EINVAL");
    });
}

#[test]
fn a_port_has_one_socket() {
    alone(&[], async |user| {
        let (one, two) = (user.open(SocketKind::Stream), user.open(SocketKind::Stream));
        user.bind(one, 80).await.unwrap();
        assert_eq!(user.bind(two, 80).await.unwrap_err().name(), "EADDRINUSE");
        assert_eq!(user.bind(one, 81).await.unwrap_err().name(), "EINVAL");
        // `send` and `recv` use port 1.
        assert_eq!(user.bind(two, 1).await.unwrap_err().name(), "EADDRINUSE");
        user.listen(one, 1).await.unwrap();
        user.close(one).await.unwrap();
        user.bind(two, 80).await.unwrap();
        user.listen(two, 1).await.unwrap();
        let datagrams = [(); 2].map(|()| user.open(SocketKind::Datagram));
        user.bind(datagrams[0], 80).await.unwrap();
        assert_eq!(user.bind(datagrams[1], 80).await.unwrap_err().name(), "EADDRINUSE");
        user.close(datagrams[0]).await.unwrap();
        user.bind(datagrams[1], 80).await.unwrap();
    });
}

#[test]
fn calls_that_do_not_fit_are_told() {
    alone(&[], async |user| {
        let (stream, datagram) = (user.open(SocketKind::Stream), user.open(SocketKind::Datagram));
        assert_eq!(user.send(stream, b"x").await.unwrap_err().name(), "ENOTCONN");
        assert_eq!(user.recv(stream, 1).await.unwrap_err().name(), "ENOTCONN");
        assert_eq!(user.shutdown(stream).await.unwrap_err().name(), "ENOTCONN");
        assert_eq!(user.accept(stream).await.unwrap_err().name(), "EINVAL");
        assert_eq!(user.listen(stream, 1).await.unwrap_err().name(), "EINVAL");
        assert_eq!(user.send(datagram, b"x").await.unwrap_err().name(), "EOPNOTSUPP");
        assert_eq!(user.listen(datagram, 1).await.unwrap_err().name(), "EOPNOTSUPP");
        assert_eq!(user.recv_from(datagram, 1).await.unwrap_err().name(), "EINVAL");
        assert_eq!(user.send_to(stream, b"x", at(1, 1)).await.unwrap_err().name(), "EOPNOTSUPP");
        assert_eq!(user.send_to(datagram, &[0; 1473], at(1, 1)).await.unwrap_err().name(), "EMSGSIZE");
        user.send_to(datagram, &[0; 1472], at(1, 1)).await.unwrap();
        for bytes in [0, 1 << 31] {
            let error = user.set(stream, Setting::ReceiveBuffer(bytes)).await.unwrap_err();
            assert_eq!(error.name(), "EINVAL");
        }
    });
}

#[test]
fn a_closed_socket_is_no_socket() {
    alone(&[], async |user| {
        let socket = user.open(SocketKind::Stream);
        user.close(socket).await.unwrap();
        assert_eq!(user.close(socket).await.unwrap_err().name(), "EBADF");
        assert_eq!(user.connect(socket, at(1, 80)).await.unwrap_err().name(), "EBADF");
        assert_eq!(user.send(socket, b"x").await.unwrap_err().name(), "EBADF");
        assert_eq!(user.recv(99, 1).await.unwrap_err().name(), "EBADF");
        // The number is reused.
        assert_eq!(user.open(SocketKind::Datagram), socket);
    });
}

#[test]
fn who_waits_on_a_socket_that_another_thread_closes_is_told() {
    let mut rig = Rig::new("niagara2-niu", 2, &[]);
    rig.program(0, async |user| {
        let listening = user.listening(80).await;
        let connected = user.connected(1, 80).await;
        let datagram = user.open(SocketKind::Datagram);
        user.bind(datagram, 9).await.unwrap();
        let (a, b, c) = (user.thread(1), user.thread(2), user.thread(3));
        let waiting = nicety_kernel::join(
            async move { a.accept(listening).await.unwrap_err() },
            nicety_kernel::join(async move { b.recv(connected, 10).await.unwrap_err() }, async move {
                c.recv_from(datagram, 10).await.unwrap_err()
            }),
        );
        let closing = async {
            user.sim.delay(nicety_types::Duration::from_us(1000)).await;
            for socket in [listening, connected, datagram] {
                user.close(socket).await.unwrap();
            }
        };
        let ((one, (two, three)), ()) = nicety_kernel::join(waiting, closing).await;
        assert_eq!([one, two, three].map(|error| error.name()), ["EBADF"; 3]);
    });
    rig.program(1, async |user| {
        let listening = user.listening(80).await;
        let socket = user.accept(listening).await.unwrap();
        assert!(user.recv(socket, 10).await.unwrap().is_empty());
    });
    rig.run();
}

#[test]
fn a_connection_that_is_reset_is_told() {
    let mut rig = Rig::new("niagara2-niu", 2, &[]);
    rig.program(0, async |user| {
        let socket = user.connected(1, 80).await;
        user.send(socket, b"nobody reads this").await.unwrap();
        assert_eq!(user.recv(socket, 10).await.unwrap_err().name(), "ECONNRESET");
        assert_eq!(user.send(socket, b"x").await.unwrap_err().name(), "ECONNRESET");
        user.close(socket).await.unwrap();
    });
    rig.program(1, async |user| {
        let listening = user.listening(80).await;
        let socket = user.accept(listening).await.unwrap();
        user.sim.delay(nicety_types::Duration::from_us(2000)).await;
        // The socket is closed with unread bytes.
        user.close(socket).await.unwrap();
    });
    rig.run();
}

#[test]
fn no_more_connections_than_memory_for_their_buffers() {
    let mut rig = Rig::new("niagara2-niu", 2, &["sockets.memory=1 MiB", "sockets.send_buffer=464 KiB"]);
    rig.program(0, async |user| {
        // Each connection has a send buffer of 464 KiB and a receive buffer of 48 KiB.
        for _ in 0..2 {
            user.connected(1, 80).await;
        }
        let socket = user.open(SocketKind::Stream);
        assert_eq!(user.connect(socket, at(1, 80)).await.unwrap_err().name(), "ENOBUFS");
    });
    rig.program(1, async |user| {
        let listening = user.listening(80).await;
        for _ in 0..2 {
            user.accept(listening).await.unwrap();
        }
    });
    rig.run();
}

#[test]
fn a_deadlock_says_what_sockets_wait_for() {
    let mut rig = Rig::new("niagara2-niu", 2, &[]);
    rig.program(0, async |user| {
        let socket = user.connected(1, 80).await;
        user.recv(socket, 10).await.unwrap();
    });
    rig.program(1, async |user| {
        let listening = user.listening(80).await;
        user.accept(listening).await.unwrap();
        user.accept(listening).await.unwrap();
    });
    let text = rig.fail().to_string();
    for part in ["bytes of its connection from 10.0.0.1:", "to 10.0.0.2:80", "a connection to its port 80"] {
        assert!(text.contains(part), "{text}");
    }
}

/// Starts a program that sends more than the peer accepts, at two nodes. Their peer reads after `wait`, if it reads.
fn writers(rig: &Rig, wait: Option<Duration>) {
    for node in [0, 2] {
        rig.program(node, async |user| {
            let socket = user.connected(1, 80).await;
            user.send(socket, &pattern(2 << 20, 1)).await.unwrap();
            user.close(socket).await.unwrap();
        });
    }
    rig.program(1, async move |user| {
        let listening = user.listening(80).await;
        let sockets = [user.accept(listening).await.unwrap(), user.accept(listening).await.unwrap()];
        match wait {
            Some(wait) => user.sim.delay(wait).await,
            None => _ = user.accept(listening).await,
        }
        for socket in sockets {
            user.recv_all(socket, 2 << 20).await.unwrap();
        }
    });
}

#[test]
fn writers_to_a_peer_that_never_reads_are_in_a_deadlock() {
    let mut rig = Rig::new("niagara2-niu", 3, &[]);
    writers(&rig, None);
    let text = rig.fail().to_string();
    let parts =
        ["program of node 0", "program of node 2", "a connection to its port 80", "room in the send buffer"];
    for part in parts {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn writers_wait_for_a_peer_that_reads_late() {
    let mut rig = Rig::new("niagara2-niu", 3, &[]);
    writers(&rig, Some(Duration::from_us(3_600_000_000)));
    assert!(rig.run().end > Time::ZERO + Duration::from_us(3_600_000_000));
}
