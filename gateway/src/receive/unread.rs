//! What comes of a body that nobody has read to its end, as its request was refused: it is read on for a while and not kept.
//!
//! A connection whose request is not read to its end is closed after the answer, and what the client is still sending then makes its
//! system drop the answer unread. So the answer goes out at once, and the rest is read beside it, within bounds of bytes and time; the
//! connection serves its next request then.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// For so long the rest of a body is waited for.
const REST_TIME: Duration = Duration::from_secs(5);

/// A body whose rest is read when it is dropped.
pub struct Unread<B: Body<Data = Bytes> + Unpin + Send + 'static> {
    /// There until it ends or is dropped.
    body: Option<B>,
    /// Of the rest, so many bytes are read at most.
    rest_bytes_max: usize,
}

impl<B: Body<Data = Bytes> + Unpin + Send + 'static> Unread<B> {
    /// Guards `body`.
    pub fn new(body: B, rest_bytes_max: usize) -> Self {
        Self {
            body: Some(body),
            rest_bytes_max,
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
            runtime.spawn(timeout(REST_TIME, discard(body, self.rest_bytes_max)));
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
    use std::sync::Arc;
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
            let mut unread = Unread::new(body, rest_bytes_max);
            drop(taken);
            assert!(unread.frame().await.is_some());
            drop(unread);
            tokio::time::sleep(2 * REST_TIME).await;
            assert_eq!(alive.load(Ordering::Relaxed), read);
            assert_eq!(Arc::strong_count(&alive), 1, "the body is dropped");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_read_to_its_end_leaves_nothing_to_do() {
        let (body, taken) = chunks(2, true);
        let whole = Unread::new(body, 1000).collect().await;
        assert_eq!(whole.unwrap().to_bytes().len(), 20);
        assert_eq!(taken.load(Ordering::Relaxed), 2);
    }
}
