//! The current users and certificates, and the check of a request.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use parking_lot::RwLock;
use rustls::ServerConfig;
use tokio::sync::watch;

use super::accounts::{Accounts, Fingerprint};
use super::hashing::{self, Hashing};
use super::header::{self, Claim};
use super::metrics::AccessMetrics;
use super::settings::Loaded;
use super::user::{Caller, User};
use crate::http::Refusal;

/// The certificates of new connections; `None` for connections without TLS.
pub type Certificates = watch::Receiver<Option<Arc<ServerConfig>>>;

/// The users and certificates of a gateway, shared by all workers.
pub struct Guard {
    accounts: RwLock<Option<Arc<Accounts>>>,
    tls: watch::Sender<Option<Arc<ServerConfig>>>,
    hashing: Hashing,
    metrics: Arc<AccessMetrics>,
}

/// The text of a 401.
const UNAUTHORIZED: &str = "wrong or missing credentials: send the name and password of a user, or a token \
    (listen.web_config). In a browser, the page at /token asks for a token";

impl Guard {
    /// Returns a guard with the users and certificates of a file.
    pub fn new(loaded: &Loaded, metrics: Arc<AccessMetrics>) -> Self {
        metrics.config_good.set(1);
        Self {
            accounts: RwLock::new(loaded.accounts.clone()),
            tls: watch::Sender::new(loaded.tls.clone()),
            hashing: Hashing::default(),
            metrics,
        }
    }

    /// The metrics of access.
    pub fn metrics(&self) -> &AccessMetrics {
        &self.metrics
    }

    /// Takes the users and certificates of a newer file. Open connections keep their certificates.
    pub fn replace(&self, loaded: Loaded) {
        *self.accounts.write() = loaded.accounts;
        self.tls.send_replace(loaded.tls);
    }

    /// Returns all users.
    pub fn users(&self) -> Vec<Arc<User>> {
        let accounts = self.accounts.read();
        let users = accounts.iter().flat_map(|accounts| accounts.users());
        users.map(Arc::clone).collect()
    }

    /// Returns the certificates, now and later.
    pub fn certificates(&self) -> Certificates {
        self.tls.subscribe()
    }

    /// Returns the user of a request; `None` if no credentials are wanted.
    ///
    /// # Errors
    /// Returns a 401 if the credentials are missing or wrong, and a 503 if too many passwords wait
    /// to be checked.
    pub async fn admit(&self, headers: &HeaderMap) -> Result<Caller, Refusal> {
        let Some(accounts) = self.accounts.read().clone() else {
            return Ok(None);
        };
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(self.unauthorized("missing"));
        };
        let fingerprint = accounts.fingerprint(value.as_bytes());
        let user = match accounts.known(fingerprint) {
            Some(known) => known,
            // This path is rare and its future is large, so it is boxed.
            None => Box::pin(self.check(&accounts, fingerprint, value.as_bytes())).await?,
        };
        match user {
            Some(user) => Ok(Some(user)),
            None => Err(self.unauthorized("wrong")),
        }
    }

    async fn check(
        &self,
        accounts: &Accounts,
        fingerprint: Fingerprint,
        value: &[u8],
    ) -> Result<Option<Arc<User>>, Refusal> {
        let mut turn = None;
        let user = match header::parse(value) {
            None => return Err(self.unauthorized("malformed")),
            Some(Claim::Token(token)) => accounts.of_token(&token),
            Some(Claim::Password { name, password }) => {
                let mine = self.hashing.turn().await?;
                // Another request may have brought the same password meanwhile.
                if let Some(known) = accounts.known(fingerprint) {
                    return Ok(known);
                }
                let (user, hash) = accounts.of_name(&name);
                self.metrics.passwords_hashed.inc();
                let (is_right, mine) = hashing::verify(mine, password, hash).await;
                turn = mine;
                user.filter(|_| is_right)
            }
        };
        accounts.learn(fingerprint, user.as_ref());
        drop(turn);
        Ok(user)
    }

    fn unauthorized(&self, reason: &str) -> Refusal {
        self.metrics.unauthorized.with_label_values(&[reason]).inc();
        Refusal::Unauthorized(UNAUTHORIZED.to_owned())
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
