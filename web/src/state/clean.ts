// What agents say is shown as text. Characters that would change how text around them reads are made visible.

// Controls, and everything that changes the direction of text.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g

/** The same text without escape sequences and with nothing hidden in it. */
export function clean(text: string): string {
  return text.replace(/\u001b\[[0-9;:?]*[ -/]*[@-~]/g, '').replace(HIDDEN, '\ufffd')
}
