// A council as it comes to its decision: who said what, where each member stands, how the quorum fills.

import type { JSX } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { CouncilView as Session, Stance } from '../api/team'
import { type Speech, type Stand, STANCES, councilOf, decided, speeches, stanceWord, stands, verdictWord } from '../state/council'
import { neighbours } from '../state/lineage'
import type { RunState } from '../state/run'
import { clock as time, span } from '../state/words'
import { at, clock, go, items, known, place, run, runId, short } from '../app/store'
import { Empty, Glyph, type GlyphName, Said, usePhone } from './parts'

const GLYPHS: Record<Stance, GlyphName> = { agree: 'done', building: 'idle', abstain: 'cancelled', disagree: 'refused' }

/** A member's stance as a glyph: a closed vote looks like none of the open ones. */
function StanceGlyph({ stance, turns, speaks }: { stance: Stance | null; turns: number; speaks?: boolean }): JSX.Element {
  if (speaks) return <Glyph name="working" />
  if (stance) return <Glyph name={GLYPHS[stance]} />
  return turns === 0 ? (
    <Glyph name="waiting" />
  ) : (
    <svg class="glyph" width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">
      <path d="M1.700 3.500h10.600v7H1.700ZM2 4l5 3.700L12 4" fill="none" stroke="currentColor" stroke-width="1.300" />
    </svg>
  )
}

export function Council(): JSX.Element {
  const state = run.value
  const phone = usePhone()
  const council = state && councilOf(state, place.value.topic)
  if (!state || !council) return <None state={state} />
  const members = stands(council, state)
  const parts = (
    <>
      <Standing council={council} members={members} />
      <Outcome council={council} state={state} />
    </>
  )
  return (
    <div class="council">
      <Head council={council} members={members} state={state} />
      {phone && <div class="council-side">{parts}</div>}
      <Discussion council={council} members={members} state={state} />
      {!phone && (
        <aside class="council-side" tabIndex={0} aria-label="Where the council stands">
          {parts}
        </aside>
      )}
    </div>
  )
}

function None({ state }: { state: RunState | null }): JSX.Element {
  const rules = state?.workflow.council
  if (rules) {
    return (
      <Empty title="The council has not met yet">
        {rules.members.join(', ')} decide together when somebody hands work to <code>council</code>. What they say and how they vote is here as it comes: {rules.quorum} have to agree.
      </Empty>
    )
  }
  return (
    <Empty title="No council in this run" command="stafette init --template council">
      A council is several agents that talk until enough of them agree. Name its members under <code>[council]</code> in stafette.toml and hand work to <code>council</code>, or begin with
    </Empty>
  )
}

function Head({ council, members, state }: { council: Session; members: Stand[]; state: RunState }): JSX.Element {
  const { sealed: closed, agreed, needed, total, verdict } = council
  const rules = state.workflow.council
  const voted = members.filter((one) => one.turns > 0).length
  const said = verdict
    ? `${verdictWord(verdict)}: ${verdict.agreed} of ${verdict.total} agree, ${verdict.needed} were needed`
    : closed
      ? `${voted} of ${members.length} have voted; the votes are opened when all have`
      : `${agreed} of ${total} agree, ${needed} are needed`
  const question = items.value.find(({ run: of, question: { about } }) => of === state.id && typeof about === 'object' && 'council' in about && about.council === council.handoff)
  const shown = [...members].sort((a, b) => order(a.stance) - order(b.stance))
  return (
    <header class="council-head">
      {state.councils.size > 1 && (
        <nav class="council-topics" aria-label="Councils of this run">
          {[...state.councils].map(([handoff, one]) => (
            <button type="button" key={handoff} class={`small${one === council ? ' is-on' : ''}`} aria-current={one === council ? 'true' : undefined} title={one.topic} onClick={() => go({ topic: handoff, run: short(state.id) })}>
              <Said text={`${handoff} ${one.topic}`} />
            </button>
          ))}
        </nav>
      )}
      <h2>
        <Said text={council.topic} />
      </h2>
      <div class="quorum" role="meter" aria-label={`Quorum: ${said}`} aria-valuemin={0} aria-valuemax={total} aria-valuenow={closed ? 0 : agreed}>
        <div class="quorum-bar">
          {shown.map((one) => (
            <span key={one.member} class={`quorum-part is-${one.stance ?? (one.turns > 0 ? 'closed' : 'silent')}`} style={{ flexGrow: one.weight }} title={`${one.member}: ${stanceWord(one.stance, one.turns, closed)}${one.weight > 1 ? `, counts ${one.weight}` : ''}`} />
          ))}
        </div>
        <span class="quorum-mark" style={{ left: `${(needed / Math.max(1, total)) * 100}%` }} />
      </div>
      <p class={`council-word${verdict ? ` is-${verdict.decision}` : ''}`} role="status">
        {verdict && <Glyph name={verdict.decision === 'exhausted' ? 'failed' : 'done'} />}
        <span class="figures">{said}</span>
        <span class="quiet figures">
          {rules?.quorum}
          {members.some((one) => one.weight !== 1) && ', by weight'} · {rules?.mode === 'parallel' ? 'all at once' : 'in turn'}
          {rules?.blind_first_vote && ' · first vote blind'}
        </span>
        {question && at.value === null && (
          <button type="button" class="small is-yours" onClick={() => go({ view: 'inbox', question: question.id, handoff: null })}>
            It is yours to decide
          </button>
        )}
      </p>
    </header>
  )
}

