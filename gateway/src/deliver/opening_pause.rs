//! A pause between attempts to open sessions that only an operator can make succeed. Each attempt
//! costs PostgreSQL a process and a line in its log.

use std::time::Duration;

use parking_lot::Mutex;

use super::call_error::CallError;
use super::sink::SinkError;
use crate::clock::{self, Instant};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(15);

/// SQLSTATEs of a missing privilege, a wrong password or role, and a missing database, schema,
/// function or table; and TLS, as with a server that cannot be verified.
const OPERATORS: [&str; 8] = [
    "42501", "28P01", "28000", "3D000", "3F000", "42883", "42P01", "tls",
];

/// The pause that all sessions of a gateway wait for; `None` while sessions can be opened.
#[derive(Default)]
pub struct OpeningPause(Mutex<Option<Refused>>);

struct Refused {
    error: SinkError,
    pause: Duration,
    until: Instant,
    /// Whether a session is being opened to find out whether that succeeds now. If this attempt is
    /// abandoned, another one follows after the pause.
    is_trying: bool,
}

impl OpeningPause {
    /// Checks whether a session may be opened now.
    ///
    /// # Errors
    /// Returns the error of the last attempt during its pause.
    pub fn check(&self) -> Result<(), SinkError> {
        match &mut *self.0.lock() {
            Some(refused) if clock::now() < refused.until => Err(refused.error.clone()),
            // One attempt at a time.
            Some(refused) => {
                refused.until = clock::now() + refused.pause;
                refused.is_trying = true;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Records a failed attempt. Each failure in succession doubles the pause.
    pub fn note(&self, error: &CallError) {
        let mut state = self.0.lock();
        if !OPERATORS.contains(&error.kind.as_str()) {
            *state = None;
            return;
        }
        let pause = match &*state {
            // Only the first of several concurrent attempts counts.
            Some(refused) if !refused.is_trying => return,
            Some(refused) => (refused.pause * 2).min(LONGEST),
            None => FIRST,
        };
        *state = Some(Refused {
            error: error.error.clone(),
            pause,
            until: clock::now() + pause,
            is_trying: false,
        });
    }

    /// Records that a session was opened.
    pub fn end(&self) {
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(kind: &str) -> CallError {
        CallError {
            error: SinkError::Unavailable(kind.to_owned()),
            kind: kind.to_owned(),
            is_session_good: false,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn mistakes_of_an_operator_are_retried_less_and_less_often() {
        let pause = OpeningPause::default();
        pause.note(&failed("connection"));
        assert_eq!(pause.check(), Ok(()), "a starting server is tried again");
        let start = clock::now();
        let mut attempts = 0;
        while clock::now() - start < Duration::from_secs(60) {
            if pause.check().is_ok() {
                attempts += 1;
                pause.note(&failed("42501"));
                pause.note(&failed("42501"));
            } else {
                assert_eq!(
                    pause.check(),
                    Err(SinkError::Unavailable("42501".to_owned()))
                );
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(attempts, 7, "after 1, 3, 7, 15, 30 and 45 s");
        pause.end();
        assert_eq!(pause.check(), Ok(()));
    }
}
