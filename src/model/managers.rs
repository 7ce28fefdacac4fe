//! Who is who among field managers. The lists are data; what follows from them is the owner table of [`crate::model::drift`].
//!
//! kubectl names itself after the command; a browser's dashboards send the browser's name, since the API server takes
//! the first word of the user agent where a client gives no manager.

use std::collections::BTreeSet;

use crate::model::fields::owners::FieldOwner;
use crate::model::managed_fields::{ManagerEntry, Operation};
use crate::model::names::Manager;

/// Under which name restamp writes.
pub const FIELD_MANAGER: &str = "restamp";
/// kubectl's own name: what it is called where it doesn't say which command it is.
const KUBECTL: &str = "kubectl";

/// Managers that write manifests: what they own by Apply is declared.
const APPLIERS: [&str; 6] = [KUBECTL, "argocd-controller", "kustomize-controller", "helm-controller", "helm", "flux"];

/// Managers whose Update leaves a key behind when it goes from the manifest. `kubectl` is what old versions called
/// every command.
const LEAVERS: [&str; 7] = [
    "kubectl-client-side-apply",
    KUBECTL,
    "kubectl-create",
    "kubectl-replace",
    "before-first-apply",
    "argocd-controller",
    "argocd-application-controller",
];

/// Managers that stand for a person's single command.
const HANDS: [&str; 16] = [
    "kubectl-edit",
    "kubectl-patch",
    "kubectl-set",
    "kubectl-label",
    "kubectl-annotate",
    // `rollout pause`, and `rollout restart`, whose annotation is nobody's business.
    "kubectl-rollout",
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

/// What Helm is called: its program's file name, and those of others that have it built in (Flux, k3s).
const HELM: [&str; 5] = ["helm", "helm3", "helm_v3", "Helm", "helm-controller"];
/// And with a version behind it, in Terraform.
const HELM_IN_TERRAFORM: &str = "terraform-provider-helm";

/// Whether this manager is Helm.
pub(crate) fn is_helm(manager: &Manager) -> bool {
    HELM.contains(&manager.as_str()) || manager.as_str().starts_with(HELM_IN_TERRAFORM)
}

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
        self.standing_of(owner.manager.as_str(), owner.operation)
    }

    fn standing_of(&self, manager: &str, operation: Operation) -> Standing {
        match operation {
            Operation::Apply => Standing::Somebody,
            Operation::Update if HANDS.contains(&manager) => Standing::Hand,
            Operation::Update if LEAVERS.contains(&manager) || self.more_appliers.contains(manager) => Standing::Leaver,
            Operation::Update => Standing::Somebody,
        }
    }

    /// The same where the manifest of a Helm release says what is declared: Helm merges three ways, as kubectl does, so that
    /// what it sent in `stringData` stays when it goes from the chart.
    pub fn standing_beside_helm(&self, owner: &ManagerEntry) -> Standing {
        match owner.operation {
            Operation::Update if is_helm(&owner.manager) => Standing::Leaver,
            Operation::Apply | Operation::Update => self.standing(owner),
        }
    }

    /// What the owner of a workload's field is. Who wrote the last-applied annotation applies manifests, whatever it is
    /// called; and kubectl under its plain name, without one, is `rollout undo` or `scale`.
    pub fn standing_on_workload(&self, owner: &FieldOwner) -> Standing {
        match owner.operation {
            Operation::Update if owner.wrote_manifest => Standing::Leaver,
            Operation::Update if owner.manager.as_str() == KUBECTL => Standing::Hand,
            Operation::Apply | Operation::Update => self.standing_of(owner.manager.as_str(), owner.operation),
        }
    }

    /// Whether what this entry owns is declared by a manifest.
    pub fn declares(&self, owner: &ManagerEntry) -> bool {
        self.is_applier(owner.manager.as_str(), owner.operation)
    }

    /// Whether the fields of a workload that this one owns are declared by a manifest.
    pub fn declares_fields(&self, owner: &FieldOwner) -> bool {
        self.is_applier(owner.manager.as_str(), owner.operation)
    }

    fn is_applier(&self, manager: &str, operation: Operation) -> bool {
        let applier = APPLIERS.contains(&manager) || self.more_appliers.contains(manager);
        applier && operation == Operation::Apply
    }
}

/// Whether this owner applied the very manifest that a workload is compared with, server-side.
pub(crate) fn applied_manifest(owner: &FieldOwner) -> bool {
    owner.operation == Operation::Apply && (owner.wrote_manifest || owner.manager.as_str() == KUBECTL)
}

/// Whether this is kubectl's own server-side apply, which keeps the last-applied annotation up to date.
pub(crate) fn is_kubectl_apply(owner: &ManagerEntry) -> bool {
    owner.manager.as_str() == KUBECTL && owner.operation == Operation::Apply
}

/// The same of a workload's owner.
pub(crate) fn is_kubectl_apply_of_fields(owner: &FieldOwner) -> bool {
    owner.manager.as_str() == KUBECTL && owner.operation == Operation::Apply
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::fields::owners::Through;
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

    #[rstest]
    #[case::undone_or_scaled("kubectl", Operation::Update, false, Standing::Hand)]
    #[case::applied_by_an_old_kubectl("kubectl", Operation::Update, true, Standing::Leaver)]
    #[case::applied_by_a_pipeline("ci", Operation::Update, true, Standing::Leaver)]
    #[case::a_controller("ci", Operation::Update, false, Standing::Somebody)]
    #[case::applied_server_side("kubectl", Operation::Apply, false, Standing::Somebody)]
    #[case::a_command("kubectl-set", Operation::Update, false, Standing::Hand)]
    fn who_wrote_the_annotation_of_a_workload_applies(
        #[case] manager: &str,
        #[case] operation: Operation,
        #[case] wrote_manifest: bool,
        #[case] standing: Standing,
    ) {
        let manager = manager.into();
        let owner = FieldOwner { manager, operation, through: Through::Object, time: None, wrote_manifest };
        assert_eq!(Managers::default().standing_on_workload(&owner), standing);
    }

    #[test]
    fn a_known_name_is_in_one_list_of_those_who_update() {
        assert!(LEAVERS.iter().all(|leaver| !HANDS.contains(leaver)));
    }
}
