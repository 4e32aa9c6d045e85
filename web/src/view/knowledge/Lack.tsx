// What is shown where there is nothing to show.

import type { JSX } from 'preact'
import type { Problem } from '../../api/types'
import { Empty, Said } from '../parts'

/** Why there is no answer yet, or none at all. */
export function Lack({ problem }: { problem: Problem | null }): JSX.Element {
  if (!problem) return <div class="waiting" role="status" aria-label="Reading" />
  if (problem.code === 'no_knowledge') {
    return (
      <Empty title="This project keeps no knowledge" command="stafette init --template odei">
        With a section [knowledge] in stafette.toml, talk, goals, decisions, time and what was learned are kept and shown here. A project that has all of it begins with
      </Empty>
    )
  }
  return (
    <Empty title={problem.title}>
      <Said text={problem.detail ?? ''} />
    </Empty>
  )
}

/** How much of something, as a bar. */
export function Bar({ part, label }: { part: number; label: string }): JSX.Element {
  return (
    <span class="sure" role="img" aria-label={label} title={label}>
      <span style={{ width: `${Math.round(Math.min(1, Math.max(0, part)) * 100)}%` }} />
    </span>
  )
}
