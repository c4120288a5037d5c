//! Server settings.

use std::ffi::CStr;
use std::time::Duration;

use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, PgSqlErrorCode, PostgresGucEnum};

use crate::error;
use crate::pg::server;

/// Megabytes of shared memory for the arena.
static ARENA_SIZE: GucSetting<i32> = GucSetting::<i32>::new(256);

/// The largest size of the arena.
const ARENA_MEGABYTES_MAX: i32 = 1024 * 1024;

/// Whether ASOF joins may be accelerated.
static ENABLE_ASOF: GucSetting<bool> = GucSetting::<bool>::new(true);

/// Whether ASOF joins may be accelerated.
pub fn enable_asof() -> bool {
    ENABLE_ASOF.get()
}

/// The arena's size in bytes.
pub fn arena_bytes() -> usize {
    ARENA_SIZE.get() as usize * 1024 * 1024
}

/// Rows that are worth sealing together.
static SEAL_ROWS: GucSetting<i32> = GucSetting::<i32>::new(262_144);

/// Megabytes of memory that sealing may take at a time.
static SEAL_MEMORY: GucSetting<i32> = GucSetting::<i32>::new(256);

/// Seconds between the background worker's rounds.
static SEAL_NAPTIME: GucSetting<i32> = GucSetting::<i32>::new(10);

/// The time between the background worker's rounds; `None`: it is switched off.
pub fn seal_naptime() -> Option<Duration> {
    let seconds = SEAL_NAPTIME.get();
    (seconds > 0).then(|| Duration::from_secs(seconds as u64))
}

/// Rows that are worth sealing together.
pub fn seal_rows() -> u64 {
    SEAL_ROWS.get() as u64
}

/// Bytes of memory that sealing may take at a time.
pub fn seal_memory_bytes() -> u64 {
    SEAL_MEMORY.get() as u64 * 1024 * 1024
}

/// The treatment of rows in object storage by queries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PostgresGucEnum)]
pub enum RecallRows {
    /// The query waits for them.
    #[name = c"on"]
    On,
    /// The query leaves them out, with a warning.
    #[name = c"skip"]
    Skip,
}

static RECALL: GucSetting<RecallRows> = GucSetting::<RecallRows>::new(RecallRows::On);

/// Whether queries leave out rows that are in object storage.
pub fn recall_skips() -> bool {
    RECALL.get() == RecallRows::Skip
}

/// Milliseconds that a query waits for a segment.
static RECALL_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(30_000);

/// Microseconds that a query waits for a segment.
pub fn recall_timeout_micros() -> i64 {
    i64::from(RECALL_TIMEOUT.get()) * 1000
}

/// The nice value of the sealing worker, which decides how much it yields to others.
static SEAL_NICE: GucSetting<i32> = GucSetting::<i32>::new(5);

/// The nice value of the background worker that seals.
pub fn seal_nice() -> i32 {
    SEAL_NICE.get()
}

/// The number of scans of a sealed segment after which it is decoded to the arena. By measurement,
/// decoding it there takes as long as decoding it for a scan six to fifteen times, and saves half
/// to three quarters of that time.
static DECODE_AFTER: GucSetting<i32> = GucSetting::<i32>::new(8);

/// How often most of a sealed segment's rows are read before it is decoded to the arena.
pub fn decode_after() -> u32 {
    DECODE_AFTER.get().unsigned_abs()
}

/// Megabytes on disk for segments that came back from object storage.
static COLD_CACHE_SIZE: GucSetting<i32> = GucSetting::<i32>::new(1024);

/// Bytes on disk for segments that came back from object storage.
pub fn cold_cache_bytes() -> u64 {
    COLD_CACHE_SIZE.get() as u64 * 1024 * 1024
}

/// The largest number of samples that a query in PromQL may read.
static PROMQL_MAX_SAMPLES: GucSetting<i32> = GucSetting::<i32>::new(1_000_000_000);

/// The largest number of samples that a query in PromQL may read.
pub fn promql_max_samples() -> u64 {
    PROMQL_MAX_SAMPLES.get() as u64
}

/// The largest number of series that a query in PromQL may read.
static PROMQL_MAX_SERIES: GucSetting<i32> = GucSetting::<i32>::new(1_000_000);

/// The largest number of series that a query in PromQL may read.
pub fn promql_max_series() -> u64 {
    PROMQL_MAX_SERIES.get() as u64
}

/// Megabytes of memory that a query in PromQL may hold.
static PROMQL_MEMORY: GucSetting<i32> = GucSetting::<i32>::new(256);

/// Bytes of memory that a query in PromQL may hold.
pub fn promql_memory_bytes() -> usize {
    PROMQL_MEMORY.get() as usize * 1024 * 1024
}

/// Whether a second thread evaluates what a query in PromQL reads.
static PROMQL_OVERLAP: GucSetting<bool> = GucSetting::<bool>::new(true);

/// Whether a second thread evaluates what a query in PromQL reads.
pub fn promql_overlap() -> bool {
    PROMQL_OVERLAP.get()
}

