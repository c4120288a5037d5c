//! Segments from before a column got another type.
//!
//! ALTER TABLE writes such a table anew, and its old segments stay in the store for a while: until the new ones are there, they are all
//! there is of its rows. An image knows how wide its values are, not what they mean, so it goes into a table of the old types first,
//! and what is cast from there into the new one.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::entry_rows::{SLICE, Type};
use super::plan::Definition;
use super::run::{Restore, SEGMENT};
use crate::deliver::describe::identifier;
use crate::objects::record::PartRecord;

/// The columns of such a part, called by their places.
pub(super) struct Retyped {
    /// What follows the name in CREATE TABLE.
    columns: String,
    /// Those to drop.
    dropped: Vec<String>,
    /// Columns of the table as it is now,
    names: String,
    /// and what they get.
    values: String,
    schema: String,
}

impl Retyped {
    /// `None`: the part's columns have the types of now.
    pub(super) fn of(
        part: &PartRecord,
        definition: &Definition,
        types: &HashMap<String, Type>,
    ) -> Option<Self> {
        let column_now = |place: usize| {
            let name = definition.columns.get(place)?.as_ref()?;
            Some((name, &types.get(name)?.sql))
        };
        let then_and_now = || {
            let then = part.types.iter().enumerate();
            then.filter_map(|(place, then)| Some((place, then.as_ref()?, column_now(place)?)))
        };
        if then_and_now().all(|(_, then, (_, now))| then == now) {
            return None;
        }
        let called = |place: usize| identifier(&(place + 1).to_string());
        let list = |items: Vec<String>| items.join(", ");
        let places = part.types.iter().enumerate();
        Some(Self {
            columns: list(
                places
                    .clone()
                    .map(|(place, then)| {
                        format!("{} {}", called(place), then.as_deref().unwrap_or("boolean"))
                    })
                    .collect(),
            ),
            dropped: places
                .filter(|(_, then)| then.is_none())
                .map(|(place, _)| called(place))
                .collect(),
            names: list(
                then_and_now()
                    .map(|(_, _, (name, _))| identifier(name))
                    .collect(),
            ),
            values: list(
                then_and_now()
                    .map(|(place, _, (_, now))| format!("{}::{now}", called(place)))
                    .collect(),
            ),
            schema: identifier(&definition.schema),
        })
    }

    /// Statements that make a table for the part's images.
    fn make(&self, create: &str, name: &str) -> String {
        let drops = self
            .dropped
            .iter()
            .map(|column| format!("; ALTER TABLE {name} DROP COLUMN {column}"));
        let drops: String = drops.collect();
        format!("{create} ({}) USING lanes{drops}", self.columns)
    }
}

impl Restore<'_> {
    /// Inserts the rows of an image; how many.
    pub(super) async fn retyped(
        &self,
        part: &Retyped,
        table: &str,
        key: &str,
        image: &[u8],
    ) -> Result<u64, String> {
        self.execute("SAVEPOINT retyped").await?;
        let cast = async {
            let make = part.make("CREATE TEMPORARY TABLE lanes_restore_slice", SLICE);
            self.execute(&make).await?;
            let rows = self.insert(SEGMENT, SLICE, image).await?;
            let Retyped { names, values, .. } = part;
            self.execute(&format!(
                "INSERT INTO {table} ({names}) SELECT {values} FROM {SLICE}; DROP TABLE {SLICE}"
            ))
            .await?;
            Ok::<_, String>(rows)
        };
        let rows = match cast.await {
            Ok(rows) => {
                eprintln!(
                    "{table}: {rows} rows are from before a column got another type, and are cast"
                );
                rows
            }
            Err(reason) => {
                self.execute("ROLLBACK TO retyped").await?;
                let digest = xxh3_64(key.as_bytes());
                let name = format!("{}.lanes_unconverted_{digest:016x}", part.schema);
                self.execute(&part.make(&format!("CREATE TABLE {name}"), &name))
                    .await?;
                let rows = self.insert(SEGMENT, &name, image).await?;
                eprintln!(
                    "{table}: {rows} rows do not fit the types that its columns have now, and are in {name}, with columns called by their places: {reason}"
                );
                rows
            }
        };
        self.execute("RELEASE retyped").await?;
        Ok(rows)
    }
}
