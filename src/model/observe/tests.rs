//! When entries open, a sentence for each rule.
