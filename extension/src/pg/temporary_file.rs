//! Temporary files of a query. PostgreSQL counts their bytes against `temp_file_limit`, and deletes them when the query
//! ends, however it ends.

use pgrx::pg_sys;

use super::exec::memory::Memory;

/// A file that is written, then rewound and read. It has no destructor: after an ERROR the resource owner closes it.
pub struct TemporaryFile {
    file: *mut pg_sys::BufFile,
    bytes: usize,
}

impl TemporaryFile {
    /// A new file, under the current resource owner. Its buffer lies in `memory`, which outlives it.
    pub fn create(memory: Memory) -> TemporaryFile {
        // SAFETY: creates the file and its buffer.
        let file = memory.enter(|| unsafe { pg_sys::BufFileCreateTemp(false) });
        TemporaryFile { file, bytes: 0 }
    }

    /// Appends bytes. An ERROR says that the disk is full, or that `temp_file_limit` is reached.
    pub fn write(&mut self, bytes: &[u8]) {
        // SAFETY: the file is open, and PostgreSQL only reads the bytes.
        unsafe {
            pg_sys::BufFileWrite(self.file, bytes.as_ptr().cast_mut().cast(), bytes.len());
        }
        self.bytes += bytes.len();
    }

    /// Bytes that were written.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Goes back to the first byte, after the last one is written.
    pub fn rewind(&mut self) {
        // SAFETY: the file is open, and has a first byte.
        let failed = unsafe { pg_sys::BufFileSeek(self.file, 0, 0, 0) };
        assert_eq!(failed, 0, "a temporary file has a beginning");
    }

    /// Reads as many bytes as the buffer has; false if so many are not left.
    pub fn read(&mut self, into: &mut [u8]) -> bool {
        // SAFETY: the file is open, and the buffer has this length.
        let count = unsafe { pg_sys::BufFileRead(self.file, into.as_mut_ptr().cast(), into.len()) };
        count == into.len()
    }

    /// Closes the file, which deletes it.
    pub fn close(self) {
        // SAFETY: the file is open, and nobody else has it.
        unsafe { pg_sys::BufFileClose(self.file) }
    }
}
