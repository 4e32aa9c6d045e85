//! Translation of a HANDOFF frame to an offer, and back.

use serde_json::{Value, json};

use super::signal::{BadSignal, Handoff, HandoffNote, Signal};
use super::{Frame, Seal};
use stafette_model::Foreign;
use stafette_model::{Fields, Kind, Offer, Party, Reason};

/// The dialect's name in [`Foreign`].
const DIALECT: &str = "frame";
const KEY_DECISIONS: &str = "key_decisions";
const FORM: &str = "form";
const NOTE: &str = "note";
const SUMMARY: &str = "summary";
const ATTRIBUTES: &str = "attributes";

/// Converts a HANDOFF frame from `from` to an offer. Fields of the frame other than its summary
/// become outputs, where routes look for their evidence.
///
/// # Errors
/// The frame is not a HANDOFF, or its payload is not valid.
pub fn offer<A: Default>(from: Party, frame: &Frame) -> Result<Offer<A>, BadSignal> {
    let Signal::Handoff(handoff) = Signal::try_from(frame)? else {
        let reason = "only HANDOFF offers work".to_owned();
        return Err(BadSignal { kind: frame.kind.clone(), reason });
    };
    let mut offer = Offer::new(from, Party::from(handoff.to()), Kind::Transfer, Reason::Stage);
    let mut fields = Fields::new();
    if let Handoff::Note(note) = handoff {
        fields.insert(FORM.into(), json!(NOTE));
        if note.summary.as_deref() == Some("") {
            // An empty summary is not the same frame as none.
            fields.insert(SUMMARY.into(), json!(""));
        }
        offer.summary = note.summary.unwrap_or_default();
        offer.outputs = note.extra;
        if let Some(decisions) = note.key_decisions {
            offer.outputs.insert(KEY_DECISIONS.into(), decisions.into());
        }
    }
    if !frame.attributes.is_empty() {
        fields.insert(ATTRIBUTES.into(), json!(frame.attributes));
    }
    let id = match frame.seal() {
        Some(Seal { session, seq, .. }) => format!("{session}/{seq}"),
        None => String::new(),
    };
    offer.foreign = Some(Foreign { dialect: DIALECT.into(), id, fields });
    Ok(offer)
}

/// Converts `offer` to a HANDOFF frame: the same one that [`offer()`] was given, or, for an offer
/// from elsewhere, its target, summary and outputs.
#[must_use]
pub fn frame_of<A: Default>(offer: &Offer<A>) -> Frame {
    let ours = offer.foreign.as_ref().filter(|foreign| foreign.dialect == DIALECT);
    let field = |name: &str| ours.and_then(|foreign| foreign.fields.get(name));
    let to = offer.to.as_str().to_owned();
    let plain = offer.summary.is_empty() && offer.outputs.is_empty();
    let handoff = if plain && field(FORM).is_none() {
        Handoff::Stage(to)
    } else {
        let mut extra = offer.outputs.clone();
        let decisions = extra.get(KEY_DECISIONS).and_then(texts);
        if decisions.is_some() {
            extra.shift_remove(KEY_DECISIONS);
        }
        let summary = !offer.summary.is_empty() || field(SUMMARY).is_some();
        let summary = summary.then(|| offer.summary.clone());
        Handoff::Note(HandoffNote { to, summary, key_decisions: decisions, extra })
    };
    let mut frame = Frame::from(&Signal::Handoff(handoff));
    if let Some(attributes) = field(ATTRIBUTES) {
        frame.attributes = serde_json::from_value(attributes.clone()).unwrap_or_default();
    }
    frame
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Offer = stafette_model::Offer<()>;

    fn frame(body: &str) -> Frame {
        Frame::new("HANDOFF", Some(body.to_owned()))
    }

    #[test]
    fn s1_04_a_handoff_frame_is_an_offer_to_its_stage() {
        let offer: Offer = offer(Party::from("discuss"), &frame("decisions")).unwrap();
        assert_eq!((offer.from.as_str(), offer.to.as_str()), ("discuss", "decisions"));
        assert_eq!((offer.kind, &offer.reason), (Kind::Transfer, &Reason::Stage));
        assert_eq!(offer.foreign.as_ref().map(|foreign| foreign.dialect.as_str()), Some("frame"));
        assert_eq!(frame_of(&offer), frame("decisions"));
    }

    #[test]
    fn s1_18_metadata_reaches_the_next_stage_and_nothing_is_lost_on_the_way_back() {
        for body in [
            r#"{"to":"decisions","summary":"s","key_decisions":["a"],"thread_id":7,"score":0.8}"#,
            r#"{"to":"human","summary":"","key_decisions":[]}"#,
            r#"{"to":"decisions"}"#,
        ] {
            let mut signed = frame(body);
            signed.attributes =
                [("s", "x9"), ("n", "3"), ("m", "ff")].map(|(k, v)| (k.into(), v.into())).into();
            for frame in [frame(body), signed] {
                let offer: Offer = offer(Party::from("discuss"), &frame).unwrap();
                let back = frame_of(&offer);
                assert_eq!(back.value(), frame.value());
                assert_eq!(back.attributes, frame.attributes);
                let again: Offer = super::offer(Party::from("discuss"), &back).unwrap();
                assert_eq!(again, offer);
            }
        }
        let offer: Offer =
            offer(Party::from("discuss"), &frame(r#"{"to":"x","thread_id":7}"#)).unwrap();
        assert_eq!(offer.outputs["thread_id"], json!(7));
    }

    #[test]
    fn s1_04_other_frames_offer_nothing() {
        assert!(offer::<()>(Party::from("discuss"), &Frame::new("END", None)).is_err());
    }
}
