//! The calls of a host's program.

use super::{Receiving, Transport};
use crate::{Arrival, Caller, Calling, CardError, Outgoing, PostedReceive, Tags, Wanted};
use nicety_types::Path;
use std::rc::Rc;

/// The interface of a host's library for `send` and `recv`. A [`Card`](crate::Card) forwards its calls with the same
/// names to the library.
pub trait Messages {
    /// Like [`Card::send`](crate::Card::send).
    ///
    /// # Errors
    /// When a limit is reached, or the library has failed.
    fn send<'c>(self: Rc<Self>, caller: Caller<'c>, message: Outgoing) -> Calling<'c, Result<(), CardError>>;

    /// Like [`Card::post_receive`](crate::Card::post_receive).
    ///
    /// # Errors
    /// When the receive cannot be posted.
    fn post_receive(self: Rc<Self>, caller: Caller<'_>, wanted: Wanted) -> Result<PostedReceive, CardError>;

    /// Like [`Card::received`](crate::Card::received).
    ///
    /// # Errors
    /// When the receive or the library has failed.
    fn received<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Result<Arrival, CardError>>;

    /// Like [`Card::probe`](crate::Card::probe).
    ///
    /// # Errors
    /// When the library has failed.
    fn probe<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        source: Option<u32>,
        tags: Tags,
    ) -> Calling<'c, Result<Option<Arrival>, CardError>>;

    /// Like [`Card::cancel`](crate::Card::cancel).
    fn cancel<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Option<PostedReceive>>;
}

impl<T: Transport> Messages for T {
    fn send<'c>(self: Rc<Self>, caller: Caller<'c>, message: Outgoing) -> Calling<'c, Result<(), CardError>> {
        Box::pin(async move {
            self.check_send(&message)?;
            caller
                .timed("send", async |path| Transport::send(&self, caller.thread, message, path).await)
                .await
        })
    }

    fn post_receive(self: Rc<Self>, caller: Caller<'_>, wanted: Wanted) -> Result<PostedReceive, CardError> {
        self.check_receive(&wanted)?;
        Ok(PostedReceive::new(self.post(wanted, &caller.path.borrow())))
    }

    fn received<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Result<Arrival, CardError>> {
        let receiving: Rc<Receiving<T>> = posted.of();
        Box::pin(async move {
            let wait = async |path: &mut Path| self.receive(caller.thread, &receiving, path).await;
            shown(caller, T::SHOWS_WAITS.then_some("wait for a receive"), wait).await
        })
    }

    fn probe<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        source: Option<u32>,
        tags: Tags,
    ) -> Calling<'c, Result<Option<Arrival>, CardError>> {
        Box::pin(async move {
            self.check_source(source)?;
            let (wanted, library) = (Wanted { source, tags, address: 0, room: 0 }, self.library());
            let look = async |path: &mut Path| {
                self.look(caller.thread, &wanted, path).await?;
                match library.has_failed() {
                    true => Err(library.failure().expect("just seen").into()),
                    false => Ok(library.first(&wanted)),
                }
            };
            shown(caller, T::SHOWS_LOOKS.then_some("look for a message"), look).await
        })
    }

    fn cancel<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Option<PostedReceive>> {
        Box::pin(async move {
            let own = posted.look::<Rc<Receiving<T>>>();
            let cancel = async |path: &mut Path| {
                self.call(caller.thread, path).await;
                let withdrawn = self.library().withdraw(own);
                if withdrawn {
                    self.withdrawn(own);
                }
                withdrawn
            };
            let withdrawn = shown(caller, T::SHOWS_LOOKS.then_some("cancel a receive"), cancel).await;
            (!withdrawn).then_some(posted)
        })
    }
}

/// Makes a call on the thread's path. If `slice` has the call's name, records the call.
async fn shown<V>(
    caller: Caller<'_>,
    slice: Option<&'static str>,
    call: impl AsyncFnOnce(&mut Path) -> V,
) -> V {
    match slice {
        Some(slice) => caller.timed(slice, call).await,
        None => caller.on_path(call).await,
    }
}
