//! The flags that say which part of the cluster is watched.

use std::collections::BTreeSet;

use crate::model::custom::{self, KindName};
use crate::model::names::{ConfigKind, Name};
use crate::model::scope::{Namespaces, Scope};
use crate::model::selector::LabelSelector;

/// Which part of the cluster is watched.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Scope")]
pub struct ScopeArgs {
    /// Watch this namespace only, by Roles in it alone; may be given more than once [default: all]
    #[arg(long, value_name = "NAME", value_parser = namespace)]
    namespace: Vec<Name>,
    /// Leave this namespace out; may be given more than once
    #[arg(long, value_name = "NAME", value_parser = namespace, conflicts_with = "namespace")]
    exclude_namespace: Vec<Name>,
    /// Watch the namespaces with these labels, such as team=x
    #[arg(long, value_name = "LABELS", conflicts_with = "namespace")]
    namespace_selector: Option<LabelSelector>,
    /// Look at the ConfigMaps and Secrets with these labels only
    #[arg(long, value_name = "LABELS")]
    config_selector: Option<LabelSelector>,
    /// Don't look at this kind of config: ConfigMap, Secret or SecretProviderClass; may be given more than once
    #[arg(long, value_name = "KIND")]
    ignore_config_kind: Vec<ConfigKind>,
    /// Roll this kind too, which has a pod template at spec.template; may be given more than once
    #[arg(long, value_name = "GROUP/VERSION/KIND")]
    workload_kind: Vec<KindName>,
}

impl From<ScopeArgs> for Scope {
    fn from(args: ScopeArgs) -> Self {
        let excluded: BTreeSet<Name> = args.exclude_namespace.into_iter().collect();
        let namespaces = match args.namespace_selector {
            _ if !args.namespace.is_empty() => Namespaces::Only(args.namespace.into_iter().collect()),
            Some(labels) => Namespaces::Labelled { labels, but: excluded },
            None => Namespaces::AllBut(excluded),
        };
        let ignored = args.ignore_config_kind.into_iter().collect();
        let kinds = custom::kinds(&args.workload_kind);
        Self { namespaces, configs: args.config_selector, ignored, kinds, unasked: BTreeSet::new() }
    }
}

/// The name of a namespace: a DNS label.
pub(super) fn namespace(text: &str) -> Result<Name, String> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_border = |c: Option<char>| c.is_some_and(|c| c != '-');
    let is_name = text.len() <= 63 && text.chars().all(is_inner);
    if is_name && is_border(text.chars().next()) && is_border(text.chars().next_back()) {
        Ok(text.into())
    } else {
        Err("it can't be a namespace's name; give the flag once for each".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;
    use rstest::rstest;

    #[derive(Debug, clap::Parser)]
    struct Cli {
        #[command(flatten)]
        scope: ScopeArgs,
    }

    fn scope(args: &str) -> Option<Scope> {
        let args = std::iter::once("restamp").chain(args.split_whitespace());
        Cli::try_parse_from(args).ok().map(|cli| cli.scope.into())
    }

    fn names(names: &[&str]) -> BTreeSet<Name> {
        names.iter().map(|name| Name::from(*name)).collect()
    }

    #[rstest]
    #[case("", Namespaces::AllBut(names(&[])))]
    #[case("--exclude-namespace a --exclude-namespace b", Namespaces::AllBut(names(&["a", "b"])))]
    #[case("--namespace a --namespace b", Namespaces::Only(names(&["a", "b"])))]
    #[case(
        "--namespace-selector team=x --exclude-namespace a",
        Namespaces::Labelled { labels: "team=x".parse().unwrap(), but: names(&["a"]) }
    )]
    fn flags_choose_namespaces(#[case] args: &str, #[case] namespaces: Namespaces) {
        assert_eq!(scope(args), Some(Scope { namespaces, ..Scope::default() }));
    }

    #[test]
    fn kinds_of_config_are_ignored_one_by_one() {
        let scope = scope("--ignore-config-kind Secret --ignore-config-kind SecretProviderClass").unwrap();
        assert_eq!(scope.ignored, [ConfigKind::Secret, ConfigKind::SecretProviderClass].into());
    }

    #[rstest]
    #[case("--namespace a,b")]
    #[case("--namespace -a")]
    #[case("--namespace a --exclude-namespace b")]
    #[case("--namespace a --namespace-selector team")]
    #[case("--namespace-selector team=x=y=")]
    #[case("--config-selector (")]
    #[case("--ignore-config-kind Pod")]
    #[case("--workload-kind Rollout")]
    fn what_makes_no_sense_is_refused(#[case] args: &str) {
        assert_eq!(scope(args), None);
    }
}
