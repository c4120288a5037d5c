//! Sessions with PostgreSQL, and requests to cancel their statements.

use std::fmt;
use std::sync::Arc;

use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{CancelToken, Client, Config, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::password;
use super::reason::is_of_tls;
use super::ssl_keys;
use super::tls::Demand;
use super::tls_files::TlsFiles;

/// The future that drives a session and ends with it.
pub type Driver = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// How sessions with a database are opened. Clones are cheap, and share what was read of files.
#[derive(Clone)]
pub struct Connector {
    config: Arc<Config>,
    tls: Arc<TlsFiles>,
}

// The certificates say nothing to people.
impl fmt::Debug for Connector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Connector")
            .field("config", &self.config)
            .field("demand", self.tls.demand())
            .finish()
    }
}

impl Connector {
    /// Reads a connection string or URL as libpq does, with the files of TLS that it names. What is
    /// missing comes from libpq's variables `PGSSL…` and its sources of passwords.
    ///
    /// # Errors
    /// Returns what is wrong. The text never contains a password.
    pub fn new(text: &str, password: Option<String>) -> Result<Self, String> {
        Self::with_environment(text, password, |name| std::env::var(name).ok())
    }

    fn with_environment(
        text: &str,
        password: Option<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let (keys, rest) = ssl_keys::take(text)?;
        // The parser's own message may repeat its input.
        let mut config: Config = rest
            .parse()
            .map_err(|_| "not a PostgreSQL connection string or URL".to_owned())?;
        check_ports(&config)?;
        if config.get_hosts().is_empty() {
            // A certificate may be for an address too.
            for address in config.get_hostaddrs().to_vec() {
                config.host(address.to_string());
            }
        }
        let demand = Demand::new(keys.or_environment(variable), &config)?;
        if let Some(password) = password {
            config.password(password);
        }
        Ok(Self {
            config: Arc::new(password::completed(config)),
            tls: Arc::new(TlsFiles::load(demand)?),
        })
    }

    /// Names the application of sessions, whatever the connection string names.
    pub fn named(mut self, application: &str) -> Self {
        Arc::make_mut(&mut self.config).application_name(application);
        self
    }

    /// Names the application of sessions, unless the connection string does.
    pub fn named_by_default(self, application: &str) -> Self {
        match self.config.get_application_name() {
            Some(_) => self,
            None => self.named(application),
        }
    }

    /// The address, the role and the password.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Opens a session. Nothing happens in it unless the driver is polled.
    ///
    /// # Errors
    /// Returns the error of the first attempt, or of the second if that tells more.
    pub async fn connect(&self) -> Result<(Client, Driver), Error> {
        let demand = self.tls.demand();
        let tls = self.tls.current();
        let error = match self.attempt(demand.first, &tls).await {
            Ok(session) => return Ok(session),
            Err(error) => error,
        };
        let Some(second) = demand.second.filter(|_| is_of_mode(&error)) else {
            return Err(error);
        };
        match self.attempt(second, &tls).await {
            Ok(session) => Ok(session),
            // The server let this mode in, and refuses something else.
            Err(later) if later.code().is_some() && !is_of_mode(&later) => Err(later),
            Err(_) => Err(error),
        }
    }

    async fn attempt(
        &self,
        mode: SslMode,
        tls: &MakeRustlsConnect,
    ) -> Result<(Client, Driver), Error> {
        let mut config = Config::clone(&self.config);
        config.ssl_mode(mode);
        config.connect(tls.clone()).await
    }

    /// Asks the server to cancel the statement of a session, with TLS if the session has it.
    ///
    /// # Errors
    /// Returns an error if the server cannot be reached.
    pub async fn cancel(&self, session: &CancelToken) -> Result<(), Error> {
        session.cancel_query(self.tls.current()).await
    }
}

/// Whether a server may let the same session in with TLS, or without.
fn is_of_mode(error: &Error) -> bool {
    // Among others: pg_hba.conf has no line for the connection.
    is_of_tls(error) || error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
}

fn check_ports(config: &Config) -> Result<(), String> {
    let (hosts, ports) = (config.get_hosts().len(), config.get_ports().len());
    match ports > 1 && ports != hosts.max(config.get_hostaddrs().len()) {
        true => Err(format!(
            "{ports} ports for {hosts} hosts; specify one for all, or one for each"
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
#[path = "connector_tests.rs"]
mod tests;
