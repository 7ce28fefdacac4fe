//! Whether a custom resource's schema, as it is installed, has all that this build writes.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps, JSONSchemaPropsOrArray,
};

/// The first field of ours that the installed definition does not have, as `status.reload.state`; `None` if it has all.
pub fn lacking(ours: &CustomResourceDefinition, installed: &CustomResourceDefinition) -> Option<String> {
    ours.spec.versions.iter().find_map(|version| {
        let same = installed.spec.versions.iter().find(|other| other.name == version.name);
        match schema_of(version).zip(same.and_then(schema_of)) {
            Some((ours, theirs)) => lacking_below("", ours, theirs),
            None => Some(version.name.clone()),
        }
    })
}

fn schema_of(version: &CustomResourceDefinitionVersion) -> Option<&JSONSchemaProps> {
    version.schema.as_ref()?.open_api_v3_schema.as_ref()
}

fn lacking_below(path: &str, ours: &JSONSchemaProps, theirs: &JSONSchemaProps) -> Option<String> {
    if let Some((ours, theirs)) = items(ours).zip(items(theirs)) {
        return lacking_below(&format!("{path}[]"), ours, theirs);
    }
    ours.properties.iter().flatten().find_map(|(name, ours)| {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match theirs.properties.as_ref().and_then(|theirs| theirs.get(name)) {
            Some(theirs) => lacking_below(&path, ours, theirs),
            None => Some(path),
        }
    })
}

fn items(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.items.as_ref()? {
        JSONSchemaPropsOrArray::Schema(schema) => Some(schema),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::drift_report::DriftReport;
    use kube::CustomResourceExt as _;
    use rstest::rstest;
    use serde_json::Value;

    fn without(pointer: &str, name: &str) -> CustomResourceDefinition {
        let mut crd = serde_json::to_value(DriftReport::crd()).unwrap();
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties";
        let place: &mut Value = crd.pointer_mut(&format!("{schema}{pointer}")).unwrap();
        place.as_object_mut().unwrap().remove(name).unwrap();
        serde_json::from_value(crd).unwrap()
    }

    #[rstest]
    #[case::all("/status", "description", None)]
    #[case::a_field("/status/properties", "staleKeys", Some("status.staleKeys"))]
    #[case::below("/status/properties/reload/properties", "instance", Some("status.reload.instance"))]
    #[case::in_a_list("/status/properties/findings/items/properties", "path", Some("status.findings[].path"))]
    fn what_is_not_installed_is_named(#[case] pointer: &str, #[case] name: &str, #[case] expected: Option<&str>) {
        assert_eq!(lacking(&DriftReport::crd(), &without(pointer, name)).as_deref(), expected);
    }

    #[test]
    fn what_is_installed_beside_does_no_harm() {
        assert_eq!(lacking(&without("/status/properties", "staleKeys"), &DriftReport::crd()), None);
    }
}
