//! What every subcommand that needs a cluster says when it finds none: one sentence, without a credential in it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice, reason = "a test may panic")]

use std::fs;
use std::process::Command;

use rstest::rstest;
use tempfile::TempDir;

const UNREACHABLE: &str = "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
    contexts: [{name: c, context: {cluster: c, user: u}}]\n\
    clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {token: hunter2}}]\n";

#[rstest]
fn no_cluster_is_one_sentence(
    #[values(&["run", "--bind", "127.0.0.1:0"], &["scan"], &["explain", "deploy/web"])] args: &[&str],
    #[values(
        ("users:\n- hunter2: }", "FILE: it does not parse, line 2"),
        ("clusters: hunter2\n", "FILE: it does not parse, line 1"),
        ("", "cannot use the kubeconfig FILE"),
        (UNREACHABLE, "cannot reach the API server")
    )]
    (content, expected): (&str, &str),
) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("kubeconfig").display().to_string();
    fs::write(&path, content).unwrap();
    let mut restamp = Command::new(env!("CARGO_BIN_EXE_restamp"));
    let output = restamp.args(args).args(["--kubeconfig", &path]).env_remove("POD_NAMESPACE").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap().replace(&path, "FILE");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
    assert!(said.contains(expected) && !said.contains("hunter2"), "{said}");
    assert_eq!(said.matches(expected).count(), 1, "it is said once: {said}");
}
