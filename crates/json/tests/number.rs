//! Exact decimal values.

use std::cmp::Ordering;
use std::collections::HashSet;

use storybus_json::Number;

fn number(text: &str) -> Number<'_> {
    Number::parse(text).expect("a JSON number")
}

#[test]
fn only_a_json_number_is_one() {
    for text in [
        "", "-", "+1", "01", "1.", ".1", "1e", " 1", "1 ", "1,", "NaN", "1e5x", "--1", "0x1", "١",
    ] {
        assert!(Number::parse(text).is_none(), "{text}");
    }
    assert_eq!(number("-1.50e+07").text(), "-1.50e+07");
}

#[test]
fn notations_of_the_same_value() {
    let groups: &[&[&str]] = &[
        &[
            "0",
            "-0",
            "0.0",
            "-0.000",
            "0e5",
            "-0E-999999999999999999999999",
            "0.00e99999999999999999999999",
        ],
        &[
            "1",
            "1.0",
            "1e0",
            "10e-1",
            "0.1e1",
            "0.0001E+4",
            "1000e-03",
            "1e-0",
        ],
        &["-1.5", "-15e-1", "-0.15e1", "-1.500", "-150E-2"],
        &["100", "1e2", "1.00e2", "0.1e3", "100.000"],
        &[
            "123456789012345678901234567890",
            "123456789012345678901234567890.0",
            "1.2345678901234567890123456789e29",
        ],
        &["1e400", "10e399", "0.00001e405", "1.000E400"],
        &["1e-400", "0.1e-399", "1000e-403"],
        // Where the exponent leaves 64 bits.
        &[
            "1e9223372036854775807",
            "10e9223372036854775806",
            "0.1e9223372036854775808",
        ],
        &[
            "1e-9223372036854775808",
            "0.1e-9223372036854775807",
            "10e-9223372036854775809",
        ],
        &[
            "1e999999999999999999",
            "0.001e1000000000000000002",
            "1000e999999999999999996",
        ],
        &[
            "1e1000000000000000000000",
            "10e999999999999999999999",
            "0.01e1000000000000000000002",
        ],
        &[
            "1e-1000000000000000000000",
            "0.1e-999999999999999999999",
            "100e-1000000000000000000002",
        ],
    ];
    for group in groups {
        for a in *group {
            for b in *group {
                assert_eq!(number(a), number(b));
                assert_eq!(number(a).canonical(), number(b).canonical());
            }
        }
    }
    let distinct: HashSet<Number<'_>> = groups
        .iter()
        .flat_map(|group| group.iter().map(|text| number(text)))
        .collect();
    assert_eq!(distinct.len(), groups.len());
}

#[test]
fn order() {
    let ascending = [
        "-1e1000000000000000000000",
        "-1e400",
        "-123456789012345678901234567891",
        "-123456789012345678901234567890",
        "-2",
        "-1.0000000000000000000000000000001",
        "-1",
        "-0.1",
        "-1e-400",
        "-1e-1000000000000000000000",
        "0",
        "1e-1000000000000000000001",
        "1e-1000000000000000000000",
        "9e-9223372036854775808",
        "1e-9223372036854775807",
        "1e-400",
        "0.000001",
        "0.1",
        "0.10000000000000000000000000001",
        "0.9",
        "1",
        "1.5",
        "9",
        "10",
        "9007199254740992",
        "9007199254740993",
        "123456789012345678901234567890",
        "123456789012345678901234567891",
        "1e400",
        "1.1e400",
        "1e9223372036854775807",
        "1e9223372036854775808",
        "1e1000000000000000000000",
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(number(a).cmp(&number(b)), i.cmp(&j), "{a} {b}");
            assert_eq!(number(a) == number(b), i == j, "{a} {b}");
        }
    }
}

#[test]
fn canonical_texts() {
    let cases = [
        ("0", "0"),
        ("-0", "0"),
        ("-0.0e7", "0"),
        ("1", "1"),
        ("-1", "-1"),
        ("100", "100"),
        ("1E+2", "100"),
        ("-1.0", "-1"),
        ("1.50", "15e-1"),
        ("0.001", "1e-3"),
        ("-12.5e-3", "-125e-4"),
        ("123456789012345678901", "123456789012345678901"),
        ("-123456789012345678901", "-123456789012345678901"),
        ("100000000000000000000", "100000000000000000000"),
        ("1e20", "100000000000000000000"),
        ("1000000000000000000000", "1e21"),
        ("1e21", "1e21"),
        ("1234567890123456789010", "123456789012345678901e1"),
        (
            "123456789012345678901234567890",
            "12345678901234567890123456789e1",
        ),
        ("123456789012345678901234567891", "123456789012345678901234567891"),
        ("1e400", "1e400"),
        ("10E+0399", "1e400"),
        ("1e-9223372036854775809", "1e-9223372036854775809"),
        ("12e9223372036854775806", "12e9223372036854775806"),
        ("120e9223372036854775807", "12e9223372036854775808"),
        ("0.1e-99999999999999999999", "1e-100000000000000000000"),
        ("10e-100000000000000000000", "1e-99999999999999999999"),
    ];
    for (text, canonical) in cases {
        assert_eq!(number(text).canonical(), canonical, "{text}");
        assert_eq!(number(canonical).canonical(), canonical);
        assert_eq!(number(canonical), number(text));
    }
}

