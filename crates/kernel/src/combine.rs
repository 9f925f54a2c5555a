//! Several futures in one task: [`join`], [`join_all`], [`race`], [`timeout`].
//!
//! The kernel wakes tasks, not futures, so these combinators poll all pending futures whenever their task is polled.
//! The kernel never calls a waker. So a library future that is polled only after a call of its waker does not work
//! here.

use crate::sim::{Delay, Sim};
use nicety_types::Duration;
use pin_project_lite::pin_project;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The result of a [`race`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The result of the future `a`, which was ready first.
    Left(A),
    /// The result of the future `b`, which was ready first.
    Right(B),
}

/// Runs two futures until one is ready, and drops the other. If both are ready, the result is that of `a`.
pub fn race<A: Future, B: Future>(a: A, b: B) -> Race<A, B> {
    Race { a, b }
}

pin_project! {
    /// Runs two futures until one is ready; see [`race`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Race<A, B> {
        #[pin]
        a: A,
        #[pin]
        b: B,
    }
}

impl<A: Future, B: Future> Future for Race<A, B> {
    type Output = Either<A::Output, B::Output>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(a) = this.a.poll(context) {
            return Poll::Ready(Either::Left(a));
        }
        this.b.poll(context).map(Either::Right)
    }
}

/// Runs two futures until both are ready.
pub fn join<A: Future, B: Future>(a: A, b: B) -> Join<A, B> {
    Join { a: Some(a), b: Some(b), a_result: None, b_result: None }
}

pin_project! {
    /// Runs two futures until both are ready; see [`join`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Join<A: Future, B: Future> {
        #[pin]
        a: Option<A>,
        #[pin]
        b: Option<B>,
        a_result: Option<A::Output>,
        b_result: Option<B::Output>,
    }
}

/// Polls a future that is not ready yet. Once it is ready, drops it and keeps its result.
fn poll_into<F: Future>(
    mut future: Pin<&mut Option<F>>,
    result: &mut Option<F::Output>,
    context: &mut Context<'_>,
) {
    if let Some(running) = future.as_mut().as_pin_mut()
        && let Poll::Ready(value) = running.poll(context)
    {
        future.set(None);
        *result = Some(value);
    }
}

impl<A: Future, B: Future> Future for Join<A, B> {
    type Output = (A::Output, B::Output);

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        poll_into(this.a, this.a_result, context);
        poll_into(this.b, this.b_result, context);
        if this.a_result.is_some() && this.b_result.is_some() {
            Poll::Ready(this.a_result.take().zip(this.b_result.take()).expect("both are there"))
        } else {
            Poll::Pending
        }
    }
}

impl<A: Future, B: Future> fmt::Debug for Join<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Join")
    }
}

/// Runs any number of futures until all are ready. The results are in the order of the futures.
pub async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<Option<F>>>> = futures.into_iter().map(|f| Box::pin(Some(f))).collect();
    let mut results: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, result) in running.iter_mut().zip(&mut results) {
            poll_into(future.as_mut(), result, context);
        }
        if results.iter().all(Option::is_some) {
            Poll::Ready(std::mem::take(&mut results).into_iter().flatten().collect())
        } else {
            Poll::Pending
        }
    })
    .await
}

/// The error of a future that was not ready within its time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed {
    /// The time limit.
    pub after: Duration,
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not done after {}", self.after)
    }
}

impl std::error::Error for Elapsed {}

/// Runs `future` for at most `limit`, counted from this call, and then drops it. If the future is ready in the poll at
/// the end of the limit, its result counts.
///
/// # Errors
/// [`Elapsed`] after the time limit.
pub fn timeout<F: Future>(sim: &Sim, limit: Duration, future: F) -> Timeout<F> {
    Timeout { future, limit, delay: sim.delay(limit) }
}

pin_project! {
    /// Runs a future for a limited time; see [`timeout`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Timeout<F> {
        #[pin]
        future: F,
        limit: Duration,
        delay: Delay,
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(value) = this.future.poll(context) {
            return Poll::Ready(Ok(value));
        }
        Pin::new(this.delay).poll(context).map(|()| Err(Elapsed { after: *this.limit }))
    }
}
