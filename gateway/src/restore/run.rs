//! The execution of a plan, in one transaction.

use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;

use super::failure::Failure;
use super::plan::{Definition, Plan, TablePlan};
use crate::connect::Connector;
use crate::objects::model::record::{self, SeriesRecord};
use crate::objects::store::reader::StoreReader;

/// The number of rows between two reports of progress.
const PROGRESS_ROWS: u64 = 10_000_000;

const TABLES: &str = "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_am a ON a.oid = c.relam \
     WHERE a.amname = 'lanes' AND c.relkind IN ('r', 'm') AND c.relpersistence <> 't' ORDER BY 1";
const SERIES: &str = "INSERT INTO lanes.series_runs (first_id, last_id, metric, labels, registered_at) \
     VALUES ($1, $2, $3, lanes.pack_label_sets($4), $5::text::timestamptz)";
const VIEWS: &str = "SELECT lanes.create_metric_view(s.metric) FROM (SELECT DISTINCT metric FROM lanes.series_runs ORDER BY metric) s";
/// Restores the rows of a segment's image into a table with its columns.
pub(super) const SEGMENT: &str = "SELECT lanes.restore_segment($1::text::regclass, $2)";
const ROLE: &str = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)";

const GRANT_GATEWAY: &str = "SELECT lanes.grant_gateway(quote_ident($1)::regrole)";
const GRANT_READER: &str = "SELECT lanes.grant_reader(quote_ident($1)::regrole)";

/// The roles that use the new database.
#[derive(Debug, Default, Clone, Copy)]
pub struct Roles<'a> {
    /// The role of its gateway.
    pub gateway: Option<&'a str>,
    /// The role of the readers of its metrics.
    pub reader: Option<&'a str>,
}

impl<'a> Roles<'a> {
    /// Returns each role, and the statement that grants it its privileges.
    fn grants(self) -> impl Iterator<Item = (&'a str, &'static str)> {
        let gateway = self.gateway.map(|role| (role, GRANT_GATEWAY));
        let reader = self.reader.map(|role| (role, GRANT_READER));
        gateway.into_iter().chain(reader)
    }
}

/// What was restored.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// The number of rows in all tables.
    pub rows: u64,
    /// The number of series.
    pub series: u64,
}

/// Executes a plan.
///
/// # Errors
/// Returns the reason, for people. The database is unchanged in this case.
pub async fn run(
    plan: &Plan,
    store: &StoreReader,
    connection: &Connector,
    roles: Roles<'_>,
) -> Result<Restored, String> {
    let (mut client, driver) = connection
        .connect()
        .await
        .map_err(|error| Failure::of("could not open a session with PostgreSQL", &error))?;
    let driver = tokio::spawn(async move {
        // Calls end with its error.
        let _ = driver.await;
    });
    let result = async {
        let begun = client.transaction().await;
        let transaction = begun.map_err(|error| Failure::of("no transaction", &error))?;
        let restore = Restore {
            store,
            transaction: &transaction,
        };
        let restored = restore.all(plan, roles).await?;
        transaction
            .commit()
            .await
            .map_err(|error| Failure::of("could not commit", &error))?;
        Ok(restored)
    };
    let result = result.await;
    drop(client);
    let _ = driver.await;
    result
}

/// A transaction in the new database, and the source of its rows.
pub(super) struct Restore<'a> {
    pub(super) store: &'a StoreReader,
    transaction: &'a Transaction<'a>,
}

