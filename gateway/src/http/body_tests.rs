//! Bodies in pieces, slow bodies, and bodies that do not find room.

use std::convert::Infallible;

use axum::body::Body;
use futures_util::{StreamExt, stream};

use super::*;

const TIME: Duration = Duration::from_secs(10);
const WAIT: Duration = Duration::from_secs(1);

fn limits(bytes_max: usize) -> BodyLimits {
    BodyLimits {
        bytes_max,
        time_max: TIME,
        times: 1,
    }
}

fn budget() -> Budget {
    Budget::new(1 << 20, WAIT)
}

/// A body that declares its length. The given numbers of bytes arrive at the given times in
/// milliseconds.
fn declared(
    bytes: usize,
    pieces: &[(u64, usize)],
) -> impl hyper::body::Body<Data = Bytes, Error = Infallible> + Unpin + use<> {
    let pieces = stream::iter(pieces.to_vec()).then(|(milliseconds, bytes)| async move {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        Ok::<_, Infallible>(hyper::body::Frame::data(Bytes::from(vec![7; bytes])))
    });
    Declared {
        pieces: Box::pin(pieces.chain(stream::pending())),
        left: bytes,
    }
}

struct Declared<S> {
    pieces: std::pin::Pin<Box<S>>,
    left: usize,
}

impl<S: stream::Stream<Item = Result<hyper::body::Frame<Bytes>, Infallible>>> hyper::body::Body
    for Declared<S>
{
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let frame = self.pieces.as_mut().poll_next(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            self.left -= frame.data_ref().map_or(0, Bytes::len);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        hyper::body::SizeHint::with_exact(self.left as u64)
    }
}

