//! The memory budget: the bytes that all requests not yet answered may hold together. It bounds the
//! gateway's memory whatever clients do, and guarantees that an admitted request can finish.
//!
//! | phase of a request | its reservation | if there is no room |
//! |---|---|---|
//! | before its body is kept | is taken for the body and the rows expected from it | the request waits and holds nothing; requests are admitted in order of arrival; after `receive.pending_wait` the answer is 503 |
//! | while its body is read, decompressed and decoded | grows step by step with what is actually held: see [`Room`] | 503 at once; everything is released |
//! | after decoding | shrinks to the rows and the series to register | |
//!
//! No request waits for memory while it holds some, so requests cannot block each other, and the
//! rate of admission follows the rate of appends. A quarter of the budget is reserved for growth
//! and is not available to new requests. Admitted requests use it for what cannot be known before
//! decoding, and only briefly.
//!
//! A body that has not arrived yet may [claim](Budget::claim) memory, so that it is not refused
//! halfway. All claims together take at most half of the budget, and one claim at most a sixteenth.
//! A claim soon releases what does not arrive. A client that declares a long body and sends little
//! therefore delays only other long bodies, and only for that time.
//!
//! A request that could take more than the whole budget takes all of it. It is decoded while no
//! other request holds anything, and may alone exceed the budget.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// One permit stands for 1 KiB, so that counts fit the semaphores' `u32`.
const PERMIT_BYTES: usize = 1024;
/// The denominator of the share of the budget that is reserved for growth.
const GROWTH_PART: usize = 4;
/// The denominator of the share of the budget that all claims may take.
const CLAIMS_PART: usize = 2;
/// The denominator of the share of the budget that one claim may take.
const CLAIM_PART: usize = 16;
/// The step by which a [`Room`] grows.
const STEP_BYTES: usize = 64 << 10;

/// There is no room, or none became available in time.
#[derive(Debug, Error, PartialEq, Eq, Clone, Copy)]
#[error("too many bytes are waiting to be stored (receive.pending_bytes_max)")]
pub struct Overloaded;

/// Permits, and their total number.
struct Pool {
    permits: Arc<Semaphore>,
    permits_max: usize,
}

impl Pool {
    fn new(permits_max: usize) -> Self {
        let permits = Arc::new(Semaphore::new(permits_max));
        Self {
            permits,
            permits_max,
        }
    }

    fn taken(&self) -> usize {
        // More permits than the maximum can be available for a moment while some are released.
        self.permits_max
            .saturating_sub(self.permits.available_permits())
    }

    /// Takes permits at once, or none. It never overtakes waiting requests.
    fn take(&self, permits: usize) -> Option<OwnedSemaphorePermit> {
        let permits = u32::try_from(permits).ok()?;
        let pool = Arc::clone(&self.permits);
        pool.try_acquire_many_owned(permits).ok()
    }

    /// Waits until the requests that came before have their permits, then takes permits.
    async fn wait(&self, permits: usize) -> Option<OwnedSemaphorePermit> {
        let permits = u32::try_from(permits).ok()?;
        let pool = Arc::clone(&self.permits);
        pool.acquire_many_owned(permits).await.ok()
    }
}

/// The budget. Clones share it.
#[derive(Clone)]
pub struct Budget {
    pools: Arc<Pools>,
}

struct Pools {
    /// Permits for new requests. Admitted requests may grow into what is left.
    entry: Pool,
    /// Permits only for the growth of admitted requests.
    growth: Pool,
    /// Permits to hold a part of the entry pool for bytes that have not arrived yet.
    claims: Pool,
    claim_max: usize,
    wait_max: Duration,
}

/// Bytes taken from a budget. They are released on drop.
#[derive(Debug, Default)]
pub struct Reservation {
    entry: Option<OwnedSemaphorePermit>,
    growth: Option<OwnedSemaphorePermit>,
}

/// Permission to hold memory for bytes that have not arrived yet. It is released on drop.
#[derive(Debug)]
pub struct Claim {
    _permit: OwnedSemaphorePermit,
}

