//! Calls that are dropped, or fail before their end. All resources of these calls must be free afterwards.

use super::support::{Rig, User, at};
use nicety_host::Memory;
use nicety_kernel::timeout;
use nicety_nic_qnix::{Operation, QnixError, TransferMethod};
use nicety_nic_testing::PathCell;
use nicety_types::Duration;
use proptest::prelude::*;
use std::cell::Cell;
use std::rc::Rc;

const POOL: u64 = 64 << 10;

#[derive(Clone, Debug)]
struct Step {
    receive: bool,
    how: TransferMethod,
    bytes: u64,
    /// Time from the start of the call to its drop, in nanoseconds.
    limit: u64,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let how = prop_oneof![
        Just(TransferMethod::Auto),
        Just(TransferMethod::Translate),
        Just(TransferMethod::Copy),
        Just(TransferMethod::Pio)
    ];
    let limit = prop_oneof![0..3000u64, 0..100_000u64];
    let step = (any::<bool>(), how, 0..9000u64, limit).prop_map(|(receive, how, bytes, limit)| {
        let bytes = if how == TransferMethod::Pio { bytes % 1024 } else { bytes };
        Step { receive, how, bytes, limit }
    });
    prop::collection::vec(step, 1..30)
}

/// Makes a call, and drops it after `limit` nanoseconds. Returns `None` if the call was dropped.
async fn within<T>(user: &User, limit: u64, call: impl Future<Output = T>) -> Option<T> {
    let result = timeout(&user.sim, Duration::from_ns(limit), call).await.ok();
    user.restart();
    result
}

/// Waits for an operation. Drops the wait a few times, and then waits again.
async fn wait(user: &User, operation: Operation, limit: u64) {
    for attempt in 0..6 {
        match within(user, limit * attempt % 1500, user.wait(operation)).await {
            Some(result) => return assert!(result.is_ok(), "{result:?}"),
            None => continue,
        }
    }
    user.wait(operation).await.unwrap();
}

/// Returns the posted operation. `None` if the pool has no room because of operations in progress.
fn unless_full(posted: Result<Operation, QnixError>) -> Option<Operation> {
    match posted {
        Err(QnixError::PoolFull { bytes, free }) => {
            assert!(bytes > free, "{bytes} {free}");
            None
        }
        other => Some(other.unwrap()),
    }
}

async fn program(user: User, steps: Vec<Step>) {
    let card = user.process.card().clone();
    let before = card.memory().used;
    let own = user.open().await.unwrap();
    while within(&user, steps[0].limit % 1000, user.pool(POOL)).await.is_none() {
        assert_eq!(card.memory().used, before, "a pool that is none has no descriptors");
        if user.pool(POOL).await.is_ok() {
            break;
        }
    }
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for (number, step) in steps.iter().enumerate() {
        let fill = vec![number as u8; step.bytes as usize];
        if step.receive {
            let buffer = user.room(step.bytes);
            let posted = within(&user, step.limit, user.receive(buffer, None, None, step.how)).await;
            receives.extend(posted.and_then(unless_full).map(|posted| (posted, buffer, step.limit)));
        } else {
            let call = user.send(user.bytes(&fill), at(1, 0), 0, step.how);
            let posted = within(&user, step.limit, call).await;
            sends.extend(posted.and_then(unless_full));
        }
    }
    // Each posted receive gets a message. A dropped receive call gets none.
    for (number, &(operation, buffer, limit)) in receives.iter().enumerate() {
        let fill = vec![!(number as u8); buffer.1 as usize];
        sends.push(user.send(user.bytes(&fill), at(0, own), 0, TransferMethod::Auto).await.unwrap());
        wait(&user, operation, limit).await;
        assert_eq!(user.look(buffer), fill);
    }
    for operation in sends {
        wait(&user, operation, 700).await;
    }
    // The whole pool is free, and no operation is pending.
    let whole = user.room(POOL);
    let last = user.receive(whole, None, None, TransferMethod::Copy).await.unwrap();
    let operation = user.send(user.room(POOL), at(0, own), 0, TransferMethod::Translate).await.unwrap();
    user.wait(last).await.unwrap();
    user.wait(operation).await.unwrap();
    user.close().await.unwrap();
    assert_eq!(card.memory().used, before);
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(24))]

    #[test]
    fn a_dropped_call_frees_its_resources(steps in steps()) {
        let mut rig = Rig::new(2, &[]);
        rig.process(0, 0, move |user| program(user, steps));
        rig.run();
    }
}

#[test]
fn a_failed_call_frees_its_resources() {
    let mut rig = Rig::new(2, &[]);
    rig.process(0, 0, async move |user| {
        let own = user.open().await.unwrap();
        user.pool(POOL).await.unwrap();
        // The process claims memory that its host does not have.
        let elsewhere = Memory::new(1 << 40);
        elsewhere.allocate_phantom(1 << 36).unwrap();
        let wrong = elsewhere.allocate(POOL).unwrap();
        user.process.adopt(&wrong);
        let (address, bytes) = (wrong.address(), wrong.len());
        for _ in 0..40 {
            let refused = user.send((address, bytes), at(1, 0), 0, TransferMethod::Copy).await.unwrap_err();
            assert!(matches!(refused, QnixError::Memory(_)), "{refused}");
            user.restart();
            let refused = user.process.copy_to_pool(address, bytes, &mut user.path.get()).await.unwrap_err();
            assert!(matches!(refused, QnixError::Memory(_)), "{refused}");
            user.restart();
        }
        let receive = user.receive((address, bytes), None, None, TransferMethod::Copy).await.unwrap();
        let send = user.send(user.room(bytes), at(0, own), 0, TransferMethod::Translate).await.unwrap();
        let refused = user.wait(receive).await.unwrap_err();
        assert!(matches!(refused, QnixError::Memory(_)), "{refused}");
        user.wait(send).await.unwrap();
        user.send(user.room(bytes), at(1, 0), 0, TransferMethod::Copy).await.unwrap();
    });
    rig.run();
}

/// One thread closes an interface while another thread posts a receive. Exactly one of the two calls is refused.
#[test]
fn a_close_and_a_post_at_the_same_time_exclude_each_other() {
    for late in 0..40 {
        let mut rig = Rig::new(2, &[]);
        let other = Rc::new(Cell::new(None));
        let posted = other.clone();
        rig.process(0, 0, async move |user| {
            user.open().await.unwrap();
            let buffer = user.room(9000);
            let poster = user.clone();
            user.sim.clone().spawn(async move {
                poster.sim.delay(Duration::from_ns(late * 50)).await;
                let path = PathCell::new(nicety_types::Path::from(poster.sim.now()));
                let poster = User { path: Rc::new(path), ..poster };
                posted.set(Some(poster.receive(buffer, None, None, TransferMethod::Translate).await.is_ok()));
            });
            let closed = user.close().await;
            user.sim.delay(Duration::from_ns(1_000_000)).await;
            assert_ne!(other.get(), Some(closed.is_ok()), "{late}: {closed:?}");
        });
        rig.run();
    }
}
