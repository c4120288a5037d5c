//! The bytes that all requests not yet answered may hold together. Who wants more than is left waits, within bounds, and is then told to
//! come again: memory is bounded whatever clients do.
//!
//! | a request | holds |
//! |---|---|
//! | while its body is read | the bytes that have come |
//! | before it is decompressed | the body, and the most that decompressing and decoding can take: [`decoding_bytes_max`] of the length it declares |
//! | once decoded | its rows and the series to register |
//!
//! The step to decoding is an [exchange](Reservation::exchange): nobody waits for more while holding what others wait for, so requests
//! cannot block each other. Meanwhile the compressed body alone is held, without a reservation; all wait in one queue, first come, first
//! served, so no body takes more to be read before those ahead of it are decoded. After decoding a reservation only shrinks.
//!
//! A request that could take more than the whole budget takes all of it: it is decoded while no other holds anything, and may exceed the
//! budget alone.
//!
//! [`decoding_bytes_max`]: crate::receive::resolve::decoding_bytes_max

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Permits stand for KiB, so that counts fit the semaphore's `u32`.
const PERMIT_BYTES: usize = 1024;

/// No room within the time allowed.
#[derive(Debug, Error, PartialEq, Eq, Clone, Copy)]
#[error("too many bytes are waiting to be stored (receive.pending_bytes_max)")]
pub struct Overloaded;

/// The budget; clones share it.
#[derive(Clone)]
pub struct Budget {
    permits: Arc<Semaphore>,
    permits_max: usize,
    wait_max: Duration,
}

/// Bytes taken from a budget; given back when dropped.
#[derive(Debug, Default)]
pub struct Reservation {
    permit: Option<OwnedSemaphorePermit>,
}

impl Budget {
    /// A budget of `bytes_max`; whoever finds it used up waits at most `wait_max`.
    pub fn new(bytes_max: usize, wait_max: Duration) -> Self {
        let permits_max = (bytes_max / PERMIT_BYTES).clamp(1, u32::MAX as usize);
        Self {
            permits: Arc::new(Semaphore::new(permits_max)),
            permits_max,
            wait_max,
        }
    }

    /// Bytes taken now.
    pub fn pending_bytes(&self) -> usize {
        (self.permits_max - self.permits.available_permits().min(self.permits_max)) * PERMIT_BYTES
    }
}

impl Reservation {
    /// Makes this reservation one of `bytes`, rounded up. One request alone never asks for more than the whole budget.
    ///
    /// # Errors
    /// [`Overloaded`] if there is no room in time; the reservation stays as it was.
    pub async fn resize(&mut self, budget: &Budget, bytes: usize) -> Result<(), Overloaded> {
        let wanted = bytes.div_ceil(PERMIT_BYTES).min(budget.permits_max);
        let held = self
            .permit
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        if wanted < held {
            self.shrink(bytes);
        } else if wanted > held {
            let more = u32::try_from(wanted - held).map_err(|_| Overloaded)?;
            let acquired = match Arc::clone(&budget.permits).try_acquire_many_owned(more) {
                Ok(permit) => permit,
                Err(_) => timeout(
                    budget.wait_max,
                    Arc::clone(&budget.permits).acquire_many_owned(more),
                )
                .await
                .map_err(|_| Overloaded)?
                .map_err(|_| Overloaded)?,
            };
            match &mut self.permit {
                Some(permit) => permit.merge(acquired),
                None => self.permit = Some(acquired),
            }
        }
        Ok(())
    }

    /// Gives back what this reservation holds over `bytes`, rounded up; whether it covers them.
    pub fn shrink(&mut self, bytes: usize) -> bool {
        let wanted = bytes.div_ceil(PERMIT_BYTES);
        let held = self
            .permit
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        if wanted < held
            && let Some(permit) = &mut self.permit
        {
            drop(permit.split(held - wanted));
        }
        wanted <= held
    }

    /// Gives this reservation back, then takes one of `bytes`, rounded up, in one step.
    ///
    /// # Errors
    /// [`Overloaded`] if there is no room in time; nothing is reserved then.
    pub async fn exchange(&mut self, budget: &Budget, bytes: usize) -> Result<(), Overloaded> {
        drop(self.permit.take());
        self.resize(budget, bytes).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reservations_grow_shrink_and_end() {
        let budget = Budget::new(10 * PERMIT_BYTES, Duration::from_secs(1));
        let mut first = Reservation::default();
        first.resize(&budget, 1).await.unwrap();
        assert_eq!(budget.pending_bytes(), PERMIT_BYTES);
        first.resize(&budget, 9 * PERMIT_BYTES).await.unwrap();
        let mut second = Reservation::default();
        assert_eq!(
            second.resize(&budget, 2 * PERMIT_BYTES).await,
            Err(Overloaded)
        );
        first.resize(&budget, 8 * PERMIT_BYTES).await.unwrap();
        second.resize(&budget, 2 * PERMIT_BYTES).await.unwrap();
        drop((first, second));
        assert_eq!(budget.pending_bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_larger_than_the_budget_takes_all_of_it() {
        let budget = Budget::new(2 * PERMIT_BYTES, Duration::from_secs(1));
        let mut all = Reservation::default();
        all.resize(&budget, usize::MAX).await.unwrap();
        assert_eq!(budget.pending_bytes(), 2 * PERMIT_BYTES);
    }

    #[tokio::test(start_paused = true)]
    async fn exchanging_holds_nothing_while_waiting() {
        let budget = Budget::new(2 * PERMIT_BYTES, Duration::from_secs(1));
        let (mut first, mut second) = (Reservation::default(), Reservation::default());
        first.resize(&budget, 1).await.unwrap();
        second.resize(&budget, 1).await.unwrap();
        // Each wants what the other holds.
        let exchange = async |mut reservation: Reservation| {
            reservation.exchange(&budget, 2 * PERMIT_BYTES).await
        };
        assert_eq!(
            tokio::join!(exchange(first), exchange(second)),
            (Ok(()), Ok(()))
        );
        let mut held = Reservation::default();
        held.resize(&budget, 1).await.unwrap();
        let mut refused = Reservation::default();
        refused.resize(&budget, 1).await.unwrap();
        assert_eq!(
            refused.exchange(&budget, 2 * PERMIT_BYTES).await,
            Err(Overloaded)
        );
        assert_eq!(budget.pending_bytes(), PERMIT_BYTES);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_when_room_is_made() {
        let budget = Budget::new(PERMIT_BYTES, Duration::from_secs(1));
        let mut first = Reservation::default();
        first.resize(&budget, 1).await.unwrap();
        let waiting = tokio::spawn({
            let budget = budget.clone();
            async move { Reservation::default().resize(&budget, 1).await }
        });
        tokio::time::sleep(Duration::from_millis(500)).await;
        drop(first);
        assert_eq!(waiting.await.unwrap(), Ok(()));
    }
}
