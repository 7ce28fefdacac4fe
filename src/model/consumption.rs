//! What the containers of a pod template read of configs, key by key: the ways to consume.
//!
//! A volume that no container mounts, an image pull secret and a ServiceAccount token are not consumed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::core::v1::{
    ConfigMapProjection, Container, KeyToPath, PodSpec, SecretProjection, Volume, VolumeMount,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::config::{Configs, Field};
use crate::model::counting::Counting;
use crate::model::names::{ConfigId, ConfigKind, KeyName, Name};
use crate::model::provider_class::{CLASS_ATTRIBUTE, DRIVER};

/// The ways to consume a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Via {
    /// One variable: `env[].valueFrom`.
    Env,
    /// A variable for each key: `envFrom[]`.
    EnvFrom,
    /// A file in a volume that is mounted as a whole.
    Volume,
    /// A file that is mounted by `subPath` or `subPathExpr`.
    SubPath,
    /// A file in a volume of the Secrets Store CSI driver, which swaps it where rotation is on.
    Csi,
}

impl Via {
    /// When a container sees a change of what it consumes like this.
    pub fn refresh(self) -> Refresh {
        match self {
            Self::Volume | Self::Csi => Refresh::InPlace,
            Self::Env | Self::EnvFrom | Self::SubPath => Refresh::AtStart,
        }
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Env => "env",
            Self::EnvFrom => "envFrom",
            Self::Volume => "volume",
            Self::SubPath => "subPath",
            Self::Csi => "csi",
        })
    }
}

/// When a container sees a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Refresh {
    /// Only when it starts again.
    AtStart,
    /// While it runs: the kubelet, or the CSI driver, swaps the files of a mounted volume.
    InPlace,
}

impl fmt::Display for Refresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::AtStart => "AtStart",
            Self::InPlace => "InPlace",
        })
    }
}

/// What kind of container it is: this decides when, and how often, it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Runs once, before the others.
    Init,
    /// Runs as long as the pod: a container, or an init container with `restartPolicy: Always`.
    Lasting,
}

/// All that one pod template reads of configs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Consumption {
    containers: Vec<ContainerReads>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ContainerReads {
    name: Name,
    role: Role,
    env: Vec<Variable>,
    mounts: Vec<Mount>,
}

/// One step in the making of a container's environment, in the order in which the kubelet takes them.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Variable {
    /// All keys of a config.
    AllOf { config: ConfigId, prefix: String, optional: bool },
    /// One key of a config.
    Key { name: String, config: ConfigId, key: KeyName, optional: bool },
    /// Anything else. The value may refer to variables that were set before, by `$(NAME)`.
    Other { name: String, refers_to: BTreeSet<String> },
}

/// A volume with keys in it, mounted into a container.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    path: String,
    part: Part,
    sources: Vec<Source>,
}

/// Which part of the volume is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Whole,
    Path(String),
    /// `subPathExpr`: known only in the container.
    Unknown,
    /// Of a class whose files are named by the CSI driver: all of it, seen like this.
    OfClass(Via),
}

/// A config in a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    config: ConfigId,
    optional: bool,
    /// The keys and their paths, where `items` picks them; otherwise each key is a file of its name.
    items: Option<Vec<(KeyName, String)>>,
}

/// One container's reading of one key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Read {
    /// The config.
    pub config: ConfigId,
    /// Its key.
    pub key: KeyName,
    /// The container.
    pub container: Name,
    /// When the container runs.
    pub role: Role,
    /// How it reads.
    pub via: Via,
    /// As what it sees the key: the variable's name, or the file's path.
    pub seen_as: String,
}

/// A reference that a container needs to start, and that leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// The config that it names.
    pub config: ConfigId,
    /// The key, where the config exists and only the key does not.
    pub key: Option<KeyName>,
}

