//! A YAML text's documents, and how restamp reads YAML.

/// A part of a text between `---` lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// Its text.
    pub text: &'a str,
    /// Its first line in the whole text.
    pub first_line: usize,
}

/// Splits a text into its YAML documents. YAML allows a line that begins with `---` nowhere inside of one, not even in
/// a block of text; and JSON has no such lines.
pub fn split(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut start, mut first_line, mut offset) = (0, 1, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if is_marker(line) && offset > start {
            parts.push((start, offset, first_line));
            (start, first_line) = (offset, number + 1);
        }
        offset += line.len();
    }
    parts.push((start, offset, first_line));
    let part = |(start, end, first_line)| Some(Part { text: text.get(start..end)?, first_line });
    parts.into_iter().filter_map(part).filter(|part| !part.is_empty()).collect()
}

fn is_marker(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

impl Part<'_> {
    /// Whether it holds nothing but comments, directives and markers.
    fn is_empty(&self) -> bool {
        self.text.lines().all(|line| {
            let line = line.trim();
            line.is_empty() || line == "---" || line == "..." || line.starts_with(['#', '%'])
        })
    }
}

/// kubectl's files are large, but not deep; what is quoted in a mapping twice is the reader's affair.
pub fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            max_depth: 256,
        },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::PassThrough,
        emit_comments: false,
        strict_booleans: true,
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    }
}
