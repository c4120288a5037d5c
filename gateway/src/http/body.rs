//! Reading the body of a request within limits of length, time and memory.
//!
//! ```text
//! short ─► read ─► wait for memory; until then, a connection's allowance covers its bytes
//! long ──► wait for a claim ─► read ─┬► the body is complete
//!                                    ├► it exceeds its claim: the claim grows, or 503 at once
//!                                    └► it does not arrive: the claim lapses; later bytes grow it
//! ```
//!
//! While a long body waits for memory it is not read: its bytes stay in the buffers of the
//! connection and of the kernel. An admitted body is copied to memory of its own length, because a
//! slice of the connection's buffer would keep that whole buffer alive.

use std::fmt::Display;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::poll;
use http_body_util::BodyExt;
use hyper::body::Body;
use thiserror::Error;
use tokio::time::{timeout, timeout_at};

use super::refusal::Refusal;
use crate::clock;
use crate::model::{Budget, Overloaded, Reservation};

/// A body up to this length is read before memory is taken for it. Usually it has arrived with its
/// head. If it has not, a slow sender delays nobody else.
pub const SHORT_BYTES: usize = 8 << 10;
/// The bytes claimed for a body without a declared length. A body that outgrows its claim grows to
/// at least this size, and doubles from there.
const STEP_BYTES: usize = 64 << 10;
/// The time after which a claim for bytes that have not arrived lapses.
const CLAIM_TIME: Duration = Duration::from_secs(1);

/// Why a body could not be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BodyError {
    /// The body is longer than allowed. The answer is 400, because senders repeat a request
    /// answered with 413 forever.
    #[error("body is longer than {bytes_max} bytes (receive.body_bytes_max)")]
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// The body did not arrive in time. The sender may try again.
    #[error("body did not arrive within {0:?} (listen.body_timeout)")]
    TooSlow(Duration),
    /// The connection broke, or chunks were malformed.
    #[error("body cannot be read: {0}")]
    Broken(String),
    /// There is no memory for the body.
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLong { .. } => Self::BadRequest(error.to_string()),
            // A broken body is a fault of the network, so the sender may repeat it.
            BodyError::TooSlow(_) | BodyError::Overloaded(_) | BodyError::Broken(_) => {
                Self::Busy(error.to_string())
            }
        }
    }
}

/// Limits of a body.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimits {
    /// The maximum length.
    pub bytes_max: usize,
    /// The time in which it has to arrive once there is memory for it.
    pub time_max: Duration,
    /// The number of bytes taken from the budget for each byte of the body: what its rows are
    /// expected to hold.
    pub times: usize,
}

/// Reads `body`. The reservation covers the body and what is expected to be made of it.
///
/// # Errors
/// Returns a [`BodyError`]. A declared length over the limit is refused without reading.
pub async fn read<B>(
    mut body: B,
    limits: BodyLimits,
    budget: &Budget,
) -> Result<(Bytes, Reservation), BodyError>
where
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    let BodyLimits {
        bytes_max, times, ..
    } = limits;
    let hint = body.size_hint();
    if hint.lower() > bytes_max as u64 {
        return Err(BodyError::TooLong { bytes_max });
    }
    let declared_bytes = hint.exact().map(|bytes| bytes as usize);
    let short_bytes = match declared_bytes {
        Some(bytes) if bytes <= SHORT_BYTES => bytes,
        // The future of this path is larger, so it is boxed.
        _ => return Box::pin(read_long(body, declared_bytes, limits, budget)).await,
    };
    let mut first = Bytes::new();
    if let Poll::Ready(frame) = poll!(pin!(next(&mut body))) {
        first = frame?.unwrap_or_default();
    }
    if first.len() < short_bytes {
        first = Box::pin(read_short(body, first, short_bytes, limits.time_max)).await?;
    }
    let reservation = budget.admit(first.len().saturating_mul(times)).await?;
    Ok((Bytes::copy_from_slice(&first), reservation))
}

