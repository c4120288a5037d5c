//! Shared memory, of the arena and of requests for remote segments: requested at postmaster start, mapped by every backend, guarded by lightweight locks.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use lanes_columnar::arena::{Arena, Locks};
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::gucs;
use crate::remote::requests::Shared as Requests;

/// Relation locks are striped: a relation's lock is the one its hash picks.
const RELATION_LOCKS: usize = 64;
/// Relations that the arena can know at a time; further ones push out the coldest.
const RELATIONS_MAX: u32 = 4096;
/// The allocator's, the relations', the requests'.
const LOCKS_ALL: usize = RELATION_LOCKS + 2;
const TRANCHE: &std::ffi::CStr = c"lanes";

static MEMORY: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static REQUESTS: AtomicPtr<Requests> = AtomicPtr::new(std::ptr::null_mut());
static LOCKS: AtomicPtr<pg_sys::LWLockPadded> = AtomicPtr::new(std::ptr::null_mut());

static mut PREVIOUS_REQUEST: pg_sys::shmem_request_hook_type = None;
static mut PREVIOUS_STARTUP: pg_sys::shmem_startup_hook_type = None;

/// Lightweight locks of the arena: number 0 is the allocator's, the next are relations'. Order: a relation's, then
/// the allocator's. The last lock of the tranche is that of the requests.
#[derive(Clone, Copy)]
pub struct ArenaLocks;

impl ArenaLocks {
    fn with<R>(index: usize, body: impl FnOnce() -> R) -> R {
        // SAFETY: the tranche has LOCKS_ALL locks; the bodies are pure memory work that cannot raise.
        unsafe {
            let lock = &raw mut (*LOCKS.load(Ordering::Relaxed).add(index)).lock;
            pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
            let result = body();
            pg_sys::LWLockRelease(lock);
            result
        }
    }
}

impl Locks for ArenaLocks {
    fn with_allocator<R>(&self, body: impl FnOnce() -> R) -> R {
        Self::with(0, body)
    }

    fn with_relation<R>(&self, hash: u64, body: impl FnOnce() -> R) -> R {
        Self::with(1 + (hash % RELATION_LOCKS as u64) as usize, body)
    }
}

/// The arena; `None` before the server has set it up (while libraries are loaded, in single-user mode of old).
pub fn arena() -> Option<Arena<ArenaLocks>> {
    let memory = MEMORY.load(Ordering::Relaxed);
    if memory.is_null() {
        return None;
    }
    release_at_exit();
    // SAFETY: set once by `startup` to initialised memory that stays mapped for the life of the process.
    Some(unsafe { Arena::attach(memory, ArenaLocks) })
}

/// Sees to it, once a process, that what it has pinned is given back when it ends in the middle of a wait.
fn release_at_exit() {
    static PROCESS: AtomicU32 = AtomicU32::new(0);
    // The postmaster's children inherit its memory, but not what it does at its exit.
    // SAFETY: a plain read.
    let process = unsafe { pg_sys::MyProcPid } as u32;
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

/// The requests for remote segments.
pub fn requests() -> *mut Requests {
    REQUESTS.load(Ordering::Relaxed)
}

/// Runs `body`, pure memory work that cannot raise, with the lock of the requests.
pub fn with_requests_locked<R>(body: impl FnOnce() -> R) -> R {
    ArenaLocks::with(LOCKS_ALL - 1, body)
}

/// Registers the shared-memory hooks. Called from `_PG_init`, in the postmaster.
pub fn register() {
    // SAFETY: hooks are installed once, single-threaded, while libraries are loaded.
    unsafe {
        PREVIOUS_REQUEST = pg_sys::shmem_request_hook;
        pg_sys::shmem_request_hook = Some(request);
        PREVIOUS_STARTUP = pg_sys::shmem_startup_hook;
        pg_sys::shmem_startup_hook = Some(startup);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn request() {
    // SAFETY: called by the postmaster at the one moment when requests are legal.
    unsafe {
        if let Some(previous) = PREVIOUS_REQUEST {
            previous();
        }
        pg_sys::RequestAddinShmemSpace(gucs::arena_bytes());
        pg_sys::RequestAddinShmemSpace(size_of::<Requests>());
        pg_sys::RequestNamedLWLockTranche(TRANCHE.as_ptr(), LOCKS_ALL as i32);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn startup() {
    // SAFETY: called once per postmaster life (again after a crash, with fresh memory) before any backend runs.
    unsafe {
        if let Some(previous) = PREVIOUS_STARTUP {
            previous();
        }
        let bytes = gucs::arena_bytes();
        let mut found = false;
        let lock = &raw mut (*pg_sys::MainLWLockArray.add(ADDIN_SHMEM_INIT_LOCK)).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let memory: *mut u8 =
            pg_sys::ShmemInitStruct(c"lanes arena".as_ptr(), bytes, &mut found).cast();
        if !found {
            Arena::<ArenaLocks>::initialise(memory, bytes, RELATIONS_MAX);
        }
        let mut found = false;
        let requests: *mut Requests = pg_sys::ShmemInitStruct(
            c"lanes recall requests".as_ptr(),
            size_of::<Requests>(),
            &mut found,
        )
        .cast();
        if !found {
            Requests::initialise(requests);
        }
        REQUESTS.store(requests, Ordering::Relaxed);
        LOCKS.store(
            pg_sys::GetNamedLWLockTranche(TRANCHE.as_ptr()),
            Ordering::Relaxed,
        );
        MEMORY.store(memory, Ordering::Relaxed);
        pg_sys::LWLockRelease(lock);
    }
}

/// `AddinShmemInitLock`'s place in the main array (lwlocknames.h; the same in every supported version).
const ADDIN_SHMEM_INIT_LOCK: usize = 21;