impl Budget {
    /// Creates a budget of `bytes_max`. New requests that find it exhausted wait at most
    /// `wait_max`.
    pub fn new(bytes_max: usize, wait_max: Duration) -> Self {
        let permits_max = (bytes_max / PERMIT_BYTES).clamp(1, u32::MAX as usize);
        let growth = permits_max / GROWTH_PART;
        let pools = Pools {
            entry: Pool::new(permits_max - growth),
            growth: Pool::new(growth),
            claims: Pool::new((permits_max / CLAIMS_PART).max(1)),
            claim_max: (permits_max / CLAIM_PART).max(1),
            wait_max,
        };
        Self {
            pools: Arc::new(pools),
        }
    }

    /// The bytes taken now.
    pub fn pending_bytes(&self) -> usize {
        (self.pools.entry.taken() + self.pools.growth.taken()) * PERMIT_BYTES
    }

    /// Takes `bytes`, rounded up, for a new request.
    ///
    /// # Errors
    /// Returns [`Overloaded`] if no room becomes available in time.
    pub async fn admit(&self, bytes: usize) -> Result<Reservation, Overloaded> {
        let Pools {
            entry, wait_max, ..
        } = &*self.pools;
        let wanted = permits(bytes).min(entry.permits_max);
        if let Some(permit) = entry.take(wanted) {
            return Ok(Reservation::of(permit));
        }
        // This path is rare and its future is large, so it is boxed.
        let waited = timeout(*wait_max, Box::pin(entry.wait(wanted)));
        let permit = waited.await.ok().flatten().ok_or(Overloaded)?;
        Ok(Reservation::of(permit))
    }

    /// Takes `bytes`, rounded up, but at most what one claim may take, for a new request whose
    /// bytes have not arrived yet.
    ///
    /// # Errors
    /// Returns [`Overloaded`] if no room becomes available in time.
    pub async fn claim(&self, bytes: usize) -> Result<(Reservation, Claim), Overloaded> {
        let pools = &*self.pools;
        let wanted = permits(bytes).min(pools.claim_max);
        let taken = timeout(pools.wait_max, async {
            let claim = pools.claims.wait(wanted).await?;
            let permit = pools.entry.wait(wanted).await?;
            Some((Reservation::of(permit), Claim { _permit: claim }))
        });
        Box::pin(taken).await.ok().flatten().ok_or(Overloaded)
    }
}

fn permits(bytes: usize) -> usize {
    bytes.div_ceil(PERMIT_BYTES)
}

fn count(permit: &Option<OwnedSemaphorePermit>) -> usize {
    permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
}

/// Adds a permit of the same pool.
fn merge(permit: &mut Option<OwnedSemaphorePermit>, more: OwnedSemaphorePermit) {
    match permit {
        Some(permit) => permit.merge(more),
        None => *permit = Some(more),
    }
}

/// Releases some permits, or all if there are fewer. Returns how many were released.
fn release(permit: &mut Option<OwnedSemaphorePermit>, permits: usize) -> usize {
    let held = count(permit);
    match permit {
        Some(some) if permits < held => drop(some.split(permits)),
        _ => *permit = None,
    }
    permits.min(held)
}

impl Reservation {
    fn of(entry: OwnedSemaphorePermit) -> Self {
        Self {
            entry: Some(entry),
            growth: None,
        }
    }

    /// The bytes that the reservation covers.
    pub fn bytes(&self) -> usize {
        (count(&self.entry) + count(&self.growth)) * PERMIT_BYTES
    }

