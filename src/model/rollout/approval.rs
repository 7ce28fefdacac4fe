//! Approval: where `auto-reload` is `notify`, what is due is told, and rolls once somebody names its hash. Another change is
//! another hash.

use crate::api::auto_reload::AutoReload;
use crate::model::digest::Digest;
use crate::model::record::Record;

/// Whether a change that is open has to be approved.
pub fn is_asked_for(record: &Record) -> bool {
    let mut open = record.open_entries();
    open.any(|(entry, _)| record.counting.of_kind(entry.config.kind) == AutoReload::Notify)
}

/// The hash that approves a state: the beginning of its digest.
pub fn hash_of(state: &Digest) -> String {
    state.as_str().rsplit(':').next().unwrap_or_default().chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builders::{config_map, deployment, scene};
    use rstest::rstest;

    #[test]
    fn a_hash_names_no_key() {
        assert_eq!(hash_of(&Digest::from_text("hmac-sha256:k1:abcdefghijklmnopq")), "abcdefghijkl");
    }

    #[rstest]
    #[case::notify(AutoReload::Notify, true)]
    #[case::everything(AutoReload::Everything, false)]
    fn it_is_asked_for_where_somebody_wants_to_be_notified(#[case] auto_reload: AutoReload, #[case] expected: bool) {
        let workload = deployment("w").auto_reload(auto_reload).env_from("ConfigMap/c");
        let with = |value: &str| scene(workload.clone()).config(config_map("c").value("A", value));
        let mut record = with("1").adopt();
        assert!(!is_asked_for(&record), "nothing is open");
        with("2").observe(&mut record);
        assert_eq!(is_asked_for(&record), expected);
    }
}
