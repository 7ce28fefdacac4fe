//! The ConfigMap in which the operator publishes what it watches, for everybody who asks why nothing happens. It holds
//! no secret: every authenticated user may read it.

use std::collections::BTreeMap;

/// Its name, in the operator's own namespace.
pub const CONFIG_MAP: &str = "restamp-scope";
/// The namespace that the operator is usually installed in.
pub const USUAL_NAMESPACE: &str = "restamp-system";

/// What the leader says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The operator's version.
    pub version: String,
    /// The namespaces that it watches; empty for all.
    pub namespaces: Vec<String>,
    /// The namespaces that it leaves out.
    pub excluded: Vec<String>,
    /// The labels of the namespaces that it watches, if it selects by labels.
    pub namespace_selector: Option<String>,
    /// Whether it writes stamps.
    pub mode: Mode,
}

/// Whether stamps are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// They are.
    #[default]
    Live,
    /// They are decided, counted and told, and not written.
    DryRun,
}

impl Mode {
    fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::DryRun => "dry-run",
        }
    }
}

/// A ConfigMap that is none of ours, or of a version that says something else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ConfigMap {CONFIG_MAP} has no usable entry {entry}")]
pub struct Unreadable {
    entry: &'static str,
}

impl Published {
    /// As the ConfigMap's data.
    pub fn to_data(&self) -> BTreeMap<String, String> {
        let entries = [
            ("version", self.version.clone()),
            ("namespaces", self.namespaces.join(",")),
            ("excludedNamespaces", self.excluded.join(",")),
            ("namespaceSelector", self.namespace_selector.clone().unwrap_or_default()),
            ("mode", self.mode.as_str().to_owned()),
        ];
        entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// From the ConfigMap's data.
    pub fn from_data(data: &BTreeMap<String, String>) -> Result<Self, Unreadable> {
        let entry = |entry| data.get(entry).map(String::as_str).ok_or(Unreadable { entry });
        let list = |entry: &str| entry.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect();
        let selector = data.get("namespaceSelector").filter(|selector| !selector.is_empty());
        Ok(Self {
            version: entry("version")?.to_owned(),
            namespaces: list(entry("namespaces")?),
            excluded: list(entry("excludedNamespaces")?),
            namespace_selector: selector.cloned(),
            mode: if entry("mode")? == Mode::DryRun.as_str() { Mode::DryRun } else { Mode::Live },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_it_writes() {
        let published = Published {
            version: "0.1.0".to_owned(),
            namespaces: vec!["a".to_owned(), "b".to_owned()],
            excluded: Vec::new(),
            namespace_selector: Some("team=x".to_owned()),
            mode: Mode::DryRun,
        };
        assert_eq!(Published::from_data(&published.to_data()), Ok(published));
    }

    #[test]
    fn another_config_map_is_not_taken_for_it() {
        assert_eq!(Published::from_data(&BTreeMap::new()), Err(Unreadable { entry: "version" }));
    }
}
