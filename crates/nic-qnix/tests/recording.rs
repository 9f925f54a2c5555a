//! The records of a message at both ends: the send at the sender, and the outcome at the receiver.

use crate::support::{Rig, at};
use nicety_nic_qnix::TransferMethod;
use nicety_types::{Level, Recorder};

fn recorder() -> Recorder {
    Recorder::new(Level::Messages, 100)
}

/// Returns the outcome of each arrived message, and whether it is complete.
fn outcomes(recorder: &Recorder) -> Vec<(&'static str, bool)> {
    recorder.take().messages.arrived().map(|row| (row.outcome, row.completed.is_some())).collect()
}

#[test]
fn messages_end_with_the_doorbell_of_their_receive() {
    let (sender, target) = (recorder(), recorder());
    let both = [sender.clone(), target.clone()];
    let mut rig = Rig::recorded(2, &[], 1, |node| both[node.0 as usize].clone());
    rig.process(0, 0, async move |user| {
        user.open().await.unwrap();
        let buffer = user.pool(4096).await.unwrap();
        for tag in 0..2 {
            let send =
                user.send((buffer.address(), 2048), at(1, 0), tag, TransferMethod::Pool).await.unwrap();
            user.wait(send).await.unwrap();
        }
    });
    rig.process(1, 0, async move |user| {
        user.open().await.unwrap();
        for (tag, room) in [(0, 2048), (1, 8)] {
            let receive = user.receive(user.room(room), None, Some(tag), TransferMethod::Auto).await.unwrap();
            user.wait(receive).await.unwrap();
        }
    });
    rig.run();
    assert_eq!(outcomes(&target), [("received", true), ("truncated", true)]);
    assert_eq!(sender.take().messages.sent().len(), 2);
}
