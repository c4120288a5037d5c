//! What comes of a body that nobody has read to its end, as its request was refused: it is read on for a while and not kept.
//!
//! A connection whose request is not read to its end is closed after the answer, and what the client is still sending then makes its
//! system drop the answer unread. So the answer goes out at once, and the rest is read beside it, within bounds of bytes and time; the
//! connection serves its next request then.
//!
//! Few rests are read at once: under overload most of what comes is refused, and reading that must not hold up what is let in. A client that
//! was refused is held up instead, as it cannot send its next request before the rest of the last one is read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// After so long the rest of a body is given up, whether its turn has come or not.
const REST_TIME: Duration = Duration::from_secs(10);
/// A turn is over after so long.
const TURN_TIME: Duration = Duration::from_secs(1);
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

    async fn read(self, body: impl Body<Data = Bytes> + Unpin) {
        // The turns are never closed.
        let _turn = self.turns.acquire().await;
        let _ = timeout(TURN_TIME, discard(body, self.bytes_max)).await;
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

async fn discard<B: Body<Data = Bytes> + Unpin>(mut body: B, bytes_max: usize) {
    let mut left = bytes_max;
    while !body.is_end_stream()
        && let Some(Ok(frame)) = body.frame().await
    {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        let Some(rest) = left.checked_sub(bytes) else {
            break;
        };
        left = rest;
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
    async fn few_rests_are_read_at_once_and_those_that_do_not_come_hold_up_others_for_a_while() {
        let rests = Rests::new(1000);
        let stuck: Vec<_> = (0..TURNS).map(|_| chunks(0, false).0).collect();
        stuck
            .into_iter()
            .for_each(|body| drop(Unread::new(body, &rests)));
        let (body, taken) = chunks(5, true);
        drop(Unread::new(body, &rests));
        tokio::time::sleep(TURN_TIME / 2).await;
        assert_eq!(taken.load(Ordering::Relaxed), 0, "it waits for its turn");
        tokio::time::sleep(TURN_TIME).await;
        assert_eq!(taken.load(Ordering::Relaxed), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_read_to_its_end_leaves_nothing_to_do() {
        let (body, taken) = chunks(2, true);
        let whole = Unread::new(body, &Rests::new(1000)).collect().await;
        assert_eq!(whole.unwrap().to_bytes().len(), 20);
        assert_eq!(taken.load(Ordering::Relaxed), 2);
    }
}
