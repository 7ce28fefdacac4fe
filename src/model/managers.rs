//! Who is who among field managers. The lists are data; what follows from them is the owner table of [`crate::model::drift`].
//!
//! kubectl names itself after the command; a browser's dashboards send the browser's name, since the API server takes
//! the first word of the user agent where a client gives no manager. Where the names come from: kubectl's commands set
//! theirs (`FieldManagerClientSideApply` and the like in its sources), Argo CD has `ArgoCDSSAManager`, Helm and Flux's Helm
//! controller `kube.ManagedFieldsManager`, External Secrets `fieldOwnerTemplate`, sealed-secrets is called after its binary
//! (bitnami/sealed-secrets issue 1682), and cert-manager and Terraform send a user agent (`HashiCorp/1.0 Terraform/…` in its Kubernetes provider, whose typed
//! resources patch what a plan found different). mittwald's replicator gives none, so that client-go sends its program's name;
//! it updates whole objects, and notes in an annotation which keys it wrote, to remove them (`ReplicateDataFrom` in its
//! sources). emberstack's Reflector replaces `data` as a whole (`ConfigMapMirror`), and its client for .NET sends no user
//! agent: the API server calls that `unknown`, as it does everybody who sends none, so that nothing can be said of that name.

use std::collections::BTreeSet;

use crate::model::fields::owners::FieldOwner;
use crate::model::managed_fields::{ManagerEntry, Operation};
use crate::model::names::Manager;

/// Under which name restamp writes.
pub const FIELD_MANAGER: &str = "restamp";
/// kubectl's own name: what it is called where it doesn't say which command it is.
const KUBECTL: &str = "kubectl";

/// What a manager is that everybody knows, by how it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its name; one that ends in `*` stands for all that begin like this.
    pub name: &'static str,
    /// How it writes.
    pub operation: Operation,
    /// What follows from that.
    pub role: Role,
    /// Who it is, and what it does with keys that are no longer wanted.
    pub who: &'static str,
}

/// What follows from who wrote a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Writes manifests, and prunes by itself what they no longer declare: what it owns is declared.
    Declares,
    /// Writes manifests, and leaves behind what they no longer declare.
    Leaves,
    /// Stands for a person's single command.
    Hand,
    /// Keeps its keys by itself, and says nothing of others: no finding, and no baseline.
    Keeps,
}

impl Role {
    /// For the reference.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Declares => "declares its keys, and prunes them",
            Self::Leaves => "leaves keys behind: `StaleKey`",
            Self::Hand => "a person's command: `UndeclaredKey`",
            Self::Keeps => "keeps its own keys: no finding, no baseline",
        }
    }
}

const fn known(name: &'static str, operation: Operation, role: Role, who: &'static str) -> Known {
    Known { name, operation, role, who }
}

/// Everybody who is known. Whoever is not here keeps its keys.
pub const KNOWN: [Known; 38] = {
    use Operation::{Apply, Update};
    use Role::{Declares, Hand, Keeps, Leaves};
    [
        known(KUBECTL, Apply, Declares, "`kubectl apply --server-side`"),
        known(
            "kubectl-client-side-apply",
            Update,
            Leaves,
            "`kubectl apply`, which never prunes what came by `stringData`",
        ),
        known(KUBECTL, Update, Leaves, "every command of kubectl before 1.18"),
        known("kubectl-create", Update, Leaves, "`kubectl create`: no later apply knows of its keys"),
        known("kubectl-replace", Update, Leaves, "`kubectl replace`: no later apply knows of its keys"),
        known("before-first-apply", Update, Leaves, "what was there before the first server-side apply"),
        known("argocd-controller", Apply, Declares, "Argo CD with `ServerSideApply=true`"),
        known("argocd-controller", Update, Leaves, "Argo CD, which applies as kubectl does"),
        known("argocd-application-controller", Update, Leaves, "the same, in older versions"),
        known("kustomize-controller", Apply, Declares, "Flux, which takes over what kubectl left"),
        known("flux", Apply, Declares, "Flux, `flux install` and `bootstrap`"),
        known("helm", Apply, Declares, "Helm 4"),
        known("helm", Update, Keeps, "Helm 3, which prunes by its last manifest; what is stale is seen by its release"),
        known("helm-controller", Apply, Declares, "Flux's Helm controller, with Helm 4"),
        known("helm-controller", Update, Keeps, "the same with Helm 3"),
        known(
            "Terraform",
            Apply,
            Keeps,
            "Terraform's `kubernetes_manifest` and `kubernetes_config_map_v1_data`, which owns some keys of a config of others",
        ),
        known(
            "HashiCorp",
            Update,
            Keeps,
            "Terraform's typed resources: a plan compares all keys, and removes what is not wanted",
        ),
        known(
            "externalsecrets.external-secrets.io/*",
            Update,
            Keeps,
            "External Secrets, also with `creationPolicy: Merge`",
        ),
        known("controller", Update, Keeps, "sealed-secrets: replaces all keys, or patches some"),
        known(
            "cert-manager-certificates-issuing",
            Apply,
            Keeps,
            "cert-manager, which applies `tls.crt`, `tls.key` and `ca.crt`",
        ),
        known(
            "kubernetes-replicator",
            Update,
            Keeps,
            "mittwald's replicator, which removes the keys that it wrote and that their source lost",
        ),
        known("replicator", Update, Keeps, "the same, as older images name it"),
        known("kubectl-edit", Update, Hand, "`kubectl edit`"),
        known("kubectl-patch", Update, Hand, "`kubectl patch`"),
        known("kubectl-set", Update, Hand, "`kubectl set`"),
        known("kubectl-label", Update, Hand, "`kubectl label`"),
        known("kubectl-annotate", Update, Hand, "`kubectl annotate`"),
        known("kubectl-rollout", Update, Hand, "`kubectl rollout pause` and `restart`"),
        known("rancher", Update, Hand, "Rancher"),
        known("Mozilla", Update, Hand, "a browser: the consoles of OpenShift and others"),
        known("node-fetch", Update, Hand, "Lens and its forks"),
        known("Lens", Update, Hand, "Lens"),
        known("lens", Update, Hand, "Lens"),
        known("k9s", Update, Hand, "k9s"),
        known("headlamp", Update, Hand, "Headlamp"),
        known("dashboard", Update, Hand, "the Kubernetes dashboard"),
        known("dashboard-api", Update, Hand, "the same"),
        known("kubernetes-dashboard", Update, Hand, "the same"),
    ]
};

