//! No value of any config is seen anywhere.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::kind::{DEPLOYMENT, DRIFT_REPORT};
use crate::support::manifests::{config_map, deployment, secret};
use crate::support::operator::{free_address, get};
use crate::support::turn;

/// Where a value could show: everything that restamp writes, and what its stamp passes through.
const WRITTEN: &str = "driftreports,events.events.k8s.io,leases,deployments,replicasets,pods,controllerrevisions";

#[tokio::test]
async fn no_value_is_in_any_report_event_log_line_metric_or_stamp() {
    let turn = turn().await;
    let ns = turn.namespace("secrecy").await;
    let debug = free_address();
    let flags = [("--log", "trace"), ("--change-cause", ""), ("--debug-bind", &debug.to_string())];
    let operator = turn.operator(&flags).await;
    let marker = format!("marker{:08x}{:08x}", getrandom::u32().unwrap(), getrandom::u32().unwrap());
    let value = |number: u8| format!("{number}-{marker}-{number}");

    // In clear in the last-applied annotation, which an `apply` of a stringData leaves.
    let declared = secret("s", &[("CHANGED", &value(1)), ("REMOVED", &value(2)), ("EDITED", &value(3))]);
    // In an annotation that does not parse: an error must not quote it.
    let mut broken = secret("broken", &[("K", &value(4))]);
    broken["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": format!("{{\"stringData\": {{\"K\": {:?}", value(4))});
    let workload = deployment("w").env_from_secret("s").env_from_secret("broken").env_from_config_map("c");
    ns.kubectl_reading(&broken.to_string(), &["create", "--filename=-"]);
    ns.apply(&[declared, config_map("c", &[("K", &value(5))]), workload.into()]);
    ns.adopted(DEPLOYMENT, "w").await;

    // A stale key, a value that a hand changed, and a rollout for it all.
    ns.apply(&[secret("s", &[("CHANGED", &value(6)), ("EDITED", &value(3))]), config_map("c", &[("K", &value(7))])]);
    let edit = json!({"stringData": {"EDITED": value(8)}}).to_string();
    ns.kubectl(&["patch", "secret", "s", "--type=merge", "--patch", &edit]);
    ns.kubectl(&[
        "patch",
        "secret",
        "broken",
        "--type=merge",
        "--patch",
        &json!({"stringData": {"K": value(9)}}).to_string(),
    ]);
    ns.reloaded(DEPLOYMENT, "w", "").await;
    let says_all = |report: &Value| {
        let types: Vec<&Value> =
            report["status"]["findings"].as_array().into_iter().flatten().map(|f| &f["type"]).collect();
        types.contains(&&json!("StaleKey")) && types.contains(&&json!("ValueDiffers"))
    };
    ns.until(DRIFT_REPORT, "secret-s", "to name what drifted", says_all).await;
    ns.operator_has_caught_up().await;

    let metrics = operator.get("/metrics").unwrap().1;
    let written =
        turn.cluster().kubectl(&["get", WRITTEN, "--all-namespaces", "--output=json", "--show-managed-fields"]);
    let key = turn.cluster().kubectl(&["get", "secret", "restamp-hash-key", "-nrestamp-system", "--output=json"]);
    let (_, index) = get(debug, "/debug/index").unwrap();
    let log = operator.log();
    assert!(
        log.contains("TRACE")
            && written.contains("Reloaded")
            && metrics.contains("restamp_")
            && index.contains("EDITED"),
        "nothing is shown by this"
    );
    for (place, text) in [
        ("an object", written),
        ("a metric", metrics),
        ("the dumped index", index),
        ("the hash key", key),
        ("the log", log),
    ] {
        for spelling in spellings(&marker) {
            let line = text.lines().find(|line| line.contains(&spelling));
            assert_eq!(line, None, "{place} shows a value");
        }
    }
}

/// The marker itself, and what is always in the base64 of a text that holds it.
fn spellings(marker: &str) -> Vec<String> {
    let encoded = (0..3).map(|shift| {
        let text = STANDARD.encode(format!("{}{marker}", "-".repeat(shift)));
        // What stands around the marker changes the characters at both ends.
        text.get(4..text.len() - 4).unwrap().to_owned()
    });
    encoded.chain([marker.to_owned()]).collect()
}

#[test]
fn the_spellings_are_found_in_any_base64() {
    let spellings = spellings("marker0123456789abcdef");
    for before in ["", "x", "xy", "xyz"] {
        let text = STANDARD.encode(format!("{before}marker0123456789abcdef{before}"));
        assert!(spellings.iter().any(|spelling| text.contains(spelling)), "{text}");
    }
}
