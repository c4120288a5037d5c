//! A request's body, read with its length, its time and the memory budget watched.

use std::fmt::Display;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::poll;
use http_body_util::BodyExt;
use hyper::body::Body;
use thiserror::Error;
use tokio::time::timeout;

use crate::batch::{Budget, Overloaded, Reservation};

/// The budget is asked for this much at once, not for every frame; for less while the body is shorter than this.
const STEP_BYTES: usize = 64 << 10;

/// The least that is asked for: a body of which little comes holds little.
const LEAST_BYTES: usize = 1 << 10;

/// Why there is no body.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BodyError {
    /// Longer than allowed; answered 400, as senders repeat a 413 for ever.
    #[error("body is longer than {bytes_max} bytes (receive.body_bytes_max)")]
    TooLong {
        /// The bound.
        bytes_max: usize,
    },
    /// It did not come in time; the sender may try again.
    #[error("body did not arrive within {0:?} (listen.body_timeout)")]
    TooSlow(Duration),
    /// The connection broke, or chunks were malformed.
    #[error("body cannot be read: {0}")]
    Broken(String),
    /// No memory.
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
}

/// Reads `body`; the reservation covers what is held.
///
/// # Errors
/// [`BodyError`]; a declared length over the bound is refused without reading.
pub async fn read<B>(
    body: B,
    bytes_max: usize,
    time_max: Duration,
    budget: &Budget,
) -> Result<(Bytes, Reservation), BodyError>
where
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(BodyError::TooLong { bytes_max });
    }
    let mut reading = pin!(read_frames(body, bytes_max, budget));
    // A short body has come with its head.
    if let Poll::Ready(result) = poll!(reading.as_mut()) {
        return result;
    }
    match timeout(time_max, reading).await {
        Ok(result) => result,
        Err(_) => Err(BodyError::TooSlow(time_max)),
    }
}

async fn read_frames<B>(
    mut body: B,
    bytes_max: usize,
    budget: &Budget,
) -> Result<(Bytes, Reservation), BodyError>
where
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    let mut reservation = Reservation::default();
    let mut reserved_bytes = 0;
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    while !body.is_end_stream()
        && let Some(frame) = body.frame().await
    {
        let frame = frame.map_err(|error| BodyError::Broken(error.to_string()))?;
        // Trailers are of no interest.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let held_bytes = first.len() + joined.len() + data.len();
        if held_bytes > bytes_max {
            return Err(BodyError::TooLong { bytes_max });
        }
        if held_bytes > reserved_bytes {
            // Not the declared length at once: memory is taken as bytes come, so declaring costs others nothing.
            reserved_bytes = if held_bytes < STEP_BYTES {
                held_bytes.next_power_of_two().max(LEAST_BYTES)
            } else {
                held_bytes.next_multiple_of(STEP_BYTES)
            };
            if let Err(overloaded) = reservation.resize(budget, reserved_bytes).await {
                drop((data, first, joined, reservation));
                discard(body, bytes_max - held_bytes).await;
                return Err(overloaded.into());
            }
        }
        if first.is_empty() && joined.is_empty() {
            first = data;
        } else {
            if joined.is_empty() {
                joined.extend_from_slice(&std::mem::take(&mut first));
            }
            joined.extend_from_slice(&data);
        }
    }
    let bytes = if joined.is_empty() {
        first
    } else {
        joined.freeze()
    };
    Ok((bytes, reservation))
}

/// Reads the rest of a body that there is no room for, and keeps nothing of it. An answer that comes before the end of its request ends the
/// connection, and a client that is still sending then may never see it.
async fn discard<B>(mut body: B, bytes_max: usize)
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut left = bytes_max;
    while let Some(Ok(frame)) = body.frame().await {
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

    use axum::body::Body;
    use futures_util::stream;

    use super::*;

    fn chunked(chunks: &[&'static str]) -> Body {
        Body::from_stream(stream::iter(chunks.to_vec()).map_ok_bytes())
    }

    trait MapOkBytes: Sized {
        fn map_ok_bytes(
            self,
        ) -> impl stream::Stream<Item = Result<Bytes, Infallible>> + Send + 'static;
    }

    impl MapOkBytes for stream::Iter<std::vec::IntoIter<&'static str>> {
        fn map_ok_bytes(
            self,
        ) -> impl stream::Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
            use futures_util::StreamExt;
            self.map(|chunk| Ok(Bytes::from(chunk)))
        }
    }

    fn budget() -> Budget {
        Budget::new(1 << 20, Duration::from_secs(1))
    }

    const TIME: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn chunks_are_joined_and_paid_for() {
        let budget = budget();
        let (bytes, reservation) = read(chunked(&["ab", "", "c", "def"]), 6, TIME, &budget)
            .await
            .unwrap();
        assert_eq!(bytes, "abcdef");
        assert_eq!(budget.pending_bytes(), LEAST_BYTES);
        drop(reservation);
        assert_eq!(budget.pending_bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_that_trickle_leave_room_for_others() {
        use futures_util::StreamExt;
        let budget = budget();
        for _ in 0..512 {
            let first = stream::once(async { Ok::<_, Infallible>(Bytes::from_static(b"a")) });
            let body = Body::from_stream(first.chain(stream::pending()));
            let budget = budget.clone();
            tokio::spawn(async move { read(body, 1 << 20, 100 * TIME, &budget).await.map(drop) });
        }
        tokio::time::sleep(TIME / 1000).await;
        assert_eq!(budget.pending_bytes(), 512 * LEAST_BYTES);
        let whole = Body::from(vec![0; 4 * STEP_BYTES]);
        assert!(read(whole, 1 << 20, TIME, &budget).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_there_is_no_room_for_is_read_and_not_kept() {
        use futures_util::StreamExt;
        use std::sync::Arc;
        use std::sync::atomic::{AtomicUsize, Ordering};
        let budget = budget();
        let mut all = Reservation::default();
        all.resize(&budget, (1 << 20) - LEAST_BYTES).await.unwrap();
        let read_bytes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&read_bytes);
        let chunks = stream::iter([10, STEP_BYTES, STEP_BYTES, 10]).map(move |bytes| {
            counted.fetch_add(bytes, Ordering::Relaxed);
            Ok::<_, Infallible>(Bytes::from(vec![0; bytes]))
        });
        let error = read(Body::from_stream(chunks), 1 << 20, 10 * TIME, &budget)
            .await
            .unwrap_err();
        assert_eq!(error, BodyError::Overloaded(Overloaded));
        assert_eq!(read_bytes.load(Ordering::Relaxed), 2 * STEP_BYTES + 20);
        assert_eq!(budget.pending_bytes(), (1 << 20) - LEAST_BYTES);
    }

    #[tokio::test]
    async fn length_is_bounded_declared_or_not() {
        let too_long = BodyError::TooLong { bytes_max: 5 };
        assert_eq!(
            read(chunked(&["abc", "def"]), 5, TIME, &budget())
                .await
                .unwrap_err(),
            too_long
        );
        assert_eq!(
            read(Body::from("abcdef"), 5, TIME, &budget())
                .await
                .unwrap_err(),
            too_long
        );
        assert_eq!(
            read(Body::from("abcde"), 5, TIME, &budget())
                .await
                .unwrap()
                .0,
            "abcde"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn slow_bodies_end() {
        let never = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        assert_eq!(
            read(never, 5, TIME, &budget()).await.unwrap_err(),
            BodyError::TooSlow(TIME)
        );
    }
}
