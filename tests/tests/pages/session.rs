//! A database as `make run` starts it, with a gateway that stores its own metrics.

use crate::commands;
use crate::statements::statements;
use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::provision::{DATABASE, OWNER, Passwords, provision};
use postgres::{Client, SimpleQueryMessage};
use std::process::Command;
use std::time::{Duration, Instant};

/// The gateway stores its own metrics every second here.
const FIRST_SAMPLES_TIMEOUT: Duration = Duration::from_secs(30);
/// Fails while a series of the gateway has less than two samples.
const TWO_SAMPLES: &str = "SELECT FROM metrics.process_resident_memory_bytes; \
     SELECT 1 / (count(*) / 2) FROM metrics.up";
/// The address that pages show: the one of `make run`.
const SHOWN_ADDRESS: &str = "127.0.0.1:9201";
/// Removes what the page before has made.
const DROP_TABLES: &str = "DO $$ DECLARE made regclass; BEGIN \
     FOR made IN SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') \
     LOOP EXECUTE format('DROP TABLE IF EXISTS %s CASCADE', made); END LOOP; END $$";

/// What the blocks of pages run in.
pub struct Session {
    gateway: Gateway,
    client: Client,
    passwords: Passwords,
    cluster: Cluster,
}

impl Session {
    /// Starts everything, and waits until each series has the two samples that a rate needs.
    pub fn start() -> Session {
        let cluster = Cluster::builder("pages").start().unwrap();
        let passwords = Passwords::generate();
        provision(&cluster, &passwords).unwrap();
        let settings = Settings::for_test("gateway", &cluster, &passwords).unwrap();
        // As `make run` has it: the gateway waits for requests of segments all the time.
        let objects = settings.folder.join("objects");
        let settings = settings
            .environment("LANES_GATEWAY_SELF_SCRAPE_INTERVAL", "1s")
            .environment("LANES_GATEWAY_OBJECTS_URL", objects.to_str().unwrap());
        let gateway = Gateway::start(settings).unwrap();
        let mut session = Session {
            gateway,
            client: owner(&cluster, &passwords),
            passwords,
            cluster,
        };
        // `curl` is to fail when the answer is an error.
        std::fs::write(session.cluster.folder().join(".curlrc"), "fail-with-body\n").unwrap();
        session.wait_for_samples();
        session
    }

    fn wait_for_samples(&mut self) {
        let deadline = Instant::now() + FIRST_SAMPLES_TIMEOUT;
        while self.client.batch_execute(TWO_SAMPLES).is_err() {
            assert!(Instant::now() < deadline, "the gateway stores nothing");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A new session as `make psql` opens it, in a database without tables of another page.
    pub fn begin_page(&mut self) {
        self.cluster.psql(DATABASE, DROP_TABLES).unwrap();
        self.client = owner(&self.cluster, &self.passwords);
    }

    /// Runs a block of SQL, and adds what fails to `faults`; returns the number of statements.
    pub fn run_sql(&mut self, place: &str, code: &str, faults: &mut Vec<String>) -> usize {
        let statements = statements(code);
        for statement in &statements {
            let is_row =
                |message: &SimpleQueryMessage| matches!(message, SimpleQueryMessage::Row(_));
            match self.client.simple_query(statement) {
                Err(error) => faults.push(format!("{place}: {statement}\n{error:?}")),
                Ok(messages) if statement.starts_with("SELECT") && !messages.iter().any(is_row) => {
                    faults.push(format!("{place}: no rows: {statement}"));
                }
                Ok(_) => {}
            }
        }
        statements.len()
    }

    /// Runs or checks a block of shell, and adds what fails to `faults`; returns the number of
    /// commands.
    pub fn run_shell(&mut self, place: &str, code: &str, faults: &mut Vec<String>) -> usize {
        let commands = commands::commands(code);
        for command in &commands {
            let done = match commands::check(command) {
                Ok(commands::Verdict::Sound) => Ok(()),
                Ok(commands::Verdict::ToBeRun) => self.run_command(command),
                Err(reason) => Err(reason),
            };
            if let Err(reason) = done {
                faults.push(format!("{place}: {command}\n{reason}"));
            }
        }
        commands.len()
    }

    /// Runs a command as the superuser of this cluster.
    fn run_command(&self, command: &str) -> Result<(), String> {
        let address = format!("127.0.0.1:{}", self.gateway.port());
        let folder = self.cluster.folder();
        let path = std::env::var("PATH").unwrap_or_default();
        let programs = self.cluster.programs().display();
        let output = Command::new("sh")
            .args(["-c", &command.replace(SHOWN_ADDRESS, &address)])
            .current_dir(folder)
            .env("PATH", format!("{programs}:{path}"))
            .env("CURL_HOME", folder)
            .env("PGHOST", self.cluster.socket())
            .env("PGPORT", self.cluster.port().to_string())
            .env("PGUSER", "postgres")
            .env("PGDATABASE", DATABASE)
            .output()
            .map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match output.status.success() {
            true => Ok(()),
            false => Err(text(&output.stdout) + &text(&output.stderr)),
        }
    }

    /// Stops everything.
    pub fn stop(mut self) {
        self.gateway.stop().unwrap();
    }
}

fn owner(cluster: &Cluster, passwords: &Passwords) -> Client {
    cluster
        .connect_as(OWNER, &passwords.owner, DATABASE)
        .unwrap()
}
