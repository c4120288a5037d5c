//! bcrypt, a few passwords at a time. It is slow on purpose, so it runs on threads of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::http::Refusal;

/// The number of requests that may wait for their password to be checked.
const WAITING_MAX: usize = 256;
/// How long a request waits for that.
const WAIT: Duration = Duration::from_secs(10);

/// The turns to hash passwords, shared by all workers.
pub struct Hashing {
    /// Few, so that wrong passwords leave processors to writes.
    turns: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

impl Default for Hashing {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with((cores / 2).max(1), WAITING_MAX)
    }
}

/// A turn, which ends when it is dropped.
pub struct Turn {
    _turn: tokio::sync::OwnedSemaphorePermit,
    _place: tokio::sync::OwnedSemaphorePermit,
}

impl Hashing {
    fn with(turns: usize, places: usize) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(turns)),
            places: Arc::new(Semaphore::new(places)),
        }
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// Returns a refusal if too many wait, or none comes in time.
    pub async fn turn(&self) -> Result<Turn, Refusal> {
        let busy = || Refusal::Busy("too many passwords are being checked".to_owned());
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| busy())?;
        let turn = timeout(WAIT, Arc::clone(&self.turns).acquire_owned());
        match turn.await {
            Ok(Ok(turn)) => Ok(Turn {
                _turn: turn,
                _place: place,
            }),
            _ => Err(busy()),
        }
    }
}

/// Whether the hash is that of the password. The turn is returned, so that the next one finds what
/// was learnt. If the request is given up before, the turn ends with the hashing.
pub async fn verify(turn: Turn, password: Vec<u8>, hash: String) -> (bool, Option<Turn>) {
    let hashing = tokio::task::spawn_blocking(move || {
        let is_right = bcrypt::verify(password, &hash).unwrap_or(false);
        (is_right, Some(turn))
    });
    hashing.await.unwrap_or((false, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn few_hash_and_few_wait() {
        let hashing = Hashing::with(1, 2);
        let first = hashing.turn().await.unwrap();
        let (late, full) = tokio::join!(hashing.turn(), hashing.turn());
        assert!(matches!(late, Err(Refusal::Busy(_))), "no turn in time");
        assert!(matches!(full, Err(Refusal::Busy(_))), "no place");
        drop(first);
        assert!(hashing.turn().await.is_ok());
    }
}
