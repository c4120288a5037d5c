//! The bytes that all requests not yet answered may hold together: memory is bounded whatever clients do, and those who are let in get to
//! their end.
//!
//! | a request | its reservation | when there is no room |
//! |---|---|---|
//! | before its body is kept | is taken: what the body and its rows are expected to take | it waits, holding nothing, first come, first served; after `receive.pending_wait` 503 |
//! | while its body is read, decompressed, decoded | grows step by step with what is really held: a [`Room`] | 503 at once, and all of it is given back |
//! | once decoded | shrinks to its rows and the series to register | |
//!
//! Nobody waits for memory while holding some, so requests cannot block each other, and what is let in is what appends have drained. A
//! quarter of the budget is growth, which newcomers are not let into: requests that are in find room for what they cannot know before
//! they are decoded, as it is needed for moments only.
//!
//! A body that has not come yet may [claim](Budget::claim) memory, so that it is not refused halfway: claims take half of the budget at
//! most, one of them a sixteenth, and who makes them gives back soon what does not come. So a client that declares much and sends
//! little holds up others that declare much, for that time, and nobody else.
//!
//! A request that could take more than the whole budget takes all of it: it is decoded while no other holds anything, and may exceed the
//! budget alone.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Permits stand for KiB, so that counts fit the semaphores' `u32`.
const PERMIT_BYTES: usize = 1024;
/// Of the budget, one part in so many is growth.
const GROWTH_PART: usize = 4;
/// Of the budget, claims take one part in so many.
const CLAIMS_PART: usize = 2;
/// Of the budget, one claim takes one part in so many.
const CLAIM_PART: usize = 16;
/// A [`Room`] grows by so much at once.
const STEP_BYTES: usize = 64 << 10;

/// No room, or none within the time allowed.
#[derive(Debug, Error, PartialEq, Eq, Clone, Copy)]
#[error("too many bytes are waiting to be stored (receive.pending_bytes_max)")]
pub struct Overloaded;

/// Permits, and how many there are in all.
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
        // Never more than there are, but for a moment in which some are given back.
        self.permits_max
            .saturating_sub(self.permits.available_permits())
    }

    /// So many at once, or none; never before those who wait.
    fn take(&self, permits: usize) -> Option<OwnedSemaphorePermit> {
        let permits = u32::try_from(permits).ok()?;
        let pool = Arc::clone(&self.permits);
        pool.try_acquire_many_owned(permits).ok()
    }

    /// So many, as soon as those who came before have theirs.
    async fn wait(&self, permits: usize) -> Option<OwnedSemaphorePermit> {
        let permits = u32::try_from(permits).ok()?;
        let pool = Arc::clone(&self.permits);
        pool.acquire_many_owned(permits).await.ok()
    }
}

/// The budget; clones share it.
#[derive(Clone)]
pub struct Budget {
    pools: Arc<Pools>,
}

struct Pools {
    /// What newcomers are let into, and others grow into where it is left over.
    entry: Pool,
    /// What only those grow into who are in.
    growth: Pool,
    /// Turns to hold a part of the entry for what has not come yet.
    claims: Pool,
    claim_max: usize,
    wait_max: Duration,
}

/// Bytes taken from a budget; given back when dropped.
#[derive(Debug, Default)]
pub struct Reservation {
    entry: Option<OwnedSemaphorePermit>,
    growth: Option<OwnedSemaphorePermit>,
}

/// The turn to hold memory for what has not come yet; given back when dropped.
#[derive(Debug)]
pub struct Claim {
    _permit: OwnedSemaphorePermit,
}

impl Budget {
    /// A budget of `bytes_max`; newcomers who find it used up wait at most `wait_max`.
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

    /// Bytes taken now.
    pub fn pending_bytes(&self) -> usize {
        (self.pools.entry.taken() + self.pools.growth.taken()) * PERMIT_BYTES
    }

