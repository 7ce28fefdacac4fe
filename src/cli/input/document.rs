//! A text's documents: where each begins, what it is written in, and what it is about.

use serde::de::{DeserializeSeed as _, Error as _};

use super::object::{Objects, flaw_in_json, flaw_in_yaml};
use super::{Format, Header};
use crate::model::documents::{Part, yaml_options};

/// One document.
pub(super) struct Document<'a> {
    text: &'a str,
    format: Format,
    /// Its first line in the file.
    pub(super) first_line: usize,
    /// What it is about.
    pub(super) header: Header,
}

impl<'a> Part<'a> {
    /// Its documents: one in YAML, and any number in JSON, one after the other. Or the line at which it is neither.
    pub(super) fn documents(&self) -> Result<Vec<Document<'a>>, (Format, usize)> {
        let begins_like_json = self.text.trim_start().starts_with('{');
        let json_error = match begins_like_json.then(|| self.in_json()) {
            Some(Ok(documents)) => return Ok(documents),
            Some(Err(error)) => Some(error),
            None => None,
        };
        let read: Result<Option<Header>, _> = serde_saphyr::from_str_with_options(self.text, yaml_options());
        match (read, json_error) {
            (Ok(header), _) => Ok(header.into_iter().map(|header| self.document(header)).collect()),
            // Valid YAML, but no mapping: the header is of nothing, which is no object.
            (Err(error), _) if is_of_another_form(&error) => Ok(vec![self.document(Header::default())]),
            (Err(_), Some(error)) => Err((Format::Json, self.line(error.line()))),
            (Err(error), None) => Err((Format::Yaml, self.line(line_of(&error)))),
        }
    }

    fn document(&self, header: Header) -> Document<'a> {
        Document { text: self.text, format: Format::Yaml, first_line: self.first_line, header }
    }

    fn in_json(&self) -> Result<Vec<Document<'a>>, serde_json::Error> {
        let mut stream = serde_json::Deserializer::from_str(self.text).into_iter::<Header>();
        let mut documents = Vec::new();
        let mut start = 0;
        while let Some(header) = stream.next() {
            let header = match header {
                Ok(header) => header,
                // JSON, but no mapping: as in YAML, the header is of nothing.
                Err(error) if error.is_data() && start > 0 => {
                    let first_line = self.line(error.line());
                    documents.push(Document { text: "", format: Format::Json, first_line, header: Header::default() });
                    break;
                }
                Err(error) => return Err(error),
            };
            let (before, text) = (self.text.get(..start), self.text.get(start..stream.byte_offset()));
            let (Some(before), Some(text)) = (before, text) else {
                return Err(serde_json::Error::custom("not on a character"));
            };
            let first_line = self.first_line + before.matches('\n').count();
            documents.push(Document { text, format: Format::Json, first_line, header });
            start = stream.byte_offset();
        }
        Ok(documents)
    }

    /// A line of this part, as a line of the file.
    fn line(&self, line: usize) -> usize {
        self.first_line + line.saturating_sub(1)
    }
}

impl Document<'_> {
    /// Reads its objects; what is wrong with the first malformed one, and at which line of the file.
    pub(super) fn read(&self, objects: &mut Objects<'_>) -> Result<(), (String, usize)> {
        let seed = objects.seed(&self.header);
        let line = |line: usize| self.first_line + line.saturating_sub(1);
        match self.format {
            Format::Json => {
                let mut deserializer = serde_json::Deserializer::from_str(self.text);
                seed.deserialize(&mut deserializer).map_err(|error| (flaw_in_json(&error), line(error.line())))
            }
            Format::Yaml => serde_saphyr::with_deserializer_from_str_with_options(self.text, yaml_options(), |yaml| {
                seed.deserialize(yaml)
            })
            .map_err(|error| (flaw_in_yaml(&error), line(line_of(&error)))),
        }
    }
}

fn line_of(error: &serde_saphyr::Error) -> usize {
    error.location().and_then(|location| usize::try_from(location.line()).ok()).unwrap_or(1)
}

/// Whether a text is YAML, and only not of the form that was asked for.
fn is_of_another_form(error: &serde_saphyr::Error) -> bool {
    use serde_saphyr::Error as E;
    matches!(error.without_snippet(), E::Unexpected { .. } | E::SerdeInvalidType { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::documents::split;
    use rstest::rstest;

    #[rstest]
    #[case::one("kind: A\n", &[(1, Format::Yaml)])]
    #[case::two("kind: A\n---\nkind: B\n", &[(1, Format::Yaml), (2, Format::Yaml)])]
    #[case::comments_alone_are_none("# about\n---\nkind: A\n---\n# end\n---\n", &[(2, Format::Yaml)])]
    #[case::a_directive("%YAML 1.2\n---\nkind: A\n", &[(2, Format::Yaml)])]
    #[case::a_line_in_a_text("kind: A\na: |\n  ---\n  b\n ", &[(1, Format::Yaml)])]
    #[case::a_marker_with_content("--- {kind: A}\n--- # b\nkind: B\n", &[(1, Format::Yaml), (2, Format::Yaml)])]
    #[case::json("{\"kind\": \"A\"}", &[(1, Format::Json)])]
    #[case::json_in_a_row("{\"kind\": \"A\"}\n{\n\"kind\": \"B\"}\n", &[(1, Format::Json), (1, Format::Json)])]
    #[case::json_between_markers("{\"kind\": \"A\"}\n---\n{\"kind\": \"B\"}", &[(1, Format::Json), (2, Format::Yaml)])]
    #[case::null("---\nnull\n---\n", &[])]
    #[case::empty("", &[])]
    fn a_text_has_its_documents(#[case] text: &str, #[case] expected: &[(usize, Format)]) {
        let documents = split(text).into_iter().flat_map(|part| part.documents().unwrap());
        let found: Vec<_> = documents.map(|document| (document.first_line, document.format)).collect();
        assert_eq!(found, expected);
    }
}