/// Refuses to start a server if the arena cannot have the size of its setting. PostgreSQL itself
/// would only warn of a wrong value for a library's setting and use the default. For too much
/// shared memory it would give a hint about its own settings.
fn check_arena_size(given: Option<&CStr>) {
    let Some(given) = given else {
        return;
    };
    let megabytes = server::parse_megabytes(given).unwrap_or_default();
    if !(1..=ARENA_MEGABYTES_MAX).contains(&megabytes) {
        error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("lanes.arena_size cannot be \"{}\"", given.to_string_lossy()),
            "Give a size from 1MB to 1TB, in kB, MB, GB or TB: lanes.arena_size = '256MB'.",
        );
    }
    let machine = server::machine_megabytes();
    if machine > 0 && i64::from(megabytes) > machine {
        error::raise(
            PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY,
            format!(
                "lanes.arena_size is {megabytes}MB, and this machine has {machine}MB of memory"
            ),
            "Set lanes.arena_size lower: the arena is a cache, and tables may be larger.",
        );
    }
}

/// Defines the settings. Called from `_PG_init`.
pub fn register() {
    register_arena();
    GucRegistry::define_bool_guc(
        c"lanes.enable_asof",
        c"Enables the planner's use of accelerated ASOF joins.",
        c"Off leaves the plans that PostgreSQL makes of the rewritten query; its answers are the same.",
        &ENABLE_ASOF,
        GucContext::Userset,
        GucFlags::EXPLAIN,
    );
    register_sealing();
    register_object_storage();
    register_promql();
}

/// Defines the settings of the arena.
fn register_arena() {
    // PostgreSQL has not checked the text before the setting is defined.
    let given = server::configured(c"lanes.arena_size");
    GucRegistry::define_int_guc(
        c"lanes.arena_size",
        c"Shared memory that holds the columns of lanes tables.",
        c"The arena is a cache of what lies in the tables' pages: when it is full, cold segments are read from pages instead.",
        &ARENA_SIZE,
        1,
        ARENA_MEGABYTES_MAX,
        GucContext::Postmaster,
        GucFlags::UNIT_MB,
    );
    check_arena_size(given.as_deref());
    GucRegistry::define_int_guc(
        c"lanes.decode_after",
        c"Scans that read most of a sealed segment before it is decoded to the arena.",
        c"Until then the arena keeps it as it is stored, and scans decode what they need. 0 decodes it at once.",
        &DECODE_AFTER,
        0,
        i32::MAX,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// Defines the settings of sealing.
fn register_sealing() {
    GucRegistry::define_int_guc(
        c"lanes.seal_rows",
        c"Rows that all can see and that are worth sealing together.",
        c"VACUUM and the background worker leave fewer rows unsealed; lanes.seal() does not.",
        &SEAL_ROWS,
        1,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"lanes.seal_naptime",
        c"Time between the rounds of the background worker that seals.",
        c"0 switches it off; VACUUM and lanes.seal() still seal.",
        &SEAL_NAPTIME,
        0,
        86_400,
        GucContext::Sighup,
        GucFlags::UNIT_S,
    );
    GucRegistry::define_int_guc(
        c"lanes.seal_memory",
        c"Memory that sealing may take at a time.",
        c"It bounds how many rows are sorted, and so compressed, together.",
        &SEAL_MEMORY,
        16,
        1024 * 1024,
        GucContext::Sighup,
        GucFlags::UNIT_MB,
    );
    GucRegistry::define_int_guc(
        c"lanes.seal_nice",
        c"How much the background worker that seals gives way to other processes.",
        c"The operating system's nice value: 0 for none, 19 for most. Too much lets rows pile up unsealed where processors are always busy.",
        &SEAL_NICE,
        0,
        19,
        GucContext::Sighup,
        GucFlags::default(),
    );
}

/// Defines the settings of rows in object storage.
fn register_object_storage() {
    GucRegistry::define_enum_guc(
        c"lanes.recall",
        c"What queries do that need rows which are in object storage.",
        c"on: they wait until a gateway has brought them. skip: they leave them out and warn; statements that change, lock or rewrite rows wait all the same.",
        &RECALL,
        GucContext::Userset,
        GucFlags::EXPLAIN,
    );
    GucRegistry::define_int_guc(
        c"lanes.recall_timeout",
        c"Time that a query waits for a segment from object storage.",
        c"The query fails then, and says what to do.",
        &RECALL_TIMEOUT,
        1,
        i32::MAX,
        GucContext::Userset,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_int_guc(
        c"lanes.cold_cache_size",
        c"Disk space for segments that came back from object storage.",
        c"The oldest make room for new ones. A restart of the server removes all of them.",
        &COLD_CACHE_SIZE,
        1,
        i32::MAX / 2,
        GucContext::Sighup,
        GucFlags::UNIT_MB,
    );
}

/// Defines the settings of queries in PromQL.
fn register_promql() {
    GucRegistry::define_int_guc(
        c"lanes.promql_max_samples",
        c"Largest number of samples that a query in PromQL may read.",
        c"A query that reads more is an error.",
        &PROMQL_MAX_SAMPLES,
        1,
        i32::MAX,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"lanes.promql_max_series",
        c"Largest number of series that a query in PromQL may read.",
        c"A series counts once for each selector that reads it.",
        &PROMQL_MAX_SERIES,
        1,
        i32::MAX,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"lanes.promql_memory",
        c"Memory that a query in PromQL may hold.",
        c"It bounds intermediate results and the answer, and besides these the samples of one series.",
        &PROMQL_MEMORY,
        1,
        1024 * 1024,
        GucContext::Userset,
        GucFlags::UNIT_MB,
    );
    GucRegistry::define_bool_guc(
        c"lanes.promql_overlap",
        c"Evaluates queries in PromQL on a second thread while the backend reads samples.",
        c"Queries that read few samples use one thread in any case.",
        &PROMQL_OVERLAP,
        GucContext::Userset,
        GucFlags::default(),
    );
}
