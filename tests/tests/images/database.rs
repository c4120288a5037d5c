//! The database image's scripts, run in a folder: they create passwords and the cluster, and start
//! the server.

use lanes_support::account::{Account, we_are_root};
use lanes_support::installation::DEFAULT_MAJOR;
use lanes_support::process::{Process, Signal, run};
use lanes_support::provision::DATABASE;
use lanes_support::{place, port};
use postgres::error::SqlState;
use postgres::{Client, Config, NoTls};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);
/// The image's scripts, copied where the account can read them.
const SCRIPTS: [&str; 6] = [
    "docker/postgres/entrypoint.sh",
    "docker/postgres/make-secrets.sh",
    "docker/postgres/postgresql.conf",
    "docker/postgres/pg_hba.conf",
    "sql/provision/roles.sql",
    "sql/provision/database.sql",
];

/// A server that the image's entry point has started.
pub struct Database {
    account: Account,
    folder: PathBuf,
    port: u16,
    server: Option<Process>,
}

impl Database {
    /// Creates the passwords and starts the server for the first time.
    pub fn start(name: &str) -> Database {
        let account = Account::for_postgres().unwrap();
        let folder = place::test_folder(name, &account).unwrap();
        for script in SCRIPTS {
            let from = place::workspace().join(script);
            let mut text = std::fs::read_to_string(&from).unwrap();
            if !we_are_root() {
                // The operating system's account then has another name than postgres.
                text = text.replace("peer\n", "trust\n");
            }
            let to = folder.join(from.file_name().unwrap());
            std::fs::write(&to, text).unwrap();
            account.make_owner_of(&to).unwrap();
        }
        for program in ["postgres", "gateway", "grafana"] {
            let secrets = folder.join("secrets").join(program);
            std::fs::create_dir_all(&secrets).unwrap();
            account.make_owner_of(&secrets).unwrap();
        }
        let mut database = Database {
            account,
            folder,
            port: port::free().unwrap(),
            server: None,
        };
        database.make_secrets();
        database.start_again();
        database
    }

    /// Runs the script of the service `secrets`, as compose does before each start.
    pub fn make_secrets(&self) {
        let mut command = self.script("make-secrets.sh");
        command.env("LANES_SECRETS_ROOT", self.folder.join("secrets"));
        run(&mut command).unwrap();
    }

    /// Starts the server and waits until it accepts clients.
    pub fn start_again(&mut self) {
        let mut command = self.script("entrypoint.sh");
        command
            .env("PGDATA", self.folder.join("data"))
            .env("LANES_SECRETS", self.folder.join("secrets/postgres"))
            .env("LANES_CONFIG", &self.folder)
            .env("LANES_SQL", &self.folder)
            .env("LANES_SOCKET", &self.folder)
            .env("POSTGRES_MAJOR", DEFAULT_MAJOR)
            .env("PGPORT", self.port.to_string())
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]);
        let log = self.folder.join("log");
        let mut server = Process::start("the database", &mut command, &log).unwrap();
        server
            .wait_until("ready", TIMEOUT, || self.try_connect("lanes").is_ok())
            .unwrap();
        self.server = Some(server);
    }

    /// Stops the server as Docker does, by the image's STOPSIGNAL.
    pub fn stop(&mut self) {
        let mut server = self.server.take().unwrap();
        let status = server.stop(Signal::INT, TIMEOUT).unwrap();
        assert!(status.success(), "{status}");
    }

    /// Connects over TCP with the role's password.
    pub fn connect(&self, role: &str) -> Client {
        self.try_connect(role).unwrap()
    }

    fn try_connect(&self, role: &str) -> Result<Client, postgres::Error> {
        self.config(role, &self.password("postgres", role))
            .connect(NoTls)
    }

    /// Returns a role's connection parameters over TCP with a password.
    pub fn config(&self, role: &str, password: &str) -> Config {
        let mut config = Client::configure();
        config
            .host("127.0.0.1")
            .port(self.port)
            .user(role)
            .password(password)
            .dbname(DATABASE);
        config
    }

    /// Returns the password of a name that a program has received.
    pub fn password(&self, program: &str, name: &str) -> String {
        let file = format!("secrets/{program}/{name}.password");
        std::fs::read_to_string(self.folder.join(file)).unwrap()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns a script as PostgreSQL's account, which stands for all accounts of the containers.
    fn script(&self, name: &str) -> Command {
        let mut command = self.account.command("/bin/bash");
        command.arg(self.folder.join(name));
        for owner in ["POSTGRES_UID", "GATEWAY_UID", "GRAFANA_UID"] {
            command.env(owner, "0");
        }
        command
    }
}

#[test]
fn a_second_start_keeps_passwords_data_and_privileges() {
    let mut database = Database::start("images_database");
    let first = database.password("postgres", "lanes");
    assert_eq!(first.len(), 48, "{first}");
    assert_eq!(
        database.password("gateway", "lanes_gateway"),
        database.password("postgres", "lanes_gateway")
    );
    assert_ne!(database.password("grafana", "admin"), first);
    let table = "CREATE TABLE kept (n int) USING lanes; INSERT INTO kept VALUES (1)";
    database.connect("lanes").batch_execute(table).unwrap();
    database.stop();

    database.make_secrets();
    database.start_again();
    assert_eq!(database.password("postgres", "lanes"), first);
    let mut reader = database.connect("lanes_reader");
    let sum: i64 = reader
        .query_one("SELECT sum(n) FROM kept", &[])
        .unwrap()
        .get(0);
    assert_eq!(sum, 1, "the reader can read the owner's tables");
    for forbidden in [
        "INSERT INTO kept VALUES (2)",
        "SET default_transaction_read_only = off; INSERT INTO kept VALUES (2)",
        "SET default_transaction_read_only = off; DELETE FROM lanes.samples",
    ] {
        assert!(reader.batch_execute(forbidden).is_err(), "{forbidden}");
    }

    let log = std::fs::read_to_string(database.folder().join("log")).unwrap();
    assert!(!log.contains(&first), "the password is in the log");
    let mut stranger = database.config("postgres", &first);
    let refused = stranger.dbname("postgres").connect(NoTls).err().unwrap();
    // The reason is not a wrong password: pg_hba.conf rejects the connection.
    let code = Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION);
    assert_eq!(refused.code(), code, "{refused:?}");
    database.stop();
}
