//! What distinguishes a data directory from a copy of it.

use std::os::unix::fs::MetadataExt;
use std::time::UNIX_EPOCH;

use pgrx::prelude::*;

use crate::error;
use crate::pg::server;

/// A file that initdb or a restore creates, and that is never created again afterwards.
const FILE: &str = "PG_VERSION";

/// The inode of a file that lies in every data directory, and the time at which it was created
/// there. A copy of the directory has others, unless the whole volume was copied. Changes of owner,
/// mode and links do not matter.
#[pg_extern(sql = false)]
fn data_directory_id() -> String {
    let path = std::path::Path::new(&server::data_directory()).join(FILE);
    let metadata = path.metadata().unwrap_or_else(|reason| {
        error::raise(
            PgSqlErrorCode::ERRCODE_IO_ERROR,
            format!("could not look at file \"{}\": {reason}", path.display()),
            "PostgreSQL makes it with the data directory, and needs it to start.",
        )
    });
    // Some file systems do not have this time.
    let made = metadata.created().ok();
    let made = made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    let nanoseconds = made.map_or(0, |made| made.as_nanos());
    format!("{:x}-{nanoseconds:x}", metadata.ino())
}
