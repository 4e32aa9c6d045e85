// The principles, and what a run answered to each of them.

import type { JSX } from 'preact'
import { type ConstitutionView, type Verdict, constitutionPath } from '../../api/knowledge'
import { useAnswer, useKeys } from '../../app/knowledge'
import { entries, go, place, runId, short } from '../../app/store'
import { Empty, Glyph, type GlyphName, Said } from '../parts'
import { Bar, Lack } from './Lack'

const VERDICTS: Record<Verdict, [GlyphName, string]> = {
  holds: ['done', 'holds'],
  violated: ['refused', 'violated'],
  not_applicable: ['cancelled', 'does not apply'],
}

export function Constitution(): JSX.Element {
  const run = runId.value
  const { data, problem } = useAnswer<ConstitutionView>(constitutionPath(run))
  const answers = data?.answers ?? []
  const shown = answers.find((one) => one.handoff === place.value.about) ?? answers.at(-1)
  useKeys((key) => {
    const by = key === 'j' ? 1 : key === 'k' ? -1 : 0
    if (!by || !shown) return null
    return () => {
      const next = answers[answers.indexOf(shown) + by]
      if (next) go({ about: next.handoff }, 'replace')
    }
  })
  if (!data) return <Lack problem={problem} />
  const principles = data.constitution?.principles ?? []
  if (principles.length === 0) {
    return (
      <Empty title="There is no constitution" command={'[knowledge]\nconstitution = "constitution.md"'}>
        Numbered principles in a Markdown file: every proposal is held against each of them before anything is recommended. Name the file in stafette.toml:
      </Empty>
    )
  }
  const refused = (state: string): boolean => state === 'refused'
  return (
    <div class="constitution" tabIndex={0} role="region" aria-label="Constitution">
      <header class="part-head">
        <h1>Constitution</h1>
        {entries.value.length > 0 && (
          <label class="quiet">
            answered in{' '}
            <select value={run ?? ''} onChange={(event) => go({ run: short(event.currentTarget.value), about: null })}>
              {entries.value.map((one) => (
                <option key={one.id} value={one.id}>
                  {one.request.slice(0, 60)} · {short(one.id)}
                </option>
              ))}
            </select>
          </label>
        )}
      </header>
      {answers.length > 1 && (
        <div class="answer-sets" role="group" aria-label="Answers of this run">
          {answers.map((one) => (
            <button type="button" key={one.handoff} class={one === shown ? 'small is-on' : 'small'} aria-pressed={one === shown} onClick={() => go({ about: one.handoff }, 'replace')}>
              {one.handoff} {refused(one.state) ? 'refused' : String(one.recommendation).toLowerCase()}
            </button>
          ))}
        </div>
      )}
      {shown ? (
        <p class="answer-sum">
          <Glyph name={refused(shown.state) ? 'refused' : shown.recommendation === 'APPROVE' ? 'done' : 'waiting'} />
          <strong>{String(shown.recommendation)}</strong>
          {typeof shown.score === 'number' && (
            <>
              <Bar part={shown.score} label={`goes with the goals by ${shown.score.toFixed(2)} of 1`} />
              <span class="quiet figures">{shown.score.toFixed(2)} with the goals</span>
            </>
          )}
          {refused(shown.state) && <span class="is-bad">this recommendation was refused</span>}
          <button type="button" class="link mono" onClick={() => go({ view: 'terminal', agent: null, run: short(run ?? ''), handoff: shown.handoff })}>
            {shown.handoff}
          </button>
        </p>
      ) : (
        <p class="quiet">
          {run ? 'This run has recommended nothing yet: the discuss stage answers each principle first.' : 'No run has answered it yet. One begins with '}
          {!run && <code>stafette run "…"</code>}
        </p>
      )}
      <ol class="principles">
        {principles.map((one) => {
          const answer = shown?.answers.find((it) => it.principle === one.id)
          const [glyph, word] = answer ? VERDICTS[answer.verdict] : (['idle', 'not answered'] as const)
          return (
            <li key={one.id} class={`principle is-${answer?.verdict ?? 'open'}`}>
              <span class="figures quiet principle-id">{one.id}</span>
              <div>
                <h2>
                  <Said text={one.title} />
                </h2>
                {one.text && (
                  <p class="quiet prose">
                    <Said text={one.text} />
                  </p>
                )}
              </div>
              <div class="verdict">
                <p>
                  <Glyph name={glyph} /> <strong>{word}</strong>
                </p>
                {answer && (
                  <p class="prose">
                    <Said text={answer.reason} />
                  </p>
                )}
              </div>
            </li>
          )
        })}
      </ol>
    </div>
  )
}
