//! What is due, a sentence for each rule.
