//! The process `lanes-gateway`: configure, start, send requests, stop, kill -9.

use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::process::{Process, Signal, run, through};
use crate::provision::{DATABASE, GATEWAY, Passwords, READER, provision};
use crate::{place, port};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The time to stop: the gateway first delivers its pending batches to PostgreSQL.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// The timeout of an HTTP request. It exceeds the gateway's own limits, so that the gateway's
/// response is seen.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);

/// The settings of a gateway process.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder of its configuration and log, which is not removed.
    pub folder: PathBuf,
    /// The gateway's port on 127.0.0.1.
    pub port: u16,
    /// PostgreSQL's port on 127.0.0.1.
    pub postgres_port: u16,
    /// The password of the role `lanes_gateway`.
    pub password: String,
    /// The password of the role `lanes_reader`, as which queries read; empty to serve none.
    pub reader_password: String,
    /// Additional environment variables `LANES_GATEWAY_…`, which override the configuration file.
    pub environment: Vec<(String, String)>,
    /// The words of a command that starts the program in the same process; empty to start the
    /// program itself.
    pub through: Vec<String>,
}

impl Settings {
    /// Creates the settings of a gateway for a test cluster: a free port, files below the cluster's
    /// folder.
    pub fn for_test(name: &str, cluster: &Cluster, passwords: &Passwords) -> Result<Settings> {
        Ok(Settings {
            folder: cluster.folder().join(name),
            port: port::free()?,
            postgres_port: cluster.port(),
            password: passwords.gateway.clone(),
            reader_password: passwords.reader.clone(),
            environment: Vec::new(),
            through: Vec::new(),
        })
    }

    /// Creates roles, database and extension in a test cluster, and the settings of a gateway on it
    /// that stores no metrics of its own.
    pub fn provisioned(cluster: &Cluster) -> Result<(Settings, Passwords)> {
        let passwords = Passwords::generate();
        provision(cluster, &passwords)?;
        let settings = Settings::for_test("gateway", cluster, &passwords)?;
        let settings = settings.environment("LANES_GATEWAY_SELF_SCRAPE_INTERVAL", "0");
        Ok((settings, passwords))
    }

    /// Turns a write past the limit of [`Gateway::limit_files`] into an error, as on a full disk.
    pub fn outliving_file_limit(self) -> Settings {
        // A program inherits the signals that its shell ignores.
        let shell = ["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"];
        self.through(&shell.map(str::to_owned))
    }

    /// Also starts the gateway through these words, in the same process.
    pub fn through(mut self, words: &[String]) -> Settings {
        self.through.extend_from_slice(words);
        self
    }

    /// Sets an environment variable of the gateway.
    pub fn environment(mut self, name: &str, value: &str) -> Settings {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// An HTTP response.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Answer {
    /// Returns the first header of a name, which is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(header, _)| header == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A gateway. Its process ends with the value.
#[derive(Debug)]
pub struct Gateway {
    settings: Settings,
    process: Option<Process>,
    agent: ureq::Agent,
}

impl Gateway {
    /// Starts a gateway and waits until it is ready to receive samples.
    pub fn start(settings: Settings) -> Result<Gateway> {
        let mut gateway = Gateway::new(settings);
        gateway.start_again()?;
        gateway.wait_ready()?;
        Ok(gateway)
    }

    /// Creates a gateway that is not started: see [`Gateway::start_again`].
    pub fn new(settings: Settings) -> Gateway {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(REQUEST_TIMEOUT))
            .build()
            .new_agent();
        Gateway {
            settings,
            process: None,
            agent,
        }
    }

    /// Starts the process without waiting, because PostgreSQL may be stopped.
    pub fn start_again(&mut self) -> Result<()> {
        let mut command = self.command()?;
        self.process = Some(Process::start("the gateway", &mut command, &self.log())?);
        Ok(())
    }

    /// Returns the program with this gateway's settings.
    pub fn command(&self) -> Result<Command> {
        let program = place::gateway_program()?;
        place::make_folder(&self.settings.folder)?;
        let configuration = self.settings.folder.join("gateway.toml");
        let password_file = self.settings.folder.join("password");
        place::write_private(&password_file, &self.settings.password)?;
        let reader_file = self.settings.folder.join("reader.password");
        if !self.settings.reader_password.is_empty() {
            place::write_private(&reader_file, &self.settings.reader_password)?;
        }
        let text = configuration_text(&self.settings, &password_file, &reader_file);
        std::fs::write(&configuration, text).map_err(Error::file("write", &configuration))?;
        let mut command = through(&self.settings.through, &program);
        command.arg("--config").arg(&configuration);
        // This variable is the harness's, not a setting of the gateway.
        command.env_remove("LANES_GATEWAY_PROGRAM");
        command.envs(
            self.settings
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        );
        Ok(command)
    }

    /// Waits until `/-/ready` succeeds.
    pub fn wait_ready(&mut self) -> Result<()> {
        let url = self.url("/-/ready");
        let agent = self.agent.clone();
        let process = self
            .process
            .as_mut()
            .ok_or_else(|| Error::Other("the gateway is stopped".to_owned()))?;
        process.wait_until("ready", START_TIMEOUT, || {
            agent
                .get(&url)
                .call()
                .is_ok_and(|response| response.status().is_success())
        })
    }

    /// Returns the URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.settings.port)
    }

