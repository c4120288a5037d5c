//! MinIO as `cargo dev test-long` and `cargo dev peers` build it, on loopback, with one bucket.

use crate::error::{Error, Result};
use crate::process::{Process, Signal, send};
use crate::{place, port};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Its only user.
pub const USER: &str = "lanes-test";
/// Of a server that listens on loopback as long as a test runs.
pub const PASSWORD: &str = "lanes-test-only";
/// Its only bucket.
pub const BUCKET: &str = "lanes";

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A server; it ends with the value, and its data is removed.
#[derive(Debug)]
pub struct Minio {
    process: Process,
    port: u16,
    data: PathBuf,
}

impl Minio {
    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// It is not built, or does not start.
    pub fn start() -> Result<Minio> {
        let program = place::minio()?;
        if !program.exists() {
            return Err(Error::Missing {
                what: format!("MinIO ({})", program.display()),
                remedy: "run `cargo dev peers` or `make test-long`, which build it",
            });
        }
        let port = port::free()?;
        let name = format!("lanes-minio-{}-{port}", std::process::id());
        let data = std::env::temp_dir().join(name);
        // A folder of its data is a bucket.
        place::make_folder(&data.join(BUCKET))?;
        let mut command = Command::new(program);
        command
            .args(["server", "--quiet", "--address"])
            .arg(format!("127.0.0.1:{port}"))
            .args(["--console-address", "127.0.0.1:0"])
            .arg(&data)
            .env("MINIO_ROOT_USER", USER)
            .env("MINIO_ROOT_PASSWORD", PASSWORD)
            .env("MINIO_BROWSER", "off");
        let log = data.with_extension("log");
        let mut process = Process::start("MinIO", &mut command, &log)?;
        let address = format!("127.0.0.1:{port}");
        let is_up = || std::net::TcpStream::connect(&address).is_ok();
        process.wait_until("ready", START_TIMEOUT, is_up)?;
        Ok(Minio {
            process,
            port,
            data,
        })
    }

    /// Lets it answer nobody from now on, or again: requests wait as on a network that swallows them.
    pub fn pause(&self, is_paused: bool) {
        let signal = if is_paused {
            Signal::STOP
        } else {
            Signal::CONT
        };
        send(self.process.id(), signal);
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Minio {
    fn drop(&mut self) {
        self.pause(false);
        let _ = self.process.stop(Signal::TERM, START_TIMEOUT);
        let _ = std::fs::remove_dir_all(&self.data);
        let _ = std::fs::remove_file(self.data.with_extension("log"));
    }
}