#[test]
fn whole_numbers_by_value() {
    for text in [
        "0",
        "-0.0",
        "0e-5",
        "1",
        "1.0",
        "1e2",
        "1.5e1",
        "-10e-1",
        "1e400",
        "1e99999999999999999999",
        "1200e-2",
    ] {
        assert!(number(text).is_integer(), "{text}");
    }
    for text in [
        "1.5",
        "1e-1",
        "-0.001",
        "12e-2",
        "1.05e1",
        "1e-99999999999999999999",
        "123456789012345678901234567890.1",
    ] {
        assert!(!number(text).is_integer(), "{text}");
    }
}

#[test]
fn machine_integers() {
    let cases = [
        ("0", Some(0)),
        ("-0.0e400", Some(0)),
        ("1e2", Some(100)),
        ("-15.0", Some(-15)),
        ("9223372036854775807", Some(i64::MAX)),
        ("-9223372036854775808", Some(i64::MIN)),
        ("-9.223372036854775808e18", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
        ("1.5", None),
        ("1e19", None),
        ("1e400", None),
        ("1e99999999999999999999", None),
    ];
    for (text, value) in cases {
        assert_eq!(number(text).to_i64(), value, "{text}");
    }
}

#[test]
fn successors() {
    let pairs = [
        ("1", "0"),
        ("0", "-1"),
        ("1", "-0.0"),
        ("8", "7.0"),
        ("10", "9"),
        ("1e3", "999"),
        ("-999", "-1000"),
        ("-9.99e2", "-1e3"),
        ("1.5", "0.5"),
        ("0.5", "-0.5"),
        ("0.05", "-0.95"),
        ("0.25", "-75e-2"),
        ("1e-5", "-0.99999"),
        ("-0.5", "-1.5"),
        ("10.01", "9.01"),
        ("9007199254740993", "9007199254740992"),
        ("123456789012345678901234567890", "123456789012345678901234567889"),
        ("1e30", "999999999999999999999999999999"),
        ("0.1e31", "9999999999999999999999999999990e-1"),
    ];
    for (high, low) in pairs {
        assert!(number(high).is_successor_of(number(low)), "{high} {low}");
        assert!(!number(low).is_successor_of(number(high)), "{low} {high}");
        assert!(!number(high).is_successor_of(number(high)), "{high}");
    }
    let others = [
        ("2", "0"),
        ("1", "1"),
        ("1", "-1"),
        ("1.5", "0.4"),
        ("1.0000000000000000000001", "0"),
        ("11", "1"),
        ("1e1", "1"),
        ("0.5", "0.5"),
        ("1e400", "1e400"),
        ("1e400", "1e399"),
        ("1e400", "0"),
        ("1", "1e-400"),
        ("1e-400", "-1"),
        ("1e9223372036854775807", "1e-9223372036854775807"),
        ("1e99999999999999999999", "1e99999999999999999999"),
        ("1", "1e-99999999999999999999"),
        ("2.5", "1.05"),
    ];
    for (a, b) in others {
        assert!(!number(a).is_successor_of(number(b)), "{a} {b}");
        assert!(!number(b).is_successor_of(number(a)), "{b} {a}");
    }
}

#[test]
fn exponents_as_long_as_a_body() {
    let nines = "9".repeat(240_000);
    let larger = format!("1{}", "0".repeat(240_000));
    let (a, b) = (format!("10e{nines}"), format!("1e{larger}"));
    assert_eq!(number(&a), number(&b));
    assert_eq!(number(&a).canonical(), b);
    assert_eq!(number(&b).canonical(), b);
    assert_eq!(number(&format!("1e{nines}")).cmp(&number(&b)), Ordering::Less);
    assert_eq!(
        number(&format!("1e-{nines}")).cmp(&number(&format!("1e-{larger}"))),
        Ordering::Greater
    );
    assert_eq!(
        number(&format!("-1e{nines}")).cmp(&number(&format!("1e-{nines}"))),
        Ordering::Less
    );
    assert!(number(&a).is_integer() && !number(&format!("1e-{nines}")).is_integer());
    assert!(!number(&a).is_successor_of(number(&b)));
    assert!(number(&format!("0e{nines}")).is_integer());
    assert_eq!(
        number(&format!("1e{}7", "0".repeat(240_000))).canonical(),
        "10000000"
    );
}

#[test]
fn mantissas_as_long_as_a_body() {
    let nines = "9".repeat(240_000);
    let zeros = "0".repeat(240_000);
    assert!(number("1e240000").is_successor_of(number(&nines)));
    assert!(number(&format!("1{zeros}")).is_successor_of(number(&nines)));
    assert!(number(&format!("0.{zeros}1")).is_successor_of(number(&format!("-0.{nines}9"))));
    assert_eq!(number(&format!("1{zeros}e-240000")), number("1"));
    assert_eq!(number(&format!("0.{zeros}1e240001")), number("1"));
    assert!(number(&format!("1.{zeros}1")) > number("1"));
    assert_eq!(number(&format!("1.{zeros}")).to_i64(), Some(1));
}
