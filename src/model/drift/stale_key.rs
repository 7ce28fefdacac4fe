//! `StaleKey`: a key is live that no manifest declares any more.

use super::owner_table::{Row, row};
use super::{Case, Finding, StaleCause};

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let stale = case.undeclared().filter_map(|key| {
        let cause = match row(case.owners(), key, &case.declared, case.managers) {
            Row::Leaver(owner) => StaleCause::LeftByApply(owner.into()),
            Row::Nobody => StaleCause::Unowned,
            Row::Hand(_) | Row::Somebody(_) | Row::Unknown => return None,
        };
        let consumers = case.consumers.of_key(&case.config.id, key);
        Some(Finding::StaleKey { key: key.clone(), cause, consumers })
    });
    stale.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use crate::model::builders::{ConfigBuilder, config_map, secret};
    use crate::model::managed_fields::Operation::{Apply, Update};
    use rstest::rstest;

    #[rstest]
    #[case::client_side_apply(
        secret("s").value("K", "1").declares(&[]).owned("kubectl-client-side-apply", Update, &["K"]),
        &["StaleKey K (kubectl-client-side-apply)"])]
    #[case::created_and_then_applied(
        secret("s").value("K", "1").declares(&[]).owned("kubectl-create", Update, &["K"]),
        &["StaleKey K (kubectl-create)"])]
    #[case::created_and_then_applied_server_side(
        secret("s").value("A", "1").value("K", "1").owned("kubectl", Apply, &["A"]).owned("kubectl-create", Update, &["K"]),
        &["StaleKey K (kubectl-create)"])]
    #[case::binary(
        config_map("c").binary("K", "1").declares(&[]).owned("kubectl-create", Update, &["K"]),
        &["StaleKey K (kubectl-create)"])]
    #[case::server_side_string_data(
        secret("s").value("A", "1").value("K", "1").owned("kubectl", Apply, &["A"]), &["StaleKey K"])]
    #[case::declared(
        secret("s").value("K", "1").declares(&[("K", "1")]).owned("kubectl-client-side-apply", Update, &["K"]), &[])]
    fn what_an_apply_left_is_stale(#[case] config: ConfigBuilder, #[case] expected: &[&str]) {
        assert_eq!(found(config), expected);
    }
}
