import { expect, test } from 'vitest'
import type { Change, FileDiff } from '../src/api/types'
import { acts, listed, standing } from '../src/state/changes'
import { lineOf, pairs, rows } from '../src/state/diff'
import { colour, languageOf } from '../src/state/syntax'

const hunk = (...lines: string[]): FileDiff['hunks'][number] => ({
  old_start: 4,
  old_lines: 0,
  new_start: 6,
  new_lines: 0,
  lines: lines.map((line) => ({ sign: line[0]!, text: line.slice(1), unended: false })),
})

const tones = (text: string, file: string): string[] => colour(text, languageOf(file))[0].filter((piece) => piece.tone).map((piece) => `${piece.tone} ${piece.text}`)

test('lines are numbered on both sides', () => {
  const list = rows('a.txt', hunk(' same', '-gone', '+come', '+more', ' same'))
  expect(list.map((row) => [row.before, row.after])).toEqual([[4, 6], [5, null], [null, 7], [null, 8], [6, 9]])
})

test('side by side, what goes stands beside what comes in its place', () => {
  const list = pairs(rows('a.txt', hunk(' same', '-one', '-two', '+1', ' same', '+new', '-late')))
  const text = list.map(([before, after]) => [before, after].map((row) => row?.pieces.map((piece) => piece.text).join('') ?? null))
  expect(text).toEqual([['same', 'same'], ['one', '1'], ['two', null], ['same', 'same'], [null, 'new'], ['late', null]])
})

test('a remark is about the line as it would be, or as it was in a file that goes', () => {
  const [row] = rows('a.txt', hunk('-gone'))
  const file = (action: FileDiff['action']): FileDiff => ({ file: 'a.txt', action, added: 0, removed: 1, executable: false, hunks: [] })
  expect([lineOf(file('delete'), row!), lineOf(file('modify'), row!)]).toEqual([4, null])
})

test('words, texts, numbers and remarks of a language have their colours', () => {
  expect(tones("pub fn count() -> u32 { 42 } // fn", 'a.rs')).toEqual(['word pub', 'word fn', 'name count', 'number 42', 'comment // fn'])
  expect(tones("const word = 'if \\'else\\' // no'", 'a.ts')).toEqual(['word const', "string 'if \\'else\\' // no'"])
  expect(tones("fn life<'a>(x: &'a str)", 'a.rs')).toEqual(['word fn'])
  expect(tones('anything at all', 'a.unknown')).toEqual([])
  expect(tones(`${'x'.repeat(3000)} // long`, 'a.ts')).toEqual([])
})

test('what is open at the end of a line goes on in the next one of the same side', () => {
  const list = rows('a.ts', hunk(' /* begins', '-ends */ let', '+goes on', ' ends */ let'))
  expect(list.map((row) => row.pieces.map((piece) => piece.tone))).toEqual([['comment'], ['comment', '', 'word'], ['comment'], ['comment', '', 'word']])
  const [, open] = colour('text = """begins', languageOf('a.py'))
  expect(open).toEqual({ tone: 'string', end: '"""' })
})

test('whatever is coloured is the text that was there', () => {
  for (const text of ['', '\t  ', "'open", '"a" `b', '<script>alert(1)</script>', 'é 🎽 \u202e x', '/* */ */']) {
    for (const file of ['a.ts', 'a.rs', 'a.py', 'a.html', 'a.toml']) expect(colour(text, languageOf(file))[0].map((piece) => piece.text).join('')).toBe(text)
  }
})

const change = (id: string, status: Change['status'], more: Partial<Change> = {}): Change => ({
  id, status, revision: 1, author: {}, reason: '', edits: [], gates: [], proposed_at: '', ...more,
})

test('what needs a person comes first, and the newest first among equals', () => {
  const gates: Change['gates'] = [{ kind: 'deletion', file: 'a' }]
  const list = [change('c1', 'applied'), change('c2', 'pending'), change('c9', 'undone'), change('c10', 'pending', { gates }), change('c3', 'approved')]
  expect(listed(list).map((one) => `${one.id} ${standing(one)}`)).toEqual(['c10 needs you', 'c3 ready', 'c2 ready', 'c1 in', 'c9 over'])
})

test('what can be done to a set is what the daemon would do', () => {
  const gates: Change['gates'] = [{ kind: 'deletion', file: 'a' }]
  expect(acts(change('c1', 'pending', { gates }))).toEqual({ approve: true, refuse: true, apply: false, undo: false })
  expect(acts(change('c1', 'approved', { gates, approved_by: 'mia' }))).toEqual({ approve: false, refuse: true, apply: true, undo: false })
  expect(acts(change('c1', 'validated'))).toEqual({ approve: false, refuse: false, apply: false, undo: true })
  expect(acts(change('c1', 'refused'))).toEqual({ approve: true, refuse: false, apply: false, undo: false })
})
