// The parts of what is known, in one file for the browser.

import type { FunctionComponent } from 'preact'
import type { Part } from '../../state/place'
import '../../style/knowledge.css'
import '../../style/week.css'
import '../../style/walk.css'
import { Constitution } from './Constitution'
import { Decisions } from './Decisions'
import { Insights } from './Insights'
import { Threads } from './Threads'
import { Walk } from './Walk'
import { Week } from './Week'

export const PARTS: Record<Part, FunctionComponent> = {
  decisions: Decisions,
  calendar: Week,
  threads: Threads,
  graph: Walk,
  constitution: Constitution,
  insights: Insights,
}
