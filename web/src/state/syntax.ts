// Colours for code: comments, strings, numbers and the words of a language. Small on purpose: it reads a line at a
// time and knows just enough not to colour words inside of texts.

export type Tone = '' | 'comment' | 'string' | 'number' | 'word' | 'name'

export interface Piece {
  text: string
  tone: Tone
}

interface Language {
  line: string[]
  block: [string, string] | null
  quotes: string[]
  /** Strings that go over several lines. */
  long: string[]
  words: Set<string>
}

const set = (text: string): Set<string> => new Set(text.split(' '))
const C: Pick<Language, 'line' | 'block'> = { line: ['//'], block: ['/*', '*/'] }
const BOTH = ['"', "'"]

const RUST: Language = {
  ...C,
  quotes: ['"'],
  long: [],
  words: set('as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while'),
}
const SCRIPT: Language = {
  ...C,
  quotes: BOTH,
  long: ['`'],
  words: set('abstract as async await boolean break case catch class const continue default delete do else enum export extends false finally for from function get if implements import in instanceof interface keyof let new null number of private protected public readonly return satisfies set static string super switch this throw true try type typeof undefined unknown var void while yield'),
}
const PYTHON: Language = {
  line: ['#'],
  block: null,
  quotes: BOTH,
  long: ['"""', "'''"],
  words: set('and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return True try while with yield'),
}
const GO: Language = {
  ...C,
  quotes: BOTH,
  long: ['`'],
  words: set('break case chan const continue default defer else fallthrough false for func go goto if import interface map nil package range return select struct switch true type var'),
}
const BRACES: Language = {
  ...C,
  quotes: BOTH,
  long: [],
  words: set('abstract auto bool boolean break case catch char class const continue default delete do double else enum extends extern false final finally float for fun if implements import in int interface internal let long namespace new null nullptr object override package private protected public return short signed sizeof static string struct super switch template this throw true try typedef union unsigned using val var virtual void volatile when while'),
}
const SHELL: Language = {
  line: ['#'],
  block: null,
  quotes: BOTH,
  long: [],
  words: set('case do done elif else esac exit export fi for function if in local return set then unset until while'),
}
const DATA: Language = { line: ['#'], block: null, quotes: BOTH, long: ['"""'], words: set('true false null yes no on off') }
const JSON_: Language = { ...DATA, line: [], quotes: ['"'], long: [] }
const STYLE: Language = { line: [], block: ['/*', '*/'], quotes: BOTH, long: [], words: set('important inherit initial none auto') }
const MARKUP: Language = { line: [], block: ['<!--', '-->'], quotes: ['"'], long: [], words: set('') }
const SQL: Language = {
  line: ['--'],
  block: ['/*', '*/'],
  quotes: ["'"],
  long: [],
  words: set('select from where insert into update delete create table index primary key not null and or in join left inner on group by order limit values set SELECT FROM WHERE INSERT INTO UPDATE DELETE CREATE TABLE INDEX PRIMARY KEY NOT NULL AND OR IN JOIN LEFT INNER ON GROUP BY ORDER LIMIT VALUES SET'),
}

const LANGUAGES: Record<string, Language> = {
  rs: RUST, ts: SCRIPT, tsx: SCRIPT, js: SCRIPT, jsx: SCRIPT, mjs: SCRIPT, cjs: SCRIPT, py: PYTHON, rb: PYTHON, go: GO,
  c: BRACES, h: BRACES, cc: BRACES, cpp: BRACES, hpp: BRACES, java: BRACES, kt: BRACES, cs: BRACES, swift: BRACES, php: BRACES, scala: BRACES,
  sh: SHELL, bash: SHELL, zsh: SHELL, toml: DATA, yaml: DATA, yml: DATA, ini: DATA, lock: DATA, json: JSON_, css: STYLE, html: MARKUP, xml: MARKUP, svg: MARKUP, sql: SQL,
}

export function languageOf(file: string): Language | null {
  const name = file.split('/').at(-1) ?? ''
  if (name === 'Dockerfile' || name === 'Makefile') return SHELL
  return LANGUAGES[name.split('.').at(-1)?.toLowerCase() ?? ''] ?? null
}

/** Lines longer than this are shown as they are. */
const LONGEST = 2_000

/** What a line begins in: nothing, or something that the lines before have not ended. */
export type Open = { tone: 'comment' | 'string'; end: string } | null

/** A line in pieces, and what the next one begins in. */
export function colour(text: string, language: Language | null, open: Open = null): [Piece[], Open] {
  if (!language || text.length > LONGEST) return [[{ text, tone: '' }], null]
  const pieces: Piece[] = []
  const add = (part: string, tone: Tone): void => {
    if (!part) return
    const last = pieces.at(-1)
    if (last && last.tone === tone) last.text += part
    else pieces.push({ text: part, tone })
  }
  let at = 0
  const through = (end: string, tone: 'comment' | 'string', from: number): boolean => {
    const found = text.indexOf(end, from)
    add(text.slice(at, found < 0 ? text.length : found + end.length), tone)
    at = found < 0 ? text.length : found + end.length
    return found >= 0
  }
  if (open && !through(open.end, open.tone, 0)) return [pieces, open]
  while (at < text.length) {
    const rest = text.slice(at)
    if (language.block && rest.startsWith(language.block[0])) {
      const [, end] = language.block
      if (!through(end, 'comment', at + language.block[0].length)) return [pieces, { tone: 'comment', end }]
      continue
    }
    if (language.line.some((mark) => rest.startsWith(mark))) {
      add(rest, 'comment')
      break
    }
    const long = language.long.find((mark) => rest.startsWith(mark))
    if (long) {
      if (!through(long, 'string', at + long.length)) return [pieces, { tone: 'string', end: long }]
      continue
    }
    const first = rest[0]!
    if (language.quotes.includes(first)) {
      let end = 1
      while (end < rest.length && rest[end] !== first) end += rest[end] === '\\' ? 2 : 1
      add(rest.slice(0, end + 1), 'string')
      at += Math.min(rest.length, end + 1)
      continue
    }
    const word = /^[A-Za-z_$][\w$]*/.exec(rest)?.[0]
    if (word) {
      const called = rest[word.length] === '('
      add(word, language.words.has(word) ? 'word' : called ? 'name' : '')
      at += word.length
      continue
    }
    const number = /^\d[\w.]*/.exec(rest)?.[0]
    if (number) {
      add(number, 'number')
      at += number.length
      continue
    }
    add(first, '')
    at += 1
  }
  return [pieces, null]
}
