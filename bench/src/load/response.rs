//! An incremental parser of HTTP responses. Bodies are counted and not kept.

use std::time::Duration;

/// The greatest length of a response's head.
const HEAD_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 64;

/// The end of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// `Retry-After` in seconds, if it is a number.
    pub retry_after: Option<Duration>,
    /// Whether the server closes the connection after this response.
    pub closes: bool,
}

/// The error for bytes that are no HTTP/1.1 response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// The part of the response that the parser expects next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Head,
    /// This number of bytes of a body.
    Body(u64),
    /// The line with the length of a chunk.
    ChunkLine,
    /// This number of bytes of a chunk, followed by the end of a line.
    Chunk(u64),
    /// Lines after the last chunk, until an empty line.
    Trailer,
    /// A body that ends with the connection.
    UntilClose,
}

/// The parser of one connection's responses. It keeps an incomplete line or head until the rest
/// arrives.
#[derive(Debug)]
pub struct Answers {
    next: Next,
    kept: Vec<u8>,
    answer: Answer,
}

impl Answers {
    /// Creates a parser that expects the first head.
    pub fn new() -> Answers {
        Answers {
            next: Next::Head,
            kept: Vec::new(),
            answer: Answer {
                status: 0,
                retry_after: None,
                closes: false,
            },
        }
    }

    /// Parses received bytes and reports each response that they complete.
    ///
    /// # Errors
    /// The bytes are not HTTP/1.1. Earlier responses have been reported.
    pub fn take(&mut self, bytes: &[u8], mut tell: impl FnMut(Answer)) -> Result<(), Malformed> {
        if self.kept.is_empty() {
            return self.take_all(bytes, &mut tell);
        }
        self.kept.extend_from_slice(bytes);
        let joined = std::mem::take(&mut self.kept);
        self.take_all(&joined, &mut tell)
    }

    fn take_all(
        &mut self,
        mut bytes: &[u8],
        tell: &mut impl FnMut(Answer),
    ) -> Result<(), Malformed> {
        while !bytes.is_empty() {
            let Some(used) = self.step(bytes, tell)? else {
                if bytes.len() > HEAD_BYTES_MAX {
                    return Err(Malformed);
                }
                self.kept = bytes.to_vec();
                break;
            };
            bytes = &bytes[used..];
        }
        Ok(())
    }

    /// Handles the end of the connection and reports the response that ends with it. Returns `true`
    /// if no response is cut off.
    pub fn close(&mut self, mut tell: impl FnMut(Answer)) -> bool {
        match self.next {
            Next::UntilClose => {
                self.end(&mut tell);
                true
            }
            Next::Head => self.kept.is_empty(),
            _ => false,
        }
    }

    /// Parses one step and returns the number of bytes, or `None` if it needs more bytes.
    fn step(
        &mut self,
        bytes: &[u8],
        tell: &mut impl FnMut(Answer),
    ) -> Result<Option<usize>, Malformed> {
        let skip = |left: u64| (bytes.len() as u64).min(left);
        match self.next {
            Next::Head => self.head(bytes, tell),
            Next::Body(left) => {
                let used = skip(left);
                self.next = Next::Body(left - used);
                if used == left {
                    self.end(tell);
                }
                Ok(Some(used as usize))
            }
            Next::Chunk(left) => {
                let used = skip(left);
                self.next = match left - used {
                    0 => Next::ChunkLine,
                    left => Next::Chunk(left),
                };
                Ok(Some(used as usize))
            }
            Next::ChunkLine => {
                let Some((line, used)) = line(bytes) else {
                    return Ok(None);
                };
                let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
                let digits = std::str::from_utf8(digits).map_err(|_| Malformed)?.trim();
                let length = u32::from_str_radix(digits, 16).map_err(|_| Malformed)?;
                self.next = match length {
                    0 => Next::Trailer,
                    length => Next::Chunk(u64::from(length) + 2),
                };
                Ok(Some(used))
            }
            Next::Trailer => {
                let Some((line, used)) = line(bytes) else {
                    return Ok(None);
                };
                if line.is_empty() {
                    self.end(tell);
                }
                Ok(Some(used))
            }
            Next::UntilClose => Ok(Some(bytes.len())),
        }
    }

