// What was learned, to be accepted; and what the stages reckon with because of it, by version.

import type { JSX } from 'preact'
import { INSIGHTS, type InsightView, type Insights as List, PARAMETERS, type Version, type Versions, acceptInsight, reflect, rollBack } from '../../api/knowledge'
import { TERMS } from '../../state/returns'
import { moment } from '../../state/words'
import { change, useAnswer, useKeys } from '../../app/knowledge'
import { go, now, place, say } from '../../app/store'
import { Empty, Glyph, Key, Said } from '../parts'
import { Bar, Lack } from './Lack'

type Change = NonNullable<InsightView['change']>

function says(one: Change): string {
  return one.change === 'estimate' ? `work of the kind “${one.kind}” is planned ${one.factor.toFixed(2)} times as long` : `${one.term} counts ${one.factor.toFixed(2)} times as much`
}

const accept = (one: InsightView): Promise<Version | null> =>
  change(() => acceptInsight(one.id)).then((version) => {
    if (version) say(`Version ${version.number} counts from now on`)
    return version
  })

const back = (to: number): Promise<Version | null> =>
  change(() => rollBack(to)).then((version) => {
    if (version) say(`Version ${to} counts again, as version ${version.number}`)
    return version
  })

async function look(): Promise<void> {
  const came = await change(reflect)
  if (came) say(came.insights.length ? `${came.insights.length} patterns hold in ${came.observations} observations` : `No pattern holds in ${came.observations} observations yet`)
}

export function Insights(): JSX.Element {
  const { data, problem } = useAnswer<List>(INSIGHTS)
  const versions = useAnswer<Versions>(PARAMETERS).data?.versions ?? []
  const list = data?.insights ?? []
  const here = list.find((one) => one.id === place.value.about) ?? null
  useKeys((key) => {
    const by = key === 'j' ? 1 : key === 'k' ? -1 : 0
    if (by) {
      return () => {
        const next = list[Math.min(list.length - 1, Math.max(0, (here ? list.indexOf(here) : -1) + by))]
        if (next) go({ about: next.id }, 'replace')
      }
    }
    if (key === 'y' && here?.change && here.in_force == null) return () => void accept(here)
    if (key === 'u' && here?.in_force != null) return () => void back(here.in_force! - 1)
    return null
  })
  if (!data) return <Lack problem={problem} />
  return (
    <div class="insights" tabIndex={0} role="region" aria-label="Insights and parameters">
      <section>
        <header class="part-head">
          <h1>Insights</h1>
          <button type="button" class="small" onClick={() => void look()}>
            Look for patterns now
          </button>
        </header>
        {list.length === 0 ? (
          <Empty title="Nothing was learned yet" command="stafette calendar done TASK HOURS">
            Detectors compare what was estimated with what happened, and say a pattern only when it holds. They learn most from how long work really took:
          </Empty>
        ) : (
          <ul class="insight-list">
            {list.map((one) => (
              <Insight key={one.id} one={one} here={one === here} />
            ))}
          </ul>
        )}
      </section>
      <Parameters versions={versions} />
    </div>
  )
}

function Insight({ one, here }: { one: InsightView; here: boolean }): JSX.Element | null {
  if (!('pattern' in one)) return null
  const force = one.in_force ?? null
  return (
    <li class={here ? 'insight is-here' : 'insight'} aria-current={here ? 'true' : undefined}>
      <p class="insight-words">
        <Glyph name={force !== null ? 'done' : one.change ? 'needs you' : 'idle'} label={force !== null ? 'in force' : one.change ? 'can be accepted' : 'good to know'} />
        <Said text={one.pattern} of="strong" />
      </p>
      <p class="insight-more quiet">
        <Bar part={one.confidence} label={`${Math.round(one.confidence * 100)}% sure`} />
        <span class="figures">{Math.round(one.confidence * 100)}% sure</span>
        <Said text={one.evidence} />
        <button type="button" class="link" onClick={() => go({ part: 'graph', about: `insight:${one.id}`, spot: null })}>
          evidence
        </button>
      </p>
      {one.change ? (
        <p class="insight-acts">
          <span>
            {force !== null ? 'Since version ' : 'Accepted, '}
            {force !== null && <span class="figures">{force}, </span>}
            {says(one.change)}.
          </span>
          {force === null ? (
            <button type="button" class="act is-yours" onClick={() => void accept(one)}>
              Accept {here && <Key>y</Key>}
            </button>
          ) : (
            <button type="button" class="act" onClick={() => void back(force - 1)}>
              Roll back {here && <Key>u</Key>}
            </button>
          )}
        </p>
      ) : (
        <p class="quiet insight-acts">It changes nothing by itself: it is good to know.</p>
      )}
    </li>
  )
}

function why(one: Version): JSX.Element {
  if (one.why === 'accepted') {
    return (
      <>
        <button type="button" class="link" onClick={() => go({ part: 'graph', about: one.insight, spot: null })}>
          <Said text={one.insight.replace('insight:', '')} />
        </button>
        : {says(one.change)}
      </>
    )
  }
  return <>{one.why === 'rolled_back' ? `back to version ${one.to}` : 'as the workflow says'}</>
}

function Parameters({ versions }: { versions: Version[] }): JSX.Element | null {
  const current = versions.at(-1)
  if (!current) return null
  const { weights, estimates } = current.parameters
  return (
    <section aria-label="Parameters">
      <h2>What is reckoned with</h2>
      <dl class="figures-row">
        {TERMS.map((term) => (
          <div key={term}>
            <dt>weight of {term}</dt>
            <dd>{weights[term].toFixed(2)}</dd>
          </div>
        ))}
        <div>
          <dt>an hour</dt>
          <dd>{weights.hour_price.toFixed(0)}</dd>
        </div>
        <div>
          <dt>a goal</dt>
          <dd>{weights.goal_price.toFixed(0)}</dd>
        </div>
        {Object.entries(estimates).map(([kind, factor]) => (
          <div key={kind}>
            <dt>
              hours of <Said text={kind} />
            </dt>
            <dd>× {factor.toFixed(2)}</dd>
          </div>
        ))}
      </dl>
      <div class="table-scroll" tabIndex={0} role="region" aria-label="Versions">
        <table class="versions">
          <thead>
            <tr>
              <th scope="col">Version</th>
              <th scope="col" class="is-words">Why</th>
              <th scope="col">Since</th>
              <th scope="col">By</th>
              <th scope="col">
                <span class="heard">What to do</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {[...versions].reverse().map((one) => (
              <tr key={one.number}>
                <th scope="row">
                  {one.number} {one === current && <span class="quiet">in force</span>}
                </th>
                <td class="is-words">{why(one)}</td>
                <td>{moment(one.at, now.value)}</td>
                <td>
                  <Said text={String(one.by)} />
                </td>
                <td>
                  {one !== current && (
                    <button type="button" class="small" onClick={() => void back(one.number)} aria-label={`Take up again: version ${one.number}`}>
                      Take up again
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
