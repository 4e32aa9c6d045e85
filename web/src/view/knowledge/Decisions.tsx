// What options return: the table, what it is made of, how sure the winner is, and a person's choice.

import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { type DecisionView, type Node, type Nodes, type Ranked, type Scored, type Term, decisionPath, nodesPath } from '../../api/knowledge'
import { type Choice, TERMS, type Weighing, choices, reckon, weighing, winner } from '../../state/returns'
import { stateOf, titleOf } from '../../state/walk'
import { useAnswer, useKeys } from '../../app/knowledge'
import { go, items, place, respond, sending, short, world } from '../../app/store'
import { Empty, Glyph, Key, Said, usePhone } from '../parts'
import { Lack } from './Lack'

const number = (value: number): string => value.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 })

type Line = { id: string; title: string; more: string; open: Choice | null }

export function Decisions(): JSX.Element {
  const phone = usePhone()
  const open = choices(world.value.runs, items.value)
  const { data, problem } = useAnswer<Nodes>(nodesPath('Decision'))
  const nodes = (data?.nodes ?? []) as Node[]
  const newest = [...nodes].sort((a, b) => b.made.at - a.made.at)
  const lines: Line[] = [
    ...open.map((one) => ({ id: one.id, title: one.item.title, more: one.item.request, open: one })),
    ...newest.filter((node) => !open.some((one) => one.id === node.id)).map((node) => ({ id: node.id, title: titleOf(node), more: stateOf(node), open: null })),
  ]
  const wanted = place.value.about
  const here = wanted ?? (phone ? null : (lines[0]?.id ?? null))
  const line = lines.find((one) => one.id === here) ?? null
  useKeys((key) => {
    const by = key === 'j' ? 1 : key === 'k' ? -1 : 0
    if (by) {
      return () => {
        const next = lines[Math.min(lines.length - 1, Math.max(0, lines.findIndex((one) => one.id === here) + by))]
        if (next) go({ about: next.id }, 'replace')
      }
    }
    const option = /^[1-9]$/.test(key) ? line?.open?.item.question.options[Number(key) - 1] : undefined
    return option !== undefined && line?.open ? () => void respond(line.open!.item, option) : null
  })
  if (!data && open.length === 0) return <Lack problem={problem} />
  if (lines.length === 0 && !wanted) {
    return (
      <Empty title="Nothing was decided yet" command={'stafette run "Should we buy or build the invoicing?"'}>
        When the decisions stage has options, their table is here: what each returns, what that is made of, and how much has to change before another one wins. You choose. It begins with
      </Empty>
    )
  }
  return (
    <div class="sides">
      {(!phone || !here) && (
        <nav class="side" aria-label="Decisions">
          <ol class="side-list">
            {lines.map((one) => (
              <li key={one.id}>
                <button type="button" class={`plain side-line${one.id === here ? ' is-here' : ''}`} aria-current={one.id === here ? 'true' : undefined} onClick={() => go({ about: one.id })}>
                  <span class="side-glyphed">
                    <Glyph name={one.open ? 'needs you' : 'done'} label={one.open ? 'needs you' : 'decided'} />
                    <Said text={one.title} of="side-title" />
                  </span>
                  <Said text={one.more} of="quiet side-more" />
                </button>
              </li>
            ))}
          </ol>
        </nav>
      )}
      {here && <Decision key={here} id={here} open={line?.open ?? null} phone={phone} />}
    </div>
  )
}