    /// Sends `GET path`. Fails only if there is no HTTP response at all.
    pub fn get(&self, path: &str) -> Result<Answer> {
        let url = self.url(path);
        answer(&url, self.agent.get(&url).call())
    }

    /// Sends `POST path`. Fails only if there is no HTTP response at all.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Answer> {
        let url = self.url(path);
        let mut request = self.agent.post(&url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answer(&url, request.send(body))
    }

    /// Sends a remote write 1.0 request with a compressed body. `acknowledge` is the header
    /// `X-Lanes-Ack`.
    pub fn remote_write(&self, body: &[u8], acknowledge: Option<&str>) -> Result<Answer> {
        let mut headers = vec![
            ("content-type", "application/x-protobuf"),
            ("content-encoding", "snappy"),
            ("x-prometheus-remote-write-version", "0.1.0"),
        ];
        headers.extend(acknowledge.map(|level| ("x-lanes-ack", level)));
        self.post("/api/v1/write", &headers, body)
    }

    /// Returns `/api/v1/status`.
    pub fn status(&self) -> Result<serde_json::Value> {
        let answer = self.get("/api/v1/status")?;
        serde_json::from_str(&answer.body).map_err(|error| Error::Http {
            url: self.url("/api/v1/status"),
            reason: error.to_string(),
        })
    }

    /// Stops the gateway in order: it first delivers what it has received, and responds.
    pub fn stop(&mut self) -> Result<Option<ExitStatus>> {
        let Some(mut process) = self.process.take() else {
            return Ok(None);
        };
        Ok(Some(process.stop(Signal::TERM, STOP_TIMEOUT)?))
    }

    /// Kills the process with SIGKILL.
    pub fn kill9(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.stop(Signal::KILL, STOP_TIMEOUT)?;
        }
        Ok(())
    }

    /// Fails with the end of the log if the gateway was started and has died.
    pub fn check(&mut self) -> Result<()> {
        self.process.as_mut().map_or(Ok(()), Process::check)
    }

    /// Returns the log file.
    pub fn log(&self) -> PathBuf {
        log_of(&self.settings.folder)
    }

    /// Returns the process id, if the gateway was started and not stopped.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// Forbids it to write any byte to any file, or allows it again. Writes then fail as on a full
    /// disk.
    pub fn limit_files(&self, to_nothing: bool) -> Result<()> {
        let process = self
            .process_id()
            .ok_or_else(|| Error::Other("the gateway is stopped".to_owned()))?;
        let limit = if to_nothing { "0:" } else { "unlimited:" };
        let mut command = Command::new("prlimit");
        command
            .arg(format!("--pid={process}"))
            .arg(format!("--fsize={limit}"));
        run(&mut command).map(|_| ())
    }

    /// Returns the gateway's port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.settings.port
    }
}

/// Returns the log file of a gateway with this folder.
pub fn log_of(folder: &Path) -> PathBuf {
    folder.join("gateway.log")
}

type Response = std::result::Result<ureq::http::Response<ureq::Body>, ureq::Error>;

/// Encodes parameters as a form does, for an address or for the body of a POST.
pub fn encoded(parameters: &[(&str, &str)]) -> String {
    let encode = |text: &str| {
        let bytes = text.bytes().map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        });
        bytes.collect::<String>()
    };
    let pairs = parameters.iter();
    let pairs = pairs.map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// The largest body of a response that is read, in bytes.
const RESPONSE_BYTES_MAX: u64 = 256 << 20;

/// Reads a response to its end.
pub(crate) fn answer(url: &str, response: Response) -> Result<Answer> {
    let bad = |error: ureq::Error| Error::Http {
        url: url.to_owned(),
        reason: error.to_string(),
    };
    let mut response = response.map_err(bad)?;
    let headers = response
        .headers()
        .iter()
        .map(|(name, value)| {
            (
                name.as_str().to_owned(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect();
    let status = response.status().as_u16();
    let body = response
        .body_mut()
        .with_config()
        .limit(RESPONSE_BYTES_MAX)
        .read_to_string()
        .map_err(bad)?;
    Ok(Answer {
        status,
        headers,
        body,
    })
}

fn configuration_text(settings: &Settings, password_file: &Path, reader_file: &Path) -> String {
    let Settings {
        port,
        postgres_port,
        ..
    } = settings;
    let query = match settings.reader_password.as_str() {
        "" => String::new(),
        _ => format!(
            "
[query]
connection = \"host=127.0.0.1 port={postgres_port} user={READER} dbname={DATABASE}\"
password_file = \"{}\"
",
            reader_file.display()
        ),
    };
    format!(
        "[listen]
address = \"127.0.0.1:{port}\"

[postgres]
connection = \"host=127.0.0.1 port={postgres_port} user={GATEWAY} dbname={DATABASE}\"
password_file = \"{}\"
{query}",
        password_file.display()
    )
}
