//! The database `lanes` in a cluster: roles, extension, privileges. The same for `make run` and for tests.
//!
//! | role | may |
//! |---|---|
//! | `postgres` | everything; only through the socket |
//! | `lanes` | own the database, make tables in it, read what the gateway stored; the person's role |
//! | `lanes_gateway` | what [`GRANT_GATEWAY`] gives, nothing else; the gateway's role |

use crate::cluster::Cluster;
use crate::error::Result;
use crate::seed;
use postgres::Client;

/// The database of everything Prometheus sends, and of the person's own tables.
pub const DATABASE: &str = "lanes";
/// The person's role.
pub const OWNER: &str = "lanes";
/// The gateway's role.
pub const GATEWAY: &str = "lanes_gateway";
/// Gives a role what a gateway needs; a function of the extension.
pub const GRANT_GATEWAY: &str = "SELECT lanes.grant_gateway('lanes_gateway')";
/// Lets a role read what gateways store; a function of the extension.
const GRANT_READER: &str = "SELECT lanes.grant_reader('lanes')";

/// The passwords of the two roles that have one.
#[derive(Debug, Clone)]
pub struct Passwords {
    /// Of [`OWNER`].
    pub owner: String,
    /// Of [`GATEWAY`].
    pub gateway: String,
}

impl Passwords {
    /// New ones, from the operating system's randomness.
    pub fn generate() -> Passwords {
        Passwords {
            owner: seed::password(),
            gateway: seed::password(),
        }
    }
}

/// Makes roles, database and extension, or brings them up to date: safe to call at each start.
pub fn provision(cluster: &Cluster, passwords: &Passwords) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    set_role(&mut client, OWNER, &passwords.owner)?;
    set_role(&mut client, GATEWAY, &passwords.gateway)?;
    let there = client.query_opt("SELECT FROM pg_database WHERE datname = $1", &[&DATABASE])?;
    if there.is_none() {
        client.batch_execute(&format!("CREATE DATABASE {DATABASE} OWNER {OWNER}"))?;
    }
    // Postgres's default path begins with a schema named like the role, which here is the extension's own.
    client.batch_execute(&format!(
        "ALTER ROLE {OWNER} IN DATABASE {DATABASE} SET search_path = public"
    ))?;
    let mut client = cluster.connect(DATABASE)?;
    // The update does nothing when the installed version is the newest.
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS lanes; ALTER EXTENSION lanes UPDATE")?;
    client.batch_execute(&format!("{GRANT_GATEWAY}; {GRANT_READER}"))?;
    Ok(())
}

/// Makes a role that can log in, or sets its password. Names and passwords here are plain letters and digits.
fn set_role(client: &mut Client, role: &str, password: &str) -> Result<()> {
    let there = client.query_opt("SELECT FROM pg_roles WHERE rolname = $1", &[&role])?;
    let verb = if there.is_some() { "ALTER" } else { "CREATE" };
    // One transaction, so that the setting that keeps the password out of the log ends with it.
    client.batch_execute(&format!(
        "BEGIN; SET LOCAL log_statement = 'none'; SET LOCAL log_min_error_statement = 'panic'; \
         {verb} ROLE {role} LOGIN PASSWORD '{password}'; COMMIT"
    ))?;
    Ok(())
}
