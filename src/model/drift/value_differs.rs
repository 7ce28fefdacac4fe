//! `ValueDiffers`: a hand changed a declared value, and the next apply reverts it.

use super::{Case, Finding, Writer};
use crate::model::config::Config;
use crate::model::fingerprint::Fingerprint;
use crate::model::managed_fields::ManagerEntry;
use crate::model::managers::Standing;
use crate::model::names::KeyName;

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    if !case.declaration_is_current() {
        return Vec::new();
    }
    let differing = case.declared.keys().into_iter().filter(|(key, value)| differs(case.config, key, value));
    let findings = differing.filter_map(|(key, _)| {
        let by = match changed_by(case, key) {
            Change::Hand(owner) => Some(Writer::from(owner)),
            Change::Nobody => None,
            Change::Controller(_) | Change::Applier(_) | Change::Unknown => return None,
        };
        let consumers = case.consumers.of_key(&case.config.id, key);
        Some(Finding::ValueDiffers { key: key.clone(), by, consumers })
    });
    findings.collect()
}

/// Whether the live value is another than the declared one; an empty value is a placeholder for whoever fills it in.
pub(super) fn differs(config: &Config, key: &KeyName, declared: &Option<Fingerprint>) -> bool {
    let (Some(live), Some(declared)) = (config.values.get(key), declared) else {
        return false;
    };
    live.fingerprint != *declared && !declared.is_of_nothing()
}

/// Who made a live value differ from the declared one.
pub(super) enum Change<'a> {
    Hand(&'a ManagerEntry),
    Nobody,
    /// A controller is at work.
    Controller(&'a ManagerEntry),
    /// The applier itself owns it: an admission webhook changed what it sent.
    Applier(&'a ManagerEntry),
    /// The object shows no owner of any key.
    Unknown,
}

pub(super) fn changed_by<'a>(case: &Case<'a>, key: &KeyName) -> Change<'a> {
    let owners: Vec<_> = case.owners().iter().filter(|entry| entry.keys.contains(key)).collect();
    if owners.is_empty() {
        let owners_known = case.owners().iter().any(|entry| !entry.keys.is_empty());
        return if owners_known { Change::Nobody } else { Change::Unknown };
    }
    // The applier owns for ever what it sent in `stringData`, also when a hand has changed it since.
    let others = owners.iter().filter(|owner| !case.declared.is_by(owner, case.managers));
    let lowest = others
        .map(|owner| (case.declared.standing(owner, case.managers), *owner))
        .max_by_key(|(standing, owner)| (*standing, owner.time, &owner.manager));
    match (lowest, owners.first()) {
        (Some((Standing::Hand, owner)), _) => Change::Hand(owner),
        (Some((Standing::Somebody, owner)), _) => Change::Controller(owner),
        (Some((Standing::Leaver, owner)), _) => Change::Applier(owner),
        (None, Some(owner)) => Change::Applier(owner),
        (None, None) => Change::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use crate::model::builders::{ConfigBuilder, secret};
    use crate::model::managed_fields::Operation::{Apply, Update};
    use rstest::rstest;

    fn changed() -> ConfigBuilder {
        secret("s").value("A", "1").value("K", "live").declares(&[("A", "1"), ("K", "declared")])
    }

    #[rstest]
    #[case::by_hand(changed().owned("kubectl-patch", Update, &["K"]), &["ValueDiffers K (kubectl-patch)"])]
    #[case::by_a_webhook_at_replace(changed().owned("kubectl-replace", Update, &["A", "K"]), &[])]
    #[case::by_hand_after_server_side_apply(
        changed().owned("kubectl", Apply, &["A", "K"]).owned("kubectl-edit", Update, &["K"]),
        &["ValueDiffers K (kubectl-edit)"])]
    #[case::by_nobody(changed().owned("kubectl-client-side-apply", Update, &["A"]), &["ValueDiffers K"])]
    #[case::by_a_webhook(changed().owned("kubectl-client-side-apply", Update, &["A", "K"]), &[])]
    #[case::by_a_webhook_at_server_side_apply(changed().owned("kubectl", Apply, &["A", "K"]), &[])]
    #[case::by_a_controller(changed().owned("injector", Update, &["K"]), &[])]
    #[case::by_a_controller_and_a_hand(
        changed().owned("kubectl-edit", Update, &["K"]).owned("injector", Update, &["K"]), &[])]
    #[case::another_applier_since_then(
        changed().owned("kubectl-patch", Update, &["K"]).owned("argocd-controller", Apply, &["A"]), &[])]
    #[case::a_placeholder(
        secret("s").value("K", "live").declares(&[("K", "")]).owned("kubectl-patch", Update, &["K"]), &[])]
    #[case::owners_of_no_key_at_all(changed().owned("kubectl-client-side-apply", Update, &[]), &[])]
    #[case::of_a_release_by_hand(
        secret("s").value("K", "live").released(&[("K", "declared")]).owned("kubectl-edit", Update, &["K"]),
        &["ValueDiffers K (kubectl-edit)"])]
    #[case::of_a_release_by_hand_after_server_side_apply(
        secret("s").value("K", "live").released(&[("K", "declared")]).owned("helm", Apply, &["A", "K"])
            .owned("kubectl-edit", Update, &["K"]),
        &["ValueDiffers K (kubectl-edit)"])]
    #[case::of_a_release_by_a_webhook(
        secret("s").value("K", "live").released(&[("K", "declared")]).owned("helm", Update, &["K"]), &[])]
    #[case::of_a_release_and_an_applier(
        secret("s").value("K", "live").released(&[("K", "declared")]).owned("kubectl", Apply, &["A"])
            .owned("kubectl-edit", Update, &["K"]),
        &[])]
    #[case::hidden_owners(changed(), &[])]
    fn a_value_that_a_hand_changed_differs(#[case] config: ConfigBuilder, #[case] expected: &[&str]) {
        assert_eq!(found(config), expected);
    }
}
