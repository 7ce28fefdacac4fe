//! `UndeclaredKey`: a key was added by hand, and no manifest declares it.

use super::owner_table::{Row, row};
use super::{Case, Finding};

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let undeclared = case.undeclared().filter_map(|key| match row(case.owners(), key, &case.declared, case.managers) {
        Row::Hand(owner) => {
            let consumers = case.consumers.of_key(&case.config.id, key);
            Some(Finding::UndeclaredKey { key: key.clone(), by: owner.into(), consumers })
        }
        Row::Leaver(_) | Row::Nobody | Row::Somebody(_) | Row::Unknown => None,
    });
    undeclared.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use crate::model::builders::secret;
    use crate::model::managed_fields::Operation::{Apply, Update};

    #[test]
    fn what_a_hand_added_is_undeclared() {
        let config = secret("s").value("K", "1").declares(&[]).owned("kubectl-edit", Update, &["K"]);
        assert_eq!(found(config), ["UndeclaredKey K (kubectl-edit)"]);
    }

    #[test]
    fn what_a_controller_added_belongs_to_it() {
        let config = secret("s").value("K", "1").value("L", "1").declares(&[]);
        let config = config.owned("injector", Update, &["K"]).owned("external-secrets", Apply, &["L"]);
        assert_eq!(found(config), [""; 0]);
    }
}
