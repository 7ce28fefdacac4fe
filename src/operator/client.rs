//! The deadline that every ordinary call to the API server has.

use std::future::Future;
use std::time::Duration;

use crate::operator::api_error::ApiError;

/// How long an ordinary call may take.
const DEADLINE: Duration = Duration::from_secs(15);

/// Gives a call its deadline.
pub async fn in_time<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, ApiError> {
    match tokio::time::timeout(DEADLINE, call).await {
        Ok(answer) => answer.map_err(ApiError::from),
        Err(_) => Err(ApiError::TimedOut(DEADLINE)),
    }
}
