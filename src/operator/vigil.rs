//! Whether this process was awake all the time. One that was paused, or whose machine slept, may have lost the Lease to
//! another leader long before whoever renews it here finds out: until the Lease says that it is still ours, nothing is
//! written.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use tracing::{info, warn};

use crate::operator::client::in_time;
use crate::operator::retry::Retries;

/// Watches over its own process.
#[derive(Debug)]
pub struct Vigil {
    holding: Holding,
    leases: Api<Lease>,
    longest_nap: SignedDuration,
    state: Mutex<State>,
    asking: tokio::sync::Mutex<()>,
}

/// Which Lease is held, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub lease: &'static str,
    /// Its holder, when it is ours.
    pub identity: String,
    /// How long it lasts without being renewed.
    pub duration: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    /// When this process last showed that it runs.
    last_beat: Timestamp,
    slept: Slept,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slept {
    /// Never so long that the Lease can have run out meanwhile.
    No,
    /// It has, and nobody has asked since whose the Lease is.
    Perhaps,
}

impl State {
    /// The process runs at this time.
    fn beat(&mut self, now: Timestamp, longest_nap: SignedDuration) {
        let gap = now.duration_since(self.last_beat);
        // A clock that was set back may hide a gap.
        if gap.abs() > longest_nap {
            self.slept = Slept::Perhaps;
        }
        self.last_beat = now;
    }
}

impl Vigil {
    /// Begins now, with a Lease that was just taken.
    pub fn begin(client: &Client, holding: Holding) -> Self {
        Self {
            leases: Api::namespaced(client.clone(), &holding.namespace),
            longest_nap: SignedDuration::try_from(holding.duration / 3).unwrap_or(SignedDuration::MAX),
            holding,
            state: Mutex::new(State { last_beat: Timestamp::now(), slept: Slept::No }),
            asking: tokio::sync::Mutex::new(()),
        }
    }

    /// Notes again and again that this process runs.
    pub async fn keep(&self) -> std::convert::Infallible {
        loop {
            self.beat();
            tokio::time::sleep(self.holding.duration / 12).await;
        }
    }

    /// Returns when it is sure that no other leader is at work: at once, unless this process slept.
    pub async fn is_over(&self) {
        if self.beat() == Slept::No {
            return;
        }
        let _one_asks = self.asking.lock().await;
        let mut retries = Retries::default();
        while self.beat() == Slept::Perhaps {
            if self.is_still_ours().await {
                info!("this process slept; its lease is still ours");
                self.state.lock().unwrap_or_else(PoisonError::into_inner).slept = Slept::No;
            } else {
                retries.pause(()).await;
            }
        }
    }

    fn beat(&self) -> Slept {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.beat(Timestamp::now(), self.longest_nap);
        state.slept
    }

    async fn is_still_ours(&self) -> bool {
        let Holding { namespace, lease, .. } = &self.holding;
        match in_time(self.leases.get(lease)).await {
            Ok(lease) => self.holding.is_shown_by(&lease, Timestamp::now()),
            Err(error) => {
                warn!(%error, "this process slept, and cannot ask whose Lease {namespace}/{lease} is; nothing is written");
                false
            }
        }
    }
}

impl Holding {
    /// Whether we hold it at this time.
    fn is_shown_by(&self, lease: &Lease, now: Timestamp) -> bool {
        let Some(spec) = &lease.spec else { return false };
        let lasts = SignedDuration::try_from(self.duration).unwrap_or(SignedDuration::MAX);
        let is_fresh = spec.renew_time.as_ref().is_some_and(|renewed| now.duration_since(renewed.0) < lasts);
        spec.holder_identity.as_deref() == Some(self.identity.as_str()) && is_fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use rstest::rstest;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[rstest]
    #[case::awake(&[1, 2, 3], Slept::No)]
    #[case::a_nap(&[1, 6], Slept::No)]
    #[case::a_sleep(&[1, 7], Slept::Perhaps)]
    #[case::a_sleep_some_time_ago(&[1, 7, 8, 9], Slept::Perhaps)]
    #[case::a_clock_set_back(&[5, -1], Slept::Perhaps)]
    #[case::a_clock_set_right(&[5, 4], Slept::No)]
    fn a_process_slept_if_its_beats_have_a_gap(#[case] beats: &[i64], #[case] expected: Slept) {
        let mut state = State { last_beat: at(0), slept: Slept::No };
        beats.iter().for_each(|second| state.beat(at(*second), SignedDuration::from_secs(5)));
        assert_eq!(state.slept, expected);
    }

    #[rstest]
    #[case::ours(Some("us"), Some(90), true)]
    #[case::it_ran_out(Some("us"), Some(80), false)]
    #[case::anothers(Some("them"), Some(99), false)]
    #[case::nobodys(None, Some(99), false)]
    #[case::never_renewed(Some("us"), None, false)]
    fn a_lease_is_ours_while_it_says_so(
        #[case] holder: Option<&str>,
        #[case] renewed: Option<i64>,
        #[case] ours: bool,
    ) {
        let holding = Holding {
            namespace: "restamp-system".to_owned(),
            lease: "restamp-leader",
            identity: "us".to_owned(),
            duration: Duration::from_secs(15),
        };
        let lease = Lease {
            spec: Some(LeaseSpec {
                holder_identity: holder.map(str::to_owned),
                renew_time: renewed.map(|second| MicroTime(at(second))),
                ..LeaseSpec::default()
            }),
            ..Lease::default()
        };
        assert_eq!(holding.is_shown_by(&lease, at(100)), ours);
    }
}