const order = (stance: Stance | null): number => (stance ? STANCES.indexOf(stance) : STANCES.length)

function Standing({ council, members }: { council: Session; members: Stand[] }): JSX.Element {
  const { sealed: closed, limit } = council
  return (
    <section>
      <h3>Members</h3>
      <ul class="members">
        {members.map((one) => (
          <li key={one.member} class={`member is-${one.speaks ? 'now' : (one.stance ?? 'none')}`}>
            <StanceGlyph stance={one.stance} turns={one.turns} speaks={one.speaks !== null} />
            <button type="button" class="plain member-name" onClick={() => go({ view: 'terminal', agent: one.member, run: short(runId.value ?? '') })}>
              <Said text={one.member} of="strong" />
              {one.weight !== 1 && (
                <span class="quiet figures" title={`Its voice counts ${one.weight}`}>
                  {' '}
                  ×{one.weight}
                </span>
              )}
            </button>
            <span class="member-word">{one.speaks ? 'has the word' : stanceWord(one.stance, one.turns, closed)}</span>
            <span class="quiet figures" title={`spoke ${one.turns} times, ${limit} are allowed`}>
              {one.turns} of {limit}
            </span>
            {one.reason && <Said text={one.reason} of="member-reason quiet" />}
          </li>
        ))}
      </ul>
    </section>
  )
}

/** What is settled, who is against it, and what comes next. */
function Outcome({ council, state }: { council: Session; state: RunState }): JSX.Element {
  const { sealed: closed, verdict, next_topic } = council
  const next = verdict?.next_topic ?? next_topic
  const settled = decided(council)
  const follows = verdict && neighbours(state, known.value).after
  return (
    <>
      <section>
        <h3>Key decisions</h3>
        {settled.length === 0 ? (
          <p class="quiet">{closed ? 'What members hold to be settled is opened with their votes.' : 'Nothing is held to be settled yet.'}</p>
        ) : (
          <ul class="decisions">
            {settled.map((one) => (
              <li key={one.text}>
                <Said text={one.text} /> <Said text={one.by} of="quiet" />
              </li>
            ))}
          </ul>
        )}
      </section>
      {verdict && (
        <section>
          <h3>Dissent</h3>
          {verdict.dissent?.length ? (
            <ul class="decisions">
              {verdict.dissent.map((one) => (
                <li key={one.member}>
                  <span class="is-dissent">
                    <Said text={one.member} of="strong" /> {stanceWord(one.signal ?? null, 1, false)}
                  </span>
                  {one.reason && ': '}
                  <Said text={one.reason ?? ''} />
                </li>
              ))}
            </ul>
          ) : (
            <p class="quiet">Nobody is against it.</p>
          )}
        </section>
      )}
      {(next || follows) && (
        <section>
          <h3>Next</h3>
          {next && (
            <p>
              <Said text={next} />
            </p>
          )}
          {follows && (
            <button type="button" class="link" onClick={() => go({ view: 'council', run: short(follows), topic: null, handoff: null, at: null })}>
              Generation {(state.lineage?.number ?? 1) + 1} goes on
            </button>
          )}
        </section>
      )}
    </>
  )
}

