//! The program `lanes-gateway`: settings, logs, signals, and the order in which everything starts
//! and stops.
//!
//! It is part of the library so that the library's futures are compiled once, and not again for the
//! binary.

use std::process::ExitCode;
use std::sync::Arc;

use clap::ArgMatches;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

use crate::app::{App, AppMetrics};
use crate::config::{Settings, Sources, source};
use crate::deliver::PostgresSink;
use crate::metrics::Families;
use crate::objects::adopt::adopt;
use crate::objects::model::ObjectMetrics;
use crate::objects::{LogWriter, Objects, PostgresSource, SlateOpener};
use crate::restore;
use crate::series::SeriesCache;

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    // All files that this program writes contain rows of tables, so objects in a directory are
    // accessible to its account only.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let matches = source::command().get_matches();
    if let Some((restore::command::NAME, arguments)) = matches.subcommand() {
        return run_restore(arguments);
    }
    let sources = match Sources::gather(&matches) {
        Ok(sources) => sources,
        Err(error) => return wrong_settings(&error.to_string()),
    };
    let settings = match Settings::read(&sources) {
        Ok(settings) => settings,
        Err(error) => return wrong_settings(&error.to_string()),
    };
    if is_check(&matches) {
        // This is not checked at startup: an unavailable store delays segments, not writes.
        if let Some(objects) = &settings.objects
            && let Err(reason) = objects.location.check()
        {
            return wrong_settings(&format!("objects.url: {reason}"));
        }
        print!("{}", sources.text());
        return ExitCode::SUCCESS;
    }
    if matches.get_flag("adopt") {
        return run_adopt(settings);
    }
    // Requests are served by workers with their own runtimes.
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("lanes-gateway: {error}");
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(run(settings))
}

/// Runs the subcommand `restore`, which needs no settings.
fn run_restore(arguments: &ArgMatches) -> ExitCode {
    let result = match runtime_with_two_threads() {
        Ok(runtime) => runtime.block_on(restore::command::execute(arguments)),
        Err(error) => Err(error.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lanes-gateway restore: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the flag `--adopt`.
fn run_adopt(settings: Settings) -> ExitCode {
    let Some(objects) = settings.objects else {
        return wrong_settings("--adopt: objects.url is not set");
    };
    let postgres = settings.postgres;
    let source = PostgresSource::new(postgres.connection, postgres.connect_timeout);
    let metrics = Arc::new(ObjectMetrics::new(&Families::new()));
    let opener = SlateOpener::new(objects.location, objects.cache_bytes_max, metrics);
    let result = match runtime_with_two_threads() {
        Ok(runtime) => runtime.block_on(adopt(&source, &opener)),
        Err(error) => Err(error.to_string()),
    };
    match result {
        Ok(message) => {
            println!("{message}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("lanes-gateway --adopt: {error}");
            ExitCode::FAILURE
        }
    }
}

fn runtime_with_two_threads() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
}

fn is_check(matches: &ArgMatches) -> bool {
    matches.get_flag("check-config")
}

/// Reports wrong settings. Exit status 2 means that nothing was started.
fn wrong_settings(message: &str) -> ExitCode {
    eprintln!("lanes-gateway: {message}");
    ExitCode::from(2)
}

fn start_logging(filter: EnvFilter, is_json: bool) {
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false);
    if is_json {
        logs.json().init()
    } else {
        logs.with_ansi(false).init()
    }
}

async fn run(settings: Settings) -> ExitCode {
    start_logging(settings.log_filter, settings.is_log_json);
    let listener = match TcpListener::bind(settings.address).await {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(address = %settings.address, "could not listen: {error}");
            return ExitCode::FAILURE;
        }
    };
    let stop = match stop_on_signal() {
        Ok(stop) => stop,
        Err(error) => {
            tracing::error!("could not watch for signals: {error}");
            return ExitCode::FAILURE;
        }
    };
    raise_file_limit(settings.app.server.connections_max);
    let metrics = AppMetrics::default();
    let cache = Arc::new(SeriesCache::new(settings.cache_bytes_max, cache_seed()));
    let source = PostgresSource::new(
        settings.postgres.connection.clone(),
        settings.postgres.connect_timeout,
    );
    let mut sink = PostgresSink::new(
        settings.postgres,
        Arc::clone(&cache),
        Arc::clone(&metrics.deliver),
    );
    let log = LogWriter::new(Arc::clone(&metrics.objects));
    if settings.objects.is_some() {
        sink = sink.with_log(Arc::clone(log.log()));
    }
    let sink = Arc::new(sink);
    let app = App::start(settings.app, sink, cache, metrics.clone());
    let objects = match settings.objects {
        None => None,
        Some(objects) => {
            let opener = SlateOpener::new(
                objects.location.clone(),
                objects.cache_bytes_max,
                Arc::clone(&metrics.objects),
            );
            let status = Arc::clone(&app.status().objects);
            match Objects::start(source, opener, objects, log, status, metrics.objects) {
                Ok(objects) => Some(objects),
                Err(error) => {
                    tracing::error!("could not start the thread of object storage: {error}");
                    return ExitCode::FAILURE;
                }
            }
        }
    };
    tracing::info!(address = %settings.address, version = env!("CARGO_PKG_VERSION"), "lanes-gateway is listening");
    let served = app.serve(listener, stop).await;
    if let Some(objects) = objects {
        objects.stop().await;
    }
    exit_code(served)
}

/// Logs how serving ended. Returns the exit code of the program.
fn exit_code(served: std::io::Result<bool>) -> ExitCode {
    match served {
        Ok(true) => tracing::info!("lanes-gateway has stopped"),
        Ok(false) => tracing::warn!(
            "some requests were still in flight at the end of listen.shutdown_timeout; none of them was acknowledged"
        ),
        Err(error) => {
            tracing::error!("could not start a worker: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Raises the limit of open files. Each connection is a file descriptor, and shells allow few of
/// them by default.
fn raise_file_limit(connections: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// File descriptors for sessions with PostgreSQL, runtimes and logs.
    const OTHERS: u64 = 1024;
    let wanted = connections as u64 + OTHERS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    let raised = Rlimit {
        current: Some(maximum.map_or(wanted, |maximum| maximum.min(wanted))),
        maximum,
    };
    if setrlimit(Resource::Nofile, raised).is_err() || raised.current < Some(wanted) {
        tracing::warn!(
            "the limit of open files (ulimit -n) is too low for listen.connections_max = {connections}"
        );
    }
}

/// A random seed, so that no sender can predict the position of cached series.
fn cache_seed() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0
}

fn stop_on_signal() -> std::io::Result<watch::Receiver<bool>> {
    let (stop, stopped) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("SIGTERM: stopping"),
            _ = interrupt.recv() => tracing::info!("SIGINT: stopping"),
        }
        let _ = stop.send(true);
    });
    Ok(stopped)
}
