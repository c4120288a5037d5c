//! The gateway's part in offloading and recalling, without a gateway: an object store in memory,
//! segments moved there through the SQL contract, and a thread that answers the requests of
//! queries.
//!
//! Invariant: an object is in the store before its segment is marked remote, and stays there.
//! Whatever is killed, the store has every object that a remote segment needs.

use crate::cluster::Cluster;
use postgres::{Client, Config, NoTls};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// The pause of the supplier without requests. It holds no snapshot meanwhile, which would keep
/// rows from being sealed.
const REST: Duration = Duration::from_millis(2);

/// An object store, shared by its clones.
#[derive(Debug, Clone, Default)]
pub struct Objects(Arc<Mutex<HashMap<String, Vec<u8>>>>);

impl Objects {
    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<u8>>> {
        // A map is consistent between its calls, even after a panic.
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Modifies all images, as anyone could who may write to the store.
    pub fn change(&self, change: impl FnMut(&mut Vec<u8>)) {
        self.lock().values_mut().for_each(change);
    }

    fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.lock().get(key).cloned()
    }

    /// Stores the parts of `lanes.offload_list()` and marks them remote. Returns the number of
    /// parts that became remote.
    ///
    /// # Errors
    /// The server fails. Parts that were not committed are listed again.
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

    /// Offloads all sealed segments of a table with the parameter `hot`, however young they are.
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
        // Committed parts need their images, even if the next part was refused.
        self.keep(client, sealed)?;
        committed
    }

    /// Stores the images of the segments that are remote by now. Their keys are published only
    /// then, so no query can have requested them before.
    ///
    /// # Errors
    /// The server fails.
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

/// The sealed segments of a table, read in order to be moved to object storage.
#[derive(Debug)]
pub struct Sealed {
    table: String,
    /// The images by part and first row.
    images: HashMap<(i64, i64), Vec<u8>>,
    parts: Vec<(u32, i64)>,
}

impl Sealed {
    /// Reads the sealed segments of a table with the parameter `hot`, however young they are.
    ///
    /// # Errors
    /// The server fails.
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

    /// Marks the parts remote. Returns the number of parts that became remote.
    ///
    /// # Errors
    /// The server fails. Parts before the refused one are remote.
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

/// A thread that answers the requests of one database's queries until it is dropped. It survives
/// restarts of the server.
#[derive(Debug)]
pub struct Supplier {
    stop: Arc<AtomicBool>,
    supplied: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Supplier {
    /// Starts the thread.
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

    /// Returns the number of answered requests, including those for missing objects.
    pub fn supplied(&self) -> u64 {
        self.supplied.load(Ordering::Relaxed)
    }
}

fn serve(config: &Config, objects: &Objects, is_over: &AtomicBool, count: &AtomicU64) {
    while !is_over.load(Ordering::Relaxed) {
        // The waiting queries report a failure of this thread.
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

/// Answers the current requests and returns their number.
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

/// Returns the files of recalled segments, without those that are still being written.
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

/// Removes the files of recalled segments, as if the cold cache were too small for them.
pub fn forget_recalled(cluster: &Cluster) {
    for file in recalled_files(cluster) {
        let _ = std::fs::remove_file(file.path());
    }
}