function Discussion({ council, members, state }: { council: Session; members: Stand[]; state: RunState }): JSX.Element {
  const box = useRef<HTMLOListElement>(null)
  const sticks = useRef(true)
  const closed = council.sealed
  const spoken = speeches(state, council)
  const settled = new Set(council.decisions)
  const speaking = members.filter((one) => one.speaks)
  const height = spoken.length + speaking.length + (closed ? 0 : 1)
  useLayoutEffect(() => {
    if (sticks.current && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [height, council.handoff])
  const scrolled = (): void => {
    const element = box.current
    if (element) sticks.current = element.scrollTop + element.clientHeight >= element.scrollHeight - 24
  }
  return (
    <ol class="discussion" ref={box} tabIndex={0} aria-label="Discussion" onScroll={scrolled}>
      {spoken.map((one, index) => (
        <Spoken key={index} one={one} closed={closed} settled={settled} />
      ))}
      {speaking.map((one) => (
        <li key={one.member} class="speech is-now">
          <StanceGlyph stance={null} turns={0} speaks />
          <p class="speech-head">
            <Said text={one.member} of="strong" /> <span class="speech-word">has the word</span>
            <span class="quiet figures">
              turn {one.turns + 1} · {span(clock.value - one.speaks!.admittedAt)}
            </span>
            <Handoff id={one.speaks!.id} />
          </p>
          {!closed && one.speaks!.standing.kind === 'out' && one.speaks!.standing.turn.note && (
            <p class="prose quiet">
              <Said text={one.speaks!.standing.turn.note} />
            </p>
          )}
        </li>
      ))}
      {spoken.length === 0 && speaking.length === 0 && <li class="quiet">Nobody has spoken yet.</li>}
    </ol>
  )
}

function Handoff({ id }: { id: string | null }): JSX.Element | null {
  if (!id) return null
  return (
    <button type="button" class="link mono quiet" title={`The handoff in which it was said (${id})`} onClick={() => go({ handoff: id })}>
      {id}
    </button>
  )
}

function Spoken({ one, closed, settled }: { one: Speech; closed: boolean; settled: ReadonlySet<string> }): JSX.Element {
  const { vote, by } = one
  const human = by === 'human'
  const stance = closed ? null : (vote?.signal ?? null)
  return (
    <li class={`speech is-${stance ?? 'none'}`}>
      {human ? <Glyph name="person" /> : <StanceGlyph stance={stance} turns={1} />}
      <p class="speech-head">
        <Said text={human ? 'A person' : by} of="strong" />{' '}
        <span class="speech-word">{human ? 'lets them speak on' : stanceWord(stance, 1, closed)}</span>
        <span class="quiet figures">
          {one.round > 0 && `turn ${one.round} · `}
          <time>{time(one.at)}</time>
        </span>
        <Handoff id={one.handoff} />
      </p>
      {closed ? (
        <p class="quiet">What it said is opened when all have voted.</p>
      ) : (
        <>
          {one.said && (
            <p class="prose">
              <Said text={one.said} />
            </p>
          )}
          {vote?.reason && vote.reason !== one.said && (
            <p class="prose quiet">
              Because: <Said text={vote.reason} />
            </p>
          )}
          {vote?.key_decisions?.map((text) => (
            <p key={text} class="prose speech-settled">
              {settled.has(text) ? 'Settled' : 'Would settle'}: <Said text={text} />
            </p>
          ))}
          {vote?.next_topic && (
            <p class="prose quiet">
              Next: <Said text={vote.next_topic} />
            </p>
          )}
        </>
      )}
    </li>
  )
}
