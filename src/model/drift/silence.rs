//! Why nothing is claimed about a key: when in doubt, nothing is, and `explain` says why.

use std::fmt;

use super::Case;
use super::owner_table::{Row, row};
use super::value_differs::{Change, changed_by, differs};
use crate::api::annotations::{EXPECTED_KEYS, IGNORE_FINDINGS};
use crate::model::declared::Declared;
use crate::model::managed_fields::ManagerEntry;
use crate::model::names::{KeyName, Manager};

/// Why nothing is claimed about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Silence {
    /// It is live as it is declared.
    AsDeclared,
    /// It is live and declared; with which value is not known.
    Declared,
    /// Nothing says what is declared.
    NoBaseline,
    /// It is declared empty: whoever fills it in, or takes it away, may.
    Placeholder,
    /// An annotation of the config expects it.
    Expected,
    /// An annotation of the config wants to hear nothing of what was found.
    Ignored,
    /// This manager writes it, or applies it and prunes it by itself.
    BelongsTo(Manager),
    /// The applier sent another value, and an admission webhook changed it.
    ChangedOnTheWay(Manager),
    /// This one applies keys too, so what the baseline says may be a leftover.
    AnotherApplier(Manager),
    /// The object doesn't show who owns which key.
    OwnersHidden,
}

impl Silence {
    /// The reason in one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::AsDeclared => "AsDeclared",
            Self::Declared => "Declared",
            Self::NoBaseline => "NoBaseline",
            Self::Placeholder => "Placeholder",
            Self::Expected => "Expected",
            Self::Ignored => "Ignored",
            Self::BelongsTo(_) => "BelongsToSomebody",
            Self::ChangedOnTheWay(_) => "ChangedOnTheWay",
            Self::AnotherApplier(_) => "AnotherApplier",
            Self::OwnersHidden => "OwnersHidden",
        }
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AsDeclared => f.write_str("as declared"),
            Self::Declared => f.write_str("declared; with which value is not known"),
            Self::NoBaseline => f.write_str("nothing says what is declared"),
            Self::Placeholder => f.write_str("declared empty, for somebody to fill in or take away"),
            Self::Expected => write!(f, "expected by annotation {EXPECTED_KEYS}"),
            Self::Ignored => write!(f, "ignored by annotation {IGNORE_FINDINGS}"),
            Self::BelongsTo(manager) => write!(f, "belongs to {manager}, which looks after it"),
            Self::ChangedOnTheWay(manager) => {
                write!(f, "{manager} sent another value, and it was changed on its way in")
            }
            Self::AnotherApplier(manager) => {
                write!(f, "{manager} applies keys too, so what is declared may be a leftover")
            }
            Self::OwnersHidden => f.write_str("it is not known who wrote it, since nothing shows the owners of keys"),
        }
    }
}

impl Case<'_> {
    /// Why there is no finding about this key.
    pub(super) fn silence(&self, key: &KeyName) -> Silence {
        let live = self.config.values.contains_key(key);
        match &self.declared {
            Declared::Nothing => Silence::NoBaseline,
            declared if !declared.has(key) => self.silence_of_undeclared(key),
            Declared::LastApplied(keys) | Declared::HelmRelease(keys) if live => match keys.get(key).copied() {
                value if differs(self.config, key, &value) => self.silence_of_differing(key),
                Some(value) if value.is_of_nothing() && !self.is_empty(key) => Silence::Placeholder,
                _ => Silence::AsDeclared,
            },
            Declared::LastApplied(keys) | Declared::HelmRelease(keys)
                if keys.get(key).is_some_and(|value| value.is_of_nothing()) =>
            {
                Silence::Placeholder
            }
            _ if live => Silence::Declared,
            _ => self.silence_of_doubtful_declaration(),
        }
    }

    fn is_empty(&self, key: &KeyName) -> bool {
        self.config.values.get(key).is_some_and(|live| live.fingerprint.is_of_nothing())
    }

    fn silence_of_undeclared(&self, key: &KeyName) -> Silence {
        if self.undeclared().all(|undeclared| undeclared != key) {
            return Silence::Expected;
        }
        match row(self.owners(), key, &self.declared, self.managers) {
            Row::Somebody(owner) => belongs_to(owner),
            // Of the other rows, all but the last are findings.
            Row::Leaver(_) | Row::Hand(_) | Row::Nobody | Row::Unknown => Silence::OwnersHidden,
        }
    }

    fn silence_of_differing(&self, key: &KeyName) -> Silence {
        if !self.declaration_is_current() {
            return self.silence_of_doubtful_declaration();
        }
        match changed_by(self, key) {
            Change::Controller(owner) => belongs_to(owner),
            Change::Applier(owner) => Silence::ChangedOnTheWay(owner.manager.clone()),
            // Of these, all but the last are findings.
            Change::Hand(_) | Change::Nobody | Change::Unknown => Silence::OwnersHidden,
        }
    }

    fn silence_of_doubtful_declaration(&self) -> Silence {
        match self.another_applier() {
            Some(applier) => Silence::AnotherApplier(applier.manager.clone()),
            None => Silence::OwnersHidden,
        }
    }
}

