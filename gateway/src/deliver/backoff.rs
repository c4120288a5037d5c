//! Pauses between attempts. They double up to a limit and never extend past a deadline.

use std::time::Duration;

use tokio::time::{sleep, sleep_until};

use crate::clock::{self, Instant};

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// The pauses of one operation.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
    deadline: Instant,
}

impl Backoff {
    /// Creates pauses that end at `deadline`.
    pub fn new(deadline: Instant) -> Self {
        Self {
            next: FIRST,
            deadline,
        }
    }

    /// Waits. Returns false if the deadline has passed, so that another attempt is useless.
    pub async fn wait(&mut self) -> bool {
        let now = clock::now();
        if now >= self.deadline {
            return false;
        }
        if now + self.next >= self.deadline {
            sleep_until(self.deadline).await;
            return false;
        }
        sleep(self.next).await;
        self.next = (self.next * 2).min(LONGEST);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_and_end_at_the_deadline() {
        let start = clock::now();
        let mut backoff = Backoff::new(start + Duration::from_secs(10));
        let mut attempts = 0;
        while backoff.wait().await {
            attempts += 1;
        }
        assert_eq!(attempts, 9, "0.05 + 0.1 + ... + 1.6 + 2 + 2 + 2 s fit");
        assert_eq!(clock::now() - start, Duration::from_secs(10));
        assert!(!backoff.wait().await);
    }
}
