// What the daemon says about councils, generations and phases, in its own words.

import type { components } from './schema'

/** As it is told: money and times may be asked for in words, but are told in numbers. */
type Told<T> = unknown extends T ? T : string | number extends T ? number | Extract<T, null | undefined> : T extends (infer One)[] ? Told<One>[] : T extends object ? { [Name in keyof T]: Told<T[Name]> } : T

type Schemas = { [Name in keyof components['schemas']]: Told<components['schemas'][Name]> }

export type Stance = Schemas['Stance']
export type Vote = Schemas['Vote']
export type Verdict = Schemas['Verdict']
export type CouncilRules = Schemas['CouncilRules']
export type CouncilView = Schemas['CouncilView']
/** A council with its discussion, as a run that was forked from it begins. */
export type CouncilState = Schemas['Council']

export type CouncilEvent =
  | ({ event: 'council_opened' } & Schemas['CouncilOpened'])
  | ({ event: 'council_heard' } & Schemas['CouncilHeard'])
  | ({ event: 'council_concluded' } & Schemas['CouncilConcluded'])
  | ({ event: 'council_reopened' } & Schemas['CouncilReopened'])

export type HandedOver = Schemas['GenerationHandedOver']
export type Lineage = Schemas['Lineage']

export type LineageEvent = ({ event: 'note_left' } & Schemas['NoteLeft']) | ({ event: 'generation_handed_over' } & HandedOver)

export type PhaseStep = Schemas['PhaseStep']
export type PhaseName = PhaseStep['phase']
export type PhaseDecision = Schemas['PhaseEnded']['decision']
export type Tokens = Schemas['Tokens']
export type Part = Schemas['Part']
export type PhasesView = Schemas['PhasesView']

export type PhaseEvent =
  | ({ event: 'phase_begun' } & Schemas['PhaseBegun'])
  | ({ event: 'phase_ended' } & Schemas['PhaseEnded'])

export type MeasureEvent = { event: 'turn_measured' } & Schemas['TurnMeasured']

export type AgentBudget = Schemas['AgentBudget']
