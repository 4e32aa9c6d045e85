// Greets whoever comes.
import { old } from './old'

export function greet(name: string): string {
  const word = 'Hello'
  /* The old greeting stays
     until the next release. */
  return old(word, name)
}

export const times = 3