fn chunked(chunks: &[&'static str]) -> Body {
    let chunks = stream::iter(chunks.to_vec());
    Body::from_stream(chunks.map(|chunk| Ok::<_, Infallible>(Bytes::from(chunk))))
}

#[tokio::test(start_paused = true)]
async fn chunks_are_joined_and_accounted_for() {
    let budget = budget();
    let chunks = chunked(&["ab", "", "c", "def"]);
    let (bytes, reservation) = read(chunks, limits(6), &budget).await.unwrap();
    assert_eq!(bytes, "abcdef");
    assert_eq!(budget.pending_bytes(), STEP_BYTES, "no length was declared");
    drop(reservation);
    assert_eq!(budget.pending_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_short_body_holds_its_own_length_only() {
    let budget = budget();
    for pieces in [&[(0, 1500)][..], &[(0, 700), (5, 800)]] {
        let (bytes, _held) = read(declared(1500, pieces), limits(1 << 20), &budget)
            .await
            .unwrap();
        assert_eq!(bytes.len(), 1500);
        assert_eq!(budget.pending_bytes(), 2048);
        // The bytes taken may be several times the length.
        let limits = BodyLimits {
            times: 3,
            ..limits(1 << 20)
        };
        let (_, three) = read(declared(1500, pieces), limits, &budget).await.unwrap();
        assert_eq!(three.bytes(), 5 * 1024);
    }
    let slice = Bytes::from(vec![7; 64 << 10]).slice(..1500);
    let (bytes, _held) = read(Body::from(slice), limits(1 << 20), &budget)
        .await
        .unwrap();
    assert!(bytes.try_into_mut().unwrap().capacity() <= 2048);
}

#[tokio::test(start_paused = true)]
async fn bodies_that_wait_hold_nothing_and_all_get_their_turn() {
    let budget = Budget::new(1 << 20, 100 * WAIT);
    let held = budget.admit(1 << 20).await.unwrap();
    let reading: Vec<_> = (0..64)
        .map(|_| {
            let budget = budget.clone();
            tokio::spawn(async move {
                let body = declared(48 << 10, &[(0, 20 << 10), (1, 20 << 10), (1, 8 << 10)]);
                let (bytes, _held) = read(body, limits(1 << 20), &budget).await?;
                tokio::time::sleep(WAIT / 10).await;
                Ok::<_, BodyError>(bytes.len())
            })
        })
        .collect();
    tokio::time::sleep(WAIT).await;
    assert_eq!(
        budget.pending_bytes(),
        768 << 10,
        "no body has taken memory"
    );
    drop(held);
    for body in reading {
        assert_eq!(body.await.unwrap(), Ok(48 << 10), "none was refused");
    }
    assert_eq!(budget.pending_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn bodies_that_trickle_leave_room_for_others() {
    let budget = budget();
    for declared_bytes in [1 << 10, 64 << 10, 1 << 20] {
        for _ in 0..200 {
            let body = declared(declared_bytes, &[(0, 1)]);
            let budget = budget.clone();
            tokio::spawn(async move { read(body, limits(1 << 20), &budget).await.map(drop) });
        }
    }
    tokio::time::sleep(WAIT / 100).await;
    assert!(budget.pending_bytes() <= 512 << 10, "claims are bounded");
    let short = declared(SHORT_BYTES, &[(0, SHORT_BYTES)]);
    let (_, held) = read(short, limits(1 << 20), &budget).await.unwrap();
    drop(held);
    // The claims lapse. Bodies that were refused in the meantime are gone.
    tokio::time::sleep(3 * WAIT).await;
    assert!(budget.pending_bytes() <= 200 * 2 * 1024, "one byte each");
    let long = declared(300 << 10, &[(0, 300 << 10)]);
    assert!(read(long, limits(1 << 20), &budget).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_outgrows_its_claim_grows_or_is_refused_at_once() {
    let budget = budget();
    let pieces: Vec<(u64, usize)> = (0..10).map(|_| (1, 50 << 10)).collect();
    let (bytes, held) = read(declared(500 << 10, &pieces), limits(1 << 20), &budget)
        .await
        .unwrap();
    assert_eq!((bytes.len(), held.bytes()), (500 << 10, 500 << 10));
    let started = clock::now();
    let refused = read(declared(800 << 10, &pieces), limits(1 << 20), &budget).await;
    assert_eq!(refused.unwrap_err(), BodyError::Overloaded(Overloaded));
    assert!(clock::now() - started < WAIT, "the body does not wait");
    assert_eq!(budget.pending_bytes(), 500 << 10, "everything is released");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_arrives_after_its_claim_has_lapsed_is_read() {
    let budget = budget();
    let pieces = [(0, 20 << 10), (2500, 20 << 10), (2500, 24 << 10)];
    let (bytes, held) = read(declared(64 << 10, &pieces), limits(1 << 20), &budget)
        .await
        .unwrap();
    assert!(bytes.len() == 64 << 10 && bytes.iter().all(|byte| *byte == 7));
    assert_eq!(held.bytes(), 64 << 10);
}

#[tokio::test(start_paused = true)]
async fn without_room_in_time_a_body_is_refused_unread() {
    let budget = budget();
    let _all = budget.admit(1 << 20).await.unwrap();
    for bytes in [1 << 10, 100 << 10] {
        let body = declared(bytes, &[(0, bytes)]);
        let refused = read(body, limits(1 << 20), &budget).await;
        assert_eq!(refused.unwrap_err(), BodyError::Overloaded(Overloaded));
    }
    assert_eq!(budget.pending_bytes(), 768 << 10);
}

#[tokio::test]
async fn length_is_bounded_declared_or_not() {
    let too_long = BodyError::TooLong { bytes_max: 5 };
    for body in [chunked(&["abc", "def"]), Body::from("abcdef")] {
        let refused = read(body, limits(5), &budget()).await;
        assert_eq!(refused.unwrap_err(), too_long);
    }
    let (bytes, _) = read(Body::from("abcde"), limits(5), &budget())
        .await
        .unwrap();
    assert_eq!(bytes, "abcde");
}

#[tokio::test(start_paused = true)]
async fn slow_bodies_end() {
    let never = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
    for error in [
        read(never, limits(5), &budget()).await.unwrap_err(),
        read(declared(5, &[(0, 2)]), limits(5), &budget())
            .await
            .unwrap_err(),
    ] {
        assert_eq!(error, BodyError::TooSlow(TIME));
    }
}
