// Questions about what is known and planned. All types are the daemon's own.

import { get, post } from './client'
import type { paths } from './schema'

type Content<R> = R extends { content: { 'application/json': infer T } } ? T : never
type Got<P extends keyof paths> = paths[P] extends { get: { responses: { 200: infer R } } } ? Content<R> : never
type Posted<P extends keyof paths> = paths[P] extends { post: { responses: { 200: infer R } } } ? Content<R> : never

export type Label = 'Decision' | 'Discussion' | 'Goal' | 'Handoff' | 'Insight' | 'Task'

export type Threads = Got<'/v1/threads'>
export type ThreadView = Got<'/v1/threads/{thread}'>
export type Hits = Got<'/v1/threads/search'>
export type Nodes = Got<'/v1/graph/nodes'>
/** A node says by its label what it is. */
export type Node = Nodes['nodes'][number] & { label: Label }
export type Picture = Omit<Got<'/v1/graph/nodes/{node}/around'>, 'nodes'> & { nodes: Node[] }
export type Link = Picture['links'][number]
export type Health = Got<'/v1/knowledge'>
export type Goals = Got<'/v1/goals'>
export type Week = Got<'/v1/calendar'>
export type Block = Week['proposals'][number]
export type Occurrence = Week['events'][number]
export type DecisionView = Got<'/v1/decisions/{decision}'>
export type Ranked = Posted<'/v1/decisions/rank'>
export type Scored = Ranked['ranked'][number]
export type Term = Scored['parts'][number]['term']
export type ConstitutionView = Got<'/v1/constitution'>
export type Verdict = ConstitutionView['answers'][number]['answers'][number]['verdict']
export type Insights = Got<'/v1/insights'>
export type InsightView = Insights['insights'][number]
export type Versions = Got<'/v1/parameters'>
export type Version = Versions['versions'][number]
export type Reflection = Posted<'/v1/insights/reflect'>

const name = encodeURIComponent

export const THREADS = '/v1/threads?limit=500'
export const INSIGHTS = '/v1/insights?limit=500'
export const HEALTH = '/v1/knowledge'
export const PARAMETERS = '/v1/parameters'
export const threadPath = (id: string): string => `/v1/threads/${name(id)}?limit=500`
export const searchPath = (words: string): string => `/v1/threads/search?limit=100&q=${name(words)}`
export const nodesPath = (label: Label): string => `/v1/graph/nodes?limit=500&label=${label}`
export const aroundPath = (node: string, reach: number): string => `/v1/graph/nodes/${name(node)}/around?limit=80&reach=${reach}`
export const decisionPath = (id: string): string => `/v1/decisions/${name(id)}`
export const constitutionPath = (run: string | null): string => (run ? `/v1/constitution?run=${name(run)}` : '/v1/constitution')
export const weekPath = (from: number, to: number): string => `/v1/calendar?from=${name(moment(from))}&to=${name(moment(to))}`

const moment = (at: number): string => new Date(at).toISOString()
const block = (id: string): string => `/v1/calendar/blocks/${name(id)}`

export const accept = (id: string): Promise<Block> => post(`${block(id)}/accept`, { by: 'page' })
export const drop = (id: string): Promise<Block> => post(`${block(id)}/drop`, { by: 'page' })
export const move = (id: string, start: number, end: number): Promise<Block> => post(`${block(id)}/move`, { start: moment(start), end: moment(end) })

export const acceptInsight = (id: string): Promise<Version> => post(`/v1/insights/${name(id)}/accept`)
export const rollBack = (to: number): Promise<Version> => post('/v1/parameters/rollback', { to })
export const reflect = (): Promise<Reflection> => post('/v1/insights/reflect')

export { get }
