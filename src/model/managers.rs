//! Who is who among field managers. The lists are data; what follows from them is the owner table of [`crate::model::drift`].
//!
//! kubectl names itself after the command; a browser's dashboards send the browser's name, since the API server takes
//! the first word of the user agent where a client gives no manager.

use std::collections::BTreeSet;

use crate::model::managed_fields::{ManagerEntry, Operation};
use crate::model::names::Manager;

/// Under which name restamp writes.
pub const FIELD_MANAGER: &str = "restamp";

/// Managers that write manifests: what they own by Apply is declared.
const APPLIERS: [&str; 6] = ["kubectl", "argocd-controller", "kustomize-controller", "helm-controller", "helm", "flux"];

/// Managers whose Update leaves a key behind when it goes from the manifest. `kubectl` is what old versions called
/// every command.
const LEAVERS: [&str; 7] = [
    "kubectl-client-side-apply",
    "kubectl",
    "kubectl-create",
    "kubectl-replace",
    "before-first-apply",
    "argocd-controller",
    "argocd-application-controller",
];

/// Managers that stand for a person's single command.
const HANDS: [&str; 15] = [
    "kubectl-edit",
    "kubectl-patch",
    "kubectl-set",
    "kubectl-label",
    "kubectl-annotate",
    "rancher",
    // The consoles of OpenShift and others, in a browser.
    "Mozilla",
    // Lens and its forks.
    "node-fetch",
    "Lens",
    "lens",
    "k9s",
    "headlamp",
    "dashboard",
    "dashboard-api",
    "kubernetes-dashboard",
];

/// What an owner is, in the order of the owner table: of several owners of one key the last counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// Applies manifests, and doesn't prune what it wrote like this.
    Leaver,
    /// A person's single command.
    Hand,
    /// Anybody else: a controller at work, or whoever applies server-side and prunes by itself.
    Somebody,
}

/// The field managers that this installation knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Managers {
    more_appliers: BTreeSet<Manager>,
}

impl Managers {
    /// The known ones, and these appliers too: pipelines may give `kubectl apply` a field manager of their own.
    pub fn with_appliers(more: impl IntoIterator<Item = Manager>) -> Self {
        Self { more_appliers: more.into_iter().collect() }
    }

    /// What the owner of a key is.
    pub fn standing(&self, owner: &ManagerEntry) -> Standing {
        let manager = owner.manager.as_str();
        match owner.operation {
            Operation::Apply => Standing::Somebody,
            Operation::Update if HANDS.contains(&manager) => Standing::Hand,
            Operation::Update if LEAVERS.contains(&manager) || self.more_appliers.contains(manager) => Standing::Leaver,
            Operation::Update => Standing::Somebody,
        }
    }

    /// Whether what this entry owns is declared by a manifest.
    pub fn declares(&self, owner: &ManagerEntry) -> bool {
        let manager = owner.manager.as_str();
        let applier = APPLIERS.contains(&manager) || self.more_appliers.contains(manager);
        applier && owner.operation == Operation::Apply
    }
}

/// Whether this is kubectl's own server-side apply, which keeps the last-applied annotation up to date.
pub(crate) fn is_kubectl_apply(owner: &ManagerEntry) -> bool {
    owner.manager.as_str() == "kubectl" && owner.operation == Operation::Apply
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn entry(manager: &str, operation: Operation) -> ManagerEntry {
        ManagerEntry { manager: manager.into(), operation, time: None, keys: BTreeSet::new() }
    }

    #[rstest]
    #[case("kubectl-client-side-apply", Operation::Update, Standing::Leaver)]
    #[case("kubectl-create", Operation::Update, Standing::Leaver)]
    #[case("kubectl", Operation::Update, Standing::Leaver)]
    #[case("argocd-controller", Operation::Update, Standing::Leaver)]
    #[case("kubectl-edit", Operation::Update, Standing::Hand)]
    #[case("Mozilla", Operation::Update, Standing::Hand)]
    #[case("kubectl", Operation::Apply, Standing::Somebody)]
    #[case("kubectl-edit", Operation::Apply, Standing::Somebody)]
    #[case("external-secrets", Operation::Update, Standing::Somebody)]
    #[case("helm", Operation::Update, Standing::Somebody)]
    #[case("our-pipeline", Operation::Update, Standing::Leaver)]
    fn an_owner_stands_where_the_table_has_it(
        #[case] manager: &str,
        #[case] operation: Operation,
        #[case] standing: Standing,
    ) {
        let managers = Managers::with_appliers(["our-pipeline".into()]);
        assert_eq!(managers.standing(&entry(manager, operation)), standing);
    }

    #[rstest]
    #[case("kubectl", Operation::Apply, true)]
    #[case("argocd-controller", Operation::Apply, true)]
    #[case("kustomize-controller", Operation::Apply, true)]
    #[case("helm", Operation::Apply, true)]
    #[case("our-pipeline", Operation::Apply, true)]
    #[case("helm", Operation::Update, false)]
    #[case("external-secrets", Operation::Apply, false)]
    #[case("kubectl-last-applied", Operation::Apply, false)]
    fn only_an_applier_declares_and_only_by_apply(
        #[case] manager: &str,
        #[case] operation: Operation,
        #[case] declares: bool,
    ) {
        let managers = Managers::with_appliers(["our-pipeline".into()]);
        assert_eq!(managers.declares(&entry(manager, operation)), declares);
    }

    #[test]
    fn a_known_name_is_in_one_list_of_those_who_update() {
        assert!(LEAVERS.iter().all(|leaver| !HANDS.contains(leaver)));
    }
}
