//! MinIO, started for a test.

use lanes_tests::process::{Process, Signal};
use lanes_tests::{place, port};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Its only user.
pub const USER: &str = "lanes-test";
/// Of a server that listens on loopback as long as a test runs.
pub const PASSWORD: &str = "lanes-test-only";

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A server with one bucket, `lanes`.
pub struct Minio {
    process: Process,
    port: u16,
    data: PathBuf,
}

impl Minio {
    /// Starts it.
    pub fn start() -> Minio {
        let program = place::minio().unwrap();
        assert!(
            program.exists(),
            "MinIO is not built: run `cargo dev peers`"
        );
        let data = std::env::temp_dir().join(format!("lanes-minio-{}", std::process::id()));
        // A folder of its data is a bucket.
        std::fs::create_dir_all(data.join("lanes")).unwrap();
        let port = port::free().unwrap();
        let mut command = Command::new(program);
        command
            .args(["server", "--quiet", "--address"])
            .arg(format!("127.0.0.1:{port}"))
            .args(["--console-address", "127.0.0.1:0"])
            .arg(&data)
            .env("MINIO_ROOT_USER", USER)
            .env("MINIO_ROOT_PASSWORD", PASSWORD)
            .env("MINIO_BROWSER", "off");
        let mut process =
            Process::start("MinIO", &mut command, &data.with_extension("log")).unwrap();
        let address = format!("127.0.0.1:{port}");
        let is_up = || std::net::TcpStream::connect(&address).is_ok();
        process.wait_until("ready", START_TIMEOUT, is_up).unwrap();
        Minio {
            process,
            port,
            data,
        }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Minio {
    fn drop(&mut self) {
        let _ = self.process.stop(Signal::TERM, START_TIMEOUT);
        let _ = std::fs::remove_dir_all(&self.data);
        let _ = std::fs::remove_file(self.data.with_extension("log"));
    }
}
