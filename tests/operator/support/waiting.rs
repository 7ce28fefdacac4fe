//! Waiting for a condition.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How long a test waits for what must come: long enough for a machine that is busy with something else.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// The condition did not come about in time.
#[derive(Debug)]
pub struct TimedOut;

/// Looks again and again, until the condition holds.
pub async fn poll(patience: Duration, mut holds: impl AsyncFnMut() -> bool) -> Result<(), TimedOut> {
    const PAUSE: Duration = Duration::from_millis(100);
    let end = Instant::now() + patience;
    while !holds().await {
        if Instant::now() >= end {
            return Err(TimedOut);
        }
        sleep(PAUSE).await;
    }
    Ok(())
}
