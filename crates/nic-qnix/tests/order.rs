//! Transfers get a DMA channel in the order in which they were queued.

use super::support::{Rig, at};
use nicety_nic_qnix::TransferMethod;
use std::cell::RefCell;
use std::rc::Rc;

#[test]
fn deposits_and_doorbells_that_wait_for_a_channel_go_first_come_first_served() {
    const MESSAGES: u64 = 8;
    // A message arrives about every 10 us. The set-up of the only channel takes 100 us for each transfer.
    let mut rig = Rig::new(2, &["dma.channels=1", "dma.setup=100 us"]);
    rig.process(0, 0, async move |user| {
        user.open().await.unwrap();
        let buffer = user.room(512);
        for tag in 0..MESSAGES {
            user.send(buffer, at(1, 0), tag, TransferMethod::Pio).await.unwrap();
        }
    });
    let order = Rc::new(RefCell::new(Vec::new()));
    let seen = order.clone();
    rig.process(1, 0, async move |user| {
        user.open().await.unwrap();
        let mut pending = Vec::new();
        for tag in 0..MESSAGES {
            pending.push((
                tag,
                user.receive(user.room(512), None, Some(tag), TransferMethod::Auto).await.unwrap(),
            ));
        }
        while !pending.is_empty() {
            let mut left = Vec::new();
            for (tag, operation) in pending {
                match user.test(operation).await.unwrap() {
                    Some(_) => seen.borrow_mut().push(tag),
                    None => left.push((tag, operation)),
                }
            }
            pending = left;
        }
    });
    rig.run();
    assert_eq!(*order.borrow(), (0..MESSAGES).collect::<Vec<_>>());
}