    fn head(
        &mut self,
        bytes: &[u8],
        tell: &mut impl FnMut(Answer),
    ) -> Result<Option<usize>, Malformed> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut head = httparse::Response::new(&mut headers);
        let used = match head.parse(bytes).map_err(|_| Malformed)? {
            httparse::Status::Complete(used) => used,
            httparse::Status::Partial => return Ok(None),
        };
        let status = head.code.ok_or(Malformed)?;
        // Informational responses such as 100 Continue precede the response.
        if (100..200).contains(&status) {
            return Ok(Some(used));
        }
        let mut answer = Answer {
            status,
            retry_after: None,
            closes: head.version == Some(0),
        };
        let (mut length, mut is_chunked) = (None, false);
        for header in head.headers.iter() {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            let text = || std::str::from_utf8(header.value).map(str::trim);
            if is("content-length") {
                length = Some(
                    text()
                        .ok()
                        .and_then(|text| text.parse::<u64>().ok())
                        .ok_or(Malformed)?,
                );
            } else if is("transfer-encoding") {
                is_chunked = text().is_ok_and(|text| text.eq_ignore_ascii_case("chunked"));
            } else if is("connection") {
                answer.closes = text().is_ok_and(|text| text.eq_ignore_ascii_case("close"));
            } else if is("retry-after") {
                let seconds = text().ok().and_then(|text| text.parse().ok());
                answer.retry_after = seconds.map(Duration::from_secs);
            }
        }
        self.answer = answer;
        self.next = match (status, is_chunked, length) {
            (204 | 304, ..) | (_, false, Some(0)) => Next::Body(0),
            (_, true, _) => Next::ChunkLine,
            (_, false, Some(length)) => Next::Body(length),
            (_, false, None) => Next::UntilClose,
        };
        if self.next == Next::UntilClose {
            self.answer.closes = true;
        }
        if self.next == Next::Body(0) {
            self.end(tell);
        }
        Ok(Some(used))
    }

    fn end(&mut self, tell: &mut impl FnMut(Answer)) {
        self.next = Next::Head;
        tell(self.answer);
    }
}

/// Returns a line without its end, and the number of bytes up to the next line.
fn line(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = &bytes[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEVERAL: &[u8] = b"HTTP/1.1 204 No Content\r\ndate: x\r\n\r\n\
        HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\ncontent-length: 5\r\n\r\nlater\
        HTTP/1.1 100 Continue\r\n\r\n\
        HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4;x=y\r\nabcd\r\n10\r\n0123456789abcdef\r\n0\r\ntrailer: z\r\n\r\n\
        HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

    fn answers(pieces: &mut dyn Iterator<Item = &[u8]>) -> (Vec<Answer>, Result<(), Malformed>) {
        let mut parser = Answers::new();
        let mut told = Vec::new();
        for piece in pieces {
            if let Err(error) = parser.take(piece, |answer| told.push(answer)) {
                return (told, Err(error));
            }
        }
        (told, Ok(()))
    }

    #[test]
    fn responses_do_not_depend_on_the_splitting_of_bytes() {
        let (whole, _) = answers(&mut std::iter::once(SEVERAL));
        let statuses: Vec<u16> = whole.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [204, 503, 200, 200]);
        assert_eq!(whole[1].retry_after, Some(Duration::from_secs(2)));
        assert_eq!(
            whole.iter().map(|answer| answer.closes).collect::<Vec<_>>(),
            [false, false, false, true]
        );
        for size in 1..SEVERAL.len() {
            assert_eq!(
                answers(&mut SEVERAL.chunks(size)),
                (whole.clone(), Ok(())),
                "pieces of {size}"
            );
        }
    }

    #[test]
    fn a_body_without_a_length_ends_with_the_connection() {
        let mut parser = Answers::new();
        let mut told = Vec::new();
        parser
            .take(b"HTTP/1.1 200 OK\r\n\r\nsome", |answer| told.push(answer))
            .unwrap();
        assert_eq!(told, []);
        assert!(parser.close(|answer| told.push(answer)));
        assert!(told[0].status == 200 && told[0].closes);
    }

    #[test]
    fn a_truncated_response_is_not_reported() {
        let mut parser = Answers::new();
        parser
            .take(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nsome", |_| {
                panic!("it is not complete")
            })
            .unwrap();
        assert!(!parser.close(|_| panic!("it is not complete")));
    }

    #[test]
    fn bytes_that_are_not_http_are_refused() {
        for wrong in [
            &b"SMTP ready\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        ] {
            assert_eq!(answers(&mut std::iter::once(wrong)).1, Err(Malformed));
        }
        let endless = vec![b'a'; HEAD_BYTES_MAX + 100];
        let head = [b"HTTP/1.1 200 OK\r\nx: ".as_slice(), &endless].concat();
        assert_eq!(answers(&mut head.chunks(1000)).1, Err(Malformed));
    }
}
