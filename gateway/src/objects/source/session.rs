//! A session with PostgreSQL for calls that may take long.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::SourceError;
use crate::connect::Connector;
use crate::connect::reason::reason;

/// The timeout of a call. It suffices for the image of the largest segment, and for a commit that
/// waits for a checkpoint.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// The time between the server's own timeout and the moment at which a session is given up.
const GRACE: Duration = Duration::from_secs(5);

/// An open session.
pub struct Session {
    client: Client,
    driver: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Session {
    /// Opens a session.
    ///
    /// # Errors
    /// Returns an error if the server is unavailable, or refuses the login.
    pub async fn open(
        connector: &Connector,
        connect_timeout: Duration,
    ) -> Result<Self, SourceError> {
        let opening = async {
            let (client, connection) = connector
                .connect()
                .await
                .map_err(|error| source_error(&error))?;
            let driver = tokio::spawn(async move {
                // Calls end with its error.
                let _ = connection.await;
            });
            let session = Self { client, driver };
            let set_up = format!(
                "SET search_path = pg_catalog; SET statement_timeout = {}; SET client_min_messages = warning; \
                 SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off",
                CALL_TIMEOUT.as_millis()
            );
            session
                .call(async |client| client.batch_execute(&set_up).await)
                .await?;
            Ok(session)
        };
        match timeout(connect_timeout, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(SourceError::Lost(format!(
                "could not open a session with PostgreSQL within {connect_timeout:?}"
            ))),
        }
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Makes a call within a bounded time.
    ///
    /// # Errors
    /// Returns [`SourceError::Lost`] if the session cannot be used again.
    pub async fn call<R>(
        &self,
        call: impl AsyncFnOnce(&Client) -> Result<R, tokio_postgres::Error>,
    ) -> Result<R, SourceError> {
        match timeout(CALL_TIMEOUT + GRACE, call(&self.client)).await {
            Ok(Err(_)) if self.client.is_closed() => Err(SourceError::Lost(
                "the session with PostgreSQL is lost".to_owned(),
            )),
            Ok(result) => result.map_err(|error| source_error(&error)),
            Err(_) => Err(SourceError::Lost(format!(
                "PostgreSQL did not answer within {:?}",
                CALL_TIMEOUT + GRACE
            ))),
        }
    }
}

fn source_error(error: &tokio_postgres::Error) -> SourceError {
    let Some(database_error) = error.as_db_error() else {
        return SourceError::Lost(reason(error));
    };
    let code = database_error.code();
    let reason = format!(
        "PostgreSQL: {} (SQLSTATE {})",
        database_error.message(),
        code.code()
    );
    if *code == SqlState::UNDEFINED_FUNCTION || *code == SqlState::INVALID_SCHEMA_NAME {
        SourceError::Unsupported(reason)
    } else if matches!(code.code().get(..3), Some("57P" | "28P" | "080")) || code.code() == "28000"
    {
        SourceError::Lost(reason)
    } else {
        SourceError::Failed(reason)
    }
}
