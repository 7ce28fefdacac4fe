//! Objects from files: YAML or JSON, any number of documents, lists in lists.
//!
//! A document is read twice: first for the kinds and names in it, and then each object straight into its type. So values
//! of configs become fingerprints while they are read here too, and texts that look like numbers stay as they are.

mod document;
mod header;
mod object;

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::cli::inventory::{self, Inventory};
use crate::model::custom::CustomKind;
use crate::model::documents;
use crate::model::helm::NAME_PREFIX;
use crate::model::names::ConfigKind;
use document::Document;
use header::Header;
use object::{Objects, Pass};

const STANDARD_INPUT: &str = "standard input";

/// Why a file can't be scanned. No text of a file is quoted, since it may be a Secret's value.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// It can't be read.
    #[error("cannot read {file}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// It is neither YAML nor JSON.
    #[error("{place} is not valid {format}; give a file as kubectl get -o yaml --show-managed-fields prints it")]
    Syntax {
        /// Where.
        place: Place,
        /// What it was taken for.
        format: Format,
    },
    /// It has no kind.
    #[error("{place} is no Kubernetes object, since it has no kind; give a file as kubectl get -o yaml prints it")]
    NoObject {
        /// Where.
        place: Place,
    },
    /// An object does not have the form of its kind.
    #[error("{place}: {object} is malformed: {flaw}")]
    Malformed {
        /// Where.
        place: Place,
        /// Which object.
        object: String,
        /// What is wrong.
        flaw: String,
    },
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    file: String,
    document: usize,
    line: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, document {}, line {}", self.file, self.document, self.line)
    }
}

/// What a document is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON, since it begins with a brace and parses as JSON.
    Json,
    /// Anything else.
    Yaml,
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Json => "JSON",
            Self::Yaml => "YAML",
        })
    }
}

/// Tells of a type, by its `apiVersion` and kind, whether it is a custom kind that is looked for.
pub type Wanted<'a> = &'a dyn Fn(&str, &str) -> Option<&'static CustomKind>;

/// All objects in these files, with those of the wanted custom kinds; `-` is standard input.
pub fn read(files: &[PathBuf], wanted: Wanted<'_>) -> Result<Inventory, InputError> {
    let mut inventory = Inventory::default();
    let mut texts = Vec::new();
    for file in files {
        let name = if file == Path::new("-") { STANDARD_INPUT.to_owned() } else { file.display().to_string() };
        let text = text_of(file).map_err(|source| InputError::Unreadable { file: name.clone(), source })?;
        texts.push((name, text));
    }
    for (name, text) in texts.iter().filter(|(_, text)| text.contains(NAME_PREFIX)) {
        read_text(name, text, &mut inventory, wanted, Pass::Releases)?;
    }
    for (name, text) in texts {
        read_text(&name, &text, &mut inventory, wanted, Pass::Objects)?;
    }
    // Who writes files leaves out whole kinds, Secrets above all.
    let has = |kind: &ConfigKind| inventory.configs().iter().any(|config| config.id.kind == *kind);
    let left_out = ConfigKind::ALL.into_iter().filter(|kind| !has(kind));
    // What is live of a manifest is not known either.
    let not_live = inventory.only_manifests().map(|id| id.kind);
    let may_lack: Vec<ConfigKind> = left_out.chain(not_live).collect();
    inventory.may_lack(may_lack);
    Ok(inventory)
}

fn text_of(file: &Path) -> io::Result<Zeroizing<String>> {
    let mut bytes = Zeroizing::new(Vec::new());
    if file == Path::new("-") {
        io::stdin().lock().read_to_end(&mut bytes)?;
    } else {
        fs::File::open(file)?.read_to_end(&mut bytes)?;
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| io::Error::other("it is not text in UTF-8"))?;
    Ok(Zeroizing::new(text.trim_start_matches('\u{feff}').to_owned()))
}

fn read_text(
    file: &str,
    text: &str,
    inventory: &mut Inventory,
    wanted: Wanted<'_>,
    pass: Pass,
) -> Result<(), InputError> {
    let mut number = 0;
    for part in documents::split(text) {
        let documents = part.documents().map_err(|(format, line)| InputError::Syntax {
            place: Place { file: file.to_owned(), document: number + 1, line },
            format,
        })?;
        for document in documents {
            number += 1;
            let place = |line| Place { file: file.to_owned(), document: number, line };
            // Nobody finds standard input again.
            if file != STANDARD_INPUT {
                inventory.read_from(inventory::Place { file: file.to_owned(), line: document.first_line });
            }
            read_document(&document, Objects::new(inventory, wanted, pass), place)?;
        }
    }
    Ok(())
}

fn read_document(
    document: &Document<'_>,
    mut objects: Objects<'_>,
    place: impl Fn(usize) -> Place,
) -> Result<(), InputError> {
    if let Some(without_kind) = document.header.first_without_kind() {
        return Err(match without_kind {
            None => InputError::NoObject { place: place(document.first_line) },
            Some(item) => InputError::Malformed {
                place: place(document.first_line),
                object: format!("item {item} of the list"),
                flaw: "it has no kind".to_owned(),
            },
        });
    }
    document.read(&mut objects).map_err(|(flaw, line)| InputError::Malformed {
        place: place(line),
        object: objects.current(),
        flaw,
    })
}
