//! Who takes part in reloading, as far as the operator's flags say.

use std::collections::BTreeSet;

use crate::api::auto_reload::AutoReload;
use crate::api::vocabulary::Vocabulary;
use crate::model::counting::Counting;
use crate::model::names::{ConfigKind, WorkloadKind};
use crate::model::watched::Watched;
use crate::model::workload::{Owned, Workload};

/// The cluster's own namespace: nothing is opted in there but by its own annotation.
const CLUSTERS_OWN: &str = "kube-system";

/// What the flags say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Participation {
    /// Whose annotations count.
    pub vocabulary: Vocabulary,
    /// What counts for a workload of which nothing is said.
    pub unsaid: AutoReload,
    /// Kinds of config that are not looked at.
    pub ignored_configs: BTreeSet<ConfigKind>,
    /// Kinds of workload that are never rolled.
    pub ignored_workloads: BTreeSet<WorkloadKind>,
}

impl Participation {
    /// What counts for a workload.
    pub fn counting(&self, workload: &Workload, before: Option<&Counting>) -> Counting {
        if self.ignored_workloads.contains(&workload.id.kind) {
            return Counting::default();
        }
        let counting = workload.opt_in.counting(self.default_of(workload), before);
        self.ignored_configs.iter().fold(counting, |counting, kind| counting.without(*kind))
    }

    /// What counts for a workload of which nothing is said: for one that some operator made, that one knows better.
    fn default_of(&self, workload: &Workload) -> AutoReload {
        let left_alone = workload.id.namespace.as_str() == CLUSTERS_OWN || workload.owned != Owned::Not;
        if left_alone { AutoReload::Off } else { self.unsaid }
    }

