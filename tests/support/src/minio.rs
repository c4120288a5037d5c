//! MinIO on loopback with one bucket, as built by `cargo dev test-long` and `cargo dev peers`.

use crate::error::{Error, Result};
use crate::process::{Process, Signal, send};
use crate::{place, port};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The only user.
pub const USER: &str = "lanes-test";
/// The password of a server that listens on loopback during a test.
pub const PASSWORD: &str = "lanes-test-only";
/// The only bucket.
pub const BUCKET: &str = "lanes";

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A server. It ends with the value, and its data is removed.
#[derive(Debug)]
pub struct Minio {
    process: Process,
    port: u16,
    data: PathBuf,
}

impl Minio {
    /// Starts a server and waits until it responds.
    ///
    /// # Errors
    /// MinIO is not built, or does not start.
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
        // A folder in the data folder is a bucket.
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

    /// Suspends or resumes the server. While it is suspended, requests wait as on a network that
    /// loses packets.
    pub fn pause(&self, is_paused: bool) {
        let signal = if is_paused {
            Signal::STOP
        } else {
            Signal::CONT
        };
        send(self.process.id(), signal);
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL.
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
