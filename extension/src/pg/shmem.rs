//! Shared memory: the arena, condition variables, and further areas that other rooms register. It is requested when the
//! postmaster starts and mapped by every backend. Lightweight locks guard it.

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use lanes_columnar::arena::{Arena, Locks};
use pgrx::pg_sys;
use pgrx::prelude::*;

unsafe extern "C-unwind" {
    // An ERROR would mean that a process without locks of its own, or with hundreds of them, calls.
    #[link_name = "LWLockAcquire"]
    fn acquire(lock: *mut pg_sys::LWLock, mode: pg_sys::LWLockMode::Type) -> bool;
    #[link_name = "LWLockRelease"]
    fn release(lock: *mut pg_sys::LWLock);
}

/// Relations share this many locks: the hash of a relation picks its lock.
const RELATION_LOCKS: usize = 64;
/// Relations that the arena can hold at a time; further ones evict the coldest.
const RELATIONS_MAX: u32 = 4096;
/// Locks of the arena: the allocator's and the relations'. The locks of the other areas follow.
const ARENA_LOCKS: usize = RELATION_LOCKS + 1;
const TRANCHE: &CStr = c"lanes";

static MEMORY: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static ARENA_BYTES: AtomicUsize = AtomicUsize::new(0);
static LOCKS: AtomicPtr<pg_sys::LWLockPadded> = AtomicPtr::new(std::ptr::null_mut());
/// The areas beside the arena, in the order of their locks.
static AREAS: Mutex<Vec<&'static dyn AnyArea>> = Mutex::new(Vec::new());

static mut PREVIOUS_REQUEST: pg_sys::shmem_request_hook_type = None;
static mut PREVIOUS_STARTUP: pg_sys::shmem_startup_hook_type = None;

/// Lightweight locks of the arena: lock 0 is the allocator's, the next are the relations'. A
/// relation's lock is taken before the allocator's.
#[derive(Clone, Copy)]
pub struct ArenaLocks;

/// Runs `body`, pure memory work that cannot raise an ERROR, while it holds a lock of the tranche.
fn with_lock<R>(index: usize, body: impl FnOnce() -> R) -> R {
    // SAFETY: the tranche has a lock of each index that this file uses; it exists since the server's start.
    unsafe {
        let lock = &raw mut (*LOCKS.load(Ordering::Relaxed).add(index)).lock;
        acquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let result = body();
        release(lock);
        result
    }
}

impl Locks for ArenaLocks {
    fn with_allocator<R>(&self, body: impl FnOnce() -> R) -> R {
        with_lock(0, body)
    }

    fn with_relation<R>(&self, hash: u64, body: impl FnOnce() -> R) -> R {
        with_lock(1 + (hash % RELATION_LOCKS as u64) as usize, body)
    }
}

/// The arena; `None` before the server has set it up, as while libraries are loaded.
pub fn arena() -> Option<Arena<ArenaLocks>> {
    let memory = MEMORY.load(Ordering::Relaxed);
    if memory.is_null() {
        return None;
    }
    release_at_exit();
    // SAFETY: set once by `startup` to initialised memory that stays mapped for the life of the process.
    Some(unsafe { Arena::attach(memory, ArenaLocks) })
}

/// Makes the process, once, release its pins when it exits in the middle of a wait.
fn release_at_exit() {
    static PROCESS: AtomicU32 = AtomicU32::new(0);
    // Children of the postmaster inherit its memory, but not its exit callbacks.
    let process = super::server::process_id() as u32;
    if PROCESS.load(Ordering::Relaxed) == process {
        return;
    }
    PROCESS.store(process, Ordering::Relaxed);
    // SAFETY: called after everything that ends the transaction, which drops values that lie in memory contexts.
    unsafe { pg_sys::on_shmem_exit(Some(release_pins), pg_sys::Datum::null()) };
}