    /// Grows the reservation to at least `bytes`, without waiting. A single request never takes
    /// more than the whole budget.
    ///
    /// # Errors
    /// Returns [`Overloaded`] if there is no room now. The reservation is unchanged in this case.
    pub fn grow(&mut self, budget: &Budget, bytes: usize) -> Result<(), Overloaded> {
        let Pools { entry, growth, .. } = &*budget.pools;
        let wanted = permits(bytes).min(entry.permits_max + growth.permits_max);
        let more = wanted.saturating_sub(count(&self.entry) + count(&self.growth));
        if more == 0 {
            return Ok(());
        }
        let of_entry = more.min(entry.permits.available_permits());
        // Another thread may have taken the permits in the meantime.
        let entry = entry.take(of_entry);
        let of_growth = more - count(&entry);
        let growth = growth.take(of_growth).ok_or(Overloaded)?;
        if let Some(entry) = entry {
            merge(&mut self.entry, entry);
        }
        merge(&mut self.growth, growth);
        Ok(())
    }

    /// Releases what the reservation holds beyond `bytes`, rounded up, beginning with growth.
    /// Returns whether the reservation covers `bytes`.
    pub fn shrink(&mut self, bytes: usize) -> bool {
        let wanted = permits(bytes);
        let held = count(&self.entry) + count(&self.growth);
        if let Some(less) = held.checked_sub(wanted)
            && less > 0
        {
            let of_growth = release(&mut self.growth, less);
            release(&mut self.entry, less - of_growth);
        }
        wanted <= held
    }

    /// Resizes the reservation to `bytes`, rounded up, without waiting.
    ///
    /// # Errors
    /// Returns [`Overloaded`] if that is more than the reservation holds and there is no room now.
    /// The reservation is unchanged in this case.
    pub fn resize(&mut self, budget: &Budget, bytes: usize) -> Result<(), Overloaded> {
        match self.shrink(bytes) {
            true => Ok(()),
            false => self.grow(budget, bytes),
        }
    }
}

/// The memory that a piece of work may hold: a reservation that grows with the work, step by step.
pub struct Room {
    reservation: Reservation,
    /// The budget to grow from. Without one there is no bound.
    budget: Option<Budget>,
    /// Bytes held besides those that the work counts.
    base_bytes: usize,
    /// Bytes that the work may hold without growing the reservation.
    covered_bytes: usize,
}

impl Room {
    /// Creates a room from a reservation, which also has to cover `base_bytes` that the work does
    /// not count.
    ///
    /// # Errors
    /// Returns [`Overloaded`] if there is no room for `base_bytes`.
    pub fn new(
        mut reservation: Reservation,
        budget: &Budget,
        base_bytes: usize,
    ) -> Result<Self, Overloaded> {
        reservation.grow(budget, base_bytes)?;
        Ok(Self {
            covered_bytes: reservation.bytes().saturating_sub(base_bytes),
            reservation,
            budget: Some(budget.clone()),
            base_bytes,
        })
    }

    /// Creates a room without a bound.
    pub fn boundless() -> Self {
        Self {
            reservation: Reservation::default(),
            budget: None,
            base_bytes: 0,
            covered_bytes: usize::MAX,
        }
    }

    /// Returns the grown reservation.
    pub fn into_reservation(self) -> Reservation {
        self.reservation
    }

    /// Makes sure that the work may hold `bytes`.
    ///
    /// # Errors
    /// Returns [`Overloaded`] if there is no room now. The work has to end in this case.
    #[inline]
    pub fn cover(&mut self, bytes: usize) -> Result<(), Overloaded> {
        if bytes <= self.covered_bytes {
            return Ok(());
        }
        self.grow(bytes)
    }

    #[cold]
    fn grow(&mut self, bytes: usize) -> Result<(), Overloaded> {
        let Some(budget) = &self.budget else {
            return Ok(());
        };
        let held_bytes = self.base_bytes.saturating_add(bytes);
        let a_step_more = held_bytes.saturating_add(STEP_BYTES);
        let reservation = &mut self.reservation;
        reservation
            .grow(budget, a_step_more)
            .or_else(|_| reservation.grow(budget, held_bytes))?;
        // A reservation cannot exceed the whole budget, and the whole budget suffices.
        let covered_bytes = reservation.bytes().saturating_sub(self.base_bytes);
        self.covered_bytes = covered_bytes.max(bytes);
        Ok(())
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
