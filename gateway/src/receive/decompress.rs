//! Decompression of snappy's block format. The declared length is checked before anything is
//! allocated for it.

use thiserror::Error;

/// The maximum number of bytes that one byte of snappy can produce: a copy of 64 bytes takes three.
const EXPANSION_MAX: usize = 22;

/// Why a body cannot be decompressed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DecompressError {
    /// The body is empty. Even an empty block has one byte.
    #[error("body is empty; snappy's block format has at least one byte")]
    Empty,
    /// The body is not in snappy's block format.
    #[error("body is not in snappy's block format: {0}")]
    Snappy(snap::Error),
    /// The declared length is over the limit.
    #[error(
        "body declares {declared_bytes} bytes after decompression, but only {bytes_max} are allowed (receive.decompressed_bytes_max)"
    )]
    TooLong {
        /// The declared length.
        declared_bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A body of this length cannot produce the declared length.
    #[error(
        "body of {body_bytes} bytes declares {declared_bytes} bytes after decompression, which snappy cannot produce"
    )]
    Impossible {
        /// The length of the body.
        body_bytes: usize,
        /// The declared length.
        declared_bytes: usize,
    },
}

/// Returns the declared decompressed length of `body`, checked to be possible and at most
/// `bytes_max`.
///
/// # Errors
/// Returns a [`DecompressError`] if the length is not possible or over the limit.
pub fn declared_bytes(body: &[u8], bytes_max: usize) -> Result<usize, DecompressError> {
    if body.is_empty() {
        return Err(DecompressError::Empty);
    }
    let declared_bytes = snap::raw::decompress_len(body).map_err(DecompressError::Snappy)?;
    if declared_bytes > bytes_max {
        return Err(DecompressError::TooLong {
            declared_bytes,
            bytes_max,
        });
    }
    if declared_bytes > body.len().saturating_mul(EXPANSION_MAX) {
        return Err(DecompressError::Impossible {
            body_bytes: body.len(),
            declared_bytes,
        });
    }
    Ok(declared_bytes)
}

/// A buffer that one thread reuses.
#[derive(Debug, Default)]
pub struct Decompressor {
    buffer: Vec<u8>,
}

impl Decompressor {
    /// The maximum bytes kept between requests, so that a rare large body does not occupy its
    /// memory forever.
    const KEPT_BYTES_MAX: usize = 4 << 20;

    /// Frees a large buffer. To be called when the decompressed bytes are no longer needed.
    pub fn trim(&mut self) {
        if self.buffer.capacity() > Self::KEPT_BYTES_MAX {
            self.buffer = Vec::new();
        }
    }

    /// Decompresses one block of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// Returns a [`DecompressError`]. Nothing is allocated for a refused length.
    pub fn decompress(&mut self, body: &[u8], bytes_max: usize) -> Result<&[u8], DecompressError> {
        let declared_bytes = declared_bytes(body, bytes_max)?;
        if self.buffer.len() < declared_bytes {
            // The old buffer is freed first, so that never both exist.
            self.buffer = Vec::new();
            self.buffer = vec![0; declared_bytes];
        }
        let written = snap::raw::Decoder::new()
            .decompress(body, &mut self.buffer[..declared_bytes])
            .map_err(DecompressError::Snappy)?;
        Ok(&self.buffer[..written])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compress(bytes: &[u8]) -> Vec<u8> {
        snap::raw::Encoder::new().compress_vec(bytes).unwrap()
    }

    #[test]
    fn round_trips_reuse_the_buffer() {
        let mut decompressor = Decompressor::default();
        for bytes in [b"a rather longer text".as_slice(), b"", b"short"] {
            assert_eq!(
                decompressor.decompress(&compress(bytes), 100).unwrap(),
                bytes
            );
        }
    }

    #[test]
    fn the_best_compression_is_possible() {
        let zeros = vec![0; 10 << 20];
        let mut decompressor = Decompressor::default();
        assert_eq!(
            decompressor
                .decompress(&compress(&zeros), zeros.len())
                .unwrap()
                .len(),
            zeros.len()
        );
        assert_eq!(decompressor.buffer.capacity(), zeros.len());
        decompressor.trim();
        assert_eq!(decompressor.buffer.capacity(), 0);
    }

    #[test]
    fn bombs_allocate_nothing() {
        let mut decompressor = Decompressor::default();
        let four_gib = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00];
        assert!(matches!(
            decompressor.decompress(&four_gib, 1 << 20),
            Err(DecompressError::TooLong { .. })
        ));
        assert!(matches!(
            decompressor.decompress(&four_gib, usize::MAX),
            Err(DecompressError::Impossible { .. })
        ));
        assert!(matches!(
            decompressor.decompress(&[0xff; 12], 1 << 20),
            Err(DecompressError::Snappy(_))
        ));
        assert_eq!(
            decompressor.decompress(&[], 1 << 20),
            Err(DecompressError::Empty)
        );
        assert_eq!(decompressor.buffer.capacity(), 0);
    }

    #[test]
    fn damage_is_an_error() {
        let mut body = compress(b"some text that is some text that is some text");
        body.truncate(body.len() - 3);
        assert!(matches!(
            Decompressor::default().decompress(&body, 1000),
            Err(DecompressError::Snappy(_))
        ));
    }
}
