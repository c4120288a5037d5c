//! The gateway's side of offloading and recalling without a gateway: objects in memory, segments put there through the SQL
//! contract, and a thread that answers what queries ask for.
//!
//! Invariant: an object is in the store before its segment is marked remote, and stays there. So whatever is killed, whatever a
//! segment that is remote needs is there.

use crate::cluster::Cluster;
use postgres::{Client, Config, NoTls};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the supplier rests when nothing is asked for. It keeps no snapshot meanwhile, which would keep rows from being sealed.
const REST: Duration = Duration::from_millis(2);

/// An object store, shared by its clones.
#[derive(Debug, Clone, Default)]
pub struct Objects(Arc<Mutex<HashMap<String, Vec<u8>>>>);

impl Objects {
    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<u8>>> {
        // A map is whole between its calls, whoever panicked.
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Changes all images, as somebody can who can write in the store.
    pub fn change(&self, change: impl FnMut(&mut Vec<u8>)) {
        self.lock().values_mut().for_each(change);
    }

    fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.lock().get(key).cloned()
    }

    /// Puts what `lanes.offload_list()` says is due, and says so; how many parts are remote now that were not before.
    ///
    /// # Errors
    /// The server's; whatever was not committed is due again.
    pub fn offload(&self, client: &mut Client) -> Result<usize, postgres::Error> {
        let due = client.query(
            "SELECT key, lanes.segment_image(target, part, first_row), target::oid, part FROM lanes.offload_list(1000)",
            &[],
        )?;
        let mut parts: Vec<(u32, i64)> = Vec::new();
        for row in due {
            self.lock().insert(row.get(0), row.get(1));
            parts.push((row.get(2), row.get(3)));
        }
        parts.dedup();
        commit(client, &parts)
    }

    /// The same for all sealed segments of a table that has the parameter `hot`, however young they are.
    ///
    /// # Errors
    /// As for [`offload`](Self::offload).
    pub fn offload_table(
        &self,
        client: &mut Client,
        table: &str,
    ) -> Result<usize, postgres::Error> {
        let sealed = Sealed::read(client, table)?;
        let committed = sealed.commit(client);
        // Whatever was committed needs its images, also if the next was refused.
        self.keep(client, sealed)?;
        committed
    }

    /// Keeps the images of those segments that are remote by now. Keys are told once they are, so nobody may have asked before.
    ///
    /// # Errors
    /// The server's.
    pub fn keep(&self, client: &mut Client, sealed: Sealed) -> Result<(), postgres::Error> {
        let Sealed {
            table, mut images, ..
        } = sealed;
        let remote = client.query(
            "SELECT part, first_row, object_key FROM lanes.stored_segments($1::text::regclass) WHERE state = 'remote'",
            &[&table],
        )?;
        for row in remote {
            if let Some(image) = images.remove(&(row.get(0), row.get(1))) {
                self.lock().insert(row.get(2), image);
            }
        }
        Ok(())
    }
}

/// What is sealed of a table, read to be moved to object storage.
#[derive(Debug)]
pub struct Sealed {
    table: String,
    /// By part and first row.
    images: HashMap<(i64, i64), Vec<u8>>,
    parts: Vec<(u32, i64)>,
}

impl Sealed {
    /// Reads the sealed segments of a table that has the parameter `hot`, however young they are.
    ///
    /// # Errors
    /// The server's.
    pub fn read(client: &mut Client, table: &str) -> Result<Sealed, postgres::Error> {
        let rows = client.query(
            "SELECT s.part, s.first_row, lanes.segment_image($1::text::regclass, s.part, s.first_row), $1::text::regclass::oid
               FROM lanes.stored_segments($1::text::regclass) s WHERE s.state = 'sealed'",
            &[&table],
        )?;
        let mut sealed = Sealed {
            table: table.to_owned(),
            images: HashMap::new(),
            parts: Vec::new(),
        };
        for row in rows {
            sealed.images.insert((row.get(0), row.get(1)), row.get(2));
            sealed.parts.push((row.get(3), row.get(0)));
        }
        sealed.parts.dedup();
        Ok(sealed)
    }