fn belongs_to(owner: &ManagerEntry) -> Silence {
    Silence::BelongsTo(owner.manager.clone())
}

#[cfg(test)]
mod tests {
    use super::super::{Claim, claims_of};
    use super::*;
    use crate::model::builders::{ConfigBuilder, secret};
    use crate::model::consumers::Consumers;
    use crate::model::managed_fields::Operation::{Apply, Update};
    use crate::model::managers::Managers;
    use rstest::rstest;

    fn live() -> ConfigBuilder {
        secret("s").value("K", "live")
    }

    fn applied(config: ConfigBuilder) -> ConfigBuilder {
        config.owned("kubectl-client-side-apply", Update, &["A"])
    }

    /// A table of what is said about `K`.
    #[rstest]
    #[case::as_declared(applied(live().declares(&[("K", "live")])), Silence::AsDeclared)]
    #[case::declared_without_a_value(live().owned("kubectl", Apply, &["K"]), Silence::Declared)]
    #[case::no_baseline(live().owned("kubectl-create", Update, &["K"]), Silence::NoBaseline)]
    #[case::a_placeholder_that_was_filled(applied(live().declares(&[("K", "")])), Silence::Placeholder)]
    #[case::a_placeholder_that_went(applied(secret("s").declares(&[("K", "")])), Silence::Placeholder)]
    #[case::empty_as_declared(applied(secret("s").value("K", "").declares(&[("K", "")])), Silence::AsDeclared)]
    #[case::expected(
        applied(live().declares(&[]).annotated(EXPECTED_KEYS, "K*")), Silence::Expected)]
    #[case::a_controllers_own(
        live().declares(&[]).owned("injector", Update, &["K"]), Silence::BelongsTo("injector".into()))]
    #[case::a_controllers_value(
        live().declares(&[("K", "1")]).owned("injector", Update, &["K"]), Silence::BelongsTo("injector".into()))]
    #[case::a_webhooks_value(
        live().declares(&[("K", "1")]).owned("kubectl-client-side-apply", Update, &["K"]),
        Silence::ChangedOnTheWay("kubectl-client-side-apply".into()))]
    #[case::a_webhooks_value_at_server_side_apply(
        live().declares(&[("K", "1")]).owned("kubectl", Apply, &["K"]), Silence::ChangedOnTheWay("kubectl".into()))]
    #[case::another_applier_since_then(
        live().declares(&[("K", "1")]).owned("argocd-controller", Apply, &["A"]),
        Silence::AnotherApplier("argocd-controller".into()))]
    #[case::gone_with_another_applier(
        secret("s").declares(&[("K", "1")]).owned("argocd-controller", Apply, &["A"]),
        Silence::AnotherApplier("argocd-controller".into()))]
    #[case::hidden_owners_of_a_value(live().declares(&[("K", "1")]), Silence::OwnersHidden)]
    #[case::hidden_owners_of_a_key(live().declares(&[]), Silence::OwnersHidden)]
    #[case::hidden_owners_of_a_key_that_is_gone(secret("s").declares(&[("K", "1")]), Silence::OwnersHidden)]
    fn where_nothing_is_claimed_a_reason_is_given(#[case] config: ConfigBuilder, #[case] expected: Silence) {
        let claims = claims_of(&config.build(), &Managers::default(), &Consumers::default());
        assert_eq!(claims.get("K"), Some(&Claim::Silence(expected)));
    }

    #[rstest]
    #[case::a_controller_owns_it(live().controlled_by("ExternalSecret/e"))]
    #[case::ignored(live().annotated("restamp.dev/ignore", "drift"))]
    fn of_a_config_that_is_not_looked_at_nothing_is_said(#[case] config: ConfigBuilder) {
        assert!(claims_of(&config.build(), &Managers::default(), &Consumers::default()).is_empty());
    }

    #[test]
    fn a_finding_stands_for_its_key() {
        let config =
            applied(live().value("OLD", "1").declares(&[("K", "live")])).owned("kubectl-edit", Update, &["OLD"]);
        let claims = claims_of(&config.build(), &Managers::default(), &Consumers::default());
        let said: Vec<_> =
            claims.iter().map(|(key, claim)| (key.as_str(), matches!(claim, Claim::Finding(_)))).collect();
        assert_eq!(said, [("K", false), ("OLD", true)]);
    }
}
