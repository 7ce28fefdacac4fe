//! Quantities by value: `0.5` is `500m`, and `1024Mi` is `1Gi`.
//!
//! <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>

/// The fields that hold a quantity, or a map of them.
const FIELDS: [&str; 7] = ["limits", "requests", "overhead", "capacity", "allocatedResources", "sizeLimit", "divisor"];

/// The digits behind the point that count: the API server rounds the others up.
const NANO: u32 = 9;

/// Whether a field of this name holds a quantity, or a map of them.
pub fn holds_quantities(field: &str) -> bool {
    FIELDS.contains(&field)
}

/// Whether two texts are one quantity.
pub fn same(one: &str, other: &str) -> bool {
    matches!((nanos(one), nanos(other)), (Some(one), Some(other)) if one == other)
}

/// How many billionths it is; `None` for what is no quantity, or is beyond all that the API takes.
fn nanos(text: &str) -> Option<i128> {
    let number_ends = text.find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '.' | '+' | '-'));
    let (number, suffix) = text.split_at(number_ends.unwrap_or(text.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains(['.', '+', '-']) || (fraction.is_empty() && whole.trim_start_matches(['+', '-']).is_empty()) {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let (binary, decimal) = exponents(suffix)?;
    let shifted = digits.checked_mul(1_i128.checked_shl(binary)?)?;
    let power = decimal + i32::try_from(NANO).ok()? - i32::try_from(fraction.len()).ok()?;
    match u32::try_from(power) {
        Ok(power) => shifted.checked_mul(10_i128.checked_pow(power)?),
        // More digits than count.
        Err(_) => 10_i128.checked_pow(power.unsigned_abs()).map(|divisor| divided_upwards(shifted, divisor)),
    }
}

fn divided_upwards(number: i128, divisor: i128) -> i128 {
    let away = if number % divisor == 0 { 0 } else { number.signum() };
    number / divisor + away
}

/// What a suffix means: so many powers of two, and of ten.
fn exponents(suffix: &str) -> Option<(u32, i32)> {
    Some(match suffix {
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "" => (0, 0),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        _ => (0, suffix.strip_prefix(['e', 'E'])?.parse().ok().filter(|power: &i32| power.abs() <= 30)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case("0.5", "500m", true)]
    #[case("1024Mi", "1Gi", true)]
    #[case("1", "1.0", true)]
    #[case("+1", "1", true)]
    #[case(".5", "500m", true)]
    #[case("1.", "1", true)]
    #[case("1e3", "1k", true)]
    #[case("1E3", "1k", true)]
    #[case("1E", "1000P", true)]
    #[case("0.5Gi", "512Mi", true)]
    #[case("-1", "-1000m", true)]
    #[case("0.0000000001", "1n", true)]
    #[case("1G", "1Gi", false)]
    #[case("100m", "1", false)]
    #[case("1Ki", "1k", false)]
    #[case("", "", false)]
    #[case("much", "much", false)]
    #[case("1.2.3", "1.2.3", false)]
    #[case("-", "-", false)]
    #[case("1e99999999999", "1e99999999999", false)]
    fn quantities_compare_by_value(#[case] one: &str, #[case] other: &str, #[case] expected: bool) {
        assert_eq!(same(one, other), expected);
    }

    proptest! {
        #[test]
        fn any_text_is_taken(one in "\\PC*", number in "[-+0-9.]{0,60}[a-zA-Z0-9]{0,12}") {
            same(&one, &number);
        }
    }
}
