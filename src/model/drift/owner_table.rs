//! The owner table: what the owners of a live key say about it, if it is not declared.

use crate::model::declared::Declared;
use crate::model::managed_fields::ManagerEntry;
use crate::model::managers::{Managers, Standing};
use crate::model::names::KeyName;

/// The table's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row<'a> {
    /// An apply that doesn't prune left it.
    Leaver(&'a ManagerEntry),
    /// Nobody owns it, while other keys have owners: server-side apply with `stringData` leaves these.
    Nobody,
    /// Somebody's single command.
    Hand(&'a ManagerEntry),
    /// It belongs to someone.
    Somebody(&'a ManagerEntry),
    /// The object shows no owner of any key.
    Unknown,
}

/// The row of one key: of several owners the lowest one counts, and in one row who wrote last.
pub(super) fn row<'a>(
    entries: &'a [ManagerEntry],
    key: &KeyName,
    declared: &Declared<'_>,
    managers: &Managers,
) -> Row<'a> {
    let owners = entries.iter().filter(|entry| entry.keys.contains(key));
    let lowest = owners
        .map(|owner| (declared.standing(owner, managers), owner))
        .max_by_key(|(standing, owner)| (*standing, owner.time, &owner.manager));
    match lowest {
        Some((Standing::Leaver, owner)) => Row::Leaver(owner),
        Some((Standing::Hand, owner)) => Row::Hand(owner),
        Some((Standing::Somebody, owner)) => Row::Somebody(owner),
        None if entries.iter().any(|entry| !entry.keys.is_empty()) => Row::Nobody,
        None => Row::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{ConfigBuilder, secret};
    use crate::model::config::Config;
    use crate::model::managed_fields::Operation::{Apply, Update};
    use rstest::rstest;

    fn applied() -> ConfigBuilder {
        secret("s").value("K", "1").owned("kubectl-client-side-apply", Update, &["K", "OTHER"])
    }

    fn row_name(config: &Config) -> String {
        let owners = config.managed_fields.as_deref().unwrap_or_default();
        let managers = Managers::default();
        match row(owners, &"K".into(), &Declared::of(config, &managers), &managers) {
            Row::Leaver(owner) => format!("left by {}", owner.manager),
            Row::Hand(owner) => format!("by hand with {}", owner.manager),
            Row::Somebody(owner) => format!("of {}", owner.manager),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    #[rstest]
    #[case::by_apply_alone(applied(), "left by kubectl-client-side-apply")]
    #[case::then_a_hand(applied().owned("kubectl-edit", Update, &["K"]), "by hand with kubectl-edit")]
    #[case::then_a_controller(
        applied().owned("kubectl-edit", Update, &["K"]).owned("injector", Update, &["K"]), "of injector")]
    #[case::then_an_apply(applied().owned("kubectl", Apply, &["K"]), "of kubectl")]
    #[case::a_controller_at_another_key(applied().owned("injector", Update, &["X"]), "left by kubectl-client-side-apply")]
    #[case::nobody(secret("s").value("K", "1").owned("kubectl", Apply, &["OTHER"]), "nobody")]
    #[case::owners_of_no_key_at_all(secret("s").value("K", "1").owned("kubectl-create", Update, &[]), "unknown")]
    #[case::by_helm(secret("s").value("K", "1").released(&[]).owned("helm", Update, &["K"]), "left by helm")]
    #[case::by_helm_in_terraform(
        secret("s").value("K", "1").released(&[]).owned("terraform-provider-helm_v2.17.0_x5", Update, &["K"]),
        "left by terraform-provider-helm_v2.17.0_x5")]
    #[case::by_helm_server_side(secret("s").value("K", "1").released(&[]).owned("helm", Apply, &["K"]), "of helm")]
    #[case::by_helm_without_its_release(secret("s").value("K", "1").owned("helm", Update, &["K"]), "of helm")]
    #[case::by_helm_then_a_hand(
        secret("s").value("K", "1").released(&[]).owned("helm", Update, &["K"]).owned("kubectl-edit", Update, &["K"]),
        "by hand with kubectl-edit")]
    #[case::hidden_owners(secret("s").value("K", "1"), "unknown")]
    fn of_several_owners_the_lowest_row_counts(#[case] config: ConfigBuilder, #[case] expected: &str) {
        assert_eq!(row_name(&config.build()), expected);
    }

    #[test]
    fn of_several_owners_in_one_row_the_last_to_write_counts() {
        let config = secret("s")
            .owned_at("kubectl-create", Update, &["K"], "2026-11-30T12:00:01Z")
            .owned_at("kubectl-client-side-apply", Update, &["K"], "2026-11-30T12:00:00Z")
            .build();
        assert_eq!(row_name(&config), "left by kubectl-create");
    }
}
