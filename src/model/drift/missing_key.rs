//! `MissingKey`: a key is declared, and not live.

use super::{Case, Finding};

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    if !case.declaration_is_current() {
        return Vec::new();
    }
    let declared = case.declared.keys().into_iter();
    // An empty value is a placeholder for whoever fills it in, or takes it away.
    let filled = declared.filter(|(_, value)| !value.is_some_and(|value| value.is_of_nothing()));
    let missing = filled.filter(|(key, _)| !case.config.values.contains_key(*key)).map(|(key, _)| {
        let consumers = case.consumers.of_key(&case.config.id, key);
        Finding::MissingKey { key: key.clone(), consumers }
    });
    missing.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use crate::model::builders::{ConfigBuilder, secret};
    use crate::model::managed_fields::Operation::{Apply, Update};
    use rstest::rstest;

    fn declared() -> ConfigBuilder {
        secret("s").value("A", "1").declares(&[("A", "1"), ("K", "1")])
    }

    #[rstest]
    #[case::deleted(declared().owned("kubectl-client-side-apply", Update, &["A"]), &["MissingKey K"])]
    #[case::deleted_after_server_side_apply(declared().owned("kubectl", Apply, &["A", "K"]), &["MissingKey K"])]
    #[case::string_data_is_owned_for_ever(
        secret("s").value("A", "1").owned("kubectl", Apply, &["A", "K"]), &["MissingKey K"])]
    #[case::another_applier_since_then(declared().owned("kustomize-controller", Apply, &["A"]), &[])]
    #[case::a_controller_applies(declared().owned("external-secrets", Apply, &["A"]), &[])]
    #[case::a_placeholder(secret("s").declares(&[("K", "")]).owned("kubectl-client-side-apply", Update, &[]), &[])]
    #[case::hidden_owners(declared(), &[])]
    fn what_is_declared_and_not_live_is_missing(#[case] config: ConfigBuilder, #[case] expected: &[&str]) {
        assert_eq!(found(config), expected);
    }
}
