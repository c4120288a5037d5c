//! The database `lanes` in a cluster: roles, extension and privileges, created by the scripts in
//! `sql/provision`. `make run`, the tests and the images share them.
//!
//! | role | privileges |
//! |---|---|
//! | `postgres` | superuser, through the socket only |
//! | `lanes` | the user's role: owns the database, creates tables in it, reads what the gateway stored |
//! | `lanes_gateway` | the gateway's role: the privileges of `lanes.grant_gateway` and no others |
//! | `lanes_reader` | the role of dashboards: reads |

use crate::cluster::Cluster;
use crate::error::Result;
use crate::seed;

/// The database of everything that Prometheus sends, and of the user's own tables.
pub const DATABASE: &str = "lanes";
/// The user's role.
pub const OWNER: &str = "lanes";
/// The gateway's role.
pub const GATEWAY: &str = "lanes_gateway";
/// The role of dashboards.
pub const READER: &str = "lanes_reader";
/// The script that creates the roles and sets their passwords.
const ROLES: &str = include_str!("../../../sql/provision/roles.sql");
/// The script that creates the extension and grants privileges.
const IN_DATABASE: &str = include_str!("../../../sql/provision/database.sql");

/// The passwords of the roles.
#[derive(Debug, Clone)]
pub struct Passwords {
    /// The password of [`OWNER`].
    pub owner: String,
    /// The password of [`GATEWAY`].
    pub gateway: String,
    /// The password of [`READER`].
    pub reader: String,
}

impl Passwords {
    /// Generates passwords from the operating system's randomness.
    pub fn generate() -> Passwords {
        Passwords {
            owner: seed::password(),
            gateway: seed::password(),
            reader: seed::password(),
        }
    }
}

/// Creates roles, database and extension, or updates them. It can be called at each start.
pub fn provision(cluster: &Cluster, passwords: &Passwords) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    // One transaction, because the settings with the passwords, and the setting that keeps them out
    // of the log, end with it. The passwords are letters and digits only.
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
