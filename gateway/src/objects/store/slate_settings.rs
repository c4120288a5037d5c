//! SlateDB's settings. Its defaults are for many small values, many cores and a database that is all that the process does; here are few
//! large values (a segment is some hundred kilobytes to a few megabytes, already encoded), written once and seldom read, beside ingest.

use std::time::Duration;

use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, GarbageCollectorDirectoryOptions,
    GarbageCollectorOptions, Settings, SizeTieredCompactionSchedulerOptions,
};

const MIB: usize = 1 << 20;

/// Compaction rewrites as much at once.
const COMPACTED_BYTES_MAX: usize = 256 * MIB;

/// How often files are looked for that nothing needs any more, and how old they are at least. A look lists the folders
/// once.
const GARBAGE_INTERVAL: Duration = Duration::from_secs(300);

/// So many tables may wait to be merged: 16 GiB.
const L0_TABLES_MAX: usize = 512;

/// All settings; `has_conditional_put` as [`crate::objects::Location::has_conditional_put`] says.
pub fn settings(has_conditional_put: bool) -> Settings {
    Settings {
        // Nothing is written while there is nothing to write, so this is no cost at rest; a part waits for it once.
        flush_interval: Some(Duration::from_millis(100)),
        // How soon a gateway that writes nothing notices that it is fenced.
        manifest_poll_interval: Duration::from_secs(1),
        // Without filters a read would fetch a block, which is a segment, from every table whose range the key lies in.
        min_filter_keys: 1,
        // Memory: a table that fills, two that are written, and the log before them.
        l0_sst_size_bytes: 32 * MIB,
        l0_flush_parallelism: 2,
        // While the store is rewritten as a whole, which takes as long as its bytes take, its newest tables cannot be
        // merged: that is not to hold up writes. Filters keep reads from looking into all of them.
        l0_max_ssts: L0_TABLES_MAX,
        l0_max_ssts_per_key: L0_TABLES_MAX,
        max_unflushed_bytes: 128 * MIB,
        // Images are encoded; compressing them again would cost processor time and win nothing.
        compression_codec: None,
        compactor_options: Some(compactor()),
        garbage_collector_options: Some(garbage_collector(has_conditional_put)),
        // An outage is to be waited for: to give up would close the store, and with it what is not written yet.
        object_store_max_retries: None,
        ..Settings::default()
    }
}

fn compactor() -> CompactorOptions {
    CompactorOptions {
        // The work is input and output; more at once would take processors from ingest, and memory.
        max_concurrent_compactions: 1,
        // Keys of a part are neighbours and parts are offloaded in order, so many tables do not overlap: they need not be rewritten.
        enable_trivial_move: true,
        scheduler_options: SizeTieredCompactionSchedulerOptions {
            // Each level rewrites everything once: fewer levels.
            min_compaction_sources: 6,
            max_compaction_sources: 12,
            ..SizeTieredCompactionSchedulerOptions::default()
        }
        .into(),
        worker: Some(CompactionWorkerOptions {
            max_concurrent_compactions: 1,
            max_subcompactions: 1,
            max_sst_size: COMPACTED_BYTES_MAX,
            min_filter_keys: 1,
            compression_codec: None,
            ..CompactionWorkerOptions::default()
        }),
        ..CompactorOptions::default()
    }
}

fn garbage_collector(has_conditional_put: bool) -> GarbageCollectorOptions {
    // What a compaction leaves behind goes within half an hour: once its checkpoint ends (15 minutes), in two rounds,
    // as old manifests go first, and then the tables that only these name.
    let directory = GarbageCollectorDirectoryOptions {
        interval: Some(GARBAGE_INTERVAL),
        min_age: GARBAGE_INTERVAL,
        ..GarbageCollectorDirectoryOptions::default()
    };
    GarbageCollectorOptions {
        manifest_options: Some(directory),
        wal_options: Some(directory),
        compacted_options: Some(directory),
        compactions_options: Some(directory),
        // A fence that is deleted lets a writer that slept through it write again: they are a few empty objects, and stay.
        wal_fence_options: None,
        detach_options: None,
        // Local files cannot be replaced on condition.
        boundary_files_enabled: has_conditional_put,
        ..GarbageCollectorOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_are_legal() {
        for has_conditional_put in [false, true] {
            settings(has_conditional_put).validate().unwrap();
        }
    }
}