function Decision({ id, open, phone }: { id: string; open: Choice | null; phone: boolean }): JSX.Element {
  // What waits is not in the graph yet: the question has the table.
  const { data, problem } = useAnswer<DecisionView>(open ? null : decisionPath(id))
  const ranked = open?.ranked ?? data?.ranking ?? null
  if (!open && !data) return <Lack problem={problem} />
  const node = data?.decision as Node | undefined
  const tasks = (data?.tasks ?? []) as Node[]
  const chosen = node && 'option' in node ? node.option : null
  const [run, handoff] = id.split('.')
  return (
    <article class="decision" tabIndex={0} aria-label="Decision">
      {phone && (
        <button type="button" class="plain link" onClick={() => go({ about: null })}>
          All decisions
        </button>
      )}
      <h1>
        <Said text={open ? open.item.title : (chosen ?? id)} />
      </h1>
      <p class="quiet decision-from">
        {open ? <Said text={open.item.request} /> : node && <Said text={stateOf(node)} />}
        {node && 'reasoning' in node && <Said text={node.reasoning} />}
        {handoff && (
          <button type="button" class="link mono" onClick={() => go({ view: 'terminal', agent: null, run: short(run!), handoff })}>
            {handoff}
          </button>
        )}
        {!open && (
          <button type="button" class="link" onClick={() => go({ part: 'graph', about: `decision:${id}` })}>
            what belongs to it
          </button>
        )}
      </p>
      {ranked ? <Table ranked={ranked} open={open} chosen={chosen} /> : <p class="quiet">Its table is not kept.</p>}
      {tasks.length > 0 && (
        <section>
          <h2>Tasks</h2>
          <ul class="decision-tasks">
            {tasks.map((task) => (
              <li key={task.id}>
                <Glyph name={stateOf(task) === 'done' ? 'done' : stateOf(task) === 'blocked' ? 'refused' : 'idle'} />
                <button type="button" class="link" onClick={() => go({ part: 'graph', about: `task:${task.id}` })}>
                  <Said text={titleOf(task)} />
                </button>
                <span class="quiet figures">
                  {stateOf(task)}
                  {'effortHours' in task && `, ${task.effortHours} h`}
                  {'actualHours' in task && task.actualHours != null && `, took ${task.actualHours} h`}
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </article>
  )
}

function Table({ ranked, open, chosen }: { ranked: Ranked; open: Choice | null; chosen: string | null }): JSX.Element {
  const phone = usePhone()
  const plain = weighing(ranked)
  const [weights, setWeights] = useState<Weighing>(plain)
  const other = TERMS.some((term) => weights[term] !== plain[term])
  const list = other ? reckon(ranked.ranked, weights) : ranked.ranked
  const first = other ? winner(list) : (ranked.winner ?? null)
  const titles = new Map(ranked.options.map((one) => [one.id, one.title]))
  const busy = open !== null && sending.value.has(open.item.id)
  const place = (id: string): number => open?.item.question.options.indexOf(id) ?? -1
  const choose = (id: string, title: string): JSX.Element | null => {
    const at = place(id)
    if (!open || at < 0) return null
    return (
      <button type="button" class="act is-yours" disabled={busy} aria-label={`Approve ${at < 9 ? `${at + 1}` : ''}: ${title}`} onClick={() => void respond(open.item, id)}>
        Approve {at < 9 && <Key>{at + 1}</Key>}
      </button>
    )
  }
  const cell = (one: Scored, term: Term): JSX.Element => {
    const part = one.parts.find((it) => it.term === term)
    return (
      <td key={term} class={part && part.value < 0 ? 'is-out' : ''} title={part ? `${number(part.amount)} × ${part.weight.toFixed(2)}` : ''}>
        {part && part.value !== 0 ? number(part.value) : '–'}
      </td>
    )
  }
  const factor = (one: Scored): JSX.Element | null => (one.hours_factor !== 1 ? <span class="quiet figures"> hours × {one.hours_factor.toFixed(2)}</span> : null)
  return (
    <>
      <div class="table-scroll" tabIndex={0} role="region" aria-label="What the options return">
        <table class="returns">
          <thead>
            <tr>
              <th scope="col">Option</th>
              <th scope="col">Return</th>
              {TERMS.map((term) => (
                <th scope="col" key={term}>
                  {term}
                </th>
              ))}
              <th scope="col">per unit</th>
              {open && !phone && (
                <th scope="col">
                  <span class="heard">Choose</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {list.map((one) => {
              const title = titles.get(one.id) ?? one.id
              return (
                <tr key={one.id} class={one.id === first ? 'is-first' : ''}>
                  <th scope="row">
                    <span class="figures quiet">{one.rank}.</span> <Said text={title} of="strong" /> <span class="mono quiet">{one.id}</span>
                    {one.id === first && <span class="best">best</span>}
                    {one.tied && <span class="quiet"> tied</span>}
                    {(chosen === one.id || chosen?.startsWith(`${one.id}:`)) && <span class="quiet"> chosen</span>}
                    {factor(one)}
                    {phone && <span class="returns-yes">{choose(one.id, title)}</span>}
                  </th>
                  <td class="strong">{number(one.total)}</td>
                  {TERMS.map((term) => cell(one, term))}
                  <td>{one.ratio == null || other ? '–' : one.ratio.toFixed(2)}</td>
                  {open && !phone && <td>{choose(one.id, title)}</td>}
                </tr>
              )
            })}
            {ranked.incomplete.map((one) => (
              <tr key={one.id}>
                <th scope="row">
                  <Said text={titles.get(one.id) ?? one.id} /> <span class="mono quiet">{one.id}</span>
                  {phone && <span class="returns-yes">{choose(one.id, titles.get(one.id) ?? one.id)}</span>}
                </th>
                <td colSpan={TERMS.length + 2} class="is-words quiet">
                  cannot be ranked: nobody knows {one.missing.join(', ')}
                </td>
                {open && !phone && <td>{choose(one.id, titles.get(one.id) ?? one.id)}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {open && place('none') >= 0 && (
        <p>
          <button type="button" class="act" disabled={busy} onClick={() => void respond(open.item, 'none')}>
            None of them <Key>{place('none') + 1}</Key>
          </button>
        </p>
      )}
      {ranked.learned.length > 0 && (
        <ul class="learned">
          {ranked.learned.map((one) => (
            <li key={one.insight}>
              <button type="button" class="link" onClick={() => go({ part: 'insights', about: one.insight.replace('insight:', '') })}>
                Learned
              </button>
              , since version {one.version}: <Said text={one.says} />
            </li>
          ))}
        </ul>
      )}
      <Sensitivity ranked={ranked} weights={weights} set={setWeights} plain={plain} first={first} other={other} title={(id) => titles.get(id) ?? id} />
    </>
  )
}

/** How far a slider goes. */
const WIDEST = 3

interface Moves {
  ranked: Ranked
  weights: Weighing
  plain: Weighing
  set: (weights: Weighing) => void
  first: string | null
  other: boolean
  title: (id: string) => string
}

function Sensitivity({ ranked, weights, plain, set, first, other, title }: Moves): JSX.Element | null {
  if (ranked.ranked.length < 2) return null
  return (
    <section class="sensitivity">
      <h2>If you weighed it differently</h2>
      <p class="quiet" aria-live="polite">
        {other ? (
          <>
            With these weights <strong>{first ? title(first) : 'nobody'}</strong> {first ? 'is best' : 'is ahead: two share the first place'}.{' '}
            <button type="button" class="link" onClick={() => set(plain)}>
              As it was
            </button>
          </>
        ) : ranked.sensitivity.length > 0 ? (
          'Move a weight to see who would win. A mark shows where another option takes over, all else being equal.'
        ) : (
          'There is no single winner, so nothing can be said about what would change it.'
        )}
      </p>
      <div class="weights">
        {TERMS.map((term) => {
          const tips = ranked.sensitivity.find((one) => one.term === term)
          const marks = [tips?.below, tips?.above].filter((tip) => tip != null)
          const widest = Math.max(WIDEST, plain[term] * WIDEST)
          return (
            <div class="weight" key={term}>
              <label for={`weight-${term}`}>{term}</label>
              <span class="weight-line">
                {marks.map((tip) => tip.at <= widest && <span key={tip.at} class="weight-tip" style={{ left: `${(tip.at / widest) * 100}%` }} title={`${title(tip.rival)} wins beyond ${tip.at.toFixed(2)}`} />)}
                <input id={`weight-${term}`} type="range" min={0} max={widest} step={0.05} value={weights[term]} onInput={(event) => set({ ...weights, [term]: Number(event.currentTarget.value) })} />
              </span>
              <output class="figures">{weights[term].toFixed(2)}</output>
              <span class="quiet weight-words">
                {tips?.below && (
                  <span>
                    below {tips.below.at.toFixed(2)} <Said text={title(tips.below.rival)} /> wins
                  </span>
                )}
                {tips?.above && (
                  <span>
                    above {tips.above.at.toFixed(2)} <Said text={title(tips.above.rival)} /> wins
                  </span>
                )}
                {tips && !tips.below && !tips.above && <span>changes nothing</span>}
              </span>
            </div>
          )
        })}
      </div>
    </section>
  )
}