/// Returns the next data; `None` at the end.
async fn next<B>(body: &mut B) -> Result<Option<Bytes>, BodyError>
where
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    while !body.is_end_stream()
        && let Some(frame) = body.frame().await
    {
        let frame = frame.map_err(|error| BodyError::Broken(error.to_string()))?;
        // Trailers are ignored.
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// Reads the rest of a body that is no longer than a connection's allowance.
async fn read_short<B>(
    mut body: B,
    first: Bytes,
    declared_bytes: usize,
    time_max: Duration,
) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    let mut bytes = Vec::with_capacity(declared_bytes);
    bytes.extend_from_slice(&first);
    drop(first);
    let reading = async {
        while let Some(data) = next(&mut body).await? {
            bytes.extend_from_slice(&data);
        }
        Ok(())
    };
    let ended: Result<Result<(), BodyError>, _> = timeout(time_max, reading).await;
    ended.map_err(|_| BodyError::TooSlow(time_max))??;
    Ok(bytes.into())
}

async fn read_long<B>(
    mut body: B,
    declared_bytes: Option<usize>,
    limits: BodyLimits,
    budget: &Budget,
) -> Result<(Bytes, Reservation), BodyError>
where
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    let expected_bytes = declared_bytes.unwrap_or(STEP_BYTES);
    let (reservation, claim) = budget
        .claim(expected_bytes.saturating_mul(limits.times))
        .await?;
    let covered_bytes = reservation.bytes() / limits.times;
    let mut partial = PartialBody {
        bytes: Vec::with_capacity(expected_bytes.min(covered_bytes)),
        bytes_max: declared_bytes.unwrap_or(limits.bytes_max),
        reservation,
        budget,
    };
    let time_max = limits.time_max;
    let reading = async {
        let while_claimed = fill(&mut body, &mut partial, limits.bytes_max);
        let ended = timeout_at(clock::now() + CLAIM_TIME, while_claimed).await;
        drop(claim);
        match ended {
            Ok(result) => result?,
            Err(_) => {
                partial.lapse();
                fill(&mut body, &mut partial, limits.bytes_max).await?;
            }
        }
        Ok(())
    };
    let ended: Result<Result<(), BodyError>, _> = timeout(time_max, reading).await;
    ended.map_err(|_| BodyError::TooSlow(time_max))??;
    let PartialBody {
        bytes, reservation, ..
    } = partial;
    Ok((bytes.into(), reservation))
}

/// Reads to the end. The future may be dropped at any time; what has been read is kept.
async fn fill<B>(
    body: &mut B,
    partial: &mut PartialBody<'_>,
    bytes_max: usize,
) -> Result<(), BodyError>
where
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    while let Some(data) = next(body).await? {
        if partial.bytes.len() + data.len() > bytes_max {
            return Err(BodyError::TooLong { bytes_max });
        }
        partial.add(&data)?;
    }
    Ok(())
}

/// The part of a body that has arrived.
struct PartialBody<'b> {
    bytes: Vec<u8>,
    /// The maximum number of bytes that are ever needed.
    bytes_max: usize,
    /// Covers the capacity of `bytes`.
    reservation: Reservation,
    budget: &'b Budget,
}

impl PartialBody<'_> {
    fn add(&mut self, data: &[u8]) -> Result<(), Overloaded> {
        let needed = self.bytes.len() + data.len();
        if needed > self.bytes.capacity() {
            let room = self.bytes.capacity();
            let wanted = (2 * room).max(STEP_BYTES).min(self.bytes_max).max(needed);
            // Both buffers exist while one is copied to the other.
            let covered_bytes = self.reservation.bytes();
            self.reservation.grow(self.budget, room + wanted)?;
            self.bytes.reserve_exact(wanted - self.bytes.len());
            self.reservation.shrink(covered_bytes.max(wanted));
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    /// Releases what is held for bytes that have not arrived.
    fn lapse(&mut self) {
        self.bytes.shrink_to_fit();
        self.reservation.shrink(self.bytes.capacity());
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