impl Consumption {
    /// What the containers of this pod read.
    pub fn of(namespace: &Name, pod: &PodSpec) -> Self {
        let volumes: BTreeMap<&str, Vec<Source>> = pod
            .volumes
            .iter()
            .flatten()
            .map(|volume| (volume.name.as_str(), sources(namespace, volume)))
            .filter(|(_, sources)| !sources.is_empty())
            .collect();
        let read = |container: &Container, role| ContainerReads {
            name: container.name.as_str().into(),
            role,
            env: environment(namespace, container),
            mounts: container.volume_mounts.iter().flatten().filter_map(|mount| mounted(&volumes, mount)).collect(),
        };
        let init = pod.init_containers.iter().flatten().map(|container| read(container, role_of(container)));
        let lasting = pod.containers.iter().map(|container| read(container, Role::Lasting));
        Self { containers: init.chain(lasting).collect() }
    }

    /// The configs that some container names.
    pub fn configs(&self) -> BTreeSet<&ConfigId> {
        self.references().map(|reference| reference.config).collect()
    }

    /// The configs that some container names in a way that counts.
    pub fn configs_that_count(&self, counting: &Counting) -> BTreeSet<&ConfigId> {
        let references =
            self.references().filter(|reference| counting.counts(reference.config, reference.via.refresh()));
        references.map(|reference| reference.config).collect()
    }

    /// The containers that read this config in a way that counts: all of them, where its owner says that it counts
    /// whoever reads it.
    pub fn readers(&self, config: &ConfigId, counting: &Counting) -> BTreeSet<&Name> {
        if counting.names(config) {
            return self.containers.iter().map(|container| &container.name).collect();
        }
        let references =
            self.references().filter(|reference| counting.counts(reference.config, reference.via.refresh()));
        references.filter(|reference| reference.config == config).map(|reference| reference.container).collect()
    }

    /// Whether some container reads whatever keys this config has, in a way that counts.
    pub fn reads_all(&self, config: &ConfigId, counting: &Counting) -> bool {
        let references =
            self.references().filter(|reference| counting.counts(reference.config, reference.via.refresh()));
        references.filter(|reference| reference.config == config).any(|reference| reference.all)
    }

    /// The containers that name this config and start without it: they have marked each reference to it optional.
    pub fn starts_without(&self, config: &ConfigId) -> BTreeSet<&Name> {
        let named = |optional| {
            let references = self.references().filter(move |reference| reference.optional == optional);
            references.filter(|reference| reference.config == config).map(|reference| reference.container)
        };
        let needed: BTreeSet<&Name> = named(false).collect();
        named(true).filter(|container| !needed.contains(container)).collect()
    }

    /// Every reading of a key: of keys that exist, and of those that are named but don't. A variable that a later one
    /// replaces has no reader.
    pub fn reads(&self, configs: &Configs) -> BTreeSet<Read> {
        self.reads_with(configs, Replaced::LeftOut)
    }

    /// The same, and what later variables replace: what a rollout follows. Which of two configs wins depends on both,
    /// and whoever changes one of them expects a rollout.
    pub fn reads_and_replaced(&self, configs: &Configs) -> BTreeSet<Read> {
        self.reads_with(configs, Replaced::Counted)
    }

    fn reads_with(&self, configs: &Configs, replaced: Replaced) -> BTreeSet<Read> {
        let mut reads = BTreeSet::new();
        for container in &self.containers {
            container.read_environment(configs, replaced, &mut reads);
            for mount in &container.mounts {
                container.read_mount(mount, configs, &mut reads);
            }
        }
        reads
    }

    /// The references that keep a pod from starting.
    pub fn missing(&self, configs: &Configs) -> BTreeSet<Missing> {
        let required = self.references().filter(|reference| !reference.optional);
        required.flat_map(|reference| reference.missing(configs)).collect()
    }

    /// Every place where a container names a config.
    pub fn references(&self) -> impl Iterator<Item = Reference<'_>> {
        self.containers.iter().flat_map(|container| {
            let name = &container.name;
            let variables = container.env.iter().filter_map(|variable| variable.reference(name));
            variables.chain(container.mounts.iter().flat_map(|mount| mount.references(name)))
        })
    }
}

