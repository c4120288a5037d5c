//! Segments in object storage: how they get there, and how they come back.
//!
//! ```text
//! out   offload_list → segment_image → (the gateway puts it, and waits until it is durable) → offload_commit     away
//! back  scan → recall → cold_cache: there? → requests: wait                                  recall, cold_cache, requests
//!                             ▲                    │
//!                             └── recall_supply ◄── recall_next ◄── gateway                                        supply
//! log   local_rows → (the gateway deletes entries of its log whose rows are not named)                                 local
//! ```
//!
//! An object is a segment's image as it lay in data pages, under a [`key`] that no other segment ever has: so an object is
//! put once or put again with the same bytes, never changed, and whoever reads it by its key reads the right one or none.
//!
//! A gateway is an ordinary client: it asks for what is due and for what is wanted, and Postgres never calls it. A backend
//! that wants a segment posts a request in shared memory and sleeps until it finds the image in the *cold cache*: files
//! beside those of sorts and hashes, which base backups leave out and which a restart removes.
//!
//! Failure cases. No gateway, or one that cannot read its store: the query fails after `lanes.recall_timeout` with an error
//! that says what to do; local rows are not touched. A gateway that dies with requests taken: they are offered to the
//! next. A backend that dies while it waits: its request runs out. A damaged image: refused when it is supplied,
//! by its length and its checksum, and again when it is read. An image that was changed on its way or in the store:
//! refused when it is supplied, by the digest that its part keeps ([`expected`]), and whoever waits for it is told. A
//! crash after an object was put and before its part was marked: the part is listed again, and put again under the
//! same key. After it was marked: the local part's blocks are freed by the next VACUUM.

pub mod cold_cache;
pub mod data_directory;
pub mod expected;
pub mod key;
pub mod recall;
pub mod requests;
