//! Tests `send` and `recv` over connections.

use super::support::{Rig, User, at, pattern};
use nicety_kernel::{Either, race};
use nicety_nic_core::{Arrival, Caller, Card, CardError, Outgoing, Tags, Wanted};
use nicety_types::{Duration, Path, Recorder};
use std::cell::RefCell;
use std::rc::Rc;

impl User {
    async fn message(&self, to: u32, tag: u64, bytes: &[u8]) {
        let memory = self.memory.allocate(bytes.len() as u64).unwrap();
        memory.bytes().unwrap().write(0, bytes);
        let outgoing = Outgoing { to, tag, address: memory.address(), bytes: bytes.len() as u64 };
        let (path, recorder) = (RefCell::new(Path::from(self.sim.now())), Recorder::off());
        let card: Rc<dyn Card> = self.node.clone();
        card.send(self.caller(&path, &recorder), outgoing).await.unwrap();
    }

    async fn receive(&self, tag: u64, room: u64) -> Result<(Arrival, Vec<u8>), CardError> {
        let memory = self.memory.allocate(room).unwrap();
        let wanted = Wanted { source: None, tags: Tags::exactly(tag), address: memory.address(), room };
        let (path, recorder) = (RefCell::new(Path::from(self.sim.now())), Recorder::off());
        let card: Rc<dyn Card> = self.node.clone();
        let posted = card.clone().post_receive(self.caller(&path, &recorder), wanted).await?;
        let arrival = card.received(self.caller(&path, &recorder), posted).await?;
        let mut bytes = vec![0; arrival.bytes.min(room) as usize];
        memory.bytes().unwrap().read(0, &mut bytes);
        Ok((arrival, bytes))
    }

    fn caller<'c>(&'c self, path: &'c RefCell<Path>, recorder: &'c Recorder) -> Caller<'c> {
        Caller { sim: &self.sim, cpus: &self.cpus, recorder, thread: self.program, path }
    }
}

/// A thread gets its message, although another thread reads the connection and waits for a later message.
#[test]
fn threads_that_wait_side_by_side_go_on_with_their_own_messages() {
    let mut rig = Rig::new("niagara2-niu", 2, &[]);
    rig.program(0, async |user| {
        user.message(1, 2, &pattern(5000, 2)).await;
        // The second message is sent only when the receiver of the first message requests it.
        user.receive(3, 8).await.unwrap();
        user.message(1, 1, &pattern(100, 1)).await;
    });
    rig.program(1, async |user| {
        let (one, two) = (user.thread(1), user.thread(2));
        let first = async move { one.receive(1, 100).await.unwrap().1 };
        let second = async move {
            let bytes = two.receive(2, 5000).await.unwrap().1;
            two.message(0, 3, &[]).await;
            bytes
        };
        let (first, second) = nicety_kernel::join(first, second).await;
        assert!(first == pattern(100, 1) && second == pattern(5000, 2));
    });
    rig.run();
}

/// A receive that is cancelled within a message loses no byte of the next message.
#[test]
fn a_wait_that_is_given_up_leaves_messages_whole() {
    for us in (250..1200).step_by(50) {
        let mut rig = Rig::new("niagara2-neptune", 2, &[]);
        rig.program(0, async |user| {
            for n in 0..4 {
                user.message(1, n, &pattern(60_000, n)).await;
            }
        });
        rig.program(1, async move |user| {
            let first = user.receive(0, 60_000);
            let given_up =
                matches!(race(first, user.sim.delay(Duration::from_us(us))).await, Either::Right(()));
            for n in 1..4 {
                let (arrival, bytes) = user.receive(n, 60_000).await.unwrap();
                assert_eq!((arrival.source, arrival.tag), (0, n));
                assert!(bytes == pattern(60_000, n), "{us} us, message {n}, {given_up}");
            }
        });
        rig.run();
    }
}

