//! The sources of the password for PostgreSQL, in libpq's order but with the gateway's own file
//! first: the file named in the configuration, the connection string, `PGPASSWORD`, and
//! `PGPASSFILE` or `~/.pgpass`. The password is sent to the server only.

use std::path::{Path, PathBuf};

use thiserror::Error;
use tokio_postgres::config::Host;

/// Why a password file cannot be used.
#[derive(Debug, Error)]
pub enum PasswordError {
    /// The file cannot be read.
    #[error("password file {path:?}: {source}")]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file contains no password.
    #[error("password file {0:?} is empty")]
    Empty(PathBuf),
}

/// The server that a password is used for.
#[derive(Debug, Clone, Copy)]
struct Server<'a> {
    /// The host name, or `localhost` for a socket.
    host: &'a str,
    port: u16,
    database: &'a str,
    user: &'a str,
}

/// Reads a file that contains only the password and perhaps a newline.
///
/// # Errors
/// Returns a [`PasswordError`] if the file cannot be read or is empty.
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

/// Completes a connection with the password from libpq's environment, unless it has one.
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

/// Returns the password from libpq's environment, if there is one.
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

/// Returns the password of the first line `host:port:database:user:password` that matches. `*`
/// matches everything, and a backslash escapes the next character.
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
    fn the_first_matching_line_is_used() {
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
