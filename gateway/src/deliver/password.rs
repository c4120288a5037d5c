//! Where the password for PostgreSQL comes from, in libpq's order with the gateway's own file first: the file named in the configuration,
//! the connection string, `PGPASSWORD`, `PGPASSFILE` or `~/.pgpass`. It goes nowhere but to the server.

use std::path::{Path, PathBuf};

use thiserror::Error;
use tokio_postgres::config::Host;

/// Why a password file is of no use.
#[derive(Debug, Error)]
pub enum PasswordError {
    /// It cannot be read.
    #[error("password file {path:?}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It holds no password.
    #[error("password file {0:?} is empty")]
    Empty(PathBuf),
}

/// The server that a password is for.
#[derive(Debug, Clone, Copy)]
struct Server<'a> {
    /// Host name, or `localhost` for a socket.
    host: &'a str,
    port: u16,
    database: &'a str,
    user: &'a str,
}

/// Reads a file that holds the password and nothing else but a newline.
///
/// # Errors
/// [`PasswordError`].
pub fn read_file(path: &Path) -> Result<String, PasswordError> {
    let text = std::fs::read_to_string(path).map_err(|source| PasswordError::Read {
        path: path.to_owned(),
        source,
    })?;
    match text.lines().next() {
        Some(password) if !password.is_empty() => Ok(password.to_owned()),
        _ => Err(PasswordError::Empty(path.to_owned())),
    }
}

/// A connection with the password that libpq's environment has for it, unless it has one.
pub fn completed(mut connection: tokio_postgres::Config) -> tokio_postgres::Config {
    if connection.get_password().is_some() {
        return connection;
    }
    let user = connection.get_user().unwrap_or_default().to_owned();
    let host = match connection.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        _ => "localhost".to_owned(),
    };
    let server = Server {
        host: &host,
        port: connection.get_ports().first().copied().unwrap_or(5432),
        database: connection.get_dbname().unwrap_or(&user),
        user: &user,
    };
    if let Some(password) = from_environment(server) {
        connection.password(password);
    }
    connection
}

/// The password from libpq's environment, if there is one.
fn from_environment(server: Server<'_>) -> Option<String> {
    if let Ok(password) = std::env::var("PGPASSWORD")
        && !password.is_empty()
    {
        return Some(password);
    }
    let path = match std::env::var_os("PGPASSFILE") {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".pgpass"),
    };
    find_in_passfile(&std::fs::read_to_string(path).ok()?, server)
}

/// The first line `host:port:database:user:password` that fits; `*` fits all, a backslash takes the next character as it is.
fn find_in_passfile(text: &str, server: Server<'_>) -> Option<String> {
    let port = server.port.to_string();
    let wanted = [server.host, &port, server.database, server.user];
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let fields = split_passfile_line(line);
            let [found @ .., password] = fields.as_slice() else {
                return None;
            };
            let fits = found.len() == wanted.len()
                && found
                    .iter()
                    .zip(wanted)
                    .all(|(found, wanted)| found == "*" || found == wanted);
            fits.then(|| password.clone())
        })
}

fn split_passfile_line(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let field = match character {
            ':' if fields.len() < 5 => {
                fields.push(String::new());
                continue;
            }
            '\\' => characters.next(),
            other => Some(other),
        };
        if let (Some(last), Some(character)) = (fields.last_mut(), field) {
            last.push(character);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: Server<'_> = Server {
        host: "db",
        port: 5433,
        database: "lanes",
        user: "gw",
    };

    #[test]
    fn the_first_line_that_fits_is_taken() {
        let text = "# db:5433:lanes:gw:comment\nother:5433:lanes:gw:no\ndb:*:*:gw:pa\\:ss\\\\word\n*:*:*:*:late\n";
        assert_eq!(
            find_in_passfile(text, SERVER).as_deref(),
            Some("pa:ss\\word")
        );
        assert_eq!(
            find_in_passfile("db:5432:lanes:gw:x\nshort:line\n\n", SERVER),
            None
        );
        assert_eq!(
            find_in_passfile("db:5433:lanes:gw:with:colon", SERVER).as_deref(),
            Some("with:colon")
        );
    }
}
