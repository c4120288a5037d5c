//! The database `lanes` in a cluster: roles, extension, privileges, by the scripts of `sql/provision`. The same for `make run`, for tests and
//! for the images.
//!
//! | role | may |
//! |---|---|
//! | `postgres` | everything; only through the socket |
//! | `lanes` | own the database, make tables in it, read what the gateway stored; the person's role |
//! | `lanes_gateway` | what `lanes.grant_gateway` gives, nothing else; the gateway's role |
//! | `lanes_reader` | read; for dashboards |

use crate::cluster::Cluster;
use crate::error::Result;
use crate::seed;

/// The database of everything Prometheus sends, and of the person's own tables.
pub const DATABASE: &str = "lanes";
/// The person's role.
pub const OWNER: &str = "lanes";
/// The gateway's role.
pub const GATEWAY: &str = "lanes_gateway";
/// The role of dashboards.
pub const READER: &str = "lanes_reader";
/// Makes the roles whose passwords are set.
const ROLES: &str = include_str!("../../../sql/provision/roles.sql");
/// Makes extension and privileges.
const IN_DATABASE: &str = include_str!("../../../sql/provision/database.sql");

/// The passwords of the roles that have one.
#[derive(Debug, Clone)]
pub struct Passwords {
    /// Of [`OWNER`].
    pub owner: String,
    /// Of [`GATEWAY`].
    pub gateway: String,
    /// Of [`READER`].
    pub reader: String,
}

impl Passwords {
    /// New ones, from the operating system's randomness.
    pub fn generate() -> Passwords {
        Passwords {
            owner: seed::password(),
            gateway: seed::password(),
            reader: seed::password(),
        }
    }
}

/// Makes roles, database and extension, or brings them up to date: safe to call at each start.
pub fn provision(cluster: &Cluster, passwords: &Passwords) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    // One transaction, so that the settings that keep the passwords, and them out of the log, end with it. Passwords here are plain
    // letters and digits.
    client.batch_execute(&format!(
        "BEGIN; SET LOCAL log_statement = 'none'; SET LOCAL log_min_error_statement = 'panic'; \
         SET LOCAL provision.{OWNER} = '{}'; SET LOCAL provision.{GATEWAY} = '{}'; SET LOCAL provision.{READER} = '{}'; {ROLES} COMMIT",
        passwords.owner, passwords.gateway, passwords.reader
    ))?;
    let there = client.query_opt("SELECT FROM pg_database WHERE datname = $1", &[&DATABASE])?;
    if there.is_none() {
        client.batch_execute(&format!("CREATE DATABASE {DATABASE} OWNER {OWNER}"))?;
    }
    cluster.connect(DATABASE)?.batch_execute(IN_DATABASE)?;
    Ok(())
}
