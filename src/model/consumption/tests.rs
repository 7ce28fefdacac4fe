//! What the containers of a pod template read, a sentence for each way.

use super::*;
use crate::model::builders::{config_map, pod, secret};
use rstest::rstest;
use serde_json::{Value, json};

/// Container, key, way, and the name it is seen as: of every reading in this pod.
fn reads(spec: Value) -> Vec<String> {
    let configs = Configs::from_iter([
        config_map("c").value("A", "1").value("B", "2").binary("bin", "3").build(),
        secret("s").value("A", "4").value("T", "5").build(),
    ]);
    let reads = Consumption::of(&"ns".into(), &pod(spec)).reads(&configs);
    let line = |read: Read| {
        format!(
            "{} {}/{}[{}] {} {}",
            read.container, read.config.kind, read.config.name, read.key, read.via, read.seen_as
        )
    };
    reads.into_iter().map(line).collect()
}

#[test]
fn env_from_takes_every_text_key_with_its_prefix() {
    let spec = json!({"containers": [{"name": "app",
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "c"}}, {"secretRef": {"name": "absent", "optional": true}}]}]});
    assert_eq!(reads(spec), ["app ConfigMap/c[A] envFrom P_A", "app ConfigMap/c[B] envFrom P_B"]);
}

#[test]
fn a_key_that_is_shadowed_has_no_reader() {
    let spec = json!({"containers": [{"name": "app",
        "envFrom": [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}],
        "env": [{"name": "T", "value": "x"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "T"}}}]}]});
    assert_eq!(reads(spec), ["app Secret/s[A] envFrom A", "app Secret/s[T] env B"]);
}

#[test]
fn a_rollout_follows_what_is_shadowed_too() {
    let spec = json!({"containers": [{"name": "app",
        "envFrom": [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}], "env": [{"name": "T", "value": "x"}]}]});
    let configs = Configs::from_iter([
        config_map("c").value("A", "1").value("B", "2").build(),
        secret("s").value("A", "4").value("T", "5").build(),
    ]);
    let reads = Consumption::of(&"ns".into(), &pod(spec)).reads_and_replaced(&configs);
    let keys: Vec<_> = reads.iter().map(|read| format!("{}[{}]", read.config.local(), read.key)).collect();
    assert_eq!(keys, ["ConfigMap/c[A]", "ConfigMap/c[B]", "Secret/s[A]", "Secret/s[T]"]);
}

#[test]
fn a_key_that_is_shadowed_after_somebody_referred_to_it_is_read() {
    let spec = json!({"containers": [{"name": "app", "envFrom": [{"configMapRef": {"name": "c"}}],
        "env": [{"name": "X", "value": "$(A) $$(B)"}, {"name": "A", "value": "x"}, {"name": "B", "value": "x"}]}]});
    assert_eq!(reads(spec), ["app ConfigMap/c[A] envFrom A"]);
}