    /// Takes `bytes`, rounded up, for a newcomer.
    ///
    /// # Errors
    /// [`Overloaded`] if there is no room in time.
    pub async fn admit(&self, bytes: usize) -> Result<Reservation, Overloaded> {
        let Pools {
            entry, wait_max, ..
        } = &*self.pools;
        let wanted = permits(bytes).min(entry.permits_max);
        if let Some(permit) = entry.take(wanted) {
            return Ok(Reservation::of(permit));
        }
        // Rare, and large: it has a place of its own.
        let waited = timeout(*wait_max, Box::pin(entry.wait(wanted)));
        let permit = waited.await.ok().flatten().ok_or(Overloaded)?;
        Ok(Reservation::of(permit))
    }

    /// Takes as much of `bytes`, rounded up, as one claim may, for a newcomer whose bytes have not come yet.
    ///
    /// # Errors
    /// [`Overloaded`] if there is no room in time.
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

/// Gives so many back, or all there are; how many that is.
fn give_back(permit: &mut Option<OwnedSemaphorePermit>, permits: usize) -> usize {
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

    /// Bytes that it covers.
    pub fn bytes(&self) -> usize {
        (count(&self.entry) + count(&self.growth)) * PERMIT_BYTES
    }

    /// Makes this reservation one of `bytes` at least, at once. One request alone never asks for more than the whole budget.
    ///
    /// # Errors
    /// [`Overloaded`] if there is no room now; the reservation stays as it was.
    pub fn grow(&mut self, budget: &Budget, bytes: usize) -> Result<(), Overloaded> {
        let Pools { entry, growth, .. } = &*budget.pools;
        let wanted = permits(bytes).min(entry.permits_max + growth.permits_max);
        let more = wanted.saturating_sub(count(&self.entry) + count(&self.growth));
        if more == 0 {
            return Ok(());
        }
        let of_entry = more.min(entry.permits.available_permits());
        // Another may have been faster.
        let entry = entry.take(of_entry);
        let of_growth = more - count(&entry);
        let growth = growth.take(of_growth).ok_or(Overloaded)?;
        if let Some(entry) = entry {
            merge(&mut self.entry, entry);
        }
        merge(&mut self.growth, growth);
        Ok(())
    }

    /// Gives back what this reservation holds over `bytes`, rounded up: growth first. Whether it covers them.
    pub fn shrink(&mut self, bytes: usize) -> bool {
        let wanted = permits(bytes);
        let held = count(&self.entry) + count(&self.growth);
        if let Some(less) = held.checked_sub(wanted)
            && less > 0
        {
            let of_growth = give_back(&mut self.growth, less);
            give_back(&mut self.entry, less - of_growth);
        }
        wanted <= held
    }

    /// Makes this reservation one of `bytes`, rounded up, at once.
    ///
    /// # Errors
    /// [`Overloaded`] if that is more than it holds and there is no room now; the reservation stays as it was.
    pub fn resize(&mut self, budget: &Budget, bytes: usize) -> Result<(), Overloaded> {
        match self.shrink(bytes) {
            true => Ok(()),
            false => self.grow(budget, bytes),
        }
    }
}

/// What work may hold in memory: a reservation that grows with it, step by step.
pub struct Room {
    reservation: Reservation,
    /// Without one there is no bound.
    budget: Option<Budget>,
    /// Held beside what the work counts.
    base_bytes: usize,
    /// What the work may hold without asking.
    covered_bytes: usize,
}

impl Room {
    /// The room that a reservation gives, and that it can grow to, beside `base_bytes` that it covers too.
    ///
    /// # Errors
    /// [`Overloaded`] if there is not even room for these.
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

    /// Room without a bound.
    pub fn boundless() -> Self {
        Self {
            reservation: Reservation::default(),
            budget: None,
            base_bytes: 0,
            covered_bytes: usize::MAX,
        }
    }

    /// What it has grown to.
    pub fn into_reservation(self) -> Reservation {
        self.reservation
    }

    /// Sees to it that the work may hold `bytes`.
    ///
    /// # Errors
    /// [`Overloaded`] if there is no room now: the work ends.
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
        // More than the whole budget is not to be had, and all of it is enough.
        let covered_bytes = reservation.bytes().saturating_sub(self.base_bytes);
        self.covered_bytes = covered_bytes.max(bytes);
        Ok(())
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
