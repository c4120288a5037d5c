//! What requests hold of the budget while they are decoded, and what happens if there is no room.

use super::*;
use crate::metrics::Families;
use crate::model::Stored;
use crate::series::label_set::{LabelLimits, LabelOrder, canonical_bytes};
use crate::series::protobuf::put_delimited;

const REQUESTS: usize = 8;
const SAMPLES: usize = 10_000;

const LIMITS: ReceiveLimits = ReceiveLimits {
    body_bytes_max: 1 << 20,
    decompressed_bytes_max: 1 << 20,
    body_timeout: Duration::from_secs(1),
    ack_timeout: Duration::from_secs(3600),
    request: RequestLimits {
        samples_max: SAMPLES,
        label: LabelLimits {
            labels_max: 4,
            name_bytes_max: 8,
            value_bytes_max: 16,
            order: LabelOrder::Refuse,
        },
    },
};

/// Returns the body of one known series with as many samples as are allowed, of two bytes each:
/// less than a byte compressed, and 20 bytes decoded.
fn dense_body(cache: &SeriesCache) -> Bytes {
    let mut series = canonical_bytes(&[("__name__", "up")]);
    cache.insert(cache.generation(), &series, 1);
    series.extend_from_slice(&[0x12, 0x00].repeat(SAMPLES));
    let mut request = Vec::new();
    put_delimited(&mut request, 1, &series);
    let body = snap::raw::Encoder::new().compress_vec(&request).unwrap();
    assert!(
        body.len() * 15 < request.len(),
        "{} bytes are too many",
        body.len()
    );
    body.into()
}

struct Fixture {
    path: Arc<WritePath>,
    batches: mpsc::Receiver<Pending<SampleRows>>,
    body: Bytes,
}

/// Creates a path with a budget of `bytes_max`.
fn fixture(bytes_max: usize) -> Fixture {
    let cache = Arc::new(SeriesCache::new(1 << 20, 0));
    let body = dense_body(&cache);
    let (batch, batches) = mpsc::channel(REQUESTS);
    let families = Families::new();
    let path = WritePath {
        limits: LIMITS,
        budget: Budget::new(bytes_max, Duration::from_secs(1)),
        cache,
        metrics: Arc::new(ReceiveMetrics::new(&families)),
        http: Arc::new(HttpMetrics::new(&families, [ROUTE, "/other"])),
        deliver: Arc::new(DeliverMetrics::new(&families)),
        register: mpsc::channel(1).0,
        levels: AckLevel::ALL.map(|_| batch.clone()),
    };
    Fixture {
        path: Arc::new(path),
        batches,
        body,
    }
}

/// Sends all requests, each with the reservation that reading its body took, until none can
/// continue.
async fn send(fixture: &Fixture) -> Vec<tokio::task::JoinHandle<Result<(), Refusal>>> {
    let mut requests = Vec::new();
    for _ in 0..REQUESTS {
        let (path, body) = (Arc::clone(&fixture.path), fixture.body.clone());
        requests.push(tokio::spawn(async move {
            let reservation = path.budget.admit(body.len()).await.map_err(busy)?;
            path.receive(body, reservation, AckLevel::Wal, None, clock::now())
                .await
        }));
    }
    for _ in 0..10 * REQUESTS {
        tokio::task::yield_now().await;
    }
    requests
}

#[tokio::test(start_paused = true)]
async fn dense_requests_are_decoded_one_after_another_in_the_room_of_one() {
    // Decoding one request takes about 900 KB, and all of them hold about 3 MB after decoding.
    let mut fixture = fixture(5 << 20);
    let path = Arc::clone(&fixture.path);
    let requests = send(&fixture).await;
    let held_bytes = path.budget.pending_bytes();
    let row_bytes = REQUESTS * SAMPLES * SampleRows::ROW_BYTES;
    assert!(
        (row_bytes..2 * row_bytes).contains(&held_bytes),
        "{held_bytes} bytes are held for {row_bytes} of rows"
    );
    for _ in 0..REQUESTS {
        let pending = fixture.batches.recv().await.unwrap();
        assert_eq!(pending.payload.len(), SAMPLES);
        assert!(pending.payload.heap_bytes() <= pending.reservation.bytes());
        pending.reply.send(Ok(Stored::Now)).unwrap();
    }
    for request in requests {
        assert_eq!(request.await.unwrap(), Ok(()));
    }
    assert_eq!(path.budget.pending_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn without_room_to_decode_a_request_is_refused_at_once_and_keeps_nothing() {
    // There is room for the bodies, which are short. A single request could take all of it.
    let fixture = fixture(64 << 10);
    let path = Arc::clone(&fixture.path);
    let other = path.budget.admit(1).await.unwrap();
    let held_bytes = path.budget.pending_bytes();
    let started = clock::now();
    for request in send(&fixture).await {
        assert!(matches!(request.await.unwrap(), Err(Refusal::Busy(_))));
    }
    assert_eq!(started, clock::now(), "the request does not wait");
    assert_eq!(path.budget.pending_bytes(), held_bytes);
    assert_eq!(path.metrics.samples_received.get(), 0);
    drop(other);
}