/// Foreign bytes at the port of messages are no message, and cause no failure.
#[test]
fn other_bytes_at_the_port_of_messages_are_told() {
    for bytes in [&b"GET / HTTP/1.0\r\n\r\nand more than a header"[..], &forged(5, 0), &forged(0, u64::MAX)] {
        let mut rig = Rig::new("niagara2-niu", 2, &["tcp.timeout=1 s"]);
        let sent = bytes.to_vec();
        rig.program(0, async move |user| {
            let socket = user.connected(1, 1).await;
            user.send(socket, &sent).await.unwrap();
        });
        let is_huge = bytes[16] == 0xff;
        rig.program(1, async move |user| {
            let error = user.receive(9, 100).await.unwrap_err();
            assert_eq!(error.to_string(), "recv: the bytes of a connection from rank 0 are no message");
        });
        // A message of the maximum length never finds a receive.
        if is_huge {
            assert!(rig.fail().to_string().contains("deadlock"));
        } else {
            rig.run();
        }
    }
}

/// Returns a header from a rank, for `bytes` bytes.
fn forged(rank: u32, bytes: u64) -> Vec<u8> {
    [&b"nice"[..], &rank.to_be_bytes(), &9u64.to_be_bytes(), &bytes.to_be_bytes()[2..], &[0; 6]].concat()
}

#[test]
fn a_connection_is_made_once_for_each_pair() {
    let mut rig = Rig::new("niagara2-niu", 3, &[]);
    for rank in 0..3 {
        rig.program(rank, async move |user| {
            for _ in 0..5 {
                for to in (0..3).filter(|&to| to != rank) {
                    user.message(to, rank.into(), &pattern(100, 0)).await;
                }
                for from in (0..3).filter(|&from| from != rank) {
                    assert_eq!(user.receive(from.into(), 100).await.unwrap().1, pattern(100, 0));
                }
            }
            assert_eq!(at(rank, 0).port(), 0);
        });
    }
    rig.run();
    // Each rank has two connections to others, and two from others. Each connection has a SYN with its answer, and then
    // five messages with acknowledgements.
    let card = rig.report(0).card;
    assert!((20..60).contains(&card.frames_received), "{card:?}");
}

/// The sender copies a message of a host to itself. A second copy follows if its receive is posted later.
#[test]
fn a_message_within_the_host_takes_its_copy() {
    let took = |bytes: usize, is_early: bool| {
        let mut rig = Rig::new("ethernet-100g", 2, &[]);
        let ended = Rc::new(RefCell::new(Duration::ZERO));
        let end = ended.clone();
        rig.program(0, async move |user| {
            let (one, two) = (user.thread(1), user.thread(2));
            let sends = async move {
                if !is_early {
                    two.sim.delay(Duration::from_us(1)).await;
                }
                two.message(0, 7, &pattern(bytes, 3)).await;
            };
            let receives = async move {
                if is_early {
                    one.sim.delay(Duration::from_us(1000)).await;
                }
                one.receive(7, bytes as u64).await.unwrap().1
            };
            let ((), received) = nicety_kernel::join(sends, receives).await;
            assert!(received == pattern(bytes, 3));
            end.replace(user.sim.now().since(nicety_types::Time::ZERO));
        });
        rig.program(1, async |_| ());
        rig.run();
        ended.take().ps()
    };
    for is_early in [false, true] {
        let [none, one, two] = [64, 1 << 20, 2 << 20].map(|bytes| took(bytes, is_early));
        // A message that arrives before its receive has already been copied into the library's memory.
        let each = two - one;
        assert!((one - none).abs_diff(each) < each / 100, "{none} {one} {two}");
        // The copy has at most the bandwidth of memory.
        let bytes_per_s = f64::from(1 << 20) / (each as f64 / 1e12);
        assert!((1e9..499e9).contains(&bytes_per_s), "{bytes_per_s}");
    }
}

#[test]
fn hosts_that_both_send_more_than_fits_are_in_a_deadlock() {
    let mut rig = Rig::new("niagara2-niu", 2, &[]);
    for node in 0..2 {
        rig.program(node, async move |user| {
            user.message(1 - node, 0, &pattern(2 << 20, 0)).await;
            user.receive(0, 2 << 20).await.unwrap();
        });
    }
    assert!(rig.fail().to_string().contains("deadlock"));
}
