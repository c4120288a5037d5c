//! The subcommand: its flags and its report.

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::plan::{self, Plan};
use super::run::{self, Roles};
use super::statement::shown;
use crate::connect::Connector;
use crate::objects::Location;
use crate::objects::model::record;
use crate::objects::store::reader::StoreReader;

/// The name of the subcommand.
pub const NAME: &str = "restore";

/// The text after the flags in the help.
const AFTER_HELP: &str = "Everything is restored in one transaction: tables of the access method lanes with rows in the store, series, and rows that were \
     offloaded or acknowledged at level object. The library lanes must be installed in the server and listed in shared_preload_libraries. \
     The store is not taken from a gateway that is still running.\n\n\
     Definitions of tables come from the store as SQL, with expressions that may call any function. They are executed with the privileges of the \
     connecting role, and values of rows are restored unchanged. Whoever can write to the store can therefore do the same in the new \
     database, which is why --trust-store is required. If others can write there, read the definitions first with --dry-run --show-definitions.";

/// Returns the definition of the subcommand.
pub fn command() -> Command {
    Command::new(NAME)
        .about("Restores a database from what a gateway has put into object storage")
        .after_help(AFTER_HELP)
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("DIRECTORY|URL")
                .required(true)
                .help("The gateway's objects.url: a directory, or s3://bucket/prefix with the usual AWS_ variables"),
        )
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("STRING")
                .required_unless_present("dry-run")
                .help("Connection string or URL of an empty database, for a superuser; the password is found as by psql"),
        )
        .arg(
            Arg::new("database")
                .long("database")
                .value_name("SYSTEM/OID")
                .help("The database to restore, if the store contains several; they are listed if this is missing"),
        )
        .arg(
            Arg::new("gateway-role")
                .long("gateway-role")
                .value_name("ROLE")
                .help("Grant this existing role the privileges of a gateway, as lanes.grant_gateway does"),
        )
        .arg(
            Arg::new("reader-role")
                .long("reader-role")
                .value_name("ROLE")
                .help("Grant this existing role the privileges of a reader of metrics, as lanes.grant_reader does"),
        )
        .arg(
            Arg::new("trust-store")
                .long("trust-store")
                .action(ArgAction::SetTrue)
                .help("Execute the definitions in the store and restore its rows: whoever can write to the store is trusted like the connecting role"),
        )
        .arg(
            Arg::new("show-definitions")
                .long("show-definitions")
                .action(ArgAction::SetTrue)
                .help("Print the SQL in the store for each table, and exit"),
        )
        .arg(
            Arg::new("dry-run")
                .long("dry-run")
                .action(ArgAction::SetTrue)
                .help("Print what would be restored, and exit"),
        )
}

/// Runs the subcommand.
///
/// # Errors
/// Returns the reason, for people. Nothing is changed in this case.
pub async fn execute(matches: &ArgMatches) -> Result<(), String> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let location: Location = text("from").unwrap_or_default().parse()?;
    let connection = text("to").map(connection).transpose()?;
    let roles = Roles {
        gateway: text("gateway-role"),
        reader: text("reader-role"),
    };
    let store = StoreReader::open(&location).await?;
    let done = async {
        let plan = read(&store, text("database")).await?;
        describe(&plan);
        if matches.get_flag("show-definitions") {
            show_definitions(&plan);
        }
        match connection {
            Some(connection) if !matches.get_flag("dry-run") => {
                if !matches.get_flag("trust-store") {
                    return Err(distrust(&plan, connection.config().get_user()));
                }
                let restored = run::run(&plan, &store, &connection, roles).await?;
                println!(
                    "restored {} rows of {} tables, and {} series",
                    restored.rows,
                    plan.tables.len(),
                    restored.series
                );
                print_next_steps(roles);
                Ok(())
            }
            _ => Ok(()),
        }
    };
    let done = done.await;
    store.close().await;
    done
}