#[pg_guard]
unsafe extern "C-unwind" fn release_pins(_code: i32, _argument: pg_sys::Datum) {
    if let Some(arena) = arena() {
        // SAFETY: the process ends, and what is still on its stack is never reached again.
        unsafe { arena.release_all() };
    }
}

/// What lies in the shared memory of an [`Area`].
struct AreaMemory<S, G> {
    shared: S,
    guarded: UnsafeCell<G>,
}

/// An area of shared memory: a value that processes use together, and one that a lightweight lock guards.
pub struct Area<S: 'static, G: 'static> {
    name: &'static CStr,
    initial: fn() -> (S, G),
    memory: AtomicPtr<AreaMemory<S, G>>,
    /// The index of its lock.
    lock: AtomicUsize,
}

/// An area of any type.
trait AnyArea: Sync {
    fn bytes(&self) -> usize;

    /// Finds the area's memory, and writes the initial values to fresh memory.
    ///
    /// # Safety
    /// The startup hook calls this, under the lock that guards the list of areas.
    unsafe fn attach(&self, lock: usize);
}

impl<S: Sync, G: Send> Area<S, G> {
    /// An area whose fresh memory gets the `initial` values.
    pub const fn new(name: &'static CStr, initial: fn() -> (S, G)) -> Area<S, G> {
        Area {
            name,
            initial,
            memory: AtomicPtr::new(std::ptr::null_mut()),
            lock: AtomicUsize::new(0),
        }
    }

    /// Requests the area at the server's start. Called from `_PG_init`, before [`register`].
    pub fn add(&'static self) {
        if let Ok(mut areas) = AREAS.lock() {
            areas.push(self);
        }
    }

    fn memory(&self) -> &'static AreaMemory<S, G> {
        // SAFETY: set by the startup hook to initialised memory that stays mapped for the life of the process.
        unsafe { self.memory.load(Ordering::Relaxed).as_ref() }
            .expect("the server was started with the library")
    }

    /// The value that processes use together.
    pub fn shared(&self) -> &'static S {
        &self.memory().shared
    }

    /// Runs `body`, pure memory work that cannot raise an ERROR, with the guarded value, while it holds the lock.
    pub fn locked<R>(&self, body: impl FnOnce(&mut G) -> R) -> R {
        let guarded = &self.memory().guarded;
        with_lock(self.lock.load(Ordering::Relaxed), || {
            // SAFETY: the lock keeps all other processes from this value.
            body(unsafe { &mut *guarded.get() })
        })
    }
}

impl<S: Sync, G: Send> AnyArea for Area<S, G> {
    fn bytes(&self) -> usize {
        size_of::<AreaMemory<S, G>>()
    }

    unsafe fn attach(&self, lock: usize) {
        let mut found = false;
        // SAFETY: the memory was requested, is aligned to cache lines, and nobody uses it before this returns.
        unsafe {
            let bytes = self.bytes();
            let memory = pg_sys::ShmemInitStruct(self.name.as_ptr(), bytes, &mut found)
                .cast::<AreaMemory<S, G>>();
            if !found {
                let (shared, guarded) = (self.initial)();
                memory.write(AreaMemory {
                    shared,
                    guarded: UnsafeCell::new(guarded),
                });
            }
            self.memory.store(memory, Ordering::Relaxed);
        }
        self.lock.store(lock, Ordering::Relaxed);
    }
}

/// Registers the shared-memory hooks, for an arena of so many bytes. Called from `_PG_init`, in the postmaster.
pub fn register(arena_bytes: usize) {
    ARENA_BYTES.store(arena_bytes, Ordering::Relaxed);
    // SAFETY: hooks are installed once, single-threaded, while libraries are loaded.
    unsafe {
        PREVIOUS_REQUEST = pg_sys::shmem_request_hook;
        pg_sys::shmem_request_hook = Some(request);
        PREVIOUS_STARTUP = pg_sys::shmem_startup_hook;
        pg_sys::shmem_startup_hook = Some(startup);
    }
}