/// What is known of who writes under this name like this.
fn role_of(manager: &str, operation: Operation) -> Role {
    let is = |known: &&Known| {
        let same = match known.name.strip_suffix('*') {
            Some(beginning) => manager.starts_with(beginning),
            None => manager == known.name,
        };
        same && known.operation == operation
    };
    KNOWN.iter().find(is).map_or(Role::Keeps, |known| known.role)
}

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
    more_hands: BTreeSet<Manager>,
}

impl Managers {
    /// The known ones, and these appliers too: pipelines may give `kubectl apply` a field manager of their own.
    pub fn with_appliers(more: impl IntoIterator<Item = Manager>) -> Self {
        Self { more_appliers: more.into_iter().collect(), ..Self::default() }
    }

    /// These hands too.
    pub fn and_hands(self, more: impl IntoIterator<Item = Manager>) -> Self {
        Self { more_hands: more.into_iter().collect(), ..self }
    }

    /// What follows from who writes like this. What this installation says goes before what everybody knows.
    fn role(&self, manager: &str, operation: Operation) -> Role {
        match operation {
            Operation::Apply if self.more_appliers.contains(manager) => Role::Declares,
            Operation::Update if self.more_appliers.contains(manager) => Role::Leaves,
            Operation::Update if self.more_hands.contains(manager) => Role::Hand,
            Operation::Apply | Operation::Update => role_of(manager, operation),
        }
    }

    /// What the owner of a key is.
    pub fn standing(&self, owner: &ManagerEntry) -> Standing {
        self.standing_of(owner.manager.as_str(), owner.operation)
    }

    fn standing_of(&self, manager: &str, operation: Operation) -> Standing {
        match self.role(manager, operation) {
            Role::Leaves => Standing::Leaver,
            Role::Hand => Standing::Hand,
            Role::Declares | Role::Keeps => Standing::Somebody,
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
        self.role(manager, operation) == Role::Declares
    }
}

/// What a hand can take out of a workload with its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakesOut {
    /// What it likes: it edits, patches, or replaces all.
    Anything,
    /// Variables and their values.
    Variables,
    /// Nothing that a manifest declares.
    Nothing,
}

impl TakesOut {
    /// What the hand of this name can.
    pub fn by(hand: &Manager) -> Self {
        match hand.as_str() {
            "kubectl-set" => Self::Variables,
            "kubectl-label" | "kubectl-annotate" | "kubectl-rollout" => Self::Nothing,
            _ => Self::Anything,
        }
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
    use crate::model::keys::KeySet;
    use rstest::rstest;

    fn entry(manager: &str, operation: Operation) -> ManagerEntry {
        ManagerEntry { manager: manager.into(), operation, time: None, keys: KeySet::default() }
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
    #[case("our-console", Operation::Update, Standing::Hand)]
    #[case("our-console", Operation::Apply, Standing::Somebody)]
    #[case("externalsecrets.external-secrets.io/db", Operation::Update, Standing::Somebody)]
    #[case("cert-manager-certificates-issuing", Operation::Apply, Standing::Somebody)]
    #[case("controller", Operation::Update, Standing::Somebody)]
    #[case("HashiCorp", Operation::Update, Standing::Somebody)]
    #[case("Terraform", Operation::Apply, Standing::Somebody)]
    #[case("kubernetes-replicator", Operation::Update, Standing::Somebody)]
    #[case("unknown", Operation::Update, Standing::Somebody)]
    fn an_owner_stands_where_the_table_has_it(
        #[case] manager: &str,
        #[case] operation: Operation,
        #[case] standing: Standing,
    ) {
        let managers = Managers::with_appliers(["our-pipeline".into()]).and_hands(["our-console".into()]);
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
    #[case("Terraform", Operation::Apply, false)]
    #[case("cert-manager-certificates-issuing", Operation::Apply, false)]
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
    fn a_known_name_has_one_role_and_no_update_declares() {
        let names: BTreeSet<(&str, Operation)> = KNOWN.iter().map(|known| (known.name, known.operation)).collect();
        assert_eq!(names.len(), KNOWN.len());
        let fits = |known: &Known| match known.role {
            Role::Declares => known.operation == Operation::Apply,
            Role::Leaves | Role::Hand => known.operation == Operation::Update,
            Role::Keeps => true,
        };
        assert!(KNOWN.iter().all(fits));
    }
}
