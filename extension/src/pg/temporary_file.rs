//! Temporary files of a query. PostgreSQL counts their bytes against `temp_file_limit`, and deletes them when the query
//! ends, however it ends.

use super::exec::memory::Memory;
use super::functions::executor as functions;
use super::tree::view::views;

views! {
    /// A file with a buffer.
    BufferedFile of BufFile {} {} {}
}

/// A file that is written, then rewound and read. It has no destructor: after an ERROR the resource owner closes it.
pub struct TemporaryFile {
    file: BufferedFile<'static>,
    bytes: usize,
}

impl TemporaryFile {
    /// A new file, under the current resource owner. Its buffer lies in `memory`, which outlives it.
    pub fn create(memory: Memory) -> TemporaryFile {
        let file = memory.enter(|| functions::BufFileCreateTemp(false));
        TemporaryFile { file, bytes: 0 }
    }

    /// Appends bytes. An ERROR says that the disk is full, or that `temp_file_limit` is reached.
    pub fn write(&mut self, bytes: &[u8]) {
        functions::BufFileWrite(self.file, bytes);
        self.bytes += bytes.len();
    }

    /// Bytes that were written.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Goes back to the first byte, after the last one is written.
    pub fn rewind(&mut self) {
        assert!(
            functions::rewind(self.file),
            "a temporary file has a beginning"
        );
    }

    /// Reads as many bytes as the buffer has; false if so many are not left.
    pub fn read(&mut self, into: &mut [u8]) -> bool {
        functions::BufFileRead(self.file, into) == into.len()
    }

    /// Closes the file, which deletes it.
    pub fn close(self) {
        functions::BufFileClose(self.file);
    }
}
