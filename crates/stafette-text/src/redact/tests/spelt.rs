//! Values as real encoders write them. The first line of the fixture is the value, each other one the name
//! of an encoder and what it made of it.

use super::*;

const FIXTURE: &str = include_str!("spelt.txt");

fn encoded() -> (&'static str, Vec<(&'static str, &'static str)>) {
    let (value, rest) = FIXTURE.split_once('\n').expect("a value");
    (value, rest.lines().map(|line| line.split_once('\t').expect("an encoder")).collect())
}

#[test]
fn b_17_values_of_the_environment_are_taken_out_however_programs_spell_them() {
    let (value, encoded) = encoded();
    let redactor = Redactor::of_environment([("E_PASSWORD", value)]);
    for (encoder, text) in encoded {
        // What stays are the quotes around it, and the name in an address.
        let kept = redactor.text(text);
        let around = kept.replace("[redacted:environment]", "");
        assert!(is_marked(&kept) && around.len() <= 16, "{encoder}: {text} became {kept}");
        let mut stream = redactor.stream();
        let mut out: Vec<u8> = text.bytes().flat_map(|byte| stream.push(&[byte])).collect();
        out.extend(stream.finish());
        assert_eq!(String::from_utf8_lossy(&out), kept, "{encoder}, byte by byte");
    }
}

#[test]
fn b_17_a_long_value_is_taken_out_where_every_letter_of_it_is_spelled() {
    let value: String = (0..300_u32)
        .map(|at| char::from(b'0' + u8::try_from(at * at * 7 % 75).expect("a letter")))
        .collect();
    let redactor = Redactor::of_environment([("E_PASSWORD", value.as_str())]);
    let each = |spell: fn(u8) -> String| value.bytes().map(spell).collect::<String>();
    for text in [
        each(|byte| format!("%{byte:02x}")),
        each(|byte| format!("\\u{byte:04x}")),
        each(|byte| format!("\\\\u{byte:04x}")),
        each(|byte| format!("&#{byte};")),
        each(|byte| format!("&#x{byte:04x};")),
    ] {
        let kept = redactor.text(&text).replace("[redacted:environment]", "");
        assert_eq!(kept, "");
    }
}

#[test]
fn b_17_what_only_begins_like_a_spelt_value_stays() {
    let redactor = Redactor::of_environment([("E_PASSWORD", "Hq7&Rt2<Lm9/")]);
    for text in [
        "Hq7&amp;Rt2&lt;Lm8/",
        "Hq7\\u0026Rt2",
        "Hq7%26Rt2%3CLm9",
        "\\u0048q7",
        "&#72;q7&",
        "%48q7%26%",
    ] {
        assert_eq!(redactor.text(text), text);
    }
}

#[test]
fn b_17_texts_full_of_spellings_cost_the_same_for_each_byte_however_many_values_are_known() {
    let values = |count: usize| (0..count).map(|at| format!("a\\%&+{at}aaaaaaaaaaaaaaaaaaaa{at}"));
    // Begins like all of the values, and in every way.
    let part = "\\\\\\\\%25%25&amp;&amp;aaaa\\u005c&#x26;a\\%&+1\\u0061%5c%25&amp;+1aaa";
    let cost = |count: usize, length: usize| {
        let redactor = Redactor::knowing(values(count));
        let text = part.repeat(length / part.len());
        let (steps, kept) = steps::of(|| redactor.text(&text).into_owned());
        assert_eq!(kept, text);
        steps / text.len()
    };
    let one = cost(1, 1 << 15);
    assert!(one < 32, "{one} steps for each byte");
    assert!(cost(1, 1 << 17) <= one + 1, "as many for each byte of a longer text");
    let thousand = cost(1000, 1 << 15);
    assert!(thousand <= 3 * one, "{one} steps for one value, {thousand} for a thousand");
}