/// Whether a variable counts that a later one of its name replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replaced {
    Counted,
    LeftOut,
}

/// A config that a container names, and the keys that must be there.
#[derive(Debug, Clone)]
pub struct Reference<'a> {
    /// The container.
    pub container: &'a Name,
    /// The config.
    pub config: &'a ConfigId,
    /// How it would read.
    pub via: Via,
    /// Whether it is about whatever keys there are.
    pub all: bool,
    /// The keys that it names; none where it takes whatever is there.
    pub keys: Vec<&'a KeyName>,
    /// Whether the container starts without it.
    pub optional: bool,
    /// A variable can't come from `binaryData`.
    text_only: bool,
}

impl Reference<'_> {
    fn missing(&self, configs: &Configs) -> Vec<Missing> {
        let Some(values) = configs.values(self.config) else {
            if configs.is_unknown(self.config) {
                return Vec::new();
            }
            return vec![Missing { config: self.config.clone(), key: None }];
        };
        let absent = self.keys.iter().filter(|key| match values.get(**key) {
            Some(value) => self.text_only && value.field == Field::BinaryData,
            None => true,
        });
        absent.map(|key| Missing { config: self.config.clone(), key: Some((*key).clone()) }).collect()
    }
}

impl Variable {
    fn reference<'a>(&'a self, container: &'a Name) -> Option<Reference<'a>> {
        let (config, via, keys, optional) = match self {
            Self::AllOf { config, optional, .. } => (config, Via::EnvFrom, Vec::new(), *optional),
            Self::Key { config, key, optional, .. } => (config, Via::Env, vec![key], *optional),
            Self::Other { .. } => return None,
        };
        let all = keys.is_empty();
        Some(Reference { container, config, via, all, keys, optional, text_only: true })
    }
}

impl Source {
    /// The files that this source puts into its volume. A key that is named is there even while it does not exist.
    fn files(&self, configs: &Configs) -> Vec<(String, KeyName)> {
        if let Some(items) = &self.items {
            return items.iter().map(|(key, path)| (path.clone(), key.clone())).collect();
        }
        let keys = configs.values(&self.config).into_iter().flat_map(|values| values.keys());
        keys.map(|key| (key.to_string(), key.clone())).collect()
    }
}

impl ContainerReads {
    fn read(&self, config: &ConfigId, key: &KeyName, via: Via, seen_as: String) -> Read {
        Read { config: config.clone(), key: key.clone(), container: self.name.clone(), role: self.role, via, seen_as }
    }

    /// The effective environment: a later variable replaces an earlier one of its name, which then has no reader,
    /// unless a variable in between refers to it.
    fn read_environment(&self, configs: &Configs, counted: Replaced, reads: &mut BTreeSet<Read>) {
        let mut effective: BTreeMap<String, Read> = BTreeMap::new();
        let mut referred_to: BTreeSet<&str> = BTreeSet::new();
        let mut replaced: Vec<Read> = Vec::new();
        let mut set = |effective: &mut BTreeMap<String, Read>, referred_to: &BTreeSet<&str>, name: &str, read| {
            let before = match read {
                Some(read) => effective.insert(name.to_owned(), read),
                None => effective.remove(name),
            };
            replaced.extend(before.filter(|_| counted == Replaced::Counted || referred_to.contains(name)));
        };
        for variable in &self.env {
            match variable {
                Variable::AllOf { config, prefix, .. } => {
                    for key in text_keys(configs, config) {
                        let name = format!("{prefix}{key}");
                        let read = self.read(config, key, Via::EnvFrom, name.clone());
                        set(&mut effective, &referred_to, &name, Some(read));
                    }
                }
                Variable::Key { name, config, key, .. } => {
                    let read = self.read(config, key, Via::Env, name.clone());
                    if text_keys(configs, config).any(|live| live == key) {
                        set(&mut effective, &referred_to, name, Some(read));
                    } else {
                        // Not set, so it replaces nothing; but it is read once the key is there.
                        reads.insert(read);
                    }
                }
                Variable::Other { name, refers_to } => {
                    referred_to.extend(refers_to.iter().map(String::as_str));
                    set(&mut effective, &referred_to, name, None);
                }
            }
        }
        reads.extend(effective.into_values().chain(replaced));
    }