impl Restore<'_> {
    async fn all(&self, plan: &Plan, roles: Roles<'_>) -> Result<Restored, String> {
        self.execute(
            "SET LOCAL search_path = pg_catalog; SET LOCAL statement_timeout = 0; SET LOCAL client_min_messages = warning; \
             SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL timezone = 'UTC'; \
             SET LOCAL intervalstyle = 'postgres'; CREATE EXTENSION IF NOT EXISTS lanes",
        )
        .await?;
        self.check_empty().await?;
        // This comes before the rows, which may take hours.
        for (role, _) in roles.grants() {
            if !self.has_role(role).await? {
                return Err(format!(
                    "role {role} does not exist; create it, and restore again"
                ));
            }
        }
        let mut restored = Restored::default();
        for table in &plan.tables {
            for statement in &table.definition.create {
                self.execute_one(statement).await?;
            }
        }
        for statement in plan.tables.iter().flat_map(|t| &t.definition.guard) {
            let guarded = self.execute_one(statement).await;
            guarded.map_err(|reason| {
                format!("{reason}; create what it names in the new database, and restore again: without the policy others might read the table")
            })?;
        }
        restored.series = self.series(plan).await?;
        for table in &plan.tables {
            let rows = self.rows(table).await?;
            eprintln!("{}: {rows} rows", table.definition.table);
            restored.rows += rows;
        }
        for table in &plan.tables {
            self.finish(&table.definition).await?;
        }
        // This comes at the end, when the views of all metrics exist and can be granted.
        for (role, grant) in roles.grants() {
            self.query(grant, &[&role]).await?;
        }
        Ok(restored)
    }

    /// Existing rows would be mixed with restored ones.
    async fn check_empty(&self) -> Result<(), String> {
        let tables = self.query(TABLES, &[]).await?;
        let names = tables.iter().map(|row| {
            row.try_get::<_, String>(0)
                .map_err(|error| Failure::of("", &error))
        });
        let mut names = names.collect::<Result<Vec<String>, Failure>>()?;
        names.push("lanes.series_runs".to_owned());
        for name in names {
            let rows = self
                .query(&format!("SELECT EXISTS (SELECT FROM {name})"), &[])
                .await?;
            if rows
                .first()
                .is_some_and(|row| row.try_get(0).unwrap_or(false))
            {
                return Err(format!(
                    "the database is not empty: {name} has rows; restore into a new database"
                ));
            }
        }
        Ok(())
    }

    async fn series(&self, plan: &Plan) -> Result<u64, String> {
        let Some(registry) = &plan.registry else {
            return Ok(0);
        };
        let prefix = format!("series/{}/{}/", plan.scope, registry.epoch);
        let mut series = 0;
        for (name, value) in self.store.records(&prefix).await? {
            let run: SeriesRecord = record::read(&name, &value)?;
            self.query(
                SERIES,
                &[
                    &run.first_id,
                    &run.last_id,
                    &run.metric,
                    &run.labels,
                    &run.registered_at,
                ],
            )
            .await?;
            series += run.labels.len() as u64;
        }
        self.query(VIEWS, &[]).await?;
        eprintln!("{series} series");
        Ok(series)
    }

    async fn rows(&self, table: &TablePlan) -> Result<u64, String> {
        let name = &table.definition.table;
        let (mut rows, mut report_at) = (0, PROGRESS_ROWS);
        let all = table.part_rows() + table.entry_rows();
        let mut tell = |rows: u64| {
            if rows >= report_at {
                report_at = rows + PROGRESS_ROWS;
                eprintln!("{name}: {rows} of {all} rows");
            }
        };
        let types = self.types(name).await?;
        self.set_added_defaults(table, &types).await?;
        for part in &table.parts {
            let retyping = self.retyping(part, table, &types).await?;
            for (key, expected) in &part.segments {
                let image = self.store.image(key).await?;
                let inserted = match &retyping {
                    None => self.insert(SEGMENT, name, &image).await?,
                    Some(retyping) => self.retyped(retyping, name, &image).await?,
                };
                if inserted != *expected {
                    return Err(format!("{key} has {inserted} rows, not {expected}"));
                }
                rows += inserted;
                tell(rows);
            }
        }
        for entry in &table.entries {
            rows += self.entry(&table.definition, &types, entry).await?;
            tell(rows);
        }
        self.drop_added_defaults(table).await?;
        Ok(rows)
    }

    async fn finish(&self, definition: &Definition) -> Result<(), String> {
        // Statements that need something else from the lost database must not prevent the restore
        // of the rows.
        for statement in &definition.finish {
            self.try_to(&definition.table, statement).await?;
        }
        for grant in &definition.grants {
            match &grant.role {
                Some(role) if !self.has_role(role).await? => eprintln!(
                    "{}: skipped because role {role} does not exist: {}",
                    definition.table, grant.statement
                ),
                _ => self.try_to(&definition.table, &grant.statement).await?,
            }
        }
        if let Some(owner) = &definition.owner {
            if self.has_role(owner).await? {
                let owner = owner.replace('"', "\"\"");
                let table = &definition.table;
                self.execute(&format!("ALTER TABLE {table} OWNER TO \"{owner}\""))
                    .await?;
            } else {
                eprintln!(
                    "{}: the owner is the connecting role, because role {owner} does not exist",
                    definition.table
                );
            }
        }
        if definition.is_partition {
            eprintln!(
                "{}: the table was a partition; ATTACH it to its parent",
                definition.table
            );
        }
        Ok(())
    }

    async fn has_role(&self, role: &str) -> Result<bool, String> {
        let rows = self.query(ROLE, &[&role]).await?;
        Ok(rows
            .first()
            .is_some_and(|row| row.try_get(0).unwrap_or(false)))
    }

    /// Calls a function that inserts rows into a table. Returns their number.
    pub(super) async fn insert(
        &self,
        statement: &str,
        table: &str,
        bytes: &[u8],
    ) -> Result<u64, Failure> {
        let rows = self.query(statement, &[&table, &bytes]).await?;
        let inserted = rows.first().map(|row| row.try_get::<_, i64>(0));
        match inserted {
            Some(Ok(inserted)) => Ok(inserted.try_into().unwrap_or(0)),
            _ => Err(Failure::no_answer(statement)),
        }
    }

    pub(super) async fn query(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, Failure> {
        let rows = self.transaction.query(statement, parameters).await;
        rows.map_err(|error| Failure::of(statement, &error))
    }

    /// Executes a statement, or skips it with a message.
    pub(super) async fn try_to(&self, table: &str, statement: &str) -> Result<(), String> {
        self.execute("SAVEPOINT one_statement").await?;
        if let Err(failure) = self.execute_one(statement).await {
            let reason = failure.of_statement()?;
            self.execute("ROLLBACK TO one_statement").await?;
            eprintln!("{table}: skipped: {reason}");
        }
        Ok(self.execute("RELEASE one_statement").await?)
    }

    /// Executes statements of the gateway itself.
    pub(super) async fn execute(&self, statements: &str) -> Result<(), Failure> {
        let done = self.transaction.batch_execute(statements).await;
        done.map_err(|error| Failure::of(statements, &error))
    }

    /// Executes a statement. PostgreSQL refuses it if it is several statements.
    pub(super) async fn execute_one(&self, statement: &str) -> Result<u64, Failure> {
        let done = self.transaction.execute(statement, &[]).await;
        done.map_err(|error| Failure::of(statement, &error))
    }
}
