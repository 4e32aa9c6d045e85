//! Frames that prove their origin: signed with the session's token by `stafette emit`, never by a
//! model, for use when the daemon cannot be reached from where the agent runs.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use stafette_core::hex;
use stafette_core::wire::frame::Frame;

/// Signs a frame as number `seq` of the session.
pub fn sign(frame: Frame, token: &str, session: &str, seq: u64) -> Frame {
    let mut frame = frame;
    frame.attributes.retain(|(name, _)| !matches!(name.as_str(), "s" | "n" | "m"));
    frame.attributes.push(("s".into(), session.into()));
    frame.attributes.push(("n".into(), seq.to_string()));
    let proof = proof(token, &frame.sealed_text());
    frame.attributes.push(("m".into(), proof));
    frame
}

/// The number of a frame that was signed with this token; `None` for any other frame.
pub fn verify(frame: &Frame, token: &str) -> Option<u64> {
    let seal = frame.seal()?;
    let given: [u8; 32] = hex::decode(&seal.mac)?;
    let mut mac = mac(token);
    mac.update(frame.sealed_text().as_bytes());
    // In constant time: the duration must not reveal how much of a guess is right.
    mac.verify_slice(&given).ok().map(|()| seal.seq)
}

/// The proof that `text` comes from a holder of `token`, as 64 hexadecimal digits.
pub fn proof(token: &str, text: &str) -> String {
    let mut mac = mac(token);
    mac.update(text.as_bytes());
    hex::encode(&mac.finalize().into_bytes())
}

fn mac(token: &str) -> Hmac<Sha256> {
    Hmac::new_from_slice(token.as_bytes()).expect("a key of any length will do")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_07_only_the_sessions_own_token_makes_a_frame_that_counts() {
        let bare = Frame::new("HANDOFF", Some("builder".into()));
        assert_eq!(verify(&bare, "secret"), None);
        let signed = sign(bare, "secret", "s1", 7);
        assert_eq!(verify(&signed, "secret"), Some(7));
        assert_eq!(verify(&signed, "guess"), None);
        let mut moved = signed.clone();
        moved.body = Some("human".into());
        assert_eq!(verify(&moved, "secret"), None, "another payload");
        let mut renumbered = signed;
        renumbered
            .attributes
            .iter_mut()
            .filter(|(k, _)| k == "n")
            .for_each(|(_, v)| *v = "8".into());
        assert_eq!(verify(&renumbered, "secret"), None, "another number");
    }
}