fn areas() -> Vec<&'static dyn AnyArea> {
    AREAS.lock().map(|areas| areas.clone()).unwrap_or_default()
}

#[pg_guard]
unsafe extern "C-unwind" fn request() {
    // SAFETY: called by the postmaster at the one moment when requests are legal.
    unsafe {
        if let Some(previous) = PREVIOUS_REQUEST {
            previous();
        }
        pg_sys::RequestAddinShmemSpace(ARENA_BYTES.load(Ordering::Relaxed));
        let areas = areas();
        for area in &areas {
            pg_sys::RequestAddinShmemSpace(area.bytes());
        }
        let locks = ARENA_LOCKS + areas.len();
        pg_sys::RequestNamedLWLockTranche(TRANCHE.as_ptr(), locks as i32);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn startup() {
    // SAFETY: called once per postmaster life (again after a crash, with fresh memory) before any backend runs.
    unsafe {
        if let Some(previous) = PREVIOUS_STARTUP {
            previous();
        }
        let bytes = ARENA_BYTES.load(Ordering::Relaxed);
        let mut found = false;
        let lock = &raw mut (*pg_sys::MainLWLockArray.add(ADDIN_SHMEM_INIT_LOCK)).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let memory: *mut u8 =
            pg_sys::ShmemInitStruct(c"lanes arena".as_ptr(), bytes, &mut found).cast();
        if !found {
            Arena::<ArenaLocks>::initialise(memory, bytes, RELATIONS_MAX);
        }
        for (index, area) in areas().into_iter().enumerate() {
            area.attach(ARENA_LOCKS + index);
        }
        LOCKS.store(
            pg_sys::GetNamedLWLockTranche(TRANCHE.as_ptr()),
            Ordering::Relaxed,
        );
        MEMORY.store(memory, Ordering::Relaxed);
        pg_sys::LWLockRelease(lock);
    }
}

/// A condition variable, by which processes wake others. It lies in shared memory.
#[repr(transparent)]
pub struct ConditionVariable(UnsafeCell<pg_sys::ConditionVariable>);

// SAFETY: PostgreSQL's functions lock the variable themselves.
unsafe impl Sync for ConditionVariable {}

impl ConditionVariable {
    /// A variable that nobody waits for.
    pub fn new() -> ConditionVariable {
        let mut variable = pg_sys::ConditionVariable::default();
        // SAFETY: the variable is a value of our own, and may be moved while nobody waits for it.
        unsafe { pg_sys::ConditionVariableInit(&raw mut variable) };
        ConditionVariable(UnsafeCell::new(variable))
    }

    /// Enters this process among those that [`ConditionVariable::broadcast`] wakes. From here on no wake-up is missed.
    pub fn prepare_to_sleep(&'static self) {
        // SAFETY: the variable stays as long as the process.
        unsafe { pg_sys::ConditionVariablePrepareToSleep(self.0.get()) }
    }

    /// Sleeps until somebody wakes this process, or so many milliseconds have passed. The cancellation of a query is an
    /// ERROR.
    pub fn sleep(&'static self, milliseconds: i64) {
        let timeout = milliseconds as std::ffi::c_long;
        // SAFETY: the variable stays as long as the process.
        unsafe {
            pg_sys::ConditionVariableTimedSleep(self.0.get(), timeout, pg_sys::PG_WAIT_EXTENSION);
        }
    }

    /// Wakes all processes that wait.
    pub fn broadcast(&self) {
        // SAFETY: the variable is live.
        unsafe { pg_sys::ConditionVariableBroadcast(self.0.get()) }
    }
}

/// Ends what [`ConditionVariable::prepare_to_sleep`] began.
pub fn cancel_sleep() {
    // SAFETY: without a preparation there is nothing to end.
    unsafe {
        pg_sys::ConditionVariableCancelSleep();
    }
}

/// The index of `AddinShmemInitLock` in the main array (lwlocknames.h), equal in all supported versions.
const ADDIN_SHMEM_INIT_LOCK: usize = 21;
