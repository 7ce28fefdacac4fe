//! Where a field stands in an object: `spec.template.spec.containers[app].image`.

use std::fmt;

/// A field, and the way to it. It is written out only where something is said about it.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

/// One step on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// A field of an object, or a key of a map.
    Field(&'a str),
    /// A member of a list, by its keys.
    Member(&'a str),
}

impl<'a> Path<'a> {
    /// A field of the object itself.
    pub fn root(field: &'a str) -> Self {
        Self { parent: None, step: Step::Field(field) }
    }

    /// A field below.
    pub fn field(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Field(name) }
    }

    /// A member of the list that this is.
    pub fn member(&'a self, keys: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Member(keys) }
    }

    /// The steps from the end to the beginning.
    pub fn upwards(&self) -> impl Iterator<Item = Step<'a>> {
        std::iter::successors(Some(*self), |path| path.parent.copied()).map(|path| path.step)
    }

    /// The name of the list or of the map that this is, or that this is in.
    pub fn is_below(&self, field: &str) -> bool {
        self.upwards().any(|step| step == Step::Field(field))
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Field(name) if self.parent.is_none() => f.write_str(name),
            // A key of a map may hold dots and slashes.
            Step::Field(name) if name.chars().all(|letter| letter.is_ascii_alphanumeric()) => write!(f, ".{name}"),
            Step::Field(keys) | Step::Member(keys) => write!(f, "[{keys}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_like_the_field_in_a_manifest() {
        let spec = Path::root("spec");
        let (containers, limits) = (spec.field("containers"), spec.field("limits"));
        assert_eq!(containers.member("app").field("image").to_string(), "spec.containers[app].image");
        assert_eq!(limits.field("memory").to_string(), "spec.limits.memory");
        assert_eq!(limits.field("nvidia.com/gpu").to_string(), "spec.limits[nvidia.com/gpu]");
    }
}
