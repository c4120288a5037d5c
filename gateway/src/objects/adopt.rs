//! `lanes-gateway --adopt`: the database of the settings becomes the owner of the store of the settings.

use super::owner::Owner;
use super::source::Source;
use super::store::{Opener, Store};

/// Makes the database the owner, which takes the store from the gateway that has it open. What people are told of it.
///
/// # Errors
/// Why not; the store is as it was, or, if the error is the store's own, may be opened by nobody else meanwhile.
pub async fn adopt(source: &impl Source, opener: &impl Opener) -> Result<String, String> {
    source.supports().await.map_err(|error| error.to_string())?;
    let database = source.identity().await.map_err(|error| error.to_string())?;
    let Some(primary) = &database.primary else {
        return Err("this database is a standby; a store belongs to a primary".to_owned());
    };
    let owner = Owner::new(&database, primary, None);
    let store = opener.open().await.map_err(|error| error.to_string())?;
    let written = async {
        store.write(vec![owner.change()]).await?;
        store.durable().await
    };
    let written = written.await;
    store.close().await;
    written.map_err(|error| error.to_string())?;
    Ok(format!(
        "objects.url belongs to database {}, timeline {}, from now on",
        owner.scope, owner.timeline
    ))
}
