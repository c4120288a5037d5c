//! Reading the file again when it or a certificate has changed, or at SIGHUP.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use super::guard::Guard;
use super::settings::{self, AccessSettings, Demand};
use crate::quota::Quotas;

/// The time between two looks at the files.
const INTERVAL: Duration = Duration::from_secs(2);

/// Watches the file of a guard until the task is aborted. Returns at once if there is none.
pub async fn run(access: AccessSettings, guard: Arc<Guard>, quotas: Arc<Quotas>) {
    let Some(path) = access.path else { return };
    let mut hang_up = match signal(SignalKind::hangup()) {
        Ok(signal) => Some(signal),
        Err(error) => {
            tracing::warn!("SIGHUP will not be noticed: {error}");
            None
        }
    };
    let mut looks = interval(INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first look repeats the load at the start: the file may have changed since.
    let mut known = None;
    loop {
        let is_asked = tokio::select! {
            _ = looks.tick() => false,
            _ = received(&mut hang_up) => true,
        };
        let stamp = settings::stamp(&path);
        if !is_asked && known.as_ref() == Some(&stamp) {
            continue;
        }
        let is_first = known.replace(stamp).is_none();
        reload(&guard, &path, access.demand, is_first && !is_asked);
        let users = guard.users();
        quotas.keep_gauges_of(users.iter().map(|user| (user.name.as_str(), &user.limits)));
    }
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Replaces users and certificates by those of the file, if it can be used.
fn reload(guard: &Guard, path: &PathBuf, demand: Demand, is_quiet: bool) {
    let metrics = guard.metrics();
    let result = match settings::load(Path::new(path), demand) {
        Ok(loaded) => {
            guard.replace(loaded);
            metrics.config_good.set(1);
            if !is_quiet {
                tracing::info!(file = ?path, "listen.web_config was read again");
            }
            "used"
        }
        Err(error) => {
            metrics.config_good.set(0);
            tracing::error!(file = ?path, "listen.web_config cannot be used, the users and certificates read before stay: {error}");
            "refused"
        }
    };
    if !is_quiet {
        metrics.config_reloads.with_label_values(&[result]).inc();
    }
}