    fn read_mount(&self, mount: &Mount, configs: &Configs, reads: &mut BTreeSet<Read>) {
        // Of two files with one path, the later source's is there.
        let mut files: BTreeMap<String, (&ConfigId, KeyName)> = BTreeMap::new();
        for source in &mount.sources {
            files.extend(source.files(configs).into_iter().map(|(path, key)| (path, (&source.config, key))));
        }
        let root = mount.path.trim_end_matches('/');
        let mut found = false;
        for (path, (config, key)) in files {
            let Some((via, seen_as)) = mount.part.shows(root, &path) else {
                continue;
            };
            found = true;
            reads.insert(self.read(config, &key, via, seen_as));
        }
        if let (false, Part::Path(path)) = (found, &mount.part) {
            // The key that the path would name is read once it is there.
            for source in mount.sources.iter().filter(|source| source.items.is_none()) {
                reads.insert(self.read(&source.config, &path.as_str().into(), Via::SubPath, root.to_owned()));
            }
        }
    }
}

impl Mount {
    fn references<'a>(&'a self, container: &'a Name) -> impl Iterator<Item = Reference<'a>> {
        let via = match self.part {
            Part::Whole => Via::Volume,
            Part::Path(_) | Part::Unknown => Via::SubPath,
            Part::OfClass(via) => via,
        };
        self.sources.iter().map(move |source| Reference {
            container,
            config: &source.config,
            via,
            all: source.items.is_none() && !matches!(self.part, Part::Path(_)),
            keys: source.items.iter().flatten().map(|(key, _)| key).collect(),
            optional: source.optional,
            text_only: false,
        })
    }
}

impl Part {
    /// How, and where, a file of the volume is seen in the container.
    fn shows(&self, root: &str, path: &str) -> Option<(Via, String)> {
        match self {
            Self::Whole => Some((Via::Volume, format!("{root}/{path}"))),
            Self::Unknown => Some((Via::SubPath, format!("{root}/{path}"))),
            Self::OfClass(via) => Some((*via, root.to_owned())),
            Self::Path(part) if part == path => Some((Via::SubPath, root.to_owned())),
            Self::Path(part) => {
                let below = path.strip_prefix(part.as_str())?.strip_prefix('/')?;
                Some((Via::SubPath, format!("{root}/{below}")))
            }
        }
    }
}

fn text_keys<'a>(configs: &'a Configs, config: &ConfigId) -> impl Iterator<Item = &'a KeyName> {
    let values = configs.values(config).into_iter().flatten();
    values.filter(|(_, value)| value.field == Field::Data).map(|(key, _)| key)
}

fn role_of(init: &Container) -> Role {
    match init.restart_policy.as_deref() {
        Some("Always") => Role::Lasting,
        _ => Role::Init,
    }
}

fn environment(namespace: &Name, container: &Container) -> Vec<Variable> {
    let from = container.env_from.iter().flatten().filter_map(|source| {
        let (kind, name, optional) = match (&source.config_map_ref, &source.secret_ref) {
            (Some(from), _) => (ConfigKind::ConfigMap, &from.name, from.optional),
            (None, Some(from)) => (ConfigKind::Secret, &from.name, from.optional),
            (None, None) => return None,
        };
        let prefix = source.prefix.clone().unwrap_or_default();
        Some(Variable::AllOf { config: config(kind, namespace, name), prefix, optional: optional.unwrap_or(false) })
    });
    let single = container.env.iter().flatten().map(|variable| {
        let name = variable.name.clone();
        let from = variable.value_from.as_ref();
        let (kind, object, key, optional) = match from {
            Some(from) if from.config_map_key_ref.is_some() || from.secret_key_ref.is_some() => {
                match (&from.config_map_key_ref, &from.secret_key_ref) {
                    (Some(from), _) => (ConfigKind::ConfigMap, &from.name, &from.key, from.optional),
                    (None, Some(from)) => (ConfigKind::Secret, &from.name, &from.key, from.optional),
                    (None, None) => return Variable::Other { name, refers_to: BTreeSet::new() },
                }
            }
            _ => {
                let refers_to = references_in(variable.value.as_deref().unwrap_or_default());
                return Variable::Other { name, refers_to };
            }
        };
        Variable::Key {
            name,
            config: config(kind, namespace, object),
            key: key.as_str().into(),
            optional: optional.unwrap_or(false),
        }
    });
    from.chain(single).collect()
}