/// Returns why nothing is restored from a store that is not declared as trusted.
fn distrust(plan: &Plan, role: Option<&str>) -> String {
    let definitions = plan.tables.iter().map(|table| &table.definition);
    let statements: usize = definitions.clone().map(|d| d.statements().count()).sum();
    let tables: Vec<&str> = definitions.map(|d| d.table.as_str()).collect();
    format!(
        "nothing is restored without --trust-store. {statements} statements in the store, which define {}, would be executed with the privileges of \
         {}, and rows be taken as they are. Read the statements with --show-definitions, and give --trust-store if nobody can write in the store \
         whom you do not trust that far",
        match tables.is_empty() {
            true => "no table".to_owned(),
            false => tables.join(", "),
        },
        match role {
            Some(role) => format!("role {role}"),
            None => "the connecting role".to_owned(),
        }
    )
}

/// Prints the SQL that would be executed.
fn show_definitions(plan: &Plan) {
    for table in &plan.tables {
        for statement in table.definition.statements() {
            println!("{};", shown(statement));
        }
        for (name, column) in table.added() {
            println!(
                "-- {}: in rows from before {} was added, its value is {}",
                table.definition.table,
                shown(name),
                shown(&column.literal())
            );
        }
        if let Some(owner) = &table.definition.owner {
            println!(
                "-- the owner of {} is {}, if the role exists",
                table.definition.table,
                shown(owner)
            );
        }
    }
}

/// Prints what a gateway of the new database still needs.
fn print_next_steps(roles: Roles) {
    if roles.gateway.is_none() {
        println!(
            "next: run SELECT lanes.grant_gateway('ROLE') in the new database, for the role of its gateway"
        );
    }
    println!(
        "next: set the gateway's postgres.connection to the new database, and run lanes-gateway --adopt once with \
         its settings, or give it an objects.url of its own"
    );
}

fn connection(text: &str) -> Result<Connector, String> {
    Connector::new(text, None).map_err(|reason| format!("--to: {reason}"))
}

/// Reads the records of one database from the store.
async fn read(store: &StoreReader, wanted: Option<&str>) -> Result<Plan, String> {
    let tables = store.records("table/").await?;
    let registries = store.records("registry/").await?;
    let names = tables.iter().chain(&registries).map(|(name, _)| name);
    let scopes = plan::scopes(names);
    let scope = match (wanted, scopes.len()) {
        (Some(wanted), _) if scopes.contains(wanted) => wanted.to_owned(),
        (None, 1) => scopes.into_iter().next().unwrap_or_default(),
        (_, 0) => return Err("the object store contains nothing to restore".to_owned()),
        _ => {
            let scopes: Vec<String> = scopes.into_iter().collect();
            return Err(format!(
                "choose a database of the object store with --database: {}",
                scopes.join(", ")
            ));
        }
    };
    let of_scope = format!("table/{scope}/");
    let tables: Vec<_> = tables
        .into_iter()
        .filter(|(name, _)| name.starts_with(&of_scope))
        .collect();
    let registry_name = record::registry_name(&scope);
    let registry = registries.iter().find(|(name, _)| *name == registry_name);
    let parts = store.records(&format!("part/{scope}/")).await?;
    let heads = store.records(&format!("head/{scope}/")).await?;
    let added = store.records(&format!("added/{scope}/")).await?;
    plan::plan(
        &scope,
        &tables,
        &added,
        &parts,
        &heads,
        registry.map(|(_, value)| value),
    )
}

fn describe(plan: &Plan) {
    println!("database {}", plan.scope);
    for table in &plan.tables {
        println!(
            "table {}: {} rows of {} parts, {} rows of {} entries of the log",
            table.definition.table,
            table.part_rows(),
            table.parts.len(),
            table.entry_rows(),
            table.entries.len()
        );
        if !table.definition.guard.is_empty() {
            println!("table {}: row-level security", table.definition.table);
        }
        if table.files.len() > 1 {
            println!(
                "table {}: was rewritten or truncated recently; older rows may be restored although they were deleted, or twice",
                table.definition.table
            );
        }
    }
    if let Some(registry) = &plan.registry {
        println!("series up to {}", registry.last_id);
    }
    if plan.dropped > 0 {
        println!(
            "{} parts and entries of dropped tables are skipped",
            plan.dropped
        );
    }
}