    /// Whether a kind is not watched.
    pub fn ignores(&self, kind: Watched) -> bool {
        matches!(kind, Watched::Config(kind) if self.ignored_configs.contains(&kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::opt_in::{Annotations, OptIn};
    use crate::model::builders::{ConfigBuilder, WorkloadBuilder, at, config_map, deployment, keyring, policy, secret};
    use crate::model::decide::Decision;
    use crate::model::index::{Event, Index, Object};
    use crate::model::names::{ResourceVersion, WorkloadId};
    use rstest::rstest;

    fn everybody() -> Participation {
        Participation { unsaid: AutoReload::Everything, ..Participation::default() }
    }

    fn in_namespace(namespace: &str) -> Workload {
        let mut workload = deployment("w").build();
        workload.opt_in.auto_reload = None;
        workload.id.namespace = namespace.into();
        workload
    }

    fn owned() -> Workload {
        Workload { owned: Owned::ByController("Database/d".to_owned()), ..in_namespace("ns") }
    }

    fn saying(auto_reload: AutoReload, mut workload: Workload) -> Workload {
        workload.opt_in.auto_reload = Some(auto_reload);
        workload
    }

    #[rstest]
    #[case::any(in_namespace("ns"), AutoReload::Everything)]
    #[case::one_that_says_false(saying(AutoReload::Off, in_namespace("ns")), AutoReload::Off)]
    #[case::one_that_says_at_start(saying(AutoReload::AtStart, in_namespace("ns")), AutoReload::AtStart)]
    #[case::the_clusters_own(in_namespace("kube-system"), AutoReload::Off)]
    #[case::one_that_a_controller_owns(owned(), AutoReload::Off)]
    #[case::such_a_one_that_says_true(saying(AutoReload::Everything, owned()), AutoReload::Everything)]
    fn every_workload_takes_part_unless_it_says_false(#[case] workload: Workload, #[case] expected: AutoReload) {
        assert_eq!(everybody().counting(&workload, None), Counting::of(expected));
    }

    #[test]
    fn a_kind_of_workload_that_is_ignored_is_off_whatever_it_says() {
        let participation = Participation { ignored_workloads: [WorkloadKind::Deployment].into(), ..everybody() };
        assert!(participation.counting(&saying(AutoReload::Everything, in_namespace("ns")), None).is_off());
    }

    #[test]
    fn a_kind_of_config_that_is_ignored_does_not_count_even_if_it_is_named() {
        let participation = Participation { ignored_configs: [ConfigKind::Secret].into(), ..Participation::default() };
        let mut workload = saying(AutoReload::Everything, in_namespace("ns"));
        workload.opt_in.reload_on = vec!["secret/a".parse().unwrap(), "configmap/a".parse().unwrap()];
        let expected = Counting {
            config_maps: AutoReload::Everything,
            reload_on: vec!["configmap/a".parse().unwrap()],
            ..Counting::default()
        };
        assert_eq!(participation.counting(&workload, None), expected);
        assert!(participation.ignores(Watched::Config(ConfigKind::Secret)));
    }

    fn with_stakater() -> Participation {
        Participation { vocabulary: Vocabulary::WithStakater, ..Participation::default() }
    }

    /// An index that has seen every kind, and holds these.
    fn index(participation: Participation, workload: Workload, configs: Vec<ConfigBuilder>) -> Index {
        let mut index = Index::new(keyring().into(), policy(), "restamp-system").with_participation(participation);
        for kind in Watched::all() {
            index.apply(Event::ListBegins(kind), at(0));
        }
        for config in configs {
            let config = config.build();
            index.apply(Event::Listed(Watched::Config(config.id.kind), Object::Config(config)), at(0));
        }
        let kind = Watched::Workload(WorkloadKind::Deployment);
        index.apply(Event::Listed(kind, Object::Workload(workload)), at(0));
        for kind in Watched::all().filter(|kind| !index.is_synced(*kind)).collect::<Vec<_>>() {
            index.apply(Event::ListEnds(kind), at(0));
        }
        index
    }

    fn id() -> WorkloadId {
        deployment("w").build().id
    }

    fn annotated(workload: WorkloadBuilder, all: &[(&str, &str)]) -> Workload {
        let own = all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let annotations = Annotations::with_stakater(Some(&own), None).map(Box::new);
        Workload { opt_in: OptIn::read(Some(&own), None), annotations, ..workload.build() }
    }

    fn change(index: &mut Index, config: ConfigBuilder) -> BTreeSet<WorkloadId> {
        let config = config.at_version(9).build();
        index.apply(Event::Applied(Watched::Config(config.id.kind), Object::Config(config)), at(100)).workloads
    }

    #[rstest]
    #[case::auto(&[("reloader.stakater.com/auto", "true")], true)]
    #[case::search(&[("reloader.stakater.com/search", "true")], false)]
    #[case::named(&[("secret.reloader.stakater.com/reload", "s.*")], true)]
    fn reloaders_annotations_roll_a_workload_where_they_count(#[case] all: &[(&str, &str)], #[case] rolls: bool) {
        let workload = || annotated(deployment("w").env_from("Secret/s1"), all);
        let configs = || vec![secret("s1").value("A", "1")];
        let mut heard = index(with_stakater(), workload(), configs());
        change(&mut heard, secret("s1").value("A", "2"));
        let expected = if rolls { Decision::Stamp } else { Decision::Nothing };
        assert_eq!(heard.decide(&id(), at(200)), Some(expected));
        assert_eq!(index(Participation::default(), workload(), configs()).decide(&id(), at(200)), None);
    }

    #[test]
    fn a_config_that_no_container_names_rolls_a_workload_that_names_it() {
        let all = [("secret.reloader.stakater.com/reload", "s.*")];
        let mut index = index(with_stakater(), annotated(deployment("w"), &all), vec![secret("s1").value("A", "1")]);
        assert_eq!(change(&mut index, secret("other").value("A", "2")), BTreeSet::new());
        assert_eq!(change(&mut index, secret("s1").value("A", "2")), [id()].into());
        assert_eq!(index.decide(&id(), at(200)), Some(Decision::Stamp));
    }

    #[test]
    fn a_workload_that_names_no_more_is_woken_no_more() {
        let all = [("secret.reloader.stakater.com/reload", "s.*")];
        let mut index = index(with_stakater(), annotated(deployment("w"), &all), vec![secret("s1").value("A", "1")]);
        let now = Workload { version: Some(ResourceVersion(5)), ..annotated(deployment("w"), &[]) };
        index.apply(Event::Applied(Watched::Workload(WorkloadKind::Deployment), Object::Workload(now)), at(50));
        assert_eq!(change(&mut index, secret("s1").value("A", "2")), BTreeSet::new());
    }

    #[test]
    fn a_config_of_a_kind_that_is_ignored_is_not_missed() {
        let participation = Participation { ignored_configs: [ConfigKind::Secret].into(), ..Participation::default() };
        let workload = deployment("w").env_from("Secret/s").env_from("ConfigMap/c").build();
        let mut index = index(participation, workload, vec![config_map("c").value("A", "1")]);
        change(&mut index, config_map("c").value("A", "2"));
        assert_eq!(index.decide(&id(), at(200)), Some(Decision::Stamp));
    }
}
