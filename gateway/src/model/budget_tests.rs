//! No request waits while it holds memory, and admitted requests find room.

use super::*;

const WAIT: Duration = Duration::from_secs(1);

/// The budget has 12 permits for entry and 4 for growth. One claim takes 1 permit at most, all
/// claims 8.
fn budget() -> Budget {
    Budget::new(16 * PERMIT_BYTES, WAIT)
}

#[tokio::test(start_paused = true)]
async fn reservations_grow_shrink_and_end() {
    let budget = budget();
    let mut first = budget.admit(1).await.unwrap();
    assert_eq!((first.bytes(), budget.pending_bytes()), (1024, 1024));
    first.grow(&budget, 14 * PERMIT_BYTES).unwrap();
    assert_eq!(budget.pending_bytes(), 14 * PERMIT_BYTES);
    let mut second = Reservation::default();
    assert_eq!(second.grow(&budget, 3 * PERMIT_BYTES), Err(Overloaded));
    assert_eq!(budget.pending_bytes(), 14 * PERMIT_BYTES, "nothing is kept");
    assert!(first.shrink(13 * PERMIT_BYTES));
    second.resize(&budget, 3 * PERMIT_BYTES).unwrap();
    assert!(!second.shrink(4 * PERMIT_BYTES));
    drop((first, second));
    assert_eq!(budget.pending_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn new_requests_are_not_admitted_into_growth() {
    let budget = budget();
    let mut first = budget.admit(12 * PERMIT_BYTES).await.unwrap();
    assert_eq!(budget.admit(1).await.err(), Some(Overloaded));
    first.grow(&budget, 16 * PERMIT_BYTES).unwrap();
    // Growth is released before the entry permits.
    assert!(first.shrink(12 * PERMIT_BYTES));
    assert_eq!(budget.admit(1).await.err(), Some(Overloaded));
    assert!(first.shrink(11 * PERMIT_BYTES));
    budget.admit(1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn new_requests_wait_in_order_of_arrival() {
    let budget = budget();
    let first = budget.admit(12 * PERMIT_BYTES).await.unwrap();
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut waiting = Vec::new();
    // A large request is not overtaken by small ones.
    for permits in [8, 1, 2] {
        let (budget, order) = (budget.clone(), Arc::clone(&order));
        waiting.push(tokio::spawn(async move {
            let admitted = budget.admit(permits * PERMIT_BYTES).await;
            order.lock().unwrap().push(permits);
            admitted.map(drop)
        }));
        tokio::task::yield_now().await;
    }
    // Nor is it overtaken by a request that arrives while there is some room. Growth takes only
    // what is left.
    let mut grown = Reservation::default();
    grown.grow(&budget, 4 * PERMIT_BYTES).unwrap();
    assert_eq!(grown.grow(&budget, 5 * PERMIT_BYTES), Err(Overloaded));
    tokio::time::sleep(WAIT / 2).await;
    drop(first);
    for admitted in waiting {
        assert_eq!(admitted.await.unwrap(), Ok(()));
    }
    assert_eq!(*order.lock().unwrap(), [8, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn claims_are_bounded_one_by_one_and_together() {
    let budget = budget();
    let mut claims = Vec::new();
    for _ in 0..8 {
        let (reservation, claim) = budget.claim(100 * PERMIT_BYTES).await.unwrap();
        assert_eq!(reservation.bytes(), PERMIT_BYTES);
        claims.push((reservation, claim));
    }
    assert!(budget.claim(1).await.is_err());
    // Other requests are admitted. A request that gives up its claim keeps what it holds.
    let _other = budget.admit(4 * PERMIT_BYTES).await.unwrap();
    let (kept, claim) = claims.pop().unwrap();
    drop((kept, claim));
    assert!(budget.claim(1).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_request_larger_than_the_budget_takes_all_of_it() {
    let budget = budget();
    let mut all = Reservation::default();
    all.grow(&budget, usize::MAX).unwrap();
    assert_eq!(budget.pending_bytes(), 16 * PERMIT_BYTES);
    let mut room = Room::new(all, &budget, 1).unwrap();
    room.cover(usize::MAX).unwrap();
}

#[tokio::test(start_paused = true)]
async fn room_grows_by_steps_as_far_as_there_is_some() {
    let budget = Budget::new(100 * STEP_BYTES, WAIT);
    let _other = budget.admit(PERMIT_BYTES).await.unwrap();
    let held = budget.admit(STEP_BYTES).await.unwrap();
    let held_bytes = || budget.pending_bytes() - PERMIT_BYTES;
    let base_bytes = STEP_BYTES / 2;
    let mut room = Room::new(held, &budget, base_bytes).unwrap();
    room.cover(STEP_BYTES / 2).unwrap();
    assert_eq!(held_bytes(), STEP_BYTES, "it was covered before");
    room.cover(STEP_BYTES).unwrap();
    assert_eq!(held_bytes(), STEP_BYTES * 5 / 2, "one more step");
    let rest = 100 * STEP_BYTES - PERMIT_BYTES;
    assert_eq!(room.cover(rest), Err(Overloaded));
    room.cover(rest - base_bytes).unwrap();
    assert_eq!(
        held_bytes(),
        rest,
        "the last bytes are taken without a further step"
    );
    assert_eq!(room.into_reservation().bytes(), rest);
    Room::boundless().cover(usize::MAX).unwrap();
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_when_room_is_made() {
    let budget = budget();
    let first = budget.admit(12 * PERMIT_BYTES).await.unwrap();
    let waiting = tokio::spawn({
        let budget = budget.clone();
        async move { budget.claim(1).await.map(drop) }
    });
    tokio::time::sleep(WAIT / 2).await;
    drop(first);
    assert_eq!(waiting.await.unwrap(), Ok(()));
}