    /// Says that its parts are remote; how many are that were not before.
    ///
    /// # Errors
    /// The server's; parts before the one that was refused are remote.
    pub fn commit(&self, client: &mut Client) -> Result<usize, postgres::Error> {
        commit(client, &self.parts)
    }
}

fn commit(client: &mut Client, parts: &[(u32, i64)]) -> Result<usize, postgres::Error> {
    let mut committed = 0;
    for (target, part) in parts {
        let row = client.query_one(
            "SELECT lanes.offload_commit($1::oid::regclass, $2)",
            &[target, part],
        )?;
        committed += usize::from(row.get::<_, bool>(0));
    }
    Ok(committed)
}

/// A thread that answers what one database's queries ask for, until it is dropped. The server may go away and come back.
#[derive(Debug)]
pub struct Supplier {
    stop: Arc<AtomicBool>,
    supplied: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Supplier {
    /// Starts it.
    pub fn start(cluster: &Cluster, database: &str, objects: &Objects) -> Supplier {
        let (config, objects) = (cluster.config(database), objects.clone());
        let (stop, supplied) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (is_over, count) = (stop.clone(), supplied.clone());
        let thread = std::thread::spawn(move || serve(&config, &objects, &is_over, &count));
        Supplier {
            stop,
            supplied,
            thread: Some(thread),
        }
    }

    /// How many requests were answered, also those that were told that there is no such object.
    pub fn supplied(&self) -> u64 {
        self.supplied.load(Ordering::Relaxed)
    }
}

fn serve(config: &Config, objects: &Objects, is_over: &AtomicBool, count: &AtomicU64) {
    while !is_over.load(Ordering::Relaxed) {
        // Whatever fails here fails for those who wait, and they say so.
        let served = config.connect(NoTls).and_then(|mut client| {
            while !is_over.load(Ordering::Relaxed) {
                let answered = answer(&mut client, objects)?;
                count.fetch_add(answered, Ordering::Relaxed);
                if answered == 0 {
                    std::thread::sleep(REST);
                }
            }
            Ok(())
        });
        if served.is_err() {
            std::thread::sleep(REST * 10);
        }
    }
}

/// Answers what is asked for now; how many requests that were.
fn answer(client: &mut Client, objects: &Objects) -> Result<u64, postgres::Error> {
    let wanted = client.query("SELECT key FROM lanes.recall_next('0')", &[])?;
    for row in &wanted {
        let key: String = row.get(0);
        match objects.get(&key) {
            Some(image) => client.execute("SELECT lanes.recall_supply($1, $2)", &[&key, &image])?,
            None => client.execute("SELECT lanes.recall_fail($1, 'no such object')", &[&key])?,
        };
    }
    Ok(wanted.len() as u64)
}

impl Drop for Supplier {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(
                ended.is_ok() || std::thread::panicking(),
                "the supplier died"
            );
        }
    }
}

/// The files of what has come back from object storage, without those that are still being written.
pub fn recalled_files(cluster: &Cluster) -> Vec<std::fs::DirEntry> {
    let Ok(folder) = std::fs::read_dir(cluster.data().join("base/pgsql_tmp")) else {
        return Vec::new();
    };
    let is_whole = |file: &std::fs::DirEntry| {
        let name = file.file_name();
        let name = name.to_string_lossy();
        name.starts_with("pgsql_tmp_lanes_") && !name.starts_with("pgsql_tmp_lanes_new_")
    };
    folder.flatten().filter(is_whole).collect()
}

/// Removes what has come back from object storage, as if the cold cache were too small for it.
pub fn forget_recalled(cluster: &Cluster) {
    for file in recalled_files(cluster) {
        let _ = std::fs::remove_file(file.path());
    }
}