/// The names in `$(NAME)`; `$$(NAME)` is an escape.
/// <https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/>
fn references_in(value: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let unescaped = value.replace("$$", "");
    let mut rest = unescaped.as_str();
    while let Some((_, behind)) = rest.split_once("$(") {
        let Some((name, behind)) = behind.split_once(')') else {
            break;
        };
        names.insert(name.to_owned());
        rest = behind;
    }
    names
}

fn config(kind: ConfigKind, namespace: &Name, name: &str) -> ConfigId {
    ConfigId { kind, namespace: namespace.clone(), name: name.into() }
}

fn mounted(volumes: &BTreeMap<&str, Vec<Source>>, mount: &VolumeMount) -> Option<Mount> {
    let sources = volumes.get(mount.name.as_str())?.clone();
    let is_of_class = sources.iter().any(|source| source.config.kind == ConfigKind::SecretProviderClass);
    let part = match (&mount.sub_path, &mount.sub_path_expr) {
        (_, Some(expression)) if !expression.is_empty() && is_of_class => Part::OfClass(Via::SubPath),
        (Some(path), _) if !path.is_empty() && is_of_class => Part::OfClass(Via::SubPath),
        _ if is_of_class => Part::OfClass(Via::Csi),
        (_, Some(expression)) if !expression.is_empty() => Part::Unknown,
        (Some(path), _) if !path.is_empty() => Part::Path(path.trim_end_matches('/').to_owned()),
        _ => Part::Whole,
    };
    Some(Mount { path: mount.mount_path.clone(), part, sources })
}

fn sources(namespace: &Name, volume: &Volume) -> Vec<Source> {
    let source = |kind, name: &str, optional: Option<bool>, items: &Option<Vec<KeyToPath>>| Source {
        config: config(kind, namespace, name),
        optional: optional.unwrap_or(false),
        items: items.as_ref().filter(|items| !items.is_empty()).map(|items| picked(items)),
    };
    if let Some(volume) = &volume.config_map {
        return vec![source(ConfigKind::ConfigMap, &volume.name, volume.optional, &volume.items)];
    }
    if let Some(volume) = &volume.secret {
        let name = volume.secret_name.as_deref().unwrap_or_default();
        return vec![source(ConfigKind::Secret, name, volume.optional, &volume.items)];
    }
    if let Some(volume) = volume.csi.as_ref().filter(|volume| volume.driver == DRIVER) {
        let class = volume.volume_attributes.as_ref().and_then(|attributes| attributes.get(CLASS_ATTRIBUTE));
        let source = |class: &String| source(ConfigKind::SecretProviderClass, class, None, &None);
        return class.map(source).into_iter().collect();
    }
    let projections = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
    let projected = projections.filter_map(|projection| match (&projection.config_map, &projection.secret) {
        (Some(ConfigMapProjection { name, optional, items }), _) => {
            Some(source(ConfigKind::ConfigMap, name, *optional, items))
        }
        (None, Some(SecretProjection { name, optional, items })) => {
            Some(source(ConfigKind::Secret, name, *optional, items))
        }
        (None, None) => None,
    });
    projected.collect()
}

fn picked(items: &[KeyToPath]) -> Vec<(KeyName, String)> {
    items.iter().map(|item| (item.key.as_str().into(), item.path.clone())).collect()
}

#[cfg(test)]
mod tests;
