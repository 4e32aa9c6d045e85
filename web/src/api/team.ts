// What the daemon says about councils, generations and phases, in its own words.

import type { Schemas } from './types'

export type Stance = Schemas['Stance']
export type Vote = Schemas['Vote']
export type Verdict = Schemas['Verdict']
export type CouncilView = Schemas['CouncilView']
/** A council with its discussion, as a run that was forked from it begins. */
export type CouncilState = Schemas['Council']

export type Lineage = Schemas['Lineage']

export type PhaseStep = Schemas['PhaseStep']
export type PhaseName = PhaseStep['phase']
export type PhaseDecision = Schemas['PhaseEnded']['decision']
export type Tokens = Schemas['Tokens']
export type Part = Schemas['Part']
export type PhasesView = Schemas['PhasesView']
export type PhaseLine = Schemas['PhaseLine']
