//! The rest of a body whose request was refused before the body was read. It is read for a while
//! and discarded.
//!
//! A connection is closed after the answer if the body of its request was not read to the end. The
//! client's system then drops the answer unread when the client is still sending. So the answer is
//! sent at once and the rest of the body is read beside it, within limits of bytes and time. The
//! connection can then serve its next request.
//!
//! Few rests are read at the same time: under overload most bodies are refused, and reading them
//! must not delay admitted requests. A refused client is delayed instead, because it cannot send
//! its next request before the rest of the last one is read. A rest that does not arrive releases
//! its turn, and gets a new one once it continues. A slow client with much to send therefore delays
//! nobody and loses nothing.

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

/// The time after which the rest of a body is given up, even if it never had a turn.
const REST_TIME: Duration = Duration::from_secs(10);
/// The maximum length of a turn.
const TURN_TIME: Duration = Duration::from_secs(1);
/// A turn ends early if nothing arrives for this time.
const QUIET_TIME: Duration = Duration::from_millis(20);
/// The number of rests that one worker reads at the same time.
const TURNS: usize = 4;

/// The limits for rests of bodies. Clones share the turns.
#[derive(Clone)]
pub struct Rests {
    bytes_max: usize,
    turns: Arc<Semaphore>,
}

impl Rests {
    /// Creates limits under which at most `bytes_max` of each rest are read.
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
            // Between turns it reads no more than a connection reads at once.
            if matches!(ended, Ok(Ok(()))) || !rest.discard().await {
                break;
            }
        }
    }
}

/// The unread part of a body.
struct Rest<B> {
    body: B,
    /// The number of bytes that may still be read.
    bytes_left: usize,
}

impl<B: Body<Data = Bytes> + Unpin> Rest<B> {
    /// Waits for the next data and drops it. Returns whether there may be more. The future may be
    /// dropped at any time.
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
    /// `None` once the body has ended or was dropped.
    body: Option<B>,
    rests: Rests,
}

impl<B: Body<Data = Bytes> + Unpin + Send + 'static> Unread<B> {
    /// Wraps `body`.
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

    /// Returns a body of `count` chunks of 10 bytes, and the number of chunks taken. Afterwards the
    /// body ends, or never does.
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
    async fn few_rests_are_read_at_once_and_stalled_ones_delay_nobody() {
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
    async fn a_body_read_to_its_end_needs_no_reading() {
        let (body, taken) = chunks(2, true);
        let whole = Unread::new(body, &Rests::new(1000)).collect().await;
        assert_eq!(whole.unwrap().to_bytes().len(), 20);
        assert_eq!(taken.load(Ordering::Relaxed), 2);
    }
}
