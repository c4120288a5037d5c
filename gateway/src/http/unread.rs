//! What comes of a body that nobody has read to its end, as its request was refused: it is read on for a while and not kept.
//!
//! A connection whose request is not read to its end is closed after the answer, and what the client is still sending then makes its
//! system drop the answer unread. So the answer goes out at once, and the rest is read beside it, within bounds of bytes and time; the
//! connection serves its next request then.
//!
//! Few rests are read at once: under overload most of what comes is refused, and reading that must not hold up what is let in. A client that
//! was refused is held up instead, as it cannot send its next request before the rest of the last one is read. A rest that does not come
//! gives its turn to another, and has a new one once it goes on: a client that is slow, as one that has much to send is, holds up nobody and
//! loses nothing.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

/// After so long the rest of a body is given up, whether its turn has come or not.
const REST_TIME: Duration = Duration::from_secs(10);
/// A turn is over after so long.
const TURN_TIME: Duration = Duration::from_secs(1);
/// It is over before, once nothing has come for so long.
const QUIET_TIME: Duration = Duration::from_millis(20);
/// Rests that are read at once by one worker.
const TURNS: usize = 4;

/// How the rests of bodies are read; clones share the turns.
#[derive(Clone)]
pub struct Rests {
    bytes_max: usize,
    turns: Arc<Semaphore>,
}

impl Rests {
    /// Of each, so many bytes are read at most.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            turns: Arc::new(Semaphore::new(TURNS)),
        }
    }

    /// Reads the rest of a body in as many turns as it takes.
    async fn read(self, body: impl Body<Data = Bytes> + Unpin) {
        let mut rest = Rest {
            body,
            bytes_left: self.bytes_max,
        };
        while let Ok(turn) = self.turns.acquire().await {
            let reading = async {
                while timeout(QUIET_TIME, rest.discard()).await? {}
                Ok(())
            };
            let ended: Result<Result<(), Elapsed>, Elapsed> = timeout(TURN_TIME, reading).await;
            drop(turn);
            // It goes on outside of a turn with as much as a connection reads at once.
            if matches!(ended, Ok(Ok(()))) || !rest.discard().await {
                break;
            }
        }
    }
}

/// What is left of a body.
struct Rest<B> {
    body: B,
    /// So much of it is read yet.
    bytes_left: usize,
}

impl<B: Body<Data = Bytes> + Unpin> Rest<B> {
    /// Waits for the next of it and drops that; whether there may be more. May be dropped itself at any time.
    async fn discard(&mut self) -> bool {
        if self.body.is_end_stream() {
            return false;
        }
        let Some(Ok(frame)) = self.body.frame().await else {
            return false;
        };
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.unwrap_or_default();
        left.is_some()
    }
}

/// A body whose rest is read when it is dropped.
pub struct Unread<B: Body<Data = Bytes> + Unpin + Send + 'static> {
    /// There until it ends or is dropped.
    body: Option<B>,
    rests: Rests,
}

impl<B: Body<Data = Bytes> + Unpin + Send + 'static> Unread<B> {
    /// Guards `body`.
    pub fn new(body: B, rests: &Rests) -> Self {
        Self {
            body: Some(body),
            rests: rests.clone(),
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin + Send + 'static> Body for Unread<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = Pin::new(body).poll_frame(context);
        if let Poll::Ready(None | Some(Err(_))) = frame {
            self.body = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl<B: Body<Data = Bytes> + Unpin + Send + 'static> Drop for Unread<B> {
    fn drop(&mut self) {
        if let Some(body) = self.body.take()
            && !body.is_end_stream()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(timeout(REST_TIME, self.rests.clone().read(body)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::{StreamExt, stream};
    use http_body_util::StreamBody;

    use super::*;

    /// A body of so many chunks of 10 bytes, after which it ends or never does, and how many have been taken.
    fn chunks(
        count: usize,
        ends: bool,
    ) -> (
        impl Body<Data = Bytes, Error = Infallible> + Unpin + Send,
        Arc<AtomicUsize>,
    ) {
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&taken);
        let chunks = stream::iter(0..count).map(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(Frame::data(Bytes::from_static(&[0; 10])))
        });
        let rest = match ends {
            true => stream::empty().left_stream(),
            false => stream::pending().right_stream(),
        };
        (StreamBody::new(chunks.chain(rest)), taken)
    }

    #[tokio::test(start_paused = true)]
    async fn the_rest_is_read_within_bounds_of_bytes_and_time() {
        for (count, ends, rest_bytes_max, read) in
            [(5, true, 1000, 5), (5, false, 1000, 5), (100, true, 55, 7)]
        {
            let (body, taken) = chunks(count, ends);
            let alive = Arc::clone(&taken);
            let mut unread = Unread::new(body, &Rests::new(rest_bytes_max));
            drop(taken);
            assert!(unread.frame().await.is_some());
            drop(unread);
            tokio::time::sleep(2 * REST_TIME).await;
            assert_eq!(alive.load(Ordering::Relaxed), read);
            assert_eq!(Arc::strong_count(&alive), 1, "the body is dropped");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn few_rests_are_read_at_once_and_those_that_do_not_come_hold_up_nobody() {
        let rests = Rests::new(1000);
        let stuck: Vec<_> = (0..10 * TURNS).map(|_| chunks(0, false).0).collect();
        stuck
            .into_iter()
            .for_each(|body| drop(Unread::new(body, &rests)));
        let (body, taken) = chunks(5, true);
        drop(Unread::new(body, &rests));
        tokio::time::sleep(QUIET_TIME / 2).await;
        assert_eq!(taken.load(Ordering::Relaxed), 0, "it waits for its turn");
        tokio::time::sleep(15 * QUIET_TIME).await;
        assert_eq!(taken.load(Ordering::Relaxed), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_pauses_for_longer_than_a_turn_is_read_to_its_end() {
        for pause in [QUIET_TIME / 2, 2 * QUIET_TIME, 2 * TURN_TIME] {
            let taken = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&taken);
            let chunks = stream::iter(0..4).then(move |_| {
                let counted = Arc::clone(&counted);
                async move {
                    tokio::time::sleep(pause).await;
                    counted.fetch_add(1, Ordering::Relaxed);
                    Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[0; 10])))
                }
            });
            let body = StreamBody::new(Box::pin(chunks));
            drop(Unread::new(body, &Rests::new(1000)));
            tokio::time::sleep(REST_TIME).await;
            assert_eq!(taken.load(Ordering::Relaxed), 4, "{pause:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_read_to_its_end_leaves_nothing_to_do() {
        let (body, taken) = chunks(2, true);
        let whole = Unread::new(body, &Rests::new(1000)).collect().await;
        assert_eq!(whole.unwrap().to_bytes().len(), 20);
        assert_eq!(taken.load(Ordering::Relaxed), 2);
    }
}
