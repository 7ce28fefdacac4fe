//! A label selector, as kubectl takes it: checked at the start, so that a mistake is not a watch that never works.

use std::fmt;
use std::str::FromStr;

/// A label selector that the API server takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSelector(String);

impl LabelSelector {
    /// The selector as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A text that is no label selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no label selector; write it as for kubectl, such as \"team=x,stage in (a,b),!legacy\"")]
pub struct NoSelector(String);

impl FromStr for LabelSelector {
    type Err = NoSelector;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if !text.is_empty() && requirements(text).into_iter().all(is_requirement) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NoSelector(text.to_owned()))
        }
    }
}

/// The parts between commas, but for those in parentheses.
fn requirements(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let is_border = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    text.split(is_border).map(str::trim).collect()
}

fn is_requirement(text: &str) -> bool {
    if let Some(key) = text.strip_prefix('!') {
        return is_key(key.trim());
    }
    let equality = ["!=", "==", "="].into_iter().find_map(|operator| text.split_once(operator));
    if let Some((key, value)) = equality {
        return is_key(key.trim()) && is_value(value.trim());
    }
    match text.split_once(char::is_whitespace) {
        Some((key, rest)) => is_key(key) && is_set(rest.trim()),
        None => is_key(text),
    }
}

/// `in (a, b)` or `notin (a, b)`.
fn is_set(text: &str) -> bool {
    let set = text.strip_prefix("notin").or_else(|| text.strip_prefix("in")).map(str::trim);
    let values = set.and_then(|set| set.strip_prefix('(')?.strip_suffix(')'));
    values.is_some_and(|values| values.split(',').all(|value| is_value(value.trim())))
}

/// A name, with a domain before it or without.
fn is_key(text: &str) -> bool {
    let (domain, name) = text.split_once('/').map_or((None, text), |(domain, name)| (Some(domain), name));
    let is_domain =
        |domain: &str| !domain.is_empty() && domain.split('.').all(|part| !part.is_empty() && is_word(part));
    !name.is_empty() && is_value(name) && domain.is_none_or(is_domain)
}

/// At most 63 characters, the first and the last of them letters or digits.
fn is_value(text: &str) -> bool {
    text.len() <= 63 && is_word(text)
}

fn is_word(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_outer = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    text.chars().all(is_inner) && is_outer(text.chars().next()) && is_outer(text.chars().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("team")]
    #[case("!team")]
    #[case("team=x")]
    #[case("team==x,stage!=prod")]
    #[case("team=")]
    #[case(" example.com/team in (a, b) , stage notin (prod),!legacy ")]
    fn what_kubectl_takes_is_one(#[case] text: &str) {
        assert_eq!(text.parse(), Ok(LabelSelector(text.trim().to_owned())));
    }

    #[rstest]
    #[case("")]
    #[case("team=x,")]
    #[case("=x")]
    #[case("team x")]
    #[case("team in a,b")]
    #[case("team in (a,b")]
    #[case("-team=x")]
    #[case("team=x y")]
    #[case("team>3>4")]
    #[case("/team")]
    fn anything_else_is_none(#[case] text: &str) {
        assert_eq!(text.parse::<LabelSelector>(), Err(NoSelector(text.to_owned())));
    }
}
