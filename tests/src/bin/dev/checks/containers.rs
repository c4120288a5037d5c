//! The images of PostgreSQL and of the gateway: built, started by compose and queried.
//!
//! Their base images are built here too, from what every machine has. `debootstrap` makes Debian's
//! image, and the compiler that builds the tests is added for Rust's image. Only Debian's packages
//! and crates are downloaded. Docker's daemon is Debian's. It runs for this check alone, with its
//! data in `/var/lib/pg_lanes/containers`. The check requires root.

use super::outcome::{Outcome, one};
use crate::steps::step;
use lanes_support::account::we_are_root;
use lanes_support::error::{Error, Result};
use lanes_support::process::{POLL_INTERVAL, Process, Signal, run, run_visibly};
use lanes_support::{place, port};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const DEBIAN: &str = "debian:bookworm-slim";
const RUST: &str = "rust:1.95-bookworm";
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Certificates that this machine trusts besides Debian's, for a build behind a proxy.
const CERTIFICATES: &str = "/usr/local/share/ca-certificates";
/// The Dockerfile of Rust's image, based on Debian's.
const RUST_IMAGE: &str = "\
FROM debian:bookworm-slim
COPY certificates/ /usr/local/share/ca-certificates/
RUN apt-get update \\
    && apt-get install -y --no-install-recommends ca-certificates gcc libc6-dev \\
    && rm -rf /var/lib/apt/lists/*
COPY toolchain/ /usr/local/toolchain/
ENV PATH=/usr/local/toolchain/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
";

/// Builds the images, starts them, and queries both.
pub fn check() -> Result<Vec<Outcome>> {
    if !we_are_root() {
        return Err(Error::Missing {
            what: "the right to start Docker's daemon and to make Debian's image".to_owned(),
            remedy: "run `make test-long` as root",
        });
    }
    let docker = Docker::start()?;
    docker.forget_earlier_builds()?;
    docker.make_debian()?;
    docker.make_rust()?;
    let compose = Compose::new(&docker)?;
    let built = one(
        "the images are built",
        compose.command().args(["build", "postgres", "gateway"]),
    );
    if !built.passed {
        return Ok(vec![built]);
    }
    let mut outcomes = vec![built];
    // `up` returns once the database is healthy, because the gateway waits for that.
    outcomes.push(one(
        "containers start",
        compose.command().args(["up", "--detach", "gateway"]),
    ));
    let sql = "SELECT lanes.version()";
    let psql = [
        "exec",
        "-T",
        "postgres",
        "psql",
        "--dbname=lanes",
        "-c",
        sql,
    ];
    outcomes.push(one("the database answers", compose.command().args(psql)));
    outcomes.push(compose.gateway_becomes_ready());
    if outcomes.iter().any(|outcome| !outcome.passed) {
        let _ = compose.command().args(["logs", "--no-color"]).status();
    }
    Ok(outcomes)
}

/// A Docker daemon that runs for this check alone.
struct Docker {
    folder: PathBuf,
    daemon: Process,
}

impl Docker {
    fn start() -> Result<Docker> {
        let folder = place::containers();
        place::make_folder(&folder)?;
        let mut command = Command::new("/usr/sbin/dockerd");
        let within = |name: &str| folder.join(name);
        command
            .arg("--data-root")
            .arg(within("data"))
            .arg("--exec-root")
            .arg(within("exec"))
            .arg("--pidfile")
            .arg(within("pid"))
            .arg("--host")
            .arg(address(&folder));
        let mut daemon = Process::start("Docker's daemon", &mut command, &within("log"))?;
        let mut info = Command::new("docker");
        info.arg("info").env("DOCKER_HOST", address(&folder));
        daemon.wait_until("ready", START_TIMEOUT, || run(&mut info).is_ok())?;
        Ok(Docker { folder, daemon })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        // This builder needs no program other than Docker's own.
        command
            .env("DOCKER_HOST", address(&self.folder))
            .env("DOCKER_BUILDKIT", "0");
        command
    }

    fn has(&self, image: &str) -> bool {
        run(self.command("docker").args(["image", "inspect", image])).is_ok()
    }

    /// Removes the layers of earlier builds: they take gigabytes, and no build uses them again.
    fn forget_earlier_builds(&self) -> Result<()> {
        run(self.command("docker").args(["image", "prune", "--force"])).map(|_| ())
    }

    /// Creates Debian's minimal system from its packages.
    fn make_debian(&self) -> Result<()> {
        if self.has(DEBIAN) {
            return Ok(());
        }
        let (system, archive) = (self.folder.join("debian"), self.folder.join("debian.tar"));
        step(&format!("creating the image {DEBIAN}"), || {
            remove(&system)?;
            run(Command::new("/usr/sbin/debootstrap")
                .args(["--variant=minbase", "bookworm"])
                .arg(&system))?;
            run(Command::new("tar")
                .args(["--create", "--file"])
                .arg(&archive)
                .arg("--directory")
                .arg(&system)
                .arg("."))?;
            run(self
                .command("docker")
                .arg("import")
                .arg(&archive)
                .arg(DEBIAN))?;
            remove(&system)?;
            std::fs::remove_file(&archive).map_err(Error::file("remove", &archive))
        })
    }

    /// Adds the compiler of this machine to Debian's image.
    fn make_rust(&self) -> Result<()> {
        if self.has(RUST) {
            return Ok(());
        }
        step(&format!("creating the image {RUST}"), || {
            let context = self.folder.join("rust");
            remove(&context)?;
            place::make_folder(&context.join("certificates"))?;
            let file = context.join("Dockerfile");
            std::fs::write(&file, RUST_IMAGE).map_err(Error::file("write", &file))?;
            if Path::new(CERTIFICATES).is_dir() {
                run(Command::new("cp")
                    .args(["--recursive", CERTIFICATES])
                    .arg(context.join("certificates")))?;
            }
            let toolchain = run(Command::new("rustc").args(["--print", "sysroot"]))?;
            run(Command::new("cp")
                .args(["--recursive", toolchain.trim()])
                .arg(context.join("toolchain")))?;
            // Half of the toolchain is documentation.
            remove(&context.join("toolchain/share/doc"))?;
            run_visibly(
                self.command("docker")
                    .args(["build", "--quiet", "--tag", RUST])
                    .arg(&context),
            )?;
            remove(&context)
        })
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        let _ = self.daemon.stop(Signal::TERM, START_TIMEOUT);
    }
}

fn address(folder: &Path) -> String {
    format!("unix://{}/socket", folder.display())
}

fn remove(folder: &Path) -> Result<()> {
    match folder.exists() {
        true => std::fs::remove_dir_all(folder).map_err(Error::file("remove", folder)),
        false => Ok(()),
    }
}

/// The services of `docker/compose.yml`. They are removed with the value.
struct Compose<'a> {
    docker: &'a Docker,
    postgres_port: u16,
    http_port: u16,
}

impl Compose<'_> {
    fn new(docker: &Docker) -> Result<Compose<'_>> {
        Ok(Compose {
            docker,
            postgres_port: port::free()?,
            http_port: port::free()?,
        })
    }

    /// Returns `docker-compose …`, or `docker compose …` where only that is installed. Both read
    /// the file.
    fn command(&self) -> Command {
        let is_program = run(Command::new("docker-compose").arg("version")).is_ok();
        let mut command = if is_program {
            self.docker.command("docker-compose")
        } else {
            let mut command = self.docker.command("docker");
            command.arg("compose");
            command
        };
        command
            .args(["--project-name", "lanes-test", "--file"])
            .arg(place::workspace().join("docker/compose.yml"))
            .env("LANES_PG_PORT", self.postgres_port.to_string())
            .env("LANES_HTTP_PORT", self.http_port.to_string());
        command
    }

    /// Waits until the gateway is ready, as seen from outside.
    fn gateway_becomes_ready(&self) -> Outcome {
        let start = Instant::now();
        let url = format!("http://127.0.0.1:{}/-/ready", self.http_port);
        let mut is_ready = false;
        while !is_ready && start.elapsed() < START_TIMEOUT {
            std::thread::sleep(POLL_INTERVAL);
            is_ready = ureq::get(&url).call().is_ok();
        }
        Outcome {
            name: "the gateway becomes ready".to_owned(),
            passed: is_ready,
            time: start.elapsed(),
        }
    }
}

impl Drop for Compose<'_> {
    fn drop(&mut self) {
        let down = ["down", "--volumes", "--remove-orphans"];
        let _ = run(self.command().args(down));
    }
}
