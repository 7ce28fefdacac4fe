//! How many configs there are in each state of drift, kept up to date by each that changes.

use std::collections::HashMap;

use crate::api::drift_report::InSync;
use crate::model::names::{ConfigId, Name};
use crate::operator::metrics::Metrics;

/// What is known of a config's drift: a report that is not there does not say which of these it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigState {
    /// It is as it is declared.
    InSync,
    /// It is not.
    Drifted,
    /// Nothing says what is declared, or who wrote what.
    NoBaseline,
    /// It is not looked at.
    OutOfScope,
}

impl ConfigState {
    /// For the metric.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InSync => "in-sync",
            Self::Drifted => "drifted",
            Self::NoBaseline => "no-baseline",
            Self::OutOfScope => "out-of-scope",
        }
    }
}

impl From<InSync> for ConfigState {
    fn from(in_sync: InSync) -> Self {
        match in_sync {
            InSync::AsDeclared => Self::InSync,
            InSync::Drifted => Self::Drifted,
            InSync::NoBaseline | InSync::OwnersHidden => Self::NoBaseline,
        }
    }
}

/// The states of all configs that were looked at.
#[derive(Debug, Default)]
pub struct Tally {
    state_of: HashMap<ConfigId, ConfigState>,
    many: HashMap<(Name, ConfigState), i64>,
}

impl Tally {
    /// A config is in this state now; in none if it is gone.
    pub fn note(&mut self, id: &ConfigId, state: Option<ConfigState>, metrics: &Metrics) {
        let before = match state {
            Some(state) => self.state_of.insert(id.clone(), state),
            None => self.state_of.remove(id),
        };
        if before == state {
            return;
        }
        for (state, change) in before.map(|state| (state, -1)).into_iter().chain(state.map(|state| (state, 1))) {
            let key = (id.namespace.clone(), state);
            let many = self.many.entry(key.clone()).or_default();
            *many += change;
            metrics.configs(&id.namespace, state, *many);
            if *many == 0 {
                self.many.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{config_map, secret};

    fn counted(metrics: &Metrics) -> Vec<String> {
        let text = metrics.render().unwrap();
        text.lines().filter(|line| line.starts_with("restamp_configs{")).map(str::to_owned).collect()
    }

    #[test]
    fn each_config_counts_once_in_the_state_that_it_is_in() {
        let metrics = Metrics::new().unwrap();
        let (mut tally, c, s) = (Tally::default(), config_map("c").build().id, secret("s").build().id);
        tally.note(&c, Some(ConfigState::InSync), &metrics);
        tally.note(&s, Some(ConfigState::InSync), &metrics);
        tally.note(&s, Some(ConfigState::Drifted), &metrics);
        tally.note(&s, Some(ConfigState::Drifted), &metrics);
        let drifted = r#"restamp_configs{namespace="ns",state="drifted"} 1"#;
        let in_sync = r#"restamp_configs{namespace="ns",state="in-sync"} 1"#;
        assert_eq!(counted(&metrics), [drifted, in_sync]);
        tally.note(&c, None, &metrics);
        assert_eq!(counted(&metrics), [drifted]);
        metrics.end();
        assert_eq!(counted(&metrics), [""; 0]);
    }
}
