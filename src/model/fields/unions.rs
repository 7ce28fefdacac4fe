//! Fields of which an object holds one: who writes another one takes the declared one away.

use serde_json::{Map, Value};

use super::compare::is_empty;
use super::path::{Path, Step};

/// What a probe or a hook does: one of these.
const HANDLERS: [&str; 5] = ["exec", "grpc", "httpGet", "sleep", "tcpSocket"];

/// What an object holds one of.
enum Union {
    /// Where a variable's value comes from.
    Variable,
    /// What a variable refers to.
    Reference,
    /// Where a volume comes from. One without content is one too: `emptyDir: {}`.
    Volume,
    /// What a probe or a hook does.
    Handler,
}

impl Union {
    /// The one that this field may be of.
    fn around(path: &Path<'_>) -> Option<Self> {
        let mut upwards = path.upwards().skip(1);
        match (upwards.next()?, upwards.next()) {
            (Step::Member(_), Some(Step::Field("env"))) => Some(Self::Variable),
            (Step::Member(_), Some(Step::Field("volumes"))) => Some(Self::Volume),
            (Step::Field("valueFrom"), Some(Step::Member(_))) => Some(Self::Reference),
            (Step::Field("livenessProbe" | "readinessProbe" | "startupProbe"), Some(Step::Member(_)))
            | (Step::Field("postStart" | "preStop"), Some(Step::Field("lifecycle"))) => Some(Self::Handler),
            _ => None,
        }
    }

    fn has(&self, field: &str) -> bool {
        match self {
            Self::Variable => matches!(field, "value" | "valueFrom"),
            Self::Volume => field != "name",
            Self::Reference => true,
            Self::Handler => HANDLERS.contains(&field),
        }
    }

    fn counts(&self, declared: &Value) -> bool {
        match self {
            Self::Volume => !declared.is_null(),
            Self::Variable | Self::Reference | Self::Handler => !is_empty(declared),
        }
    }
}

/// What the live object holds instead of this declared field; nothing if it is not such a field.
pub(super) fn instead<'a>(path: &Path<'_>, declared: &Value, live: &'a Map<String, Value>) -> Vec<&'a String> {
    let name = path.name().unwrap_or_default();
    let union = Union::around(path).filter(|union| union.has(name) && union.counts(declared));
    union.map_or_else(Vec::new, |union| live.keys().filter(|other| *other != name && union.has(other)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::a_value(("env", "value"), json!("1"), json!({"name": "A", "valueFrom": {}}), &["valueFrom"])]
    #[case::an_empty_value(("env", "value"), json!(""), json!({"name": "A", "valueFrom": {}}), &[])]
    #[case::a_value_that_is_gone(("env", "value"), json!("1"), json!({"name": "A"}), &[])]
    #[case::an_empty_volume(("volumes", "emptyDir"), json!({}), json!({"name": "v", "hostPath": {}}), &["hostPath"])]
    #[case::no_volume(("volumes", "emptyDir"), json!(null), json!({"name": "v", "hostPath": {}}), &[])]
    #[case::a_port(("ports", "name"), json!("a"), json!({"containerPort": 80, "hostPort": 80}), &[])]
    fn a_member_holds_one_of_several(
        #[case] (list, name): (&str, &str),
        #[case] declared: Value,
        #[case] live: Value,
        #[case] expected: &[&str],
    ) {
        let list = Path::root(list);
        assert_eq!(instead(&list.member("m").field(name), &declared, live.as_object().unwrap()), expected);
    }

    #[test]
    fn a_probe_does_one_thing_at_times_of_its_own() {
        let containers = Path::root("containers");
        let app = containers.member("app");
        let probe = app.field("livenessProbe");
        let live = json!({"tcpSocket": {"port": 80}, "periodSeconds": 1});
        assert_eq!(instead(&probe.field("httpGet"), &json!({"port": 80}), live.as_object().unwrap()), ["tcpSocket"]);
        assert_eq!(instead(&probe.field("timeoutSeconds"), &json!(1), live.as_object().unwrap()), [""; 0]);
    }
}
