//! `lanes-gateway --adopt`: makes the database of the settings the owner of their object store.

use super::owner::Owner;
use super::source::Source;
use super::store::{Opener, Store};

/// Makes the database the owner. This takes the store from the gateway that has it open. Returns a
/// message for people.
///
/// # Errors
/// Returns the reason. The store is unchanged, unless the error is the store's own. In that case no
/// other gateway may be able to open it meanwhile.
pub async fn adopt(source: &impl Source, opener: &impl Opener) -> Result<String, String> {
    source.supports().await.map_err(|error| error.to_string())?;
    let database = source.identity().await.map_err(|error| error.to_string())?;
    let Some(primary) = &database.primary else {
        return Err("this database is a standby; only a primary can own a store".to_owned());
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
        "objects.url now belongs to database {}, timeline {}",
        owner.scope, owner.timeline
    ))
}
