//! A Lease: whether somebody holds it.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;

/// The clocks of who holds a Lease and of who looks at it differ.
const SLACK: SignedDuration = SignedDuration::from_secs(60);

/// How a Lease stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    /// Somebody holds it, and has renewed it in time.
    Held,
    /// Its holder has not renewed it since then.
    RunOut(Timestamp),
    /// Nobody holds it: it was given back.
    Free,
}

impl LeaseState {
    /// How this one stands.
    pub fn of(lease: &Lease, now: Timestamp) -> Self {
        let Some(spec) = &lease.spec else { return Self::Free };
        let Some(renewed) = spec.renew_time.as_ref().map(|time| time.0) else { return Self::Free };
        if spec.holder_identity.as_deref().unwrap_or_default().is_empty() {
            return Self::Free;
        }
        let lasts = SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or_default().into()) + SLACK;
        if now.duration_since(renewed) < lasts { Self::Held } else { Self::RunOut(renewed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    #[rstest]
    #[case::renewed(json!({"holderIdentity": "pod", "renewTime": "2026-11-30T11:59:50.000000Z"}), LeaseState::Held)]
    #[case::by_a_clock_that_is_ahead(
        json!({"holderIdentity": "pod", "renewTime": "2026-11-30T12:05:00.000000Z"}), LeaseState::Held)]
    #[case::just_in_time_for_a_clock_that_is_behind(
        json!({"holderIdentity": "pod", "renewTime": "2026-11-30T11:58:46.000000Z"}), LeaseState::Held)]
    #[case::too_late(
        json!({"holderIdentity": "pod", "renewTime": "2026-11-30T11:58:45.000000Z"}),
        LeaseState::RunOut("2026-11-30T11:58:45Z".parse().unwrap()))]
    #[case::given_back(json!({"holderIdentity": null, "renewTime": null}), LeaseState::Free)]
    #[case::of_nobody(json!({"holderIdentity": "", "renewTime": "2026-11-30T11:59:50.000000Z"}), LeaseState::Free)]
    #[case::never_renewed(json!({"holderIdentity": "pod"}), LeaseState::Free)]
    fn a_lease_is_held_while_it_is_renewed(#[case] mut spec: Value, #[case] expected: LeaseState) {
        spec["leaseDurationSeconds"] = json!(15);
        let lease: Lease = serde_json::from_value(json!({"metadata": {"name": "l"}, "spec": spec})).unwrap();
        assert_eq!(LeaseState::of(&lease, "2026-11-30T12:00:00Z".parse().unwrap()), expected);
    }
}
