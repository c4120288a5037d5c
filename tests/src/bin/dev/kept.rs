//! `dev kept`: the clusters that `LANES_KEEP` left running after a failed test.

use lanes_support::cluster::kept::KeptCluster;
use lanes_support::error::{Error, Result};

/// Lists the kept clusters, or stops and removes all of them or the named ones.
pub fn run(words: &[String]) -> Result<()> {
    let all = KeptCluster::all()?;
    match words {
        [] => list(&all),
        [stop, names @ ..] if stop == "stop" => return stop_named(all, names),
        _ => {
            let usage = "usage: cargo dev kept [stop [cluster ...]]";
            return Err(Error::Other(usage.to_owned()));
        }
    }
    Ok(())
}

fn list(all: &[KeptCluster]) {
    if all.is_empty() {
        println!("no cluster is kept; LANES_KEEP=1 keeps those of failed tests");
    }
    for kept in all {
        println!("{}", kept.instructions());
        if !kept.is_running() {
            println!("  (its server is no longer running)");
        }
    }
}

fn stop_named(all: Vec<KeptCluster>, names: &[String]) -> Result<()> {
    let known: Vec<String> = all.iter().map(KeptCluster::name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(Error::Other(format!(
            "no kept cluster is named `{unknown}`; kept clusters: {}",
            known.join(", ")
        )));
    }
    for kept in all {
        if names.is_empty() || names.contains(&kept.name()) {
            let folder = kept.folder().to_owned();
            kept.stop()?;
            println!("removed {}", folder.display());
        }
    }
    Ok(())
}
