//! The settings of SlateDB. Its defaults suit many small values, many cores and a process that does
//! nothing else. The gateway stores few large values beside ingest: a segment has some hundred
//! kilobytes to a few megabytes, is already encoded, written once and seldom read.

use std::time::Duration;

use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, GarbageCollectorDirectoryOptions,
    GarbageCollectorOptions, Settings, SizeTieredCompactionSchedulerOptions,
};

const MIB: usize = 1 << 20;

/// The number of bytes that a compaction rewrites at once.
const COMPACTED_BYTES_MAX: usize = 256 * MIB;

/// The time between searches for files that are no longer needed, and their minimum age. A search
/// lists the folders once.
const GARBAGE_INTERVAL: Duration = Duration::from_secs(300);

/// The number of tables that may wait to be merged: 16 GiB.
const L0_TABLES_MAX: usize = 512;

/// Returns all settings. `has_conditional_put` is the result of
/// [`crate::objects::Location::has_conditional_put`].
pub fn settings(has_conditional_put: bool) -> Settings {
    Settings {
        // Nothing is written while there is nothing to write, so this costs nothing at rest. A part
        // waits for it once.
        flush_interval: Some(Duration::from_millis(100)),
        // The time after which a gateway that writes nothing notices that it is fenced.
        manifest_poll_interval: Duration::from_secs(1),
        // Without filters, a read would fetch a block, which is a segment, from every table whose
        // range contains the key.
        min_filter_keys: 1,
        // The memory: a table being filled, two being written, and the log before them.
        l0_sst_size_bytes: 32 * MIB,
        l0_flush_parallelism: 2,
        // While the store is rewritten as a whole, its newest tables cannot be merged. This must
        // not delay writes. Filters keep reads from searching all tables.
        l0_max_ssts: L0_TABLES_MAX,
        l0_max_ssts_per_key: L0_TABLES_MAX,
        max_unflushed_bytes: 128 * MIB,
        // Images are encoded. Compressing them again would cost processor time without a gain.
        compression_codec: None,
        compactor_options: Some(compactor()),
        garbage_collector_options: Some(garbage_collector(has_conditional_put)),
        // An outage has to be waited for. Giving up would close the store, and lose what is
        // unwritten.
        object_store_max_retries: None,
        ..Settings::default()
    }
}

fn compactor() -> CompactorOptions {
    CompactorOptions {
        // The work is input and output. More at once would take processors and memory from ingest.
        max_concurrent_compactions: 1,
        // The keys of a part are neighbours and parts are offloaded in order, so many tables do not
        // overlap and need not be rewritten.
        enable_trivial_move: true,
        scheduler_options: SizeTieredCompactionSchedulerOptions {
            // Each level rewrites everything once, so few levels are preferred.
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
    // The files that a compaction replaces are deleted within half an hour: after its checkpoint
    // ends (15 minutes), in two rounds, because old manifests are deleted first, and then the
    // tables that only these name.
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
        // If a fence were deleted, a writer that slept through it could write again. Fences are a
        // few empty objects, and are kept.
        wal_fence_options: None,
        detach_options: None,
        // Local files cannot be replaced on a condition.
        boundary_files_enabled: has_conditional_put,
        ..GarbageCollectorOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_are_valid() {
        for has_conditional_put in [false, true] {
            settings(has_conditional_put).validate().unwrap();
        }
    }
}