#[test]
fn an_optional_key_that_is_not_there_replaces_nothing_but_is_read() {
    let spec = json!({"containers": [{"name": "app", "envFrom": [{"configMapRef": {"name": "c"}}],
        "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "NO", "optional": true}}}]}]});
    let expected = ["app ConfigMap/c[A] envFrom A", "app ConfigMap/c[B] envFrom B", "app Secret/s[NO] env A"];
    assert_eq!(reads(spec), expected);
}

#[rstest]
#[case::whole(json!({"mountPath": "/etc/c/"}), &["app ConfigMap/c[A] volume /etc/c/A", "app ConfigMap/c[B] volume /etc/c/B", "app ConfigMap/c[bin] volume /etc/c/bin"])]
#[case::one_file(json!({"mountPath": "/etc/a", "subPath": "A"}), &["app ConfigMap/c[A] subPath /etc/a"])]
#[case::a_file_that_is_not_there(json!({"mountPath": "/etc/a", "subPath": "NO"}), &["app ConfigMap/c[NO] subPath /etc/a"])]
#[case::unknown(json!({"mountPath": "/etc/a", "subPathExpr": "$(X)"}), &["app ConfigMap/c[A] subPath /etc/a/A", "app ConfigMap/c[B] subPath /etc/a/B", "app ConfigMap/c[bin] subPath /etc/a/bin"])]
fn a_mount_shows_its_part_of_the_volume(#[case] mut mount: Value, #[case] expected: &[&str]) {
    mount["name"] = "v".into();
    let spec = json!({"containers": [{"name": "app", "volumeMounts": [mount]}],
        "volumes": [{"name": "v", "configMap": {"name": "c"}}, {"name": "unmounted", "secret": {"secretName": "s"}}]});
    assert_eq!(reads(spec), expected);
}

#[test]
fn items_and_projections_put_keys_at_their_paths() {
    let spec = json!({
        "containers": [{"name": "app", "volumeMounts": [
            {"name": "v", "mountPath": "/p"}, {"name": "v", "mountPath": "/dir", "subPath": "dir"}]}],
        "volumes": [{"name": "v", "projected": {"sources": [
            {"configMap": {"name": "c", "items": [{"key": "A", "path": "dir/a"}, {"key": "B", "path": "same"}]}},
            {"secret": {"name": "s", "items": [{"key": "T", "path": "same"}]}},
            {"serviceAccountToken": {"path": "token"}}]}}]});
    let expected =
        ["app ConfigMap/c[A] volume /p/dir/a", "app ConfigMap/c[A] subPath /dir/a", "app Secret/s[T] volume /p/same"];
    assert_eq!(reads(spec), expected);
}

#[test]
fn init_containers_read_too_and_pull_secrets_are_not_read() {
    let spec = json!({
        "imagePullSecrets": [{"name": "s"}],
        "initContainers": [
            {"name": "once", "env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "A"}}}]},
            {"name": "sidecar", "restartPolicy": "Always", "env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "A"}}}]}],
        "containers": [{"name": "app"}]});
    let consumption = Consumption::of(&"ns".into(), &pod(spec));
    let configs = Configs::from_iter([config_map("c").value("A", "1").build()]);
    let roles: Vec<_> =
        consumption.reads(&configs).into_iter().map(|read| (read.container.to_string(), read.role)).collect();
    assert_eq!(roles, [("once".to_owned(), Role::Init), ("sidecar".to_owned(), Role::Lasting)]);
}

#[test]
fn what_is_required_and_not_there_is_missing() {
    let spec = json!({"containers": [{"name": "app",
        "envFrom": [{"secretRef": {"name": "absent"}}, {"secretRef": {"name": "absent-too", "optional": true}}],
        "env": [
            {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "NO"}}},
            {"name": "Y", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "bin"}}},
            {"name": "Z", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "NEITHER", "optional": true}}}]}]});
    let configs = Configs::from_iter([config_map("c").binary("bin", "3").build()]);
    let missing: Vec<_> = Consumption::of(&"ns".into(), &pod(spec)).missing(&configs).into_iter().collect();
    let of = |kind, name: &str, key: Option<&str>| Missing {
        config: ConfigId { kind, namespace: "ns".into(), name: name.into() },
        key: key.map(KeyName::from),
    };
    let expected = [
        of(ConfigKind::ConfigMap, "c", Some("NO")),
        of(ConfigKind::ConfigMap, "c", Some("bin")),
        of(ConfigKind::Secret, "absent", None),
    ];
    assert_eq!(missing, expected);
}

#[rstest]
#[case::mounted(json!({"mountPath": "/vault"}), &["app csi InPlace"])]
#[case::by_sub_path(json!({"mountPath": "/vault/db", "subPath": "db"}), &["app subPath AtStart"])]
#[case::by_an_expression(json!({"mountPath": "/vault/db", "subPathExpr": "$(X)"}), &["app subPath AtStart"])]
fn a_volume_of_the_secrets_store_driver_is_consumed_as_a_whole(#[case] mount: Value, #[case] expected: &[&str]) {
    let mut mount = mount;
    mount["name"] = json!("v");
    let csi = json!({"driver": "secrets-store.csi.k8s.io", "readOnly": true,
        "volumeAttributes": {"secretProviderClass": "vault"}});
    let spec = json!({"containers": [{"name": "app", "volumeMounts": [mount]}, {"name": "other"}],
        "volumes": [{"name": "v", "csi": csi}, {"name": "unmounted", "csi": csi}]});
    let consumption = Consumption::of(&"ns".into(), &pod(spec));
    let seen = |reference: Reference<'_>| {
        assert_eq!((reference.config.local().to_string().as_str(), reference.all), ("SecretProviderClass/vault", true));
        format!("{} {} {}", reference.container, reference.via, reference.via.refresh())
    };
    assert_eq!(consumption.references().map(seen).collect::<Vec<_>>(), expected);
    assert_eq!(consumption.missing(&Configs::default()), BTreeSet::new(), "a class is never said to be missing");
}

#[rstest]
#[case::another_driver(json!({"driver": "ebs.csi.aws.com", "volumeAttributes": {"secretProviderClass": "vault"}}))]
#[case::no_class(json!({"driver": "secrets-store.csi.k8s.io"}))]
fn any_other_csi_volume_is_not_consumed(#[case] csi: Value) {
    let spec = json!({"containers": [{"name": "app", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
        "volumes": [{"name": "v", "csi": csi}]});
    assert_eq!(Consumption::of(&"ns".into(), &pod(spec)).configs(), BTreeSet::new());
}
